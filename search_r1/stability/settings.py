"""The `alarms:` section of a config: which detectors do what, checked when it is made."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self

from omegaconf import DictConfig, OmegaConf

from search_r1.stability.catalogue import DETECTORS
from search_r1.stability.detector import Action, Detector, DetectorSettings


def _defaults() -> dict[str, DetectorSettings]:
    return {name: detector.settings for name, detector in DETECTORS.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmSettings:
    """What alarms do, and each detector's settings."""

    rate_factor: float = 0.5
    """`lower_rate` and `roll_back` multiply the policy's learning rate by this; in (0, 1)."""
    max_rollbacks: int = 2
    """A run rolls back so often; then the alarm stops it."""
    max_skipped: int = 5
    """So many skipped updates in a row stop a run: one that skips learns nothing."""
    detectors: Mapping[str, DetectorSettings] = field(default_factory=_defaults)

    @classmethod
    def from_mapping(cls, section: Mapping[str, Any]) -> Self:
        """Settings from a plain mapping; what it leaves out keeps its default.

        Raises:
            TypeError: a value is of the wrong type.
            ValueError: a key is unknown, or a value is out of its range.
        """
        own = {one.name for one in fields(cls)} - {"detectors"}
        _refuse_unknown("alarms", section, own | set(DETECTORS))
        detectors = {
            name: _detector_settings(detector, section.get(name, {}))
            for name, detector in DETECTORS.items()
        }
        return cls(**{name: section[name] for name in own & set(section)}, detectors=detectors)

    def __post_init__(self) -> None:
        _require_number("alarms.rate_factor", self.rate_factor)
        if not 0 < self.rate_factor < 1:
            raise ValueError(f"alarms.rate_factor must be in (0, 1), not {self.rate_factor}")
        _require_count("alarms.max_rollbacks", self.max_rollbacks, least=0)
        _require_count("alarms.max_skipped", self.max_skipped, least=1)

    def those_that(self, action: Action) -> list[Detector]:
        """The detectors whose alarm does `action`."""
        return [DETECTORS[name] for name, one in self.detectors.items() if one.action is action]


def alarm_settings(config: DictConfig) -> AlarmSettings:
    """The settings of section ``alarms``; a config older than the section has the defaults.

    Raises:
        TypeError: a value is of the wrong type.
        ValueError: a key is unknown, or a value is out of its range.
    """
    section: Any = OmegaConf.to_container(config.get("alarms") or OmegaConf.create(), resolve=True)
    return AlarmSettings.from_mapping(section)


def _detector_settings(detector: Detector, section: object) -> DetectorSettings:
    place = f"alarms.{detector.name}"
    if not isinstance(section, Mapping):
        raise TypeError(f"{place} must be a section, not {section!r}; for example {{action: stop}}")
    _refuse_unknown(place, section, {one.name for one in fields(DetectorSettings)})
    values = dict(section)
    if "action" in values:
        values["action"] = _action(place, values["action"])
    settings = replace(detector.settings, **values)
    _require_number(f"{place}.threshold", settings.threshold)
    _require_count(f"{place}.window", settings.window, least=1)
    _require_count(f"{place}.patience", settings.patience, least=1)
    return settings


def _action(place: str, value: str) -> Action:
    try:
        return Action(value)
    except ValueError as error:
        raise ValueError(f"{place}.action is {value!r}, not one of {', '.join(Action)}") from error


def _refuse_unknown(place: str, section: Mapping[str, Any], known: set[str]) -> None:
    if unknown := sorted(set(section) - known):
        raise ValueError(
            f"unknown settings {place}.{f', {place}.'.join(map(str, unknown))}; "
            f"known are {', '.join(sorted(known))}"
        )


def _require_number(place: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise TypeError(f"{place} must be a number, not {value!r}")


def _require_count(place: str, value: object, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{place} must be a whole number, not {value!r}")
    if value < least:
        raise ValueError(f"{place} must be at least {least}, not {value}")
