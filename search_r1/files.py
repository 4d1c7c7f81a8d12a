"""Files that appear under their name only when they are complete."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

RUN_CONFIG: Final = "config.yaml"
"""In a run's folder: its whole resolved config, which `search-r1 train` takes again."""


@contextmanager
def atomic_path(target: Path) -> Iterator[Path]:
    """Yield a temporary path beside `target`; move it over `target` when the block succeeds.

    The parent folder is created. When the block raises, the temporary file is removed and
    whatever was at `target` stays.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        yield temporary
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def write_lines(target: Path, lines: Iterable[str]) -> None:
    """Write `lines` to `target`, one each line."""
    with atomic_path(target) as temporary, temporary.open("w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)
