"""The last file of a checkpoint: all others with their sizes and checksums.

A checkpoint with a manifest was written to its end, and can be told from one that changed since.
Everything is read by the process that seals, on several threads: where ranks of other nodes write
to disks of their own, their shards are not in the manifest.
"""

import hashlib
import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Self

from xxhash import xxh3_128

from search_r1.files import write_lines

MANIFEST: Final = "manifest.json"
"""In a checkpoint's folder ``global_step_N``."""

REWRITTEN: Final = frozenset({"alarms.json"})
"""Written anew by a rollback, whole or not at all, so it cannot be sealed."""

_THREADS: Final = min(8, os.cpu_count() or 1)


class BrokenCheckpointError(ValueError):
    """A checkpoint is not what was saved; the message names the files and what to give instead."""


@dataclass(frozen=True, slots=True)
class FileSum:
    """What tells a file from a broken one."""

    bytes: int
    xxh3_128: str
    """Told apart from damage, not from forgery: at 6 GB/s a core it costs less than reading."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """The files of a whole checkpoint, by their paths in its folder."""

    saved: float
    """Seconds since 1970, which a copy of the run keeps."""
    files: Mapping[str, FileSum]

    @classmethod
    def read(cls, checkpoint: Path) -> Self | None:
        """The manifest of a checkpoint; None if it has none.

        Raises:
            BrokenCheckpointError: it cannot be read; the message names it.
        """
        path = checkpoint / MANIFEST
        if not path.is_file():
            return None
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
            files = {name: FileSum(**one) for name, one in values["files"].items()}
            return cls(float(values["saved"]), files)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise BrokenCheckpointError(f"{MANIFEST}: not a manifest: {error!r}") from error

    @property
    def bytes(self) -> int:
        """All files together."""
        return sum(one.bytes for one in self.files.values())


def seal(checkpoint: Path) -> Manifest:
    """Write the manifest of a checkpoint that is whole; its files are on the disk when it returns.

    Raises:
        OSError: a file cannot be read, or the manifest not written.
    """
    names = sorted(_names_of(checkpoint))
    paths = [checkpoint / name for name in names]
    with ThreadPoolExecutor(_THREADS) as pool:
        manifest = Manifest(time.time(), dict(zip(names, pool.map(_sum_of, paths), strict=True)))
        list(pool.map(_flush, paths))
    write_lines(checkpoint / MANIFEST, [json.dumps(asdict(manifest), indent=1)])
    return manifest


def unseal(checkpoint: Path) -> None:
    """Take the manifest away before anything of the checkpoint is written again."""
    (checkpoint / MANIFEST).unlink(missing_ok=True)


def faults(checkpoint: Path, manifest: Manifest) -> list[str]:
    """What differs from the manifest, file by file; contents are read only if all sizes agree."""
    wrong = [
        f"{name}: {fault}"
        for name, expected in manifest.files.items()
        if (fault := _size_fault(checkpoint / name, expected.bytes))
    ]
    return wrong or list(_content_faults(checkpoint, manifest.files))


def _names_of(checkpoint: Path) -> Iterable[str]:
    for path in checkpoint.rglob("*"):
        is_ours = path.name in REWRITTEN | {MANIFEST} or path.name.startswith(".")
        if path.is_file() and not is_ours:
            yield path.relative_to(checkpoint).as_posix()


def _sum_of(path: Path) -> FileSum:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, xxh3_128).hexdigest()
        return FileSum(os.fstat(file.fileno()).st_size, digest)


def _flush(path: Path) -> None:
    """An older checkpoint may be removed next: this one must outlive a loss of power."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _size_fault(path: Path, expected: int) -> str | None:
    if not path.is_file():
        return "missing"
    size = path.stat().st_size
    return f"{size} bytes rather than {expected}" if size != expected else None


def _content_faults(checkpoint: Path, files: Mapping[str, FileSum]) -> Iterator[str]:
    def fault(name: str) -> str | None:
        try:
            found = _sum_of(checkpoint / name)
        except OSError as error:
            return f"cannot be read: {error.strerror}"
        return None if found == files[name] else "its checksum is another"

    with ThreadPoolExecutor(_THREADS) as pool:
        found = zip(files, pool.map(fault, files), strict=True)
        yield from (f"{name}: {fault}" for name, fault in found if fault)
