"""What makes a row of a corpus good, beyond the form that `retrieval_server.corpus` owns."""

import json
from enum import StrEnum
from typing import Final

from pydantic import ValidationError

from data_prep.id_set import IdSet
from retrieval_server.corpus import parse_row, split_contents
from retrieval_server.schemas import Document


class Reason(StrEnum):
    """Why a row was set aside."""

    JSON = "not a JSON object"
    MISSING = "missing field"
    TYPE = "wrong type"
    EMPTY = "empty text"
    ID = "empty id"
    DUPLICATE = "duplicate id"


class BadRowError(ValueError):
    """A row that cannot be served; the message names the field."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason = reason


_MISSING: Final = {"missing", "value_error"}
_NOT_AN_OBJECT: Final = {"json_invalid", "model_type", "model_attributes_type"}


def check_row(line: bytes, seen: IdSet) -> Document:
    """Read one line and remember its id.

    Raises:
        BadRowError: the row is of no known form, is empty, or repeats an id.
    """
    document = _parse(line)
    title, text = split_contents(document.contents)
    if not (document.contents if title is None else text or "").strip():
        raise BadRowError(Reason.EMPTY, "field 'text' or 'contents': no text; drop the row")
    if not document.id.strip():
        raise BadRowError(Reason.ID, "field 'id': empty; give the row an id of its own")
    if not seen.add(document.id):
        raise BadRowError(
            Reason.DUPLICATE,
            f"field 'id': {document.id!r} was given before; give each row an id of its own",
        )
    return document


def corpus_line(document: Document) -> str:
    """The row as it is written: `{"id", "contents"}`, on one line."""
    row = {"id": document.id, "contents": document.contents}
    return json.dumps(row, ensure_ascii=False) + "\n"


def _parse(line: bytes) -> Document:
    try:
        return parse_row(line)
    except ValueError as error:
        raise BadRowError(_reason(error.__cause__), str(error)) from error


def _reason(cause: BaseException | None) -> Reason:
    assert isinstance(cause, ValidationError), "parse_row wraps pydantic's error"
    type_ = cause.errors(include_url=False, include_context=False)[0]["type"]
    if type_ in _NOT_AN_OBJECT:
        return Reason.JSON
    return Reason.MISSING if type_ in _MISSING else Reason.TYPE
