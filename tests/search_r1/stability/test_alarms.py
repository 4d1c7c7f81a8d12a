"""Series of steps as runs make them: collapses set off their alarm, healthy runs none."""

import math
import random

import pytest

from search_r1.stability.alarms import Alarms, firing_text
from search_r1.stability.catalogue import DETECTORS
from search_r1.stability.detector import Action
from search_r1.stability.settings import AlarmSettings

STEPS = 60


def healthy(step: int, draw: random.Random) -> dict[str, float]:
    """A step of a run that learns as docs/results.md and the paper's curves have it.

    Entropy halves, searches grow from one to two and a half, some groups are all alike.
    """
    progress = step / STEPS
    noise = draw.gauss
    return {
        "actor/entropy": 0.4 - 0.2 * progress + noise(0, 0.02),
        "actor/grad_norm": abs(0.5 + noise(0, 0.1)),
        "actor/pg_loss": noise(0, 0.05),
        "stability/non_finite_tokens": 0.0,
        "stability/rewarded_logprob": -0.3 + 0.15 * progress + noise(0, 0.05),
        "stability/repetition": abs(noise(0.02, 0.02)),
        "stability/think_words": 30 + 10 * progress + noise(0, 4),
        "stability/searches": 1.0 + 1.5 * progress + noise(0, 0.15),
        "stability/search_load": 0.25 + 0.4 * progress + noise(0, 0.04),
        "stability/ratio_tail": abs(noise(0.0005, 0.0005)),
        "stability/equal_groups": min(1.0, abs(noise(0.5, 0.2))),
    }


def begun(series: list[dict[str, float]]) -> dict[str, int]:
    """The alarms that began, with their step."""
    alarms, found = Alarms(AlarmSettings(), {}), {}
    for step, metrics in enumerate(series, start=1):
        for change in alarms.observe(metrics):
            if change.begins:
                found.setdefault(change.name, step)
    return found


@pytest.mark.parametrize("seed", range(10))
def test_a_healthy_run_is_quiet(seed: int) -> None:
    draw = random.Random(seed)
    assert begun([healthy(step, draw) for step in range(STEPS)]) == {}


def test_a_policy_that_stands_still_alarms_for_its_groups_alone() -> None:
    # docs/results.md: ten GRPO steps on real questions, none of 80 trajectories right.
    still = {"actor/entropy": 0.5, "stability/searches": 1.0, "stability/equal_groups": 1.0}
    assert begun([still] * 10) == {"equal_groups": 7}


COLLAPSES = {
    "entropy_collapse": ("actor/entropy", lambda step: 0.4 * 0.8**step),
    "entropy_explosion": ("actor/entropy", lambda step: 0.4 * 1.1**step),
    "likelihood_drop": ("stability/rewarded_logprob", lambda step: -0.3 - 0.03 * step),
    "repetition": ("stability/repetition", lambda step: min(0.02 * step, 0.9)),
    "thinking_vanishes": ("stability/think_words", lambda step: max(30 - 2.0 * step, 0)),
    "search_vanishes": ("stability/searches", lambda step: max(1 - 0.05 * step, 0)),
    "search_saturates": ("stability/search_load", lambda step: min(0.25 + 0.05 * step, 1)),
    "ratio_tail": ("stability/ratio_tail", lambda step: 0.001 * step),
    "equal_groups": ("stability/equal_groups", lambda step: min(0.5 + 0.02 * step, 1)),
    "non_finite": ("actor/grad_norm", lambda step: math.nan if step == 20 else 0.5),
}


@pytest.mark.parametrize("name", COLLAPSES)
def test_a_collapse_sets_off_its_own_alarm_and_no_other(name: str) -> None:
    signal, shape = COLLAPSES[name]
    draw = random.Random(1)
    series = [healthy(step, draw) | {signal: shape(step)} for step in range(STEPS)]
    found = begun(series)
    assert set(found) == {name}
    assert found[name] < 40


def test_every_detector_has_a_collapse_here() -> None:
    assert set(COLLAPSES) == set(DETECTORS)


def test_alarms_go_on_from_what_they_remembered() -> None:
    draw = random.Random(2)
    series = [healthy(step, draw) | {"actor/entropy": 0.4 * 0.8**step} for step in range(STEPS)]
    whole, first = Alarms(AlarmSettings(), {}), Alarms(AlarmSettings(), {})
    for metrics in series[:14]:
        first.observe(metrics)
    resumed = Alarms(AlarmSettings(), first.states)
    for metrics in series:
        whole.observe(metrics)
    for metrics in series[14:]:
        resumed.observe(metrics)
    assert resumed.states == whole.states
    assert resumed.firing == ["entropy_collapse"]


def test_a_batch_is_skipped_before_the_alarm_is_observed() -> None:
    alarms = Alarms(AlarmSettings(), {})
    assert alarms.would_skip({"stability/non_finite_tokens": 2.0}) == ["non_finite"]
    assert alarms.firing == []
    assert alarms.would_skip({"stability/non_finite_tokens": 0.0}) == []
    # ratio_tail is known before the update too, but its action is to log.
    assert alarms.would_skip({"stability/ratio_tail": 1.0}) == []


def test_metrics_and_text_of_a_step() -> None:
    alarms = Alarms(AlarmSettings(), {})
    [change] = alarms.observe({"actor/grad_norm": math.nan})
    assert (change.action, change.limit) == (Action.SKIP_UPDATE, 0.0)
    assert str(change) == "non_finite is 1, above 0"
    metrics = alarms.metrics()
    assert set(metrics) == {f"alarm/{name}" for name in DETECTORS} | {"alarm_value/non_finite"}
    assert metrics["alarm/non_finite"] == metrics["alarm_value/non_finite"] == 1.0
    assert firing_text(metrics) == "non_finite 1"
    [change] = alarms.observe({"actor/grad_norm": 1.0})
    assert not change.begins
    assert str(change) == "non_finite is 0, not above 0"
    assert firing_text(alarms.metrics()) == ""
