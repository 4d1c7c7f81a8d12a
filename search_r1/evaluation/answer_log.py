"""The answers so far: a JSON line a question, in order of completion; a kill cannot spoil it."""

import fcntl
import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from search_r1.metrics import Row

logger = logging.getLogger(__name__)


class AnswerLog:
    """Appends to a file of answers, which it reads first. Memory: an offset a question.

    Args:
        path: The file; it is made if there is none. A torn last line is dropped.
        check: Raises ValueError for a row that is no answer.

    Raises:
        ValueError: a line is not an answer, or the second to a question; the message says which.
        BlockingIOError: another process has the file open.
    """

    def __init__(self, path: Path, check: Callable[[Row], None] = lambda _: None) -> None:
        self._path = path
        self._check = check
        self._file = path.open("a+b")
        self._offsets: dict[str, int] = {}
        self._end = 0
        self._lock()
        self._read()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._file.close()

    def __contains__(self, question_id: str) -> bool:
        return question_id in self._offsets

    def __len__(self) -> int:
        return len(self._offsets)

    def append(self, question_id: str, line: str) -> None:
        """Add an answer; once this returns, a kill of this process cannot lose it.

        Raises:
            ValueError: the question has one.
        """
        if question_id in self:
            raise ValueError(f"{self._path}: {question_id!r} was answered twice")
        # A half of a character becomes its own JSON escape, so nothing is lost.
        data = line.encode(errors="backslashreplace") + b"\n"
        self._file.write(data)
        self._file.flush()
        self._note(question_id, len(data))

    def row(self, question_id: str) -> dict[str, Any]:
        """An answer.

        Raises:
            KeyError: the question has none.
        """
        self._file.seek(self._offsets[question_id])
        row: dict[str, Any] = json.loads(self._file.readline())
        return row

    def _note(self, question_id: str, length: int) -> None:
        self._offsets[question_id] = self._end
        self._end += length

    def _lock(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self._file.close()
            raise BlockingIOError(
                f"{self._path}: another process is writing to it; wait for it, or give another "
                "--output"
            ) from error

    def _read(self) -> None:
        for question_id, length in self._whole_lines():
            self._note(question_id, length)
        size = self._file.seek(0, 2)
        if size > self._end:
            logger.warning("%s: dropped a torn last line of %d bytes", self._path, size - self._end)
            self._file.truncate(self._end)

    def _whole_lines(self) -> Iterator[tuple[str, int]]:
        self._file.seek(0)
        for number, line in enumerate(self._file, start=1):
            if not line.endswith(b"\n"):
                return
            try:
                yield self._id(line), len(line)
            except (ValueError, RecursionError) as error:
                raise ValueError(
                    f"{self._path}:{number}: not an answer: {error}; remove the line"
                ) from error

    def _id(self, line: bytes) -> str:
        row = json.loads(line)
        if not isinstance(row, dict) or "id" not in row:
            raise ValueError("no JSON object with an id")
        id_ = str(row["id"])
        self._check(row)
        if id_ in self:
            raise ValueError(f"{id_!r} has an answer in a line above")
        return id_
