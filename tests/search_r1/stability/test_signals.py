import math
from collections.abc import Callable
from typing import Any

import pytest

from search_r1.stability.signals import repetition, row_signals, step_signals

Make = Callable[..., dict[str, Any]]


def test_repetition_counts_4_grams_that_stood_there_before() -> None:
    # Six 4-grams of a b a b a b a b a: two are new, "a b a b" and "b a b a".
    assert repetition("a b a b a b a b a") == pytest.approx(4 / 6)
    assert repetition("one two three four five") == 0.0
    assert repetition("one two three four") is None


def test_the_signals_of_healthy_rows(row: Make) -> None:
    rows = [row(), row(session=1, em=0.0, searches=3, mean_logprob=-1.5)]
    signals = row_signals(rows, max_searches=4)
    assert signals == {
        "stability/searches": 2.0,
        "stability/search_load": 0.5,
        "stability/repetition": 0.0,
        "stability/think_words": 1.5,  # three words, then none
        "stability/rewarded_logprob": -0.5,
        "stability/sampled_logprob": -1.0,
        "stability/equal_groups": 0.0,
    }


def test_a_signal_without_anything_to_measure_is_left_out(row: Make) -> None:
    signals = row_signals([row(em=0.0, mean_logprob=None)], max_searches=1)
    assert set(signals) == {"stability/searches", "stability/repetition", "stability/think_words"}
    assert row_signals([], max_searches=4) == {}


def test_a_group_is_equal_when_all_its_rewards_are(row: Make) -> None:
    rows = [row(em=em, id=name) for name, em in [("a", 1), ("a", 1), ("b", 0), ("b", 1), ("c", 0)]]
    assert row_signals(rows, 4)["stability/equal_groups"] == 0.5  # c is no group


def test_every_nan_of_losses_and_gradients_counts() -> None:
    metrics = {
        "actor/grad_norm": math.nan,
        "critic/vf_loss": math.inf,
        "actor/pg_loss": 0.1,
        "training/rollout_actor_probs_pearson_corr": math.nan,  # of one token: not our concern
        "stability/non_finite_tokens": 3.0,
    }
    assert step_signals(metrics)["non_finite"] == 5.0


def test_entropy_is_verls_or_the_surprise_of_what_was_sampled() -> None:
    sampled = {"stability/sampled_logprob": -0.4}
    assert step_signals(sampled | {"actor/entropy": 0.3})["entropy"] == 0.3
    assert step_signals(sampled)["entropy"] == 0.4
    assert "entropy" not in step_signals({})
