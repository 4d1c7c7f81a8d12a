"""What the alarms remember, kept inside each checkpoint: weights and memory go together."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Self

from search_r1.files import write_lines
from search_r1.stability.detector import DetectorState

STATE_FILE: Final = "alarms.json"
"""In a checkpoint's folder ``global_step_N``."""


@dataclass(frozen=True, slots=True)
class RunState:
    """The memory of a run at one step."""

    rate_scale: float = 1.0
    """The policy's learning rate over that of the config."""
    rollbacks: int = 0
    skipped: int = 0
    """Updates skipped in a row."""
    kl_coef: float | None = None
    """Of an adaptive KL controller, which verl does not keep; null without one."""
    detectors: Mapping[str, DetectorState] = field(default_factory=dict)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """The state that `to_json` wrote."""
        states = {name: DetectorState.from_json(one) for name, one in values["detectors"].items()}
        return cls(**{**values, "detectors": states})

    def to_json(self) -> dict[str, Any]:
        """The state as JSON data."""
        return asdict(self)


def read_state(checkpoint: Path) -> RunState:
    """The state in a checkpoint; a new one if it has none, being older than the alarms.

    Raises:
        ValueError: the file is broken; the message names it and the fix.
    """
    path = checkpoint / STATE_FILE
    if not path.is_file():
        return RunState()
    try:
        return RunState.from_json(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ValueError(
            f"{path}: not a state of alarms: {error!r}; remove it to begin anew"
        ) from error


def write_state(checkpoint: Path, state: RunState) -> None:
    """Write the state into a checkpoint's folder, whole or not at all."""
    write_lines(checkpoint / STATE_FILE, [json.dumps(state.to_json())])
