"""What a run that a full disk ended says: which file, what is free where, and what to do."""

import errno
import shutil
import tempfile
from pathlib import Path
from typing import Final

from rich.filesize import decimal

_FULL: Final = (errno.ENOSPC, errno.EDQUOT)


def full_disk_behind(error: BaseException) -> OSError | None:
    """The error of a full disk or quota that `error` is, or that Ray carried here in it."""
    seen: BaseException | None = error
    while seen is not None:
        # Ray's own error of a task has the class of its cause, but none of its attributes.
        cause = getattr(seen, "cause", None)
        if cause is None and isinstance(seen, OSError) and seen.errno in _FULL:
            return seen
        seen = cause
    return None


def report(error: OSError, output: Path) -> str:
    """The error with the free space where a run writes: its own folder, and Ray's.

    Args:
        error: Of a file that often has no name: Python knows none when a write fails.
        output: The folder of the run.
    """
    temporary = tempfile.gettempdir()
    free = {place: decimal(shutil.disk_usage(place).free) for place in (output, temporary)}
    return (
        f"the disk is full: {error}\n"
        f"  free: {free[output]} in {output} (trainer.default_local_dir and the metrics), "
        f"{free[temporary]} in {temporary} (Ray)\n"
        "  make room, then resume with the same command from the newest checkpoint"
    )
