"""The progress of an index build: a bar for each stage, with speed and time left."""

from collections.abc import Callable
from functools import partial

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

# A chunk takes minutes on a CPU with a large encoder: look that far back for the speed.
_SPEED_SECONDS = 1800


def build_progress(console: Console | None) -> Progress:
    """Bars on the console; nowhere without one."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,.0f}/{task.total:,.0f} {task.fields[unit]}"),
        TaskProgressColumn(show_speed=True),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console or Console(quiet=True),
        speed_estimate_period=_SPEED_SECONDS,
    )


def passages_bar(
    progress: Progress, title: str, total: int, completed: int = 0
) -> Callable[[int], None]:
    """Add a bar that counts passages; give what advances it."""
    task = progress.add_task(title, total=total, completed=completed, unit="passages")
    return partial(progress.advance, task)
