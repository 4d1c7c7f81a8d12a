"""What a stored answer must hold: a broken line is found when it is read, not at the end."""

from collections.abc import Callable, Sequence

from data_prep.questions import Question
from search_r1.evaluation.scores import SCORES
from search_r1.metrics import Row
from search_r1.row_check import SUMMARISED, check_row

CheckAnswer = Callable[[Row], None]
"""Raises ValueError for a row that is no answer; the message names the field."""


def answer_check(questions: Sequence[Question]) -> CheckAnswer:
    """A check that an answer is one of these questions', and whole."""
    sources = {question.id: question.data_source for question in questions}
    parts = dict.fromkeys(SCORES)

    def check(row: Row) -> None:
        check_row(row, (*SUMMARISED, "data_source"), parts)
        if sources.get(row["id"]) != row["data_source"]:
            raise ValueError(f"id {row['id']!r} is none of the questions of {row['data_source']}")
        # The means are over all rows, so all have the parts of the first.
        parts.update(dict.fromkeys(row["reward_parts"]))

    return check
