"""Coarse index first, exact vectors second: what a compressed index needs to rank as a flat one."""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from retrieval_server.encoder import FloatArray
from retrieval_server.index import RowArray, VectorIndex, best_first

HalfArray = npt.NDArray[np.float16]


def open_vectors(path: Path) -> HalfArray:
    """Map a file of half-precision vectors, `[rows, dimension]`; rows are read when used.

    Raises:
        ValueError: Not such a file, or a truncated one.
    """
    try:
        vectors: HalfArray = np.load(path, mmap_mode="r")
    except ValueError as error:
        raise ValueError(f"{path} is not a whole file of vectors: {error}") from error
    if vectors.dtype != np.float16 or vectors.ndim != 2:
        raise ValueError(f"{path} holds {vectors.dtype} {vectors.shape}, not float16 vectors")
    return vectors


class ReRankedIndex:
    """Takes candidates from a coarse index and scores them by their exact vectors.

    The number of candidates does not depend on `topk`, up to `candidates`, so that fewer passages
    are always the beginning of more.

    Args:
        coarse: Finds the candidates.
        vectors: Float16 `[rows, dimension]`, memory-mapped: only the candidates' rows are read,
            `candidates * dimension * 2` bytes for a query.
        candidates: Rows scored exactly for each query.
    """

    def __init__(self, coarse: VectorIndex, vectors: HalfArray, candidates: int) -> None:
        if vectors.shape != (coarse.rows, coarse.dimension):
            raise ValueError(
                f"there are {vectors.shape} exact vectors for an index of "
                f"{(coarse.rows, coarse.dimension)}: build the index again"
            )
        self._coarse = coarse
        self._vectors = vectors
        self._candidates = candidates

    @property
    def rows(self) -> int:
        """Number of vectors."""
        return self._coarse.rows

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return self._coarse.dimension

    def search(self, queries: FloatArray, topk: int) -> tuple[FloatArray, RowArray]:
        """Return exact scores (descending) and rows, `[n, min(topk, rows)]`."""
        _, rows = self._coarse.search(queries, max(topk, self._candidates))
        scores = np.stack([self._score(*pair) for pair in zip(queries, rows, strict=True)])
        return best_first(scores, rows, topk)

    def vector(self, row: int) -> FloatArray:
        """Return the exact vector of a row, `[dimension]`."""
        return np.asarray(self._vectors[row], dtype=np.float32)

    def _score(self, query: FloatArray, rows: RowArray) -> FloatArray:
        # In the order of the file, which is how a disk reads best; `NO_ROW` reads the last row,
        # and its score is not used.
        order = np.argsort(rows)
        scores = np.empty(len(rows), dtype=np.float32)
        scores[order] = self._vectors[rows[order]].astype(np.float32) @ query
        return scores
