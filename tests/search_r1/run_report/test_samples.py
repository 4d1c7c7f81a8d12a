from collections import Counter
from typing import Any

from search_r1.run_report.failures import Failure, classify
from search_r1.run_report.samples import Samples, draw_samples


def made(record: Any) -> list[dict[str, Any]]:
    kinds = [record(1.0), record(0.0, 1.0), record(answer=None, stop_reason="turn_budget")]
    return [one | {"id": f"{kind}{i}"} for kind, one in enumerate(kinds) for i in range(5)]


def test_wrong_ones_come_from_every_class_in_turn(record: Any) -> None:
    samples = draw_samples(made(record), 4, seed=1)
    assert [classify(row) for row in samples.right] == [None] * 4
    assert Counter(classify(row) for row in samples.wrong) == {
        Failure.FORMAT: 2,
        Failure.MISREAD: 2,
    }


def test_a_seed_gives_the_same_draw(record: Any) -> None:
    rows = made(record)
    assert draw_samples(rows, 2, seed=1) == draw_samples(rows, 2, seed=1)
    draws = {draw_samples(rows, 1, seed).right[0]["id"] for seed in range(20)}
    assert len(draws) > 1


def test_few_or_no_rows(record: Any) -> None:
    assert draw_samples([], 3, seed=0) == Samples([], [])
    assert draw_samples([record()], 3, seed=0) == Samples([], [record()])
    assert draw_samples([record()], 0, seed=0) == Samples([], [])
