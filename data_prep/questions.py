"""Question sets in FlashRAG's layout: reading, checking and merging.

A set is JSON lines, plain or gzipped, with `id`, `question` and `golden_answers`; further keys
(`data_source`, `hops`, `type`, `supporting_ids`, ...) are kept as metadata.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from data_prep.question_lines import numbered_lines, parse_object

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
    for number, line in numbered_lines(path):
        try:
            yield parse_question(line, data_source)
        except UnicodeDecodeError as error:
            raise ValueError(f"{path}:{number}: not readable as UTF-8 text: {error}") from error
        except ValueError as error:
            raise ValueError(f"{path}:{number}: {error}") from error


def not_empty(questions: Iterable[Question], where: object) -> Iterator[Question]:
    """The questions as they come.

    Raises:
        ValueError: there are none; the message says where, which is a file or the like.
    """
    empty = True
    for question in questions:
        empty = False
        yield question
    if empty:
        raise ValueError(f"{where}: has no rows; leave it out, or give one that has questions")


def parse_question(line: str | bytes, data_source: str | None = None) -> Question:
    """Check one row and make it a `Question`.

    Raises:
        ValueError: the row is wrong; the message names the field.
    """
    return question_from_row(parse_object(line), data_source)


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


def merge(
    sets: Iterable[Iterable[Question]], seed: int | None = None, names: Sequence[object] = ()
) -> list[Question]:
    """Join several sets into one whose ids are unique, in a drawn order.

    An id gets its data source as a prefix, `nq/12`, unless it has it already, as in `nq_12`.
    The order depends on the seed and the ids only, not on the order of the sets.

    Args:
        sets: the sets, each in any order.
        seed: decides the order; None keeps the order given.
        names: of the sets, such as their files, for the message.

    Raises:
        ValueError: two questions have the same id.
    """
    merged: dict[str, Question] = {}
    origins: dict[str, int] = {}
    for number, questions in enumerate(sets):
        for question in map(_with_prefix, questions):
            first = origins.setdefault(question.id, number)
            if question.id in merged:
                raise ValueError(_twice(question, names and (names[first], names[number])))
            merged[question.id] = question
    if seed is None:
        return list(merged.values())
    return sorted(merged.values(), key=lambda question: _shuffle_key(seed, question.id))


def _twice(question: Question, names: Sequence[object]) -> str:
    where = f"{names[-1]}: " if names else ""
    first = f", first in {names[0]}" if names and names[0] != names[-1] else ""
    return (
        f"{where}id: {question.id!r} occurs twice in data source {question.data_source!r}{first}; "
        "give the sets different data sources or the rows different ids"
    )


def _with_prefix(question: Question) -> Question:
    source = question.data_source
    if question.id.startswith((f"{source}/", f"{source}_")):
        return question
    return replace(question, id=f"{source}/{question.id}")


def _shuffle_key(seed: int, id_: str) -> bytes:
    return hashlib.blake2b(f"{seed}:{id_}".encode(), digest_size=16).digest()


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
    value = row.get("data_source")
    if value is None and default is None:
        raise ValueError("data_source: missing; add the field or give --data-source NAME")
    return _text({"data_source": default if value is None else value}, "data_source")


def _metadata(row: Mapping[str, Any]) -> dict[str, Any]:
    metadata = {key: value for key, value in row.items() if key not in _FIELDS}
    hops = metadata.get("hops", 0)
    if not isinstance(hops, int) or isinstance(hops, bool) or not 0 <= hops < 2**63:
        raise ValueError(f"hops: must be a whole number, not {hops!r}")
    ids = metadata.get("supporting_ids", [])
    if not isinstance(ids, list) or not all(isinstance(id_, str) for id_ in ids):
        raise ValueError(f"supporting_ids: must be a list of texts, not {ids!r}")
    return metadata
