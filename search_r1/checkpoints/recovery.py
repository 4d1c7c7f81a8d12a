"""Which checkpoint a run resumes from: the newest one that is what was saved.

verl's own word for it (`NEWEST_FILE`) is written once all of a checkpoint is; a kill can still
leave it empty, and nothing tells verl of a file that broke later.
"""

import logging
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from search_r1.checkpoints.folders import (
    NEWEST_FILE,
    all_checkpoints,
    newest_step,
    resume_from,
    step_of,
)
from search_r1.checkpoints.manifest import MANIFEST, BrokenCheckpointError, Manifest, faults

# Below verl's logger, which verl shields from what other libraries do to the root logger.
logger = logging.getLogger("verl.search_r1.checkpoints")

ASIDE: Final = "broken_"
"""Before the name of a checkpoint's folder that was moved aside."""

_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Found:
    """What a search for the newest whole checkpoint came to."""

    checkpoint: Path | None
    broken: Mapping[Path, str] = field(default_factory=dict)
    """Those that would have come first, and what is wrong with each."""


def fault_of(checkpoint: Path, *, is_vouched_for: bool) -> str | None:
    """What is wrong with a checkpoint; None if it is whole. All of it is read.

    Args:
        checkpoint: Its folder.
        is_vouched_for: Whether one without a manifest counts as whole: it is older than manifests
            and verl says that it was written to its end.
    """
    try:
        manifest = Manifest.read(checkpoint)
    except BrokenCheckpointError as error:
        return str(error)
    if manifest is None:
        return None if is_vouched_for else f"no {MANIFEST}: it was not written to its end"
    wrong = faults(checkpoint, manifest)
    more = f"; and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
    return "; ".join(wrong[:_SHOWN]) + more if wrong else None


def require_whole(checkpoint: Path) -> None:
    """Pass a checkpoint that is what was saved, or that has no manifest to tell.

    Raises:
        BrokenCheckpointError: it is broken; the message names its files and the newest whole one.
    """
    fault = fault_of(checkpoint, is_vouched_for=True)
    if fault is None:
        return
    instead = find_newest(checkpoint.parent).checkpoint
    advice = f"the newest whole one is {instead}" if instead else "there is no whole one beside it"
    raise BrokenCheckpointError(f"{checkpoint} is broken: {fault}; {advice}")


def find_newest(checkpoints: Path) -> Found:
    """The newest whole checkpoint, up to the one that verl's file names if it names one.

    Later ones were left behind by a rollback, unless their writing was cut short.
    """
    named = newest_step(checkpoints)
    broken: dict[Path, str] = {}
    for step, folder in _newest_first(checkpoints, named):
        is_beyond = named is not None and step > named
        if is_beyond and (folder / MANIFEST).is_file():
            continue
        fault = fault_of(folder, is_vouched_for=named is not None and not is_beyond)
        if fault is None:
            return Found(folder, broken)
        broken[folder] = fault
    return Found(None, broken)


def recover(checkpoints: Path) -> Path | None:
    """Make verl resume from the newest whole checkpoint; return its folder, None without one.

    Those that are broken are moved aside, and the log says which and why.
    """
    found, named = find_newest(checkpoints), newest_step(checkpoints)
    for folder, fault in found.broken.items():
        logger.warning("%s is broken: %s; moved to %s", folder, fault, _set_aside(folder))
    newest = found.checkpoint
    step = None if newest is None else step_of(newest)
    if step != named or found.broken:
        word = "nothing" if named is None else named
        start = f"resuming from {newest}" if newest else "no whole one: starting from scratch"
        logger.warning("%s names %s; %s", checkpoints / NEWEST_FILE, word, start)
    if newest is not None and not (newest / MANIFEST).is_file():
        logger.warning("%s has no %s: taken on verl's word", newest, MANIFEST)
    resume_from(checkpoints, step)
    return newest


def _newest_first(checkpoints: Path, named: int | None) -> list[tuple[int, Path]]:
    """First what lies beyond the named one, then that one, then the others as they were saved."""

    def age(item: tuple[int, Path]) -> tuple[bool, bool, float, int]:
        step, folder = item
        return named is not None and step > named, step == named, _saved(folder), step

    return sorted(all_checkpoints(checkpoints).items(), key=age, reverse=True)


def _saved(checkpoint: Path) -> float:
    try:
        manifest = Manifest.read(checkpoint)
    except BrokenCheckpointError:
        manifest = None
    return manifest.saved if manifest else checkpoint.stat().st_mtime


def _set_aside(checkpoint: Path) -> Path:
    aside = checkpoint.with_name(f"{ASIDE}{checkpoint.name}")
    if aside.exists():
        # At most one of a step is kept: a run that is killed again and again fills no disk.
        shutil.rmtree(aside)
    return checkpoint.rename(aside)
