"""A run's checkpoints: which one is best, which one is resumed from, and which are removed.

verl removes old checkpoints by their age alone (``trainer.max_actor_ckpt_to_keep``) and forgets
those of earlier starts, so this module does it in verl's place and never removes the best.
"""

import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Final, Self

from search_r1.files import write_lines

BEST_FILE: Final = "best_checkpoint.json"
"""In a run's folder."""
NEWEST_FILE: Final = "latest_checkpointed_iteration.txt"
"""In the folder of checkpoints: verl's word for the step that a run resumes from."""


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

    def write(self, run: Path) -> None:
        """Write it into the run's folder, whole or not at all."""
        path = Path(self.path)
        inside = path.relative_to(run) if path.is_relative_to(run) else path
        shown = asdict(replace(self, path=str(inside)))
        write_lines(run / BEST_FILE, [json.dumps(shown, indent=2)])


def checkpoint_folder(checkpoints: Path, step: int) -> Path:
    """Where verl puts the checkpoint of a step."""
    return checkpoints / f"global_step_{step}"


def newest_step(checkpoints: Path) -> int | None:
    """The step whose checkpoint is whole and resumed from; None without one."""
    file = checkpoints / NEWEST_FILE
    text = file.read_text(encoding="utf-8").strip() if file.is_file() else ""
    return int(text) if text.isascii() and text.isdecimal() else None


def resume_from(checkpoints: Path, step: int) -> None:
    """Make a run resume from the checkpoint of `step`, whatever came after it."""
    write_lines(checkpoints / NEWEST_FILE, [str(step)])


def remove_old(checkpoints: Path, keep: int, spared: Path | None) -> list[Path]:
    """Remove all but the `keep` checkpoints saved last; return what was removed.

    Args:
        checkpoints: The folder of checkpoints.
        keep: At least 1. Age is the time of saving: after a rollback, later steps are older.
        spared: Is never removed, and does not count among the `keep`.
    """
    kept = spared and spared.resolve()
    folders = [one for one in checkpoints.glob("global_step_*") if one.resolve() != kept]
    newest_first = sorted(folders, key=lambda folder: folder.stat().st_mtime, reverse=True)
    old = newest_first[keep:]
    for folder in old:
        shutil.rmtree(folder)
    return old
