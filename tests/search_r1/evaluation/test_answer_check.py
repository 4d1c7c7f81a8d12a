import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from data_prep.questions import Question
from search_r1.evaluation.answer_check import answer_check
from search_r1.evaluation.method import Tools
from search_r1.evaluation.methods import search_r1
from search_r1.evaluation.runner import answer_line

Row = dict[str, Any]


@pytest.fixture
def questions(questions_of: Callable[..., list[Question]]) -> list[Question]:
    return questions_of(3)


@pytest.fixture
def rows(questions: list[Question], tools: Tools) -> list[Row]:
    """What an evaluation stores."""
    return [json.loads(asyncio.run(answer_line(one, search_r1, tools))) for one in questions]


def test_what_an_evaluation_stores_passes(questions: list[Question], rows: list[Row]) -> None:
    check = answer_check(questions)
    for row in rows:
        check(row)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda row: [row.pop(key) for key in list(row) if key != "id"], "no field question"),
        (lambda row: row.pop("data_source"), "no field data_source"),
        (lambda row: row.update(sampled_tokens="9"), "sampled_tokens must be a whole number"),
        (lambda row: row["reward_parts"].pop("sub_em"), r"no field reward_parts\.sub_em"),
        (lambda row: row["reward_parts"].pop("format"), r"no field reward_parts\.format"),
        (lambda row: row.update(id="nq/9"), "id 'nq/9' is none of the questions of nq"),
        (lambda row: row.update(data_source="popqa"), "none of the questions of popqa"),
    ],
)
def test_a_broken_answer_is_named_by_its_field(
    questions: list[Question], rows: list[Row], change: Callable[[Row], Any], message: str
) -> None:
    check = answer_check(questions)
    check(rows[0])
    change(rows[1])
    with pytest.raises(ValueError, match=message):
        check(rows[1])
