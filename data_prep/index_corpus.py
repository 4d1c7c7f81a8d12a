"""First stage of an index: every corpus row checked, stored and given a byte offset."""

import gzip
import hashlib
import io
import os
import zlib
from array import array
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

import numpy as np

from retrieval_server.corpus import parse_row
from retrieval_server.manifest import CORPUS_FILE, OFFSETS_FILE, CorpusInfo

Advance = Callable[[int], None]
"""Takes how many bytes of the source have been read."""

_REPORT_EVERY = 2048


class CorpusError(ValueError):
    """A corpus file that cannot be indexed; the message names the file and the line."""


def store_corpus(source: Path, folder: Path, advance: Advance) -> CorpusInfo:
    """Put a corpus into an index folder, byte for byte, with its offset table.

    A plain file is linked where the file system allows it, else copied; a `.gz` is unpacked.
    Memory: 8 bytes a row.

    Args:
        source: JSONL, or JSONL in gzip, of `{"id", "contents"}` or `{"id", "title", "text"}`;
            blank lines are passed over.
        folder: Where `corpus.jsonl` and `offsets.npy` are written.
        advance: Told how many bytes have been read, now and then.

    Raises:
        CorpusError: A row is not of these forms, the file is damaged, or there are no rows.
    """
    target = folder / CORPUS_FILE
    # Never opened for writing: it may be a link to the user's own file.
    target.unlink(missing_ok=True)
    linked = source.suffix != ".gz" and _link(source, target)
    digest = hashlib.sha256()
    offsets = array("q")
    end = 0
    with ExitStack() as stack:
        copy = None if linked else stack.enter_context(target.open("wb"))
        for number, line in enumerate(corpus_lines(source, advance), start=1):
            if line.strip():
                _check(source, number, line)
                offsets.append(end)
            end += len(line)
            digest.update(line)
            if copy is not None:
                copy.write(line)
    if not offsets:
        raise CorpusError(f"{source} has no rows")
    np.save(folder / OFFSETS_FILE, np.array([*offsets, end], dtype=np.int64))
    return CorpusInfo(rows=len(offsets), bytes=end, sha256=digest.hexdigest())


def _link(source: Path, target: Path) -> bool:
    try:
        os.link(source.resolve(), target)
    except OSError:
        return False
    return True


def _check(source: Path, number: int, line: bytes) -> None:
    try:
        parse_row(line)
    except ValueError as error:
        raise CorpusError(f"{source}, line {number}: {error}") from error


def corpus_lines(source: Path, advance: Advance) -> Iterator[bytes]:
    r"""Yield lines that end at `\n` alone, whatever other line ends Unicode knows.

    Raises:
        CorpusError: a `.gz` file is damaged; the message names the last line that could be read.
    """
    number = 0
    with source.open("rb") as raw:
        try:
            for number, line in enumerate(_unpacked(source, raw), start=1):
                yield line
                if number % _REPORT_EVERY == 0:
                    advance(raw.tell())
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise CorpusError(f"{source} is damaged after line {number}: {error}") from error
        advance(raw.tell())


def _unpacked(source: Path, raw: BinaryIO) -> BinaryIO:
    if source.suffix == ".gz":
        return io.BufferedReader(gzip.GzipFile(fileobj=raw, mode="rb"))
    return raw
