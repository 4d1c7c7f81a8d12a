"""Folders of `search-r1 prepare qa`: the sets they hold, and what their manifest pins."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from data_prep.qa import MANIFEST, TRAIN
from data_prep.questions import Question

_FIX: Final = "make the folder anew with `search-r1 prepare qa`"


def expand_folders(paths: Iterable[Path]) -> list[Path]:
    """The paths, with the evaluation sets of a prepared folder in place of the folder.

    Raises:
        ValueError: a folder was not made by `search-r1 prepare qa`, or holds training data only.
    """
    return [file for path in paths for file in (_sets_in(path) if path.is_dir() else [path])]


def check_pins(path: Path, questions: Sequence[Question]) -> None:
    """Pass a file that is as its folder's manifest says, or that no manifest tells of.

    Raises:
        ValueError: the number of rows or the split is another; the message has both.
    """
    entry = _entries(path.parent).get(path.name)
    if not entry:
        return
    manifest = path.parent / MANIFEST
    if len(questions) != entry["rows"]:
        rows = f"{len(questions):,} rows here, {entry['rows']:,} in {manifest}"
        raise ValueError(f"{path}: {rows}; {_FIX}")
    for split in {question.metadata.get("split") for question in questions}:
        if split != entry["split"]:
            wrong = f"split {split} here, {entry['split']} in {manifest}"
            raise ValueError(f"{path}: {wrong}; {_FIX}")


def _sets_in(folder: Path) -> Iterator[Path]:
    names = [name for name, entry in _entries(folder).items() if entry["split"] != TRAIN]
    if not names:
        raise ValueError(
            f"data: the folder {folder} holds no {MANIFEST} that names evaluation sets; give one "
            "that `search-r1 prepare qa` made, or files"
        )
    return (folder / name for name in names)


def _entries(folder: Path) -> Mapping[str, Any]:
    """By file; empty for a folder that `search-r1 prepare qa` did not make."""
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
    except (OSError, ValueError):
        return {}
    files = manifest.get("files") if isinstance(manifest, dict) else None
    entries = files.items() if isinstance(files, dict) else ()
    return {name: entry for name, entry in entries if _is_entry(entry)}


def _is_entry(entry: object) -> bool:
    return isinstance(entry, dict) and {"rows", "split"} <= entry.keys()
