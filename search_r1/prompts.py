"""The words of the protocol: its tags, its prompt and what the system says between turns.

No other module spells a tag, so changing the protocol means changing this file.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any


class Tag(StrEnum):
    """The four tags. The model writes all of them except INFORMATION, which the system writes."""

    THINK = "think"
    SEARCH = "search"
    INFORMATION = "information"
    ANSWER = "answer"

    @property
    def opening(self) -> str:
        """The tag that opens a block, for example `<think>`."""
        return f"<{self.value}>"

    @property
    def closing(self) -> str:
        """The tag that closes a block, for example `</think>`."""
        return f"</{self.value}>"

    def wrap(self, text: str) -> str:
        """`text` between the opening and the closing tag."""
        return f"{self.opening}{text}{self.closing}"

    def unwrap(self, text: str) -> str:
        """What stands between the first opening and the last closing tag in `text`."""
        return text.partition(self.opening)[2].rpartition(self.closing)[0]


STOP_STRINGS = (Tag.SEARCH.closing, Tag.ANSWER.closing)
"""A turn ends as soon as the model has written one of these."""

_TASK = "Answer the question at the end. "
_THOUGHTS = f"between {Tag.THINK.opening} and {Tag.THINK.closing}. "
_FINAL_ANSWER = (
    f"give the final answer between {Tag.ANSWER.opening} and {Tag.ANSWER.closing}, "
    f"without explanation. For example: {Tag.ANSWER.wrap(' Beijing ')}. "
    "Question: "
)

INSTRUCTION = (
    f"{_TASK}"
    f"Whenever you have new information, first reason about it {_THOUGHTS}"
    "If you find that you lack some knowledge, call a search engine with "
    f"{Tag.SEARCH.wrap(' query ')}; the top results come back between "
    f"{Tag.INFORMATION.opening} and {Tag.INFORMATION.closing}. "
    "You can search as many times as you want. "
    f"Once you need no more knowledge, {_FINAL_ANSWER}"
)

INSTRUCTION_WITHOUT_SEARCH = f"{_TASK}First reason about it {_THOUGHTS}Then {_FINAL_ANSWER}"
"""For a policy that may not search: it is told of no search engine (R1; paper, section 4.2)."""

INVALID_ACTION_MESSAGE = (
    "\n\nThat action was not valid. "
    f"To search, write the query between {Tag.SEARCH.opening} and {Tag.SEARCH.closing}. "
    f"To answer, write the answer between {Tag.ANSWER.opening} and {Tag.ANSWER.closing}.\n\n"
)
"""Follows a turn in which neither a search nor an answer is complete."""

ANSWER_NOW_MESSAGE = (
    "\n\nNo more searches are possible. "
    f"Give the final answer now, between {Tag.ANSWER.opening} and {Tag.ANSWER.closing}.\n\n"
)
"""Follows a search whose results would leave no room for an answer."""

SEARCH_FAILED_TEXT = "The search engine is not available now."
"""Stands in the information block in place of passages when a search failed for good."""

NO_PASSAGES_TEXT = "No passages were found."
"""Stands in the information block when the search engine found nothing."""


def build_messages(question: str, *, may_search: bool = True) -> list[dict[str, str]]:
    """The chat that opens a trajectory: one user message, which ends with the question.

    Args:
        question: As its set has it.
        may_search: Whether the policy is told of the search engine.

    Raises:
        ValueError: the question is empty.
    """
    instruction = INSTRUCTION if may_search else INSTRUCTION_WITHOUT_SEARCH
    return [{"role": "user", "content": instruction + normalise_question(question)}]


def messages_of_row(row: Mapping[str, Any], *, may_search: bool) -> list[dict[str, str]]:
    """The chat that opens the trajectory of a row of training data.

    Rows are made for a policy that searches. One that may not is asked the row's question anew, so
    that both train on the same files.

    Args:
        row: `raw_prompt`, the chat that was prepared, and `extra_info.question`.
        may_search: Whether the policy is told of the search engine.

    Raises:
        KeyError: a field is missing.
        ValueError: the question is empty.
    """
    if may_search:
        return list(row["raw_prompt"])
    return build_messages(row["extra_info"]["question"], may_search=False)


def normalise_question(question: str) -> str:
    """The question without surrounding white space and with exactly one "?" at its end."""
    bare = question.strip().rstrip("? \t\r\n")
    if not bare:
        raise ValueError(f"the question is empty: {question!r}; drop this row of the data set")
    return f"{bare}?"
