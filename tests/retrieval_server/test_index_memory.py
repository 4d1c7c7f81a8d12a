"""What is mapped from a file is not a process's own memory, so that processes share it."""

from pathlib import Path

import faiss
import numpy as np
import psutil
import pytest

from retrieval_server.index import FaissIndex
from retrieval_server.index_types import IndexType

ROWS, DIMENSION = 5_000, 128


def mapped_bytes(path: Path) -> int:
    """What this process has of a file in memory that is shared with whoever maps it too."""
    return sum(part.rss for part in psutil.Process().memory_maps() if part.path == str(path))


@pytest.mark.parametrize(
    ("type_", "factory", "reached"),
    # A walk of the graph reads only where it comes by.
    [
        (IndexType.FLAT, "Flat", 0.9),
        (IndexType.IVF_FLAT, "IVF1,Flat", 0.9),
        (IndexType.HNSW, "HNSW2_Flat", 0.01),
    ],
)
def test_what_is_mapped_stays_in_the_files_own_memory(
    tmp_path: Path, type_: IndexType, factory: str, reached: float
) -> None:
    vectors = np.random.default_rng(0).standard_normal((ROWS, DIMENSION), dtype=np.float32)
    index = faiss.index_factory(DIMENSION, factory, faiss.METRIC_INNER_PRODUCT)
    if type_ is IndexType.HNSW:
        index.hnsw.efConstruction = 2
    index.train(vectors[:500])
    index.add(vectors)
    faiss.write_index(index, str(tmp_path / "index.faiss"))
    path = tmp_path / "index.faiss"
    loaded = FaissIndex.load(path, type_)
    expected = loaded.search(vectors[:4], 3)
    assert mapped_bytes(path) == 0
    mapped = FaissIndex.load(path, type_, memory_map=True)
    assert np.array_equal(mapped.search(vectors[:4], 3), expected)
    assert mapped_bytes(path) > reached * path.stat().st_size
