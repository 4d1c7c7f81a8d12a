"""Exact search against numpy."""

from pathlib import Path

import faiss
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrieval_server.encoder import FloatArray
from retrieval_server.index import FaissIndex


def vectors(rows: int, dimension: int, seed: int) -> FloatArray:
    return np.random.default_rng(seed).standard_normal((rows, dimension)).astype(np.float32)


def flat(dimension: int, chunks: list[FloatArray]) -> FaissIndex:
    index = faiss.IndexFlatIP(dimension)
    for chunk in chunks:
        index.add(chunk)
    return FaissIndex(index)


# Above 20 queries FAISS computes by another path.
@settings(max_examples=30)
@given(st.integers(1, 60), st.integers(1, 40), st.integers(1, 100), st.integers(0, 2**32 - 1))
def test_the_nearest_rows_are_those_of_a_full_sort(
    rows: int, queries: int, topk: int, seed: int
) -> None:
    stored, asked = vectors(rows, 8, seed), vectors(queries, 8, seed + 1)
    scores, found = flat(8, [stored]).search(asked, topk)
    products = asked @ stored.T
    assert found.shape == scores.shape == (queries, min(topk, rows))
    best = -np.sort(-products, axis=1)[:, :topk]
    assert np.allclose(scores, best, atol=1e-5)
    assert np.allclose(np.take_along_axis(products, found, 1), best, atol=1e-5)
    assert all(len(set(row)) == len(row) for row in found.tolist())


def test_equal_scores_come_in_the_order_of_the_rows() -> None:
    stored = np.ones((30, 4), dtype=np.float32)
    _, found = flat(4, [stored]).search(stored[:25], 5)
    assert found.tolist() == [[0, 1, 2, 3, 4]] * 25


def test_chunks_are_numbered_one_after_the_other(tmp_path: Path) -> None:
    stored = vectors(10, 4, 0)
    index = flat(4, [stored[:3], stored[3:4], stored[4:]])
    faiss.write_index(index.faiss_index, str(tmp_path / "index.faiss"))
    loaded = FaissIndex.load(tmp_path / "index.faiss")
    assert (loaded.rows, loaded.dimension) == (10, 4)
    assert all(np.array_equal(loaded.vector(row), stored[row]) for row in range(10))


def test_a_truncated_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "index.faiss"
    faiss.write_index(flat(4, [vectors(100, 4, 0)]).faiss_index, str(path))
    path.write_bytes(path.read_bytes()[:-50])
    with pytest.raises(ValueError, match=r"index\.faiss is not a whole FAISS index"):
        FaissIndex.load(path)


@pytest.mark.parametrize(
    ("index", "reason"),
    [
        (faiss.IndexHNSWFlat(4, 8), "holds a IndexHNSWFlat, not a flat index"),
        (faiss.IndexFlatL2(4), "does not rank by inner product"),
    ],
)
def test_another_kind_of_index_is_refused(tmp_path: Path, index: faiss.Index, reason: str) -> None:
    faiss.write_index(index, str(tmp_path / "index.faiss"))
    with pytest.raises(ValueError, match=reason):
        FaissIndex.load(tmp_path / "index.faiss")
