"""Second stage of an index: one file of vectors, filled in chunks that survive a kill."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np

from retrieval_server.encoder import FloatArray
from retrieval_server.index import VectorArray
from retrieval_server.index_types import IndexType
from retrieval_server.manifest import VECTORS_FILE

VectorDtype = Literal["float16", "float32"]

DONE_FILE: Final = "vectors.done"
"""A byte for each chunk: 1 when its vectors are on disk."""
_DONE: Final = b"\1"


def vector_dtype(type_: IndexType) -> VectorDtype:
    """Half precision, which moves a score by less than 0.001, but for the exact index."""
    return "float32" if type_ is IndexType.FLAT else "float16"


class VectorStore:
    """`vectors.npy`, `[rows, dimension]`, of which some chunks may be missing yet.

    Only one process writes. A chunk counts as there once its bytes are on the disk.

    Args:
        folder: Where the file is, or is made.
        rows: Number of vectors.
        chunk_rows: Vectors written at a time.
        dtype: Of the file.
    """

    def __init__(self, folder: Path, rows: int, chunk_rows: int, dtype: VectorDtype) -> None:
        self.dtype = dtype
        self.path = folder / VECTORS_FILE
        self._done = folder / DONE_FILE
        self._rows = rows
        self._chunk_rows = chunk_rows
        self._chunks = -(-rows // chunk_rows)

    def missing(self) -> dict[int, range]:
        """The chunks that are not there yet, by number, with their rows."""
        done = self._done.read_bytes() if self._done.exists() else bytes(self._chunks)
        return {chunk: self.rows_of(chunk) for chunk in range(self._chunks) if not done[chunk]}

    def write(self, chunk: int, vectors: FloatArray) -> None:
        """Store the vectors of a chunk, `[rows of the chunk, dimension]`.

        Raises:
            ValueError: A vector is not finite, in the precision of the file, or of a wrong shape.
        """
        rows = self.rows_of(chunk)
        stored = self._writable(vectors.shape[1])
        if vectors.shape != (len(rows), stored.shape[1]):
            raise ValueError(f"the encoder gave {vectors.shape}, not {len(rows), stored.shape[1]}")
        with np.errstate(over="ignore"):
            block = vectors.astype(self.dtype)
        _check_finite(block, rows)
        stored[rows.start : rows.stop] = block
        stored.flush()
        self._mark(chunk)

    def rows_of(self, chunk: int) -> range:
        """The rows of a chunk."""
        start = chunk * self._chunk_rows
        return range(start, min(start + self._chunk_rows, self._rows))

    def _writable(self, dimension: int) -> "np.memmap[Any, Any]":
        if self._done.exists():
            return np.lib.format.open_memmap(self.path, mode="r+")  # type: ignore[no-untyped-call, no-any-return]
        made: np.memmap[Any, Any] = np.lib.format.open_memmap(  # type: ignore[no-untyped-call]
            self.path, mode="w+", dtype=self.dtype, shape=(self._rows, dimension)
        )
        self._done.write_bytes(bytes(self._chunks))
        return made

    def _mark(self, chunk: int) -> None:
        with self._done.open("r+b") as file:
            file.seek(chunk)
            file.write(_DONE)
            file.flush()
            os.fsync(file.fileno())

    def open(self) -> VectorArray:
        """Map the whole file, once no chunk is missing."""
        return np.load(self.path, mmap_mode="r")  # type: ignore[no-any-return]


def _check_finite(block: VectorArray, rows: range) -> None:
    bad = np.flatnonzero(~np.isfinite(block).all(axis=1))
    if bad.size:
        row = rows[int(bad[0])] + 1
        raise ValueError(f"corpus row {row} has a vector that is not finite: use --dtype float32")


def blocks(vectors: VectorArray, start: int, block_rows: int) -> Iterator[FloatArray]:
    """Float32 blocks from row `start` on; one is in memory at a time."""
    for begin in range(start, len(vectors), block_rows):
        yield np.asarray(vectors[begin : begin + block_rows], dtype=np.float32)
