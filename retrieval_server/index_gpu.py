"""A flat index over all GPUs in half precision, a part of the rows on each.

Written against FAISS's documented interface and never run: FAISS on PyPI is built for CPUs, and
what is tested here is which calls are made. It needs FAISS's GPU build (conda, `faiss-gpu`).
"""

from typing import Any

import faiss

from retrieval_server.encoder import FloatArray
from retrieval_server.index import FaissIndex, RowArray
from retrieval_server.index_types import IndexType


class GpuFlatIndex:
    """Searches a flat index on all GPUs: `rows * dimension * 2` bytes over all of them.

    The file is best memory-mapped: its vectors are then copied from disk to the GPUs.

    Args:
        index: Of type `flat`; single vectors are still read from it.
        type_: Its type.
        library: FAISS, or what stands for it.

    Raises:
        ValueError: It is of another type, or there is no GPU that FAISS can use.
    """

    def __init__(self, index: FaissIndex, type_: IndexType, library: Any = faiss) -> None:  # noqa: ANN401 - untyped
        if type_ is not IndexType.FLAT:
            raise ValueError(f"--faiss-gpu: only a flat index is searched on GPUs, not '{type_}'")
        if not library.get_num_gpus():
            raise ValueError(
                "--faiss-gpu: this build of FAISS sees no GPU; install faiss-gpu, or leave it out"
            )
        options = library.GpuMultipleClonerOptions()
        options.shard = True
        options.useFloat16 = True
        self._cpu = index
        self._gpu = FaissIndex(library.index_cpu_to_all_gpus(index.faiss_index, co=options))

    @property
    def rows(self) -> int:
        """Number of vectors."""
        return self._gpu.rows

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return self._gpu.dimension

    def search(self, queries: FloatArray, topk: int) -> tuple[FloatArray, RowArray]:
        """Return scores (descending) and rows, equal scores by row, `[n, min(topk, rows)]`."""
        return self._gpu.search(queries, topk)

    def vector(self, row: int) -> FloatArray:
        """Return the stored vector of a row, `[dimension]`."""
        return self._cpu.vector(row)
