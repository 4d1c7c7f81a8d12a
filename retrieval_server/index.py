"""Nearest vectors: the protocol of an index, and every type of it over FAISS."""

from pathlib import Path
from typing import Any, Final, Protocol, Self

import faiss
import numpy as np
import numpy.typing as npt

from retrieval_server.encoder import FloatArray
from retrieval_server.index_types import IndexType, SearchParameters

RowArray = npt.NDArray[np.int64]
VectorArray = npt.NDArray[np.float16] | npt.NDArray[np.float32]

NO_ROW: Final = -1
"""Stands, after all others, where an index found fewer rows than were asked for."""

_PRODUCT_FLOATS: Final = 800
_MOST_PRODUCT_FLOATS: Final = 128_000

_AS_IT_IS: Final = SearchParameters()
_CLASSES: Final = {
    IndexType.FLAT: "IndexFlat",
    IndexType.FLAT_FP16: "IndexScalarQuantizer",
    IndexType.FLAT_SQ8: "IndexScalarQuantizer",
    IndexType.IVF_FLAT: "IndexIVFFlat",
    IndexType.IVF_SQ8: "IndexIVFScalarQuantizer",
    IndexType.IVF_PQ: "IndexIVFPQ",
    IndexType.IVF_RABITQ: "IndexIVFRaBitQ",
    IndexType.HNSW: "IndexHNSWFlat",
    IndexType.HNSW_SQ8: "IndexHNSWSQ",
}


class VectorIndex(Protocol):
    """Finds the rows whose vectors have the largest inner product with a query's."""

    @property
    def rows(self) -> int:
        """Number of vectors."""

    @property
    def dimension(self) -> int:
        """Length of a vector."""

    def search(self, queries: FloatArray, topk: int) -> tuple[FloatArray, RowArray]:
        """Return scores (descending) and rows, both `[n, min(topk, rows)]`.

        Where an index finds fewer, the last rows are `NO_ROW`.
        """

    def vector(self, row: int) -> FloatArray:
        """Return the stored vector of a row, `[dimension]`, as exact as the index has it."""


class FaissIndex:
    """A FAISS index that ranks by inner product; make one with `load`.

    Args:
        index: Of any type.
        search: What its searches choose, by the type; what is None is left as it is.
        vectors: `[rows, dimension]`, for an index that cannot give a vector back.
    """

    def __init__(
        self,
        index: faiss.Index,
        search: SearchParameters = _AS_IT_IS,
        vectors: VectorArray | None = None,
    ) -> None:
        self.faiss_index = index
        self._vectors = vectors
        inner = innermost(index)
        if search.nprobe is not None:
            inner.nprobe = search.nprobe
        if search.ef_search is not None:
            inner.hnsw.efSearch = search.ef_search

    @classmethod
    def load(
        cls,
        path: Path,
        type_: IndexType = IndexType.FLAT,
        search: SearchParameters = _AS_IT_IS,
        vectors: VectorArray | None = None,
        *,
        memory_map: bool = False,
    ) -> Self:
        """Read an index file.

        Args:
            path: The file.
            type_: What it must hold.
            search: What its searches choose.
            vectors: See the class.
            memory_map: Leave codes, lists or graph in the file: they are read when a search needs
                them, and processes that serve the same file share what is in memory.

        Raises:
            ValueError: Not a FAISS file of this type, or a truncated one.
        """
        index = read_faiss(path, type_, memory_map=memory_map)
        found = type(innermost(index)).__name__
        if found not in (_CLASSES[type_], f"{_CLASSES[type_]}IP", f"{_CLASSES[type_]}L2"):
            raise ValueError(f"{path} holds a {found}, not a {type_} index")
        if index.metric_type != faiss.METRIC_INNER_PRODUCT:
            raise ValueError(f"{path} does not rank by inner product")
        return cls(index, search, vectors)

    @property
    def rows(self) -> int:
        """Number of vectors."""
        return int(self.faiss_index.ntotal)

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return int(self.faiss_index.d)

    @property
    def lists(self) -> int | None:
        """Number of inverted lists, if it has any."""
        return int(getattr(innermost(self.faiss_index), "nlist", 0)) or None

    def search(self, queries: FloatArray, topk: int) -> tuple[FloatArray, RowArray]:
        """Return scores (descending) and rows, equal scores by row, `[n, min(topk, rows)]`."""
        scores, rows = self.faiss_index.search(queries, min(topk, self.rows))
        return best_first(scores, rows, topk)

    def vector(self, row: int) -> FloatArray:
        """Return the stored vector of a row, `[dimension]`."""
        found = self.faiss_index.reconstruct(row) if self._vectors is None else self._vectors[row]
        return np.asarray(found, dtype=np.float32)


def read_faiss(path: Path, type_: IndexType, *, memory_map: bool) -> faiss.Index:
    """Read a FAISS file of a type, whole or by memory map.

    Raises:
        ValueError: Not a FAISS file, or a truncated one.
    """
    _prefer_products()
    # Inverted lists are mapped by one flag of FAISS, flat codes and graphs by another.
    map_flag = faiss.IO_FLAG_MMAP if type_.has_lists else faiss.IO_FLAG_MMAP_IFC
    try:
        return faiss.read_index(str(path), map_flag if memory_map else 0)
    except RuntimeError as error:
        reason = str(error).strip().splitlines()[-1]
        raise ValueError(f"{path} is not a whole FAISS index: {reason}") from error


def _prefer_products() -> None:
    """Let FAISS search several queries by one product of matrices where that is faster.

    Below so many query floats it reads all vectors once a query. FAISS 1.15 sets the bound for
    machines of 80 threads and more (its pull request 5109): with one or two, a batch of 64 queries
    then takes 7 times as long.
    """
    bound = min(_PRODUCT_FLOATS * faiss.omp_get_max_threads(), _MOST_PRODUCT_FLOATS)
    faiss.cvar.distance_compute_blas_threshold = bound


def innermost(index: faiss.Index) -> Any:  # noqa: ANN401 - of a class that has no stub
    """The index behind a transformation of the vectors, if there is one."""
    if isinstance(index, faiss.IndexPreTransform):
        return faiss.downcast_index(index.index)
    return index


def best_first(scores: FloatArray, rows: RowArray, topk: int) -> tuple[FloatArray, RowArray]:
    """Sort each line by score, equal scores by row, `NO_ROW` last, and keep `topk`."""
    scores = np.where(rows == NO_ROW, -np.inf, scores)
    order = np.lexsort((rows, -scores), axis=-1)[:, :topk]
    return np.take_along_axis(scores, order, -1), np.take_along_axis(rows, order, -1)
