import numpy as np
import pytest
from scipy.stats import bootstrap

from search_r1.evaluation.bootstrap import Estimate, draw_means, estimate


def values(rows: int, columns: int = 2) -> np.ndarray:
    return np.random.default_rng(3).random((rows, columns))


def test_draws_are_the_same_for_the_same_seed_and_set() -> None:
    table = values(50)
    draws = draw_means(table, 1, "nq")
    assert draws.shape == (2_000, 2)
    assert np.array_equal(draws, draw_means(table, 1, "nq"))
    assert not np.array_equal(draws, draw_means(table, 2, "nq"))
    assert not np.array_equal(draws, draw_means(table, 1, "popqa"))


def test_the_interval_is_scipys() -> None:
    column = values(300, 1)
    theirs = bootstrap(
        (column[:, 0],), np.mean, n_resamples=9_999, method="percentile", rng=0
    ).confidence_interval
    ours = estimate(column.mean(), draw_means(column, 0, "nq", 9_999)[:, 0])
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=0.003)


def test_columns_are_drawn_together() -> None:
    column = values(40, 1)
    draws = draw_means(np.hstack([column, 2 * column]), 0, "nq")
    assert np.allclose(draws[:, 1], 2 * draws[:, 0])


def test_large_sets_are_drawn_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("search_r1.evaluation.bootstrap._CELLS", 300)
    draws = draw_means(values(100), 0, "nq", 10)
    assert draws.shape == (10, 2)
    assert 0.3 < draws.min() <= draws.max() < 0.7


def test_one_row_has_no_width() -> None:
    one = estimate(1.0, draw_means(np.ones((1, 1)), 0, "nq")[:, 0])
    assert one == Estimate(1.0, 1.0, 1.0)
    assert f"{one}" == "1.000 [1.000, 1.000]"
    assert f"{one:+}" == "+1.000 [+1.000, +1.000]"


@pytest.mark.parametrize(
    ("low", "high", "expected"), [(0.1, 0.2, True), (-2, -1, True), (-0.1, 0.1, False)]
)
def test_an_interval_excludes_zero(low: float, high: float, expected: bool) -> None:
    assert Estimate(0.0, low, high).excludes_zero is expected
