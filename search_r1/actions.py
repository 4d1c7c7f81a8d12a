"""What the model asked for: its text of one turn -> `Search`, `Answer` or `Invalid`."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from search_r1.prompts import Tag


class ActionKind(StrEnum):
    """The name of an action in records and metrics."""

    SEARCH = "search"
    ANSWER = "answer"
    INVALID = "invalid"


@dataclass(frozen=True, slots=True)
class Search:
    """The model wants passages for a query."""

    kind: ClassVar[ActionKind] = ActionKind.SEARCH
    query: str


@dataclass(frozen=True, slots=True)
class Answer:
    """The model gives its final answer, which may be empty."""

    kind: ClassVar[ActionKind] = ActionKind.ANSWER
    text: str


@dataclass(frozen=True, slots=True)
class Invalid:
    """The model completed neither a search with a query nor an answer."""

    kind: ClassVar[ActionKind] = ActionKind.INVALID


Action = Search | Answer | Invalid

_NO_OTHER_TAG = rf"(?:(?!</?(?:{Tag.SEARCH}|{Tag.ANSWER}|{Tag.INFORMATION})>).)*"

# Only the system writes information. A block that the model forges is matched first, so that
# nothing inside it is an action; one that it never closes reaches to the end of its turn.
_BLOCK = re.compile(
    rf"{Tag.INFORMATION.opening}.*?(?:{Tag.INFORMATION.closing}|\Z)"
    rf"|<(?P<tag>{Tag.SEARCH}|{Tag.ANSWER})>(?P<body>{_NO_OTHER_TAG})</(?P=tag)>",
    re.DOTALL,
)


def parse_action(text: str) -> Action:
    """The first complete action in the text of one turn."""
    block = next(_complete_blocks(text), None)
    return _to_action(block) if block else Invalid()


def kept_text(text: str) -> str:
    """The text of one turn through its first complete action, the part that counts.

    The last sampled token can carry characters beyond the closing tag: in some vocabularies `>`
    and a line break are one token.
    """
    block = next(_complete_blocks(text), None)
    return text[: block.end()] if block else text


def last_answer(model_texts: Iterable[str]) -> str | None:
    """The last complete answer in a trajectory, or None.

    Args:
        model_texts: What the model wrote, one text a turn. Each is read alone, so an answer never
            spans what the system inserted between two turns.
    """
    blocks = [block for text in model_texts for block in _complete_blocks(text)]
    answers = [block["body"].strip() for block in blocks if block["tag"] == Tag.ANSWER]
    return answers[-1] if answers else None


def _complete_blocks(text: str) -> Iterator[re.Match[str]]:
    return (block for block in _BLOCK.finditer(text) if block["tag"])


def _to_action(block: re.Match[str]) -> Action:
    body = block["body"].strip()
    if block["tag"] == Tag.ANSWER:
        return Answer(body)
    return Search(body) if body else Invalid()
