"""Files that appear under their name only when they are complete, and what tells them apart."""

import hashlib
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

RUN_CONFIG: Final = "config.yaml"
"""In a run's folder: its whole resolved config, which `search-r1 train` takes again."""

_END: Final = 1 << 20


def require_place(output: Path) -> None:
    """Pass an output that can be made, so that no work is lost on one that cannot.

    Raises:
        NotADirectoryError: what should be a folder above it is a file.
        PermissionError: the folder that it would be made in may not be written to.
    """
    above = next(path for path in output.absolute().parents if path.exists())
    if not above.is_dir():
        raise NotADirectoryError(f"output: {above} is a file, not a folder; give another output")
    if not os.access(above, os.W_OK | os.X_OK):
        raise PermissionError(f"output: {above} may not be written to; give another output")


def require_folder(output: Path) -> None:
    """Pass a folder that is there, or can be made.

    Raises:
        NotADirectoryError: it is a file, or what should be a folder above it is one.
        PermissionError: the folder that it would be made in may not be written to.
    """
    require_place(output / "file")


def require_new(output: Path) -> None:
    """Pass an output that is not there yet, and can be made.

    Raises:
        FileExistsError: it is there.
        NotADirectoryError: what should be a folder above it is a file.
        PermissionError: the folder that it would be made in may not be written to.
    """
    if output.exists():
        raise FileExistsError(f"output: {output} exists: remove it, or give another output")
    require_place(output)


@contextmanager
def atomic_path(target: Path) -> Iterator[Path]:
    """Yield a temporary path beside `target`; move it over `target` when the block succeeds.

    The parent folder is created. When the block raises, the temporary file is removed and
    whatever was at `target` stays.

    Raises:
        OSError: what the block raised, with the name of `target` if it has none.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        yield temporary
        temporary.replace(target)
    except OSError as error:
        # A full disk is told without a name.
        error.filename = error.filename or str(target)
        raise
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def atomic_files(folder: Path, last: str) -> Iterator[Path]:
    """Yield a temporary folder; move its files into `folder` when the block succeeds.

    The file named `last` is taken away first and comes last: a folder that has it is complete.
    When the block raises, `folder` stays as it was, or missing.

    Raises:
        NotADirectoryError: `folder` is a file.
    """
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"{folder} is a file; give a folder")
    temporary = _nearest_folder(folder) / f".{folder.absolute().name}.{os.getpid()}.part"
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    try:
        yield temporary
        folder.mkdir(parents=True, exist_ok=True)
        (folder / last).unlink(missing_ok=True)
        for path in sorted(temporary.iterdir(), key=lambda path: path.name == last):
            path.replace(folder / path.name)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _nearest_folder(folder: Path) -> Path:
    """`folder` or the closest above it that exists: files are moved from there without copying."""
    return next(path for path in (folder, *folder.absolute().parents) if path.is_dir())


def write_lines(target: Path, lines: Iterable[str]) -> None:
    """Write `lines` to `target`, one each line."""
    with atomic_path(target) as temporary, temporary.open("w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)


def fingerprint(folder: Path) -> dict[str, str]:
    """Size and hash of each file right in a folder; of large ones, of their first and last MiB."""
    files = (path for path in folder.iterdir() if path.is_file() and path.name[0] != ".")
    return {path.name: file_fingerprint(path) for path in sorted(files)}


def file_fingerprint(path: Path) -> str:
    """Size and hash of a file; of a large one, of its first and last MiB."""
    size = path.stat().st_size
    with path.open("rb") as file:
        digest = hashlib.sha256(file.read(_END))
        file.seek(max(size - _END, 0))
        digest.update(file.read(_END))
    return f"{size} bytes, {digest.hexdigest()[:16]}"
