"""All detectors over a run: each step's signals in, what begins and ends out."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from search_r1.stability.catalogue import DETECTORS
from search_r1.stability.detector import (
    Action,
    DetectorSettings,
    DetectorState,
    Measure,
    advance,
    release,
)
from search_r1.stability.settings import AlarmSettings
from search_r1.stability.signals import step_signals

FIRING: Final = "alarm/"
"""Before a detector's name: 1 while its alarm lasts, else 0."""
MEASURED: Final = "alarm_value/"
"""Before a detector's name: what is compared with its threshold."""


@dataclass(frozen=True, slots=True)
class Change:
    """An alarm begins or ends."""

    name: str
    begins: bool
    measured: float
    limit: float
    """The bound that was passed: the threshold, or that of the alarm's end."""
    action: Action

    def __str__(self) -> str:
        detector = DETECTORS[self.name]
        side = "above" if detector.is_high == self.begins else "not above"
        if not detector.is_high:
            side = "below" if self.begins else "not below"
        unit = "" if detector.measure is Measure.LEVEL else f" ({detector.measure})"
        return f"{detector.signal}{unit} is {self.measured:.4g}, {side} {self.limit:.4g}"


class Alarms:
    """The detectors of a run and what they remember.

    Args:
        settings: The run's.
        states: What they remembered in the checkpoint that the run resumes from.
    """

    def __init__(self, settings: AlarmSettings, states: Mapping[str, DetectorState]) -> None:
        self._settings = settings
        self.states = {name: states.get(name, DetectorState()) for name in DETECTORS}

    @property
    def firing(self) -> list[str]:
        """The alarms that last."""
        return [name for name, state in self.states.items() if state.firing]

    def observe(self, metrics: Mapping[str, Any]) -> list[Change]:
        """Take in the metrics of a whole step; return what begins and ends with it."""
        before, self.states = self.states, {**self.states, **dict(self._next(metrics))}
        return [
            self._change(name, state)
            for name, state in self.states.items()
            if state.firing != before[name].firing
        ]

    def would_skip(self, metrics: Mapping[str, Any]) -> list[str]:
        """The alarms whose action is to skip, as they will be with these metrics of a batch."""
        skipping = {one.name for one in self._settings.those_that(Action.SKIP_UPDATE)}
        return [name for name, state in self._next(metrics) if name in skipping and state.firing]

    def metrics(self) -> dict[str, float]:
        """Each alarm, and what it measures once it does."""
        values = {f"{FIRING}{name}": float(one.firing) for name, one in self.states.items()}
        return values | {f"{MEASURED}{name}": value for name, value in self.measured().items()}

    def measured(self) -> dict[str, float]:
        """What each detector compares with its threshold, of those that have a window by now."""
        known = {name: state.measured for name, state in self.states.items()}
        return {name: value for name, value in known.items() if value is not None}

    def _next(self, metrics: Mapping[str, Any]) -> Iterator[tuple[str, DetectorState]]:
        signals = step_signals(metrics)
        for name, detector in DETECTORS.items():
            value = signals.get(detector.signal, math.nan)
            # What is not finite has an alarm of its own; it would never leave a window's mean.
            if math.isfinite(value):
                yield name, advance(detector, self._of(name), self.states[name], value)

    def _of(self, name: str) -> DetectorSettings:
        return self._settings.detectors[name]

    def _change(self, name: str, state: DetectorState) -> Change:
        settings, measured = self._of(name), state.measured
        limit = settings.threshold if state.firing else release(DETECTORS[name], settings)
        value = math.nan if measured is None else measured
        return Change(name, state.firing, value, limit, settings.action)


def firing_text(metrics: Mapping[str, Any]) -> str:
    """The alarms that last, with what they measure, for a step's line; empty if there is none."""
    names = [
        name.removeprefix(FIRING)
        for name, value in metrics.items()
        if name.startswith(FIRING) and value
    ]
    return ", ".join(f"{name} {metrics[f'{MEASURED}{name}']:.3g}" for name in names)
