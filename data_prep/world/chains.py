"""Chains of facts: what a question of several hops joins.

Each fact belongs to one side, training or held-out, and a chain stays on its side, so no fact that
a held-out question needs is needed by any training question.
"""

from dataclasses import dataclass
from enum import StrEnum

from data_prep.world.schema import Entity, Fact, Relation
from data_prep.world.world import World

RELATION_NUMBERS = {relation: number for number, relation in enumerate(Relation)}


class Split(StrEnum):
    """The two sides of a world."""

    TRAIN = "train"
    TEST = "test"


@dataclass(frozen=True, slots=True)
class Chain:
    """Facts in hop order; the value of one is the subject of the next."""

    facts: tuple[Fact, ...]

    @property
    def path(self) -> tuple[Entity | Relation, ...]:
        """First subject and relations, which determine the chain."""
        return (self.facts[0].subject, *(fact.relation for fact in self.facts))

    @property
    def entities(self) -> frozenset[Entity]:
        """All entities of the chain: the subjects and, unless it is a year, the answer."""
        answer = self.facts[-1].value
        subjects = {fact.subject for fact in self.facts}
        return frozenset(subjects if isinstance(answer, int) else subjects | {answer})


def side_of(world: World, fact: Fact) -> Split:
    """Which questions may use the fact."""
    key = world.census.article(fact.subject)
    number = RELATION_NUMBERS[fact.relation]
    held_out = world.draws.chance(world.config.held_out, "side", key, number)
    return Split.TEST if held_out else Split.TRAIN


def draw_chain(world: World, split: Split, hops: int, *keys: int) -> Chain | None:
    """One attempt to draw a chain; None when it ran into a dead end.

    A chain that is returned needs all its articles: its entities are different and its answer is
    named in the last article only. `keys` number the attempt.
    """
    start = world.draws.below(world.census.main_articles, f"{split} start", hops, *keys)
    subject = world.census.entity(start)
    seen: set[Entity | int] = {subject}
    facts: list[Fact] = []
    for hop in range(hops):
        stated = world.facts(subject)
        last = hop == hops - 1
        usable = [fact for fact in stated if _is_usable(world, fact, split, seen, last=last)]
        if not usable:
            return None
        fact = world.draws.pick(usable, f"{split} hop {hop}", hops, *keys)
        facts.append(fact)
        # Later answers must not be readable from this article either, whatever the relation.
        seen.update(other.value for other in stated)
        if isinstance(fact.value, Entity):
            subject = fact.value
    return Chain(tuple(facts))


def _is_usable(
    world: World, fact: Fact, split: Split, seen: set[Entity | int], *, last: bool
) -> bool:
    if isinstance(fact.value, int) and not last:
        return False
    return fact.value not in seen and side_of(world, fact) is split
