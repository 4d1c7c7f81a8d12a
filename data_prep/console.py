"""What the commands of `search-r1 prepare` say, and their progress bar."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


def say(text: str, *, err: bool = False) -> None:
    """Print one line as it is, however wide the terminal."""
    Console(stderr=err, soft_wrap=True, markup=False, highlight=False).print(text)


@contextmanager
def progress(title: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show a bar on stderr; call what it yields with how many more are done."""
    columns = (TextColumn(title), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(title, total=total)
        yield lambda count: bar.advance(task, count)
