"""The lines of a question file, and the JSON object of each."""

import gzip
import io
import json
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final

_TEXT_FIELDS: Final = (
    "id",
    "question",
    "golden_answers",
    "data_source",
    "supporting_ids",
    "chain",
)
"""The fields whose text is used; what others hold does no harm."""


def numbered_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines of a plain or gzipped file that are not blank, numbered from 1.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is damaged; the message names it and the line.
    """
    number = 0
    try:
        with _open(path) as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield number, line
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{path}:{number + 1}: not readable as gzip: {error}") from error


def parse_object(line: str | bytes) -> dict[str, Any]:
    """The JSON object on a line.

    Raises:
        ValueError: the line holds none, or text that no file can hold; the message says what.
    """
    text = line.decode() if isinstance(line, bytes) else line
    try:
        return _checked(json.loads(text))
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error}") from error
    except RecursionError as error:
        raise ValueError("not JSON for a question: nested too deeply; drop the row") from error


def _open(path: Path) -> BinaryIO:
    if path.suffix == ".gz":
        return io.BufferedReader(gzip.GzipFile(path, "rb"))
    return path.open("rb")


def _checked(row: object) -> dict[str, Any]:
    if not isinstance(row, dict):
        raise ValueError(f"a row must be a JSON object, not {type(row).__name__}")
    _refuse_lone_surrogates(row)
    return row


def _refuse_lone_surrogates(row: Mapping[str, Any]) -> None:
    for name in _TEXT_FIELDS:
        try:
            json.dumps(row.get(name), ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            half = ascii(error.object[error.start])
            raise ValueError(
                f"{name}: {half} is half of a character (a lone surrogate); write the whole one"
            ) from error
