"""One detector, step by step, with values computed by hand."""

import json
from collections.abc import Iterable

import pytest

from search_r1.stability.detector import (
    Detector,
    DetectorSettings,
    DetectorState,
    Measure,
    advance,
)


def detector(
    measure: Measure = Measure.LEVEL, *, is_high: bool = True, floor: float = 0
) -> Detector:
    settings = DetectorSettings(threshold=0.5, window=1, patience=2)
    return Detector(
        name="d",
        signal="s",
        measure=measure,
        is_high=is_high,
        floor=floor,
        settings=settings,
        reason="",
        source="",
        remedy="",
    )


def run(one: Detector, values: Iterable[float], window: int = 1) -> list[DetectorState]:
    settings = DetectorSettings(threshold=0.5, window=window, patience=2)
    states = [DetectorState()]
    for value in values:
        states.append(advance(one, settings, states[-1], value))
    return states[1:]


def firing(states: list[DetectorState]) -> list[bool]:
    return [state.firing for state in states]


def test_an_alarm_begins_after_patience_and_not_before() -> None:
    assert firing(run(detector(), [0.6, 0.4, 0.6, 0.6])) == [False, False, False, True]


def test_it_ends_only_a_fifth_beyond_the_threshold_and_after_patience() -> None:
    # 0.45 is below the threshold of 0.5, not below 0.4: the alarm lasts.
    states = run(detector(), [0.6, 0.6, 0.45, 0.45, 0.3, 0.45, 0.3, 0.3])
    assert firing(states) == [False, True, True, True, True, True, True, False]


def test_a_low_alarm_mirrors_a_high_one() -> None:
    # It ends above 0.5 / 0.8 = 0.625.
    states = run(detector(is_high=False), [0.4, 0.4, 0.6, 0.6, 0.7, 0.7])
    assert firing(states) == [False, True, True, True, True, False]


def test_nothing_is_judged_before_a_window_is_full() -> None:
    states = run(detector(), [1.0, 0.0, 0.8, 0.6], window=3)
    assert [state.measured for state in states] == [
        None,
        None,
        pytest.approx(0.6),
        pytest.approx(1.4 / 3),
    ]
    assert states[-1].recent == (0.0, 0.8, 0.6)


def test_a_share_of_the_first_keeps_the_first_window() -> None:
    states = run(detector(Measure.SHARE_OF_FIRST), [2.0, 4.0, 1.0, 0.5])
    assert [state.measured for state in states] == [1.0, 2.0, 0.5, 0.25]


def test_a_share_of_the_highest_follows_the_highest() -> None:
    states = run(detector(Measure.SHARE_OF_PEAK, is_high=False), [1.0, 4.0, 2.0, 1.0])
    assert [state.measured for state in states] == [1.0, 1.0, 0.5, 0.25]


def test_a_fall_is_in_the_signals_unit() -> None:
    states = run(detector(Measure.FALL_FROM_PEAK), [-0.5, -0.25, -1.0])
    assert [state.measured for state in states] == [0.0, 0.0, 0.75]


def test_below_its_floor_a_reference_says_nothing_of_a_fall() -> None:
    states = run(detector(Measure.SHARE_OF_FIRST, is_high=False, floor=0.2), [0.1, 0.0, 0.0])
    assert [state.measured for state in states] == [None, None, None]
    assert firing(states) == [False, False, False]


def test_and_a_rise_is_measured_from_the_floor() -> None:
    states = run(detector(Measure.SHARE_OF_FIRST, floor=0.2), [0.0, 0.05])
    assert [state.measured for state in states] == [0.0, 0.25]


def test_a_state_is_the_same_after_json() -> None:
    state = run(detector(Measure.SHARE_OF_FIRST), [1.0, 2.0])[-1]
    assert DetectorState.from_json(json.loads(json.dumps(state.to_json()))) == state


def test_a_smaller_window_takes_over_what_a_longer_one_remembered() -> None:
    settings = DetectorSettings(threshold=0.5, window=2, patience=1)
    state = advance(detector(), settings, DetectorState(recent=(9.0, 9.0, 9.0, 0.0)), 0.4)
    assert (state.recent, state.measured) == ((0.0, 0.4), 0.2)
