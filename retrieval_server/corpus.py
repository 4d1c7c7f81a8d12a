"""The passages: a JSONL file read by memory map through a table of byte offsets."""

import mmap
from collections.abc import Iterable
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from retrieval_server.schemas import Document

OffsetArray = npt.NDArray[np.int64]


class _Row(BaseModel):
    """A corpus row as people write it: `{"id", "contents"}` or `{"id", "title", "text"}`."""

    model_config = ConfigDict(coerce_numbers_to_str=True)

    id: str
    contents: str | None = None
    title: str | None = None
    text: str | None = None

    @model_validator(mode="after")
    def _has_words(self) -> Self:
        if self.contents is None and self.text is None:
            raise ValueError("the row needs 'contents', or 'text' with an optional 'title'")
        return self


def split_contents(contents: str) -> tuple[str | None, str | None]:
    r"""Parse `"Title"\ntext` into title and text; `(None, None)` for any other form."""
    first, newline, text = contents.partition("\n")
    if newline and len(first) > 2 and first[0] == first[-1] == '"':
        return first[1:-1], text
    return None, None


def join_contents(title: str | None, text: str) -> str:
    r"""Write `"Title"\ntext`, or the text alone where there is no title."""
    return f'"{title}"\n{text}' if title else text


def parse_row(line: bytes) -> Document:
    """Read one JSON line of a corpus.

    Raises:
        ValueError: Not JSON, or a field is missing or of a wrong type; the message names it.
    """
    try:
        row = _Row.model_validate_json(line)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        field = "".join(f"field '{part}': " for part in first["loc"])
        raise ValueError(f"{field}{first['msg']}") from error
    if row.contents is None:
        contents = join_contents(row.title, row.text or "")
        return Document(id=row.id, contents=contents, title=row.title or None, text=row.text)
    title, text = split_contents(row.contents)
    return Document(
        id=row.id,
        contents=row.contents,
        title=row.title if row.title is not None else title,
        text=row.text if row.text is not None else text,
    )


class Corpus:
    r"""Random access to the rows of a JSONL file that may be larger than memory.

    Args:
        jsonl: The rows, one JSON object on a line; lines end at `\n` alone.
        offsets: A `.npy` file of int64 `[rows + 1]`: the byte at which each row begins, then
            the size of the file.

    Raises:
        ValueError: The table does not belong to the file.
    """

    def __init__(self, jsonl: Path, offsets: Path) -> None:
        self._offsets: OffsetArray = np.load(offsets, mmap_mode="r")
        with jsonl.open("rb") as file:
            self._bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        if int(self._offsets[-1]) != len(self._bytes):
            raise ValueError(
                f"{offsets} ends at byte {int(self._offsets[-1])} but {jsonl} has "
                f"{len(self._bytes)} bytes: build the index again"
            )

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __getitem__(self, row: int) -> Document:
        if not 0 <= row < len(self):
            raise IndexError(f"row {row} of a corpus of {len(self)}")
        return parse_row(self._bytes[int(self._offsets[row]) : int(self._offsets[row + 1])])

    def fetch(self, rows: Iterable[int]) -> list[Document]:
        """Return the documents of some rows, in the order asked for."""
        return [self[int(row)] for row in rows]

    def close(self) -> None:
        """Release the memory map."""
        self._bytes.close()
