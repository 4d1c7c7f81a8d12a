"""A trajectory's record -> the pieces that the page shows: coloured tags and folded passages."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from search_r1.metrics import Row
from search_r1.prompts import Tag
from search_r1.run_report.failures import Failure, classify

_MODEL_TAGS: Final = (Tag.THINK, Tag.SEARCH, Tag.ANSWER)
_BLOCK: Final = re.compile(rf"<(?P<tag>{'|'.join(_MODEL_TAGS)})>.*?(?:</(?P=tag)>|\Z)", re.DOTALL)
_PASSAGE_HEAD: Final = re.compile(r'Doc \d+\(Title: ".*?"\) ')


@dataclass(frozen=True, slots=True)
class Piece:
    """Words of the model in one look."""

    kind: str
    """The tag around them, or `text`."""
    text: str


@dataclass(frozen=True, slots=True)
class ShownPassage:
    """A passage as the model saw it."""

    title: str
    text: str
    score: float | None


@dataclass(frozen=True, slots=True)
class ShownTurn:
    """One turn, and what the system said to it: passages, or else a message."""

    pieces: Sequence[Piece]
    passages: Sequence[ShownPassage]
    message: str


@dataclass(frozen=True, slots=True)
class ShownTrajectory:
    """A whole trajectory and why it is wrong, if it is."""

    record: Row
    failure: Failure | None
    turns: Sequence[ShownTurn]


def shape(record: Row) -> ShownTrajectory:
    """The trajectory of a record."""
    turns = [_turn(turn) for turn in record["transcript"]]
    return ShownTrajectory(record, classify(record), turns)


def split_by_tags(text: str) -> list[Piece]:
    """The text in pieces, which together are the text; a block never closed goes to its end."""
    pieces, end = [], 0
    for block in _BLOCK.finditer(text):
        pieces += [Piece("text", text[end : block.start()]), Piece(block["tag"], block.group())]
        end = block.end()
    pieces.append(Piece("text", text[end:]))
    return [piece for piece in pieces if piece.text.strip()]


def _turn(turn: Mapping[str, Any]) -> ShownTurn:
    passages = _passages(turn)
    message = "" if passages else turn["observation"].strip()
    return ShownTurn(split_by_tags(turn["text"]), passages, message)


def _passages(turn: Mapping[str, Any]) -> list[ShownPassage]:
    """The passages of an observation, one a line; none if the lines are not theirs."""
    hits = turn.get("passages") or []
    lines = Tag.INFORMATION.unwrap(turn["observation"]).split("\n")
    if len(hits) != len(lines):
        return []
    return [
        ShownPassage(hit["title"], _PASSAGE_HEAD.sub("", line, count=1), hit.get("score"))
        for hit, line in zip(hits, lines, strict=True)
    ]
