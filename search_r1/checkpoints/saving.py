"""What surrounds the writing of a checkpoint: its manifest at the end, or nothing left of it."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.filesize import decimal

from search_r1.checkpoints.folders import checkpoint_folder, newest_step, resume_from
from search_r1.checkpoints.manifest import BrokenCheckpointError, Manifest, seal, unseal


class CheckpointNotSavedError(RuntimeError):
    """A checkpoint could not be written; the message names it, the reason and the free space."""


@contextmanager
def saving(checkpoints: Path, step: int, *, is_whole_after: bool = True) -> Iterator[Path]:
    """Yield the folder of a checkpoint to write into; seal it once the block has succeeded.

    When the block raises, what it wrote is removed, and the run resumes from where it would have.

    Args:
        checkpoints: The folder of checkpoints.
        step: The checkpoint's.
        is_whole_after: Whether all is written when the block ends; if not, nothing is sealed.

    Raises:
        CheckpointNotSavedError: the block raised, or the checkpoint could not be sealed.
    """
    folder, before = checkpoint_folder(checkpoints, step), newest_step(checkpoints)
    unseal(folder)
    try:
        yield folder
        if is_whole_after:
            seal(folder)
    except Exception as error:
        free = shutil.disk_usage(checkpoints).free
        shutil.rmtree(folder, ignore_errors=True)
        resume_from(checkpoints, None if before == step else before)
        raise CheckpointNotSavedError(_report(folder, before, free, error)) from error


def _report(folder: Path, before: int | None, free: int, error: Exception) -> str:
    # Ray's error of a task has the whole traceback as its text.
    cause = getattr(error, "cause", None) or error
    reason = (str(cause).strip() or type(cause).__name__).splitlines()[0]
    previous = None if before is None else checkpoint_folder(folder.parent, before)
    kept = f"{previous} is kept{_size_of(previous)}" if previous else "there is no earlier one"
    return (
        f"the checkpoint {folder} could not be saved: {reason}\n"
        f"  {decimal(free)} were free on that disk; what was written of it is removed; {kept}\n"
        "  make room or keep fewer (trainer.max_actor_ckpt_to_keep), "
        "then resume with the same command"
    )


def _size_of(checkpoint: Path) -> str:
    try:
        manifest = Manifest.read(checkpoint)
    except BrokenCheckpointError:
        return ""
    return f" and takes {decimal(manifest.bytes)}" if manifest else ""
