"""Nearest vectors: the protocol of an index, and the exact one over FAISS."""

from collections.abc import Iterable
from pathlib import Path
from typing import Protocol, Self

import faiss
import numpy as np
import numpy.typing as npt

from retrieval_server.encoder import FloatArray

RowArray = npt.NDArray[np.int64]


class VectorIndex(Protocol):
    """Finds the rows whose vectors have the largest inner product with a query's."""

    @property
    def rows(self) -> int:
        """Number of vectors."""

    @property
    def dimension(self) -> int:
        """Length of a vector."""

    def search(self, queries: FloatArray, topk: int) -> tuple[FloatArray, RowArray]:
        """Return scores (descending) and rows, both `[n, min(topk, rows)]`."""

    def vector(self, row: int) -> FloatArray:
        """Return the stored vector of a row, `[dimension]`."""


class FlatIndex:
    """Exact search over float32 vectors: `rows * dimension * 4` bytes, of memory or of a file."""

    def __init__(self, index: faiss.Index) -> None:
        self._index = index

    @classmethod
    def build(cls, dimension: int, chunks: Iterable[FloatArray]) -> Self:
        """Add chunks `[n, dimension]` one after the other; rows are numbered in that order."""
        index = faiss.IndexFlatIP(dimension)
        for chunk in chunks:
            index.add(chunk)
        return cls(index)

    @classmethod
    def load(cls, path: Path, *, mapped: bool = False) -> Self:
        """Read an index file, or map it: then all processes that do share its memory.

        Raises:
            ValueError: Not a FAISS file of this kind, or a truncated one.
        """
        try:
            index = faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC if mapped else 0)
        except RuntimeError as error:
            reason = str(error).strip().splitlines()[-1]
            raise ValueError(f"{path} is not a whole FAISS index: {reason}") from error
        if not isinstance(index, faiss.IndexFlat):
            raise ValueError(f"{path} holds a {type(index).__name__}, not a flat index")
        if index.metric_type != faiss.METRIC_INNER_PRODUCT:
            raise ValueError(f"{path} does not rank by inner product")
        return cls(index)

    def save(self, path: Path) -> None:
        """Write the index file."""
        faiss.write_index(self._index, str(path))

    @property
    def rows(self) -> int:
        """Number of vectors."""
        return int(self._index.ntotal)

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return int(self._index.d)

    def search(self, queries: FloatArray, topk: int) -> tuple[FloatArray, RowArray]:
        """Return scores (descending) and rows, equal scores by row, `[n, min(topk, rows)]`."""
        scores, rows = self._index.search(queries, min(topk, self.rows))
        order = np.lexsort((rows, -scores), axis=-1)
        return np.take_along_axis(scores, order, -1), np.take_along_axis(rows, order, -1)

    def vector(self, row: int) -> FloatArray:
        """Return the stored vector of a row, `[dimension]`."""
        return np.asarray(self._index.reconstruct(row), dtype=np.float32)
