"""Passages, and the retrieval server's reply -> passages.

Both wire forms are read: hits with scores, `{"document": {...}, "score": 0.8}`, and the documents
alone. A document carries `contents` (`"Title"` in quotes, a line break, the text) or `title` and
`text`.
"""

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Passage:
    """One retrieved passage; `score` is None when the server did not send it."""

    id: str
    title: str
    text: str
    score: float | None = None


class MalformedReplyError(ValueError):
    """The reply breaks the retrieval API; the message says where."""


def read_reply(body: bytes, query_count: int) -> list[list[Passage]]:
    """The passages of a reply as it came; see `parse_reply`.

    Raises:
        MalformedReplyError: it is not JSON, or breaks the retrieval API.
    """
    try:
        reply = json.loads(body)
    except RecursionError as error:
        raise MalformedReplyError("the reply is nested too deeply") from error
    except ValueError as error:
        raise MalformedReplyError("the reply is not JSON") from error
    return parse_reply(reply, query_count)


def parse_reply(reply: object, query_count: int) -> list[list[Passage]]:
    """The passages of a decoded JSON reply, one list a query, in the order of the queries.

    Raises:
        MalformedReplyError: a field is missing or of the wrong kind, or there is not exactly one
            list a query.
    """
    hit_lists = reply.get("result") if isinstance(reply, Mapping) else None
    if not isinstance(hit_lists, list):
        raise MalformedReplyError("field 'result' is not a list")
    if len(hit_lists) != query_count:
        raise MalformedReplyError(f"'result' has {len(hit_lists)} lists for {query_count} queries")
    return [_parse_hits(hits, f"result[{row}]") for row, hits in enumerate(hit_lists)]


def _parse_hits(hits: object, where: str) -> list[Passage]:
    if not isinstance(hits, list):
        raise MalformedReplyError(f"{where} is not a list")
    return [_parse_hit(hit, f"{where}[{rank}]") for rank, hit in enumerate(hits)]


def _parse_hit(hit: object, where: str) -> Passage:
    if not isinstance(hit, Mapping):
        raise MalformedReplyError(f"{where} is not an object")
    document = hit.get("document", hit)
    if not isinstance(document, Mapping):
        raise MalformedReplyError(f"{where}.document is not an object")
    title, text = _title_and_text(document, where)
    return Passage(str(document.get("id", "")), title, text, _score(hit, where))


def _title_and_text(document: Mapping[str, object], where: str) -> tuple[str, str]:
    contents, text = document.get("contents"), document.get("text")
    title = document.get("title")
    if isinstance(title, str) and isinstance(text, str):
        return _whole(title), _whole(text)
    if not isinstance(contents, str):
        raise MalformedReplyError(f"{where} has neither 'contents' nor 'title' and 'text'")
    first_line, line_break, rest = _whole(contents).partition("\n")
    title = first_line.strip().removeprefix('"').removesuffix('"')
    return (title, rest) if line_break else ("", first_line)


def _score(hit: Mapping[str, object], where: str) -> float | None:
    score = hit.get("score")
    if score is None:
        return None
    if isinstance(score, bool) or not isinstance(score, int | float) or not _is_finite(score):
        raise MalformedReplyError(f"{where}.score is not a number: {score!r}")
    return float(score)


def _is_finite(number: float) -> bool:
    # Unlike isfinite, this takes whole numbers that no float can hold.
    return abs(number) <= sys.float_info.max


def _whole(text: str) -> str:
    """`text` without halves of characters, which JSON can carry and no tokenizer takes."""
    return text.encode(errors="replace").decode()
