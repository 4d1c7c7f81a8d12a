import json
import re
from collections import Counter

import pytest

from data_prep.world import Split, World, WorldConfig, WorldQuestion, questions, stated_facts
from data_prep.world.articles import article_line
from data_prep.world.chains import side_of
from data_prep.world.questions import chains


@pytest.fixture(scope="module")
def world() -> World:
    return World(WorldConfig(11, 600, train_questions=900, test_questions=150))


@pytest.fixture(scope="module")
def made(world: World) -> dict[Split, list[WorldQuestion]]:
    return {split: list(questions(world, split)) for split in Split}


@pytest.fixture(scope="module")
def articles(world: World) -> dict[str, tuple[str, str]]:
    rows = [json.loads(article_line(world, entity)) for entity in world.entities()]
    return {row["id"]: tuple(row["contents"].split("\n")) for row in rows}


def test_the_numbers_of_hops_take_turns(made: dict[Split, list[WorldQuestion]]) -> None:
    for split, size in ((Split.TRAIN, 900), (Split.TEST, 150)):
        lengths = [len(question.chain) for question in made[split]]
        assert lengths == [1, 2, 3] * (size // 3)


def test_each_hop_is_in_its_article_and_leads_to_the_next(
    made: dict[Split, list[WorldQuestion]], articles: dict[str, tuple[str, str]]
) -> None:
    for question in made[Split.TRAIN] + made[Split.TEST]:
        assert len(set(question.supporting_ids)) == len(question.chain)
        for hop, id_ in zip(question.chain, question.supporting_ids, strict=True):
            title, text = articles[id_]
            assert title == f'"{hop.title}"'
            assert re.search(rf"\b{hop.answer}\b", text)
        for hop, following in zip(question.chain, question.chain[1:], strict=False):
            assert following.title == hop.answer
        assert question.answer == question.chain[-1].answer


def test_the_answer_is_in_the_last_article_only(
    made: dict[Split, list[WorldQuestion]], articles: dict[str, tuple[str, str]]
) -> None:
    for question in made[Split.TRAIN] + made[Split.TEST]:
        for id_ in question.supporting_ids[:-1]:
            assert not re.search(rf"\b{question.answer}\b", articles[id_][1])
        assert question.answer not in question.question


def test_the_question_names_its_first_subject_only(
    world: World, made: dict[Split, list[WorldQuestion]]
) -> None:
    names = {world.name(entity) for entity in world.entities()}
    pattern = re.compile(r"\b(" + "|".join(sorted(names, key=len, reverse=True)) + r")\b")
    for question in made[Split.TRAIN]:
        assert pattern.findall(question.question) == [question.chain[0].title]
        assert question.question.endswith("?")
        assert len(question.question.split()) <= 25


def test_an_answer_is_the_only_one(world: World, made: dict[Split, list[WorldQuestion]]) -> None:
    values: dict[tuple[str, str], set[str]] = {}
    for hop in stated_facts(world):
        values.setdefault((hop.title, hop.relation), set()).add(hop.answer)
    for question in made[Split.TRAIN] + made[Split.TEST]:
        for hop in question.chain:
            assert values[hop.title, hop.relation] == {hop.answer}


def test_train_and_test_share_no_fact_and_no_chain(world: World) -> None:
    train, test = (list(chains(world, split)) for split in Split)
    for split, made in ((Split.TRAIN, train), (Split.TEST, test)):
        assert all(side_of(world, fact) is split for chain in made for fact in chain.facts)
    train_facts = {fact for chain in train for fact in chain.facts}
    assert not train_facts & {fact for chain in test for fact in chain.facts}
    assert not {chain.entities for chain in train} & {chain.entities for chain in test}


def test_no_chain_and_no_id_repeats(world: World, made: dict[Split, list[WorldQuestion]]) -> None:
    for split in Split:
        assert len({chain.path for chain in chains(world, split)}) == len(made[split])
    ids = [question.id for split in Split for question in made[split]]
    assert len(set(ids)) == len(ids)
    assert all(id_.startswith("fictional_11_") for id_ in ids)


def test_most_relations_are_asked_and_years_are_a_minority(
    made: dict[Split, list[WorldQuestion]],
) -> None:
    asked = Counter(question.chain[-1].relation for question in made[Split.TRAIN])
    assert len(asked) >= 25
    years = sum(question.answer.isdigit() for question in made[Split.TRAIN])
    assert years < 0.25 * len(made[Split.TRAIN])


def test_a_line_is_flashrag_s_layout_with_the_chain(
    made: dict[Split, list[WorldQuestion]],
) -> None:
    question = made[Split.TEST][1]
    row = json.loads(question.line())
    assert list(row) == [
        "id",
        "question",
        "golden_answers",
        "hops",
        "supporting_ids",
        "data_source",
        "chain",
    ]
    assert row["hops"] == 2
    assert row["golden_answers"] == [question.answer]
    assert row["chain"][0]["answer"] == row["chain"][1]["title"]


def test_a_world_that_is_too_small_says_so() -> None:
    world = World(WorldConfig(0, 100, train_questions=0, test_questions=1_000, hops=(1,)))
    with pytest.raises(ValueError, match=r"test_questions: a world of 100 .* too few .* 1-hop"):
        list(questions(world, Split.TEST))
