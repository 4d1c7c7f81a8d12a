"""Coarse candidates scored again by exact vectors."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval_server.encoder import FloatArray
from retrieval_server.index import NO_ROW, RowArray
from retrieval_server.index_rerank import ReRankedIndex, open_vectors


class Coarse:
    """Knows the order of the rows, whatever is asked; the last ones it does not find."""

    def __init__(self, order: list[int], dimension: int = 2) -> None:
        self.order = np.array(order)
        self.rows = len(order)
        self.dimension = dimension

    def search(self, queries: FloatArray, topk: int) -> tuple[FloatArray, RowArray]:
        rows = np.tile(self.order[:topk], (len(queries), 1))
        return -np.arange(rows.size, dtype=np.float32).reshape(rows.shape), rows

    def vector(self, row: int) -> FloatArray:
        raise NotImplementedError


# Inner products with [1, 0]: 1, 3, 2, 5, 4.
VECTORS = np.array([[1, 9], [3, 9], [2, 9], [5, 9], [4, 9]], dtype=np.float16)
QUERY = np.array([[1, 0]], dtype=np.float32)


def test_the_best_of_the_candidates_come_first_with_exact_scores() -> None:
    scores, rows = ReRankedIndex(Coarse([0, 1, 2, 3, 4]), VECTORS, 4).search(QUERY, 2)
    # Row 4 is no candidate.
    assert rows.tolist() == [[3, 1]]
    assert scores.tolist() == [[5, 3]]


def test_rows_that_the_coarse_index_did_not_find_come_last() -> None:
    scores, rows = ReRankedIndex(Coarse([2, 0, NO_ROW, NO_ROW, NO_ROW]), VECTORS, 4).search(
        QUERY, 3
    )
    assert rows.tolist() == [[2, 0, NO_ROW]]
    assert scores.tolist() == [[2, 1, -np.inf]]


@given(st.permutations(range(5)), st.integers(1, 5), st.integers(1, 5))
def test_fewer_passages_are_the_beginning_of_more(order: list[int], topk: int, more: int) -> None:
    index = ReRankedIndex(Coarse(order), VECTORS, max(topk, more))
    few, many = index.search(QUERY, topk)[1], index.search(QUERY, more)[1]
    least = min(topk, more)
    assert np.array_equal(few[:, :least], many[:, :least])


def test_vectors_of_other_rows_or_dimension_are_refused() -> None:
    with pytest.raises(ValueError, match=r"\(5, 2\) exact vectors for an index of \(4, 2\)"):
        ReRankedIndex(Coarse([0, 1, 2, 3]), VECTORS, 4)


@pytest.mark.parametrize("damage", [lambda data: data[:-3], lambda data: b"no array" + data])
def test_a_damaged_file_of_vectors_is_refused(tmp_path: Path, damage: object) -> None:
    path = tmp_path / "vectors.npy"
    np.save(path, VECTORS)
    assert np.array_equal(open_vectors(path), VECTORS)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ValueError, match=r"vectors\.npy is not a whole file of vectors"):
        open_vectors(path)


def test_vectors_of_another_precision_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "vectors.npy", VECTORS.astype(np.float64))
    with pytest.raises(ValueError, match=r"holds float64 \(5, 2\), not float16 vectors"):
        open_vectors(tmp_path / "vectors.npy")
