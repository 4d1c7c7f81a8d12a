"""The best checkpoint of a run, which a rollback returns to and retention spares."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Final, Self

from search_r1.checkpoints.recovery import fault_of
from search_r1.files import write_lines

BEST_FILE: Final = "best_checkpoint.json"
"""In a run's folder."""


@dataclass(frozen=True, slots=True)
class BestCheckpoint:
    """The checkpoint with the highest held-out exact match while no alarm lasted."""

    step: int
    em: float
    path: str
    """Its folder, from the run's if it lies there, so that a run can be moved."""
    alarms: Mapping[str, float] = field(default_factory=dict)
    """What each detector measured there; none was firing."""

    @classmethod
    def read(cls, run: Path) -> Self | None:
        """The best checkpoint of a run, with its whole path; None if none was chosen yet.

        Raises:
            ValueError: the file is broken; the message names it and the fix.
        """
        file = run / BEST_FILE
        if not file.is_file():
            return None
        try:
            found = cls(**json.loads(file.read_text(encoding="utf-8")))
            return replace(found, path=str(run / found.path))
        except (ValueError, TypeError) as error:
            raise ValueError(
                f"{file}: not a best checkpoint: {error}; merge a checkpoint global_step_N by path"
            ) from error

    @property
    def is_whole(self) -> bool:
        """Whether its folder is there, and is what was saved; all of it is read."""
        folder = Path(self.path)
        return folder.is_dir() and fault_of(folder, is_vouched_for=True) is None

    def write(self, run: Path) -> None:
        """Write it into the run's folder, whole or not at all."""
        path = Path(self.path)
        inside = path.relative_to(run) if path.is_relative_to(run) else path
        shown = asdict(replace(self, path=str(inside)))
        write_lines(run / BEST_FILE, [json.dumps(shown, indent=2)])
