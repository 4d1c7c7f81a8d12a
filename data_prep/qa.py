"""The question sets of the paper -> parquet for verl, with a manifest of what went in.

Run it as `search-r1 prepare qa --output DIR`.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from data_prep.parquet import write_parquet
from data_prep.qa_sample import stratified
from data_prep.qa_source import LoadedSplit
from data_prep.questions import Question, merge
from search_r1.files import atomic_files, write_lines

MANIFEST: Final = "manifest.json"
TRAIN: Final = "train"


@dataclass(frozen=True, slots=True)
class Origin:
    """A split that a file was made from."""

    set: str
    split: str
    rows: int
    published_rows: int
    sha256: str


@dataclass(frozen=True, slots=True)
class QaFile:
    """A parquet file to write: `NAME.parquet`, with these questions in this order."""

    name: str
    split: str
    questions: tuple[Question, ...]
    origins: tuple[Origin, ...]


def count_differences(loaded: Sequence[LoadedSplit]) -> list[str]:
    """What to say of the splits that do not have as many rows as were published."""
    return [
        f"{one.split}: {len(one.questions):,} rows here, {one.split.rows:,} published"
        for one in loaded
        if len(one.questions) != one.split.rows
    ]


def evaluation_files(
    loaded: Sequence[LoadedSplit], sample: int | None, seed: int
) -> Iterator[QaFile]:
    """One file a set: all its rows in their order, or its share of a sample, in a drawn order.

    Raises:
        ValueError: the sample is too small or too large for the sets.
    """
    questions = [one.questions for one in loaded]
    taken = questions if sample is None else stratified(questions, sample, seed)
    for one, some in zip(loaded, taken, strict=True):
        yield QaFile(one.split.name, one.split.split, some, (_origin(one),))


def training_file(loaded: Sequence[LoadedSplit], seed: int) -> QaFile:
    """All the splits merged and shuffled; ids are unique over the merge."""
    names = [one.split for one in loaded]
    merged = merge([one.questions for one in loaded], seed, names)
    return QaFile(TRAIN, TRAIN, tuple(merged), tuple(map(_origin, loaded)))


def write_files(
    files: Sequence[QaFile],
    folder: Path,
    settings: dict[str, str | int | None],
    advance: Callable[[int], None] = lambda _: None,
) -> None:
    """Write the files and `manifest.json`, and move them into the folder once all are made.

    The manifest comes last: a folder with a manifest is complete.

    Args:
        files: what to write.
        folder: where to; created when missing, files of the same names are replaced.
        settings: kept in the manifest before the files.
        advance: called with the number of rows after each group.

    Raises:
        OSError: the folder cannot be written.
    """
    manifest = {**settings, "files": {f"{file.name}.parquet": _entry(file) for file in files}}
    with atomic_files(folder, MANIFEST) as new:
        for file in files:
            write_parquet(file.questions, new / f"{file.name}.parquet", file.split, advance)
        write_lines(new / MANIFEST, [json.dumps(manifest, indent=2)])


def _origin(loaded: LoadedSplit) -> Origin:
    split = loaded.split
    return Origin(split.name, split.split, len(loaded.questions), split.rows, loaded.sha256)


def _entry(file: QaFile) -> dict[str, object]:
    origins = [asdict(origin) for origin in file.origins]
    return {"rows": len(file.questions), "split": file.split, "from": origins}
