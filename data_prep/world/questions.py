"""Chains -> questions with their answers, the ids of their articles and the chain itself."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

from data_prep.world.articles import mention
from data_prep.world.chains import RELATION_NUMBERS, Chain, Split, draw_chain
from data_prep.world.schema import Entity, Fact
from data_prep.world.wordings import WORDINGS
from data_prep.world.world import World

DATA_SOURCE = "fictional"

_MAX_FRUITLESS_ATTEMPTS = 20_000


@dataclass(frozen=True, slots=True)
class Hop:
    """One fact of a question, in words."""

    title: str
    relation: str
    answer: str


@dataclass(frozen=True, slots=True)
class WorldQuestion:
    """A question about a world; `chain` and `supporting_ids` are in hop order."""

    id: str
    question: str
    answer: str
    chain: tuple[Hop, ...]
    supporting_ids: tuple[str, ...]

    def line(self) -> str:
        """One line of JSON in FlashRAG's layout, with hops, supporting ids and chain added."""
        row = {
            "id": self.id,
            "question": self.question,
            "golden_answers": [self.answer],
            "hops": len(self.chain),
            "supporting_ids": self.supporting_ids,
            "data_source": DATA_SOURCE,
            "chain": [
                {"title": hop.title, "relation": hop.relation, "answer": hop.answer}
                for hop in self.chain
            ],
        }
        return json.dumps(row, ensure_ascii=False) + "\n"


def questions(world: World, split: Split) -> Iterator[WorldQuestion]:
    """The questions of one split, the numbers of hops taking turns.

    Raises:
        ValueError: the world has too few different chains for the number asked for.
    """
    for number, chain in enumerate(chains(world, split)):
        yield _question(world, chain, f"{DATA_SOURCE}_{world.config.seed}_{split}_{number}", number)


def stated_facts(world: World) -> Iterator[Hop]:
    """All facts of the world in words, in the order of the articles that state them."""
    for entity in world.entities():
        for fact in world.facts(entity):
            yield _in_words(world, fact)


def chains(world: World, split: Split) -> Iterator[Chain]:
    """The chains of one split: all different, and no training chain over held-out entities.

    Memory grows with the number of questions, not of articles.

    Raises:
        ValueError: the world has too few different chains for the number asked for.
    """
    config = world.config
    forbidden: set[frozenset[Entity]] = set()
    if split is Split.TRAIN:
        forbidden = {chain.entities for chain in chains(world, Split.TEST)}
    seen: set[int] = set()
    wanted = config.train_questions if split is Split.TRAIN else config.test_questions
    for number in range(wanted):
        yield _new_chain(world, split, number, seen, forbidden)


def _new_chain(
    world: World, split: Split, number: int, seen: set[int], forbidden: set[frozenset[Entity]]
) -> Chain:
    hops = world.config.hops[number % len(world.config.hops)]
    for attempt in count():
        if attempt == _MAX_FRUITLESS_ATTEMPTS:
            raise ValueError(
                f"{split}_questions: a world of {world.config.articles:,} articles has too few "
                f"different {hops}-hop questions for {split}, only {number:,} questions were "
                "made; ask for fewer or raise articles"
            )
        chain = draw_chain(world, split, hops, number, attempt)
        if chain is None or chain.entities in forbidden:
            continue
        key = _path_key(world, chain)
        if key not in seen:
            seen.add(key)
            return chain
    raise AssertionError("unreachable")


def _path_key(world: World, chain: Chain) -> int:
    start = world.census.article(chain.facts[0].subject)
    return world.draws.bits("path", start, *(RELATION_NUMBERS[f.relation] for f in chain.facts))


def _question(world: World, chain: Chain, id_: str, number: int) -> WorldQuestion:
    hops = tuple(_in_words(world, fact) for fact in chain.facts)
    supporting_ids = tuple(world.article_id(fact.subject) for fact in chain.facts)
    text = _question_text(world, chain, number)
    return WorldQuestion(id_, text, hops[-1].answer, hops, supporting_ids)


def _in_words(world: World, fact: Fact) -> Hop:
    return Hop(world.name(fact.subject), fact.relation.value, world.value_text(fact))


def _question_text(world: World, chain: Chain, number: int) -> str:
    subject = mention(world, chain.facts[0].subject)
    for hop, fact in enumerate(chain.facts[:-1]):
        phrase = world.draws.pick(WORDINGS[fact.relation].phrases, "phrase", number, hop)
        subject = phrase.format(subject)
    wordings = WORDINGS[chain.facts[-1].relation].questions
    return world.draws.pick(wordings, "question wording", number).format(subject)
