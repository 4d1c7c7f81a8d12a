"""What the small policy is pretrained on: passages of fictional worlds, and what they tell.

A large model can read before it learns to search; this one is taught to. A text is a question of
one hop, an information block as the rollout shows it, the answer in its tag, and other facts of the
passage asked for and answered alike. No text has a search in it, or says where passages come from.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass

from data_prep.demonstrator import BLIND_ANSWER_THOUGHTS
from data_prep.library import Library
from data_prep.world.articles import article_text, mention
from data_prep.world.schema import Entity, Fact
from data_prep.world.wordings import WORDINGS
from data_prep.world.world import World
from search_r1.observation import fit_passages
from search_r1.passages import Passage
from search_r1.prompts import Tag

FACTS = 8
"""Told after a text's passages, at the most."""
_LONGEST = 1_000


class _Words:
    """As a tokenizer: a number a word. It only measures, so that no passage is cut."""

    def encode(self, text: str) -> list[int]:
        return list(range(len(text.split())))

    def decode(self, token_ids: list[int]) -> str:
        raise NotImplementedError


def passage_of(world: World, entity: Entity) -> Passage:
    """The article about an entity."""
    return Passage(world.article_id(entity), world.name(entity), article_text(world, entity))


def library_of(world: World) -> Library:
    """All articles of a world."""
    return Library(passage_of(world, entity) for entity in world.entities())


@dataclass(frozen=True, slots=True)
class Piece:
    """Some of a text; whether it is to be learnt."""

    text: str
    trained: bool = False


def reading_texts(world: World, rng: random.Random) -> Iterator[list[Piece]]:
    """Texts about a world, without end.

    Args:
        world: Its articles and facts.
        rng: Chooses.
    """
    library = library_of(world)
    while True:
        entity = world.census.entity(rng.randrange(world.config.articles))
        facts = list(world.facts(entity))
        if not facts:
            continue
        rng.shuffle(facts)
        asked = facts[0]
        [passage] = library.find(world.name(entity), 1, rng)
        if (block := fit_passages([passage], _Words(), _LONGEST)) is None:
            raise ValueError(f"{passage.title}: its article is longer than {_LONGEST} words")
        question = rng.choice(WORDINGS[asked.relation].questions).format(mention(world, entity))
        thought = Tag.THINK.wrap(rng.choice(BLIND_ANSWER_THOUGHTS)) * rng.randrange(2)
        text = [Piece(f"{question}\n{block.text}{thought}"), _answer(world, asked)]
        for fact in facts[1:FACTS]:
            text += [_asked(world, fact, rng), _answer(world, fact)]
        yield text


def _asked(world: World, fact: Fact, rng: random.Random) -> Piece:
    wording = WORDINGS[fact.relation]
    phrase = rng.choice([*wording.questions, *wording.phrases]).format(mention(world, fact.subject))
    return Piece(f" {phrase}")


def _answer(world: World, fact: Fact) -> Piece:
    return Piece(Tag.ANSWER.wrap(f" {world.value_text(fact)} "), trained=True)
