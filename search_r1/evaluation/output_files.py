"""The files of an evaluation, by name, and the refusal to write over one of them."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

ANSWERS: Final = "answers.jsonl"
"""In order of completion, with the seconds that each took."""
TRAJECTORIES: Final = "trajectories.jsonl"
"""In the data's order, without times."""
MANIFEST: Final = "manifest.json"
METRICS: Final = "metrics.json"
TABLES: Final = "metrics.md"
MODEL: Final = "model"
"""The folder of a model that was merged for the evaluation."""

_ALL: Final = (ANSWERS, TRAJECTORIES, MANIFEST, METRICS, TABLES)


def refuse_own_files(target: Path, folders: Iterable[Path]) -> None:
    """Pass a file that is none of those that an evaluation left in one of the folders.

    Raises:
        ValueError: it is one.
    """
    own = {(folder / name).resolve() for folder in folders for name in _ALL}
    if target.resolve() in own:
        raise ValueError(f"output: {target} is a file of an evaluation; give another --output")
