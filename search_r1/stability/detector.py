"""One detector: a number a step in, whether it alarms out. Pure; nothing here knows training."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from statistics import fmean
from typing import Any, Self


class Action(StrEnum):
    """What happens when an alarm begins."""

    LOG = "log"
    """It is in the metrics, the step line and the report, and nothing else happens."""
    SKIP_UPDATE = "skip_update"
    """Nothing is trained on the batch that shows it."""
    LOWER_RATE = "lower_rate"
    """The policy's learning rate is multiplied by `alarms.rate_factor`, from the next step on."""
    ROLL_BACK = "roll_back"
    """The run starts again from its best stable checkpoint, with a lowered learning rate."""
    STOP = "stop"
    """The run ends with a report, before this step's weights are saved."""


class Measure(StrEnum):
    """What of the window's mean is compared with the threshold."""

    LEVEL = "level"
    """The mean itself."""
    SHARE_OF_FIRST = "share of the first"
    """The mean over that of the run's first window."""
    SHARE_OF_PEAK = "share of the highest"
    """The mean over the highest mean of any window so far."""
    FALL_FROM_PEAK = "fall from the highest"
    """How far the mean lies below the highest of any window so far, in the signal's unit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectorSettings:
    """What a user sets of one detector, under ``alarms.NAME``."""

    action: Action = Action.LOG
    threshold: float
    window: int
    """Steps averaged before anything is judged; steps without the signal do not count."""
    patience: int
    """So many judgements in a row begin an alarm, and so many in a row end it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Detector:
    """What is watched and why; `search_r1.stability.catalogue` lists them all."""

    name: str
    signal: str
    """The name of a signal of `search_r1.stability.signals`."""
    measure: Measure = Measure.LEVEL
    is_high: bool = True
    """Whether it alarms above the threshold, rather than below."""
    floor: float = 0.0
    """A first or highest mean below this says nothing: no share is taken of less."""
    known_before_update: bool = False
    """Whether it is a fault of the batch, seen before anything is trained on it."""
    settings: DetectorSettings
    """The defaults."""
    reason: str
    source: str
    remedy: str
    """What to try, for the report of a stop."""


@dataclass(frozen=True, slots=True)
class DetectorState:
    """What a detector remembers, and a checkpoint with it."""

    recent: tuple[float, ...] = ()
    """The signal's last values, oldest first; at most a window."""
    reference: float | None = None
    """The first or the highest mean of a window."""
    streak: int = 0
    """Judgements in a row that speak against what holds: for an alarm, or for its end."""
    firing: bool = False
    measured: float | None = field(default=None)
    """What was last compared with the threshold."""

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """The state that `to_json` wrote."""
        return cls(**{**values, "recent": tuple(values["recent"])})

    def to_json(self) -> dict[str, Any]:
        """The state as JSON data."""
        return asdict(self)


def advance(
    detector: Detector, settings: DetectorSettings, state: DetectorState, value: float
) -> DetectorState:
    """The state after a step whose signal is `value`, a finite number."""
    recent = (*state.recent, value)[-settings.window :]
    state = replace(state, recent=recent)
    if len(recent) < settings.window:
        return state
    mean = fmean(recent)
    reference = _reference(detector.measure, state.reference, mean)
    measured = _measured(detector, mean, reference)
    state = replace(state, reference=reference, measured=measured)
    return state if measured is None else _judge(detector, settings, state, measured)


def _reference(measure: Measure, known: float | None, mean: float) -> float | None:
    if measure is Measure.LEVEL:
        return None
    if measure is Measure.SHARE_OF_FIRST:
        return mean if known is None else known
    return mean if known is None else max(known, mean)


def _measured(detector: Detector, mean: float, reference: float | None) -> float | None:
    if reference is None:
        return mean
    if detector.measure is Measure.FALL_FROM_PEAK:
        return reference - mean
    if reference < detector.floor and not detector.is_high:
        return None
    return mean / max(reference, detector.floor)


def _judge(
    detector: Detector, settings: DetectorSettings, state: DetectorState, measured: float
) -> DetectorState:
    bound = release(detector, settings) if state.firing else settings.threshold
    is_bad = measured > bound if detector.is_high else measured < bound
    streak = state.streak + 1 if is_bad != state.firing else 0
    if streak < settings.patience:
        return replace(state, streak=streak)
    return replace(state, streak=0, firing=not state.firing)


_RELEASE = 0.8


def release(detector: Detector, settings: DetectorSettings) -> float:
    """The bound that ends an alarm: a fifth beyond the threshold, so that it does not flicker."""
    return settings.threshold * (_RELEASE if detector.is_high else 1 / _RELEASE)
