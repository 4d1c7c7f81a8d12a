"""Question sets in FlashRAG's layout: reading, checking and merging.

A set is JSON lines, plain or gzipped, with `id`, `question` and `golden_answers`; further keys
(`data_source`, `hops`, `type`, `supporting_ids`, ...) are kept as metadata.
"""

import gzip
import hashlib
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TextIO

_FIELDS = frozenset({"id", "question", "golden_answers", "data_source"})


@dataclass(frozen=True, slots=True)
class Question:
    """One question. `metadata` holds what the row carries beyond the fields named here."""

    id: str
    question: str
    golden_answers: tuple[str, ...]
    data_source: str
    metadata: Mapping[str, Any] = field(default_factory=dict)


def read_questions(path: Path, data_source: str | None = None) -> Iterator[Question]:
    """Read the questions of one file, in order.

    Args:
        path: a `.jsonl` or `.jsonl.gz` file.
        data_source: the name for rows that carry no `data_source` of their own.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: a row is wrong; the message names file, line and field.
    """
    for number, line in _numbered_lines(path):
        try:
            yield parse_question(line, data_source)
        except ValueError as error:
            raise ValueError(f"{path}:{number}: {error}") from error


def parse_question(line: str, data_source: str | None = None) -> Question:
    """Check one row and make it a `Question`.

    Raises:
        ValueError: the row is wrong; the message names the field.
    """
    return question_from_row(_parse_object(line), data_source)


def question_from_row(row: Mapping[str, Any], data_source: str | None = None) -> Question:
    """Check one row, already read from JSON, and make it a `Question`.

    Raises:
        ValueError: the row is wrong; the message names the field.
    """
    return Question(
        id=_text(row, "id"),
        question=_question_text(row),
        golden_answers=_answers(row),
        data_source=_data_source(row, data_source),
        metadata=_metadata(row),
    )


def merge(sets: Iterable[Iterable[Question]], seed: int | None = None) -> list[Question]:
    """Join several sets into one whose ids are unique, in a drawn order.

    An id gets its data source as a prefix, `nq/12`, unless it has it already, as in `nq_12`.
    The order depends on the seed and the ids only, not on the order of the sets.

    Args:
        sets: the sets, each in any order.
        seed: decides the order; None keeps the order given.

    Raises:
        ValueError: two questions have the same id.
    """
    merged: dict[str, Question] = {}
    for question in (_with_prefix(question) for questions in sets for question in questions):
        if question.id in merged:
            raise ValueError(
                f"id: {question.id!r} occurs twice in data source {question.data_source!r}; "
                "give the sets different data sources or the rows different ids"
            )
        merged[question.id] = question
    if seed is None:
        return list(merged.values())
    return sorted(merged.values(), key=lambda question: _shuffle_key(seed, question.id))


def _with_prefix(question: Question) -> Question:
    source = question.data_source
    if question.id.startswith((f"{source}/", f"{source}_")):
        return question
    return replace(question, id=f"{source}/{question.id}")


def _shuffle_key(seed: int, id_: str) -> bytes:
    return hashlib.blake2b(f"{seed}:{id_}".encode(), digest_size=16).digest()


def _numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines that are not blank, numbered from 1."""
    number = 0
    try:
        with _open(path) as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield number, line
    except (UnicodeDecodeError, EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{path}:{number + 1}: not readable as UTF-8 text: {error}") from error


def _open(path: Path) -> TextIO:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8")
    return path.open(encoding="utf-8")


def _parse_object(line: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error}") from error
    if not isinstance(row, dict):
        raise ValueError(f"a row must be a JSON object, not {type(row).__name__}")
    return row


def _text(row: Mapping[str, Any], field_name: str) -> str:
    value = row.get(field_name)
    if value is None:
        raise ValueError(f"{field_name}: missing; add the field")
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{field_name}: must be text that is not empty, not {value!r}")
    return value


def _question_text(row: Mapping[str, Any]) -> str:
    text = _text(row, "question")
    if not text.strip("? \t\r\n"):
        raise ValueError(f"question: {text!r} has no words; drop the row")
    return text


def _answers(row: Mapping[str, Any]) -> tuple[str, ...]:
    answers = row.get("golden_answers")
    if answers is None:
        raise ValueError("golden_answers: missing; add the field")
    if not isinstance(answers, list) or not answers:
        raise ValueError(f"golden_answers: must be a list of texts, not {answers!r}")
    for answer in answers:
        if not isinstance(answer, str) or not answer.strip():
            raise ValueError(f"golden_answers: {answer!r} must be text that is not empty")
    return tuple(answers)


def _data_source(row: Mapping[str, Any], default: str | None) -> str:
    if "data_source" not in row and default is None:
        raise ValueError("data_source: missing; add the field or give --data-source NAME")
    return _text({"data_source": default, **row}, "data_source")


def _metadata(row: Mapping[str, Any]) -> dict[str, Any]:
    metadata = {key: value for key, value in row.items() if key not in _FIELDS}
    hops = metadata.get("hops", 0)
    if not isinstance(hops, int) or isinstance(hops, bool) or hops < 0:
        raise ValueError(f"hops: must be a whole number, not {hops!r}")
    ids = metadata.get("supporting_ids", [])
    if not isinstance(ids, list) or not all(isinstance(id_, str) for id_ in ids):
        raise ValueError(f"supporting_ids: must be a list of texts, not {ids!r}")
    return metadata
