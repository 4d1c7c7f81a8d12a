"""Where a run's checkpoints lie, which one verl resumes from, and which are removed.

verl removes old checkpoints by their age alone (``trainer.max_actor_ckpt_to_keep``) and forgets
those of earlier starts, so this module does it in verl's place and never removes the best.
"""

import shutil
from pathlib import Path
from typing import Final

from search_r1.files import write_lines

NEWEST_FILE: Final = "latest_checkpointed_iteration.txt"
"""In the folder of checkpoints: verl's word for the step that a run resumes from."""

_FOLDER: Final = "global_step_"


def checkpoint_folder(checkpoints: Path, step: int) -> Path:
    """Where verl puts the checkpoint of a step."""
    return checkpoints / f"{_FOLDER}{step}"


def step_of(checkpoint: Path) -> int | None:
    """The step of a checkpoint's folder; None if it is not called after one."""
    return _whole_number(checkpoint.name.removeprefix(_FOLDER))


def all_checkpoints(checkpoints: Path) -> dict[int, Path]:
    """The folders of checkpoints by step, whole or not."""
    folders = (path for path in checkpoints.glob(f"{_FOLDER}*") if path.is_dir())
    steps = ((step_of(path), path) for path in folders)
    return {step: path for step, path in steps if step is not None}


def newest_step(checkpoints: Path) -> int | None:
    """The step that verl resumes from; None if its file is missing or broken."""
    file = checkpoints / NEWEST_FILE
    return _whole_number(file.read_bytes().decode(errors="replace")) if file.is_file() else None


def resume_from(checkpoints: Path, step: int | None) -> None:
    """Make a run resume from the checkpoint of `step`, whatever came after it; None: from none."""
    file = checkpoints / NEWEST_FILE
    if step is None:
        file.unlink(missing_ok=True)
    elif newest_step(checkpoints) != step:
        write_lines(file, [str(step)])


def remove_old(checkpoints: Path, keep: int, spared: Path | None) -> list[Path]:
    """Remove all but the `keep` checkpoints saved last; return what was removed.

    Args:
        checkpoints: The folder of checkpoints.
        keep: At least 1. Age is the time of saving: after a rollback, later steps are older.
        spared: Is never removed, and does not count among the `keep`.
    """
    kept = spared and spared.resolve()
    folders = [one for one in all_checkpoints(checkpoints).values() if one.resolve() != kept]
    newest_first = sorted(folders, key=lambda folder: folder.stat().st_mtime, reverse=True)
    old = newest_first[keep:]
    for folder in old:
        shutil.rmtree(folder)
    return old


def _whole_number(text: str) -> int | None:
    text = text.strip()
    return int(text) if text.isascii() and text.isdecimal() else None
