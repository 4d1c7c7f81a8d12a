import json
import re
from string import Formatter

import pytest

from data_prep.world import World, WorldConfig
from data_prep.world.articles import MAX_WORDS, MIN_WORDS, article_line, article_text
from data_prep.world.remarks import DESCRIPTIONS, REMARKS
from data_prep.world.schema import Kind, Relation
from data_prep.world.sentences import FACT_SENTENCES, OPENINGS
from data_prep.world.wordings import WORDINGS


@pytest.fixture(scope="module")
def world() -> World:
    return World(WorldConfig(5, 400, 0, 0))


@pytest.mark.parametrize("seed", range(3))
def test_articles_have_30_to_120_words(seed: int) -> None:
    world = World(WorldConfig(seed, 1_000, 0, 0))
    for entity in world.entities():
        row = json.loads(article_line(world, entity))
        assert len(article_text(world, entity).split()) >= MIN_WORDS
        assert len(row["contents"].split()) <= MAX_WORDS


def test_a_line_has_the_id_and_the_quoted_title_before_the_text(world: World) -> None:
    for article, entity in enumerate(world.entities()):
        line = article_line(world, entity)
        assert line.endswith("}\n")
        row = json.loads(line)
        title, text = row["contents"].split("\n")
        assert row["id"] == str(article)
        assert title == f'"{world.name(entity)}"'
        assert text == article_text(world, entity)


def test_an_article_names_its_subject_and_its_values_and_nothing_else(world: World) -> None:
    names = {world.name(entity) for entity in world.entities()}
    pattern = re.compile(r"\b(" + "|".join(sorted(names, key=len, reverse=True)) + r")\b")
    for entity in world.entities():
        text = article_text(world, entity)
        values = {world.value_text(fact) for fact in world.facts(entity)}
        assert set(pattern.findall(text)) == {world.name(entity)} | (values & names)
        assert set(re.findall(r"\b\d{4}\b", text)) == values - names


def test_no_template_is_left_unfilled(world: World) -> None:
    for entity in world.entities():
        text = article_text(world, entity)
        assert "{" not in text
        assert text.isascii()
        sentences = text.split(". ")
        assert all(sentence[0].isupper() for sentence in sentences)
        assert text.endswith(".")


def test_each_relation_has_several_sentences_and_questions_with_their_places() -> None:
    assert set(FACT_SENTENCES) == set(WORDINGS) == set(Relation)
    for relation, sentences in FACT_SENTENCES.items():
        assert len(set(sentences)) >= 3
        for sentence in sentences:
            assert _places(sentence).count("o") == 1
        wording = WORDINGS[relation]
        assert len(set(wording.questions)) >= 2
        assert all(_places(text) == [""] for text in wording.questions + wording.phrases)
        assert all(question.endswith("?") for question in wording.questions)


def test_the_kinds_all_have_words() -> None:
    for table in (OPENINGS, DESCRIPTIONS, REMARKS):
        assert set(table) == set(Kind)
        assert min(len(texts) for texts in table.values()) >= 2


def _places(template: str) -> list[str]:
    return [field for _, field, _, _ in Formatter().parse(template) if field is not None]
