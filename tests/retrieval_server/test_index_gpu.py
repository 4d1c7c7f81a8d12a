"""Which calls put a flat index on GPUs; no GPU has run them."""

from types import SimpleNamespace
from typing import Any

import faiss
import numpy as np
import pytest

from retrieval_server.index import FaissIndex
from retrieval_server.index_gpu import GpuFlatIndex
from retrieval_server.index_types import IndexType


class GpuFaiss:
    """What is used of FAISS's GPU build; its clones stay where they are."""

    def __init__(self, gpus: int) -> None:
        self.gpus = gpus
        self.options: Any = None

    def get_num_gpus(self) -> int:
        return self.gpus

    def GpuMultipleClonerOptions(self) -> SimpleNamespace:  # noqa: N802 - FAISS's name
        return SimpleNamespace(shard=False, useFloat16=False)

    def index_cpu_to_all_gpus(self, index: faiss.Index, co: SimpleNamespace) -> faiss.Index:
        self.options = co
        return faiss.clone_index(index)


@pytest.fixture
def cpu() -> FaissIndex:
    index = faiss.IndexFlatIP(2)
    index.add(np.array([[1, 0], [0, 1], [3, 0]], dtype=np.float32))
    return FaissIndex(index)


def test_rows_are_sharded_over_all_gpus_in_half_precision(cpu: FaissIndex) -> None:
    library = GpuFaiss(8)
    index = GpuFlatIndex(cpu, IndexType.FLAT, library)
    assert (library.options.shard, library.options.useFloat16) == (True, True)
    assert (index.rows, index.dimension) == (3, 2)
    assert index.search(np.array([[1, 0]], dtype=np.float32), 2)[1].tolist() == [[2, 0]]
    assert index.vector(2).tolist() == [3, 0]


def test_without_a_gpu_it_is_refused(cpu: FaissIndex) -> None:
    with pytest.raises(ValueError, match="--faiss-gpu: this build of FAISS sees no GPU"):
        GpuFlatIndex(cpu, IndexType.FLAT, GpuFaiss(0))
    with pytest.raises(ValueError, match="--faiss-gpu: this build of FAISS sees no GPU"):
        GpuFlatIndex(cpu, IndexType.FLAT)


def test_only_a_flat_index_goes_to_gpus(cpu: FaissIndex) -> None:
    with pytest.raises(ValueError, match="only a flat index is searched on GPUs, not 'ivf-pq'"):
        GpuFlatIndex(cpu, IndexType.IVF_PQ, GpuFaiss(8))
