"""The words of the protocol: its tags, its prompt and what the system says between turns.

No other module spells a tag, so changing the protocol means changing this file.
"""

from enum import StrEnum


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

INSTRUCTION = (
    "Answer the question at the end. "
    f"Whenever you have new information, first reason about it between {Tag.THINK.opening} and "
    f"{Tag.THINK.closing}. "
    "If you find that you lack some knowledge, call a search engine with "
    f"{Tag.SEARCH.wrap(' query ')}; the top results come back between "
    f"{Tag.INFORMATION.opening} and {Tag.INFORMATION.closing}. "
    "You can search as many times as you want. "
    "Once you need no more knowledge, give the final answer between "
    f"{Tag.ANSWER.opening} and {Tag.ANSWER.closing}, without explanation. "
    f"For example: {Tag.ANSWER.wrap(' Beijing ')}. "
    "Question: "
)

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


def build_messages(question: str) -> list[dict[str, str]]:
    """The chat that opens a trajectory: one user message, which ends with the question.

    Raises:
        ValueError: the question is empty.
    """
    return [{"role": "user", "content": INSTRUCTION + normalise_question(question)}]


def normalise_question(question: str) -> str:
    """The question without surrounding white space and with exactly one "?" at its end."""
    bare = question.strip().rstrip("? \t\r\n")
    if not bare:
        raise ValueError(f"the question is empty: {question!r}; drop this row of the data set")
    return f"{bare}?"
