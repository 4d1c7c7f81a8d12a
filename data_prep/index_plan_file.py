"""What an unfinished build of an index was asked for, kept beside it."""

from pathlib import Path

from pydantic import BaseModel, ConfigDict

from data_prep.index_vectors import DONE_FILE, VectorDtype
from search_r1.files import atomic_path

PLAN_FILE = "plan.json"


class UnfinishedBuildError(ValueError):
    """The folder holds an unfinished build with other settings."""


class Plan(BaseModel):
    """What a chunk of vectors depends on; chunks of different plans are never mixed.

    The type of the index is not part of it: an unfinished build may be finished as another type.
    """

    model_config = ConfigDict(frozen=True)

    encoder: dict[str, object]
    chunk_rows: int
    corpus_sha256: str
    vectors: VectorDtype

    def claim(self, folder: Path, *, replace: bool) -> None:
        """Make a build folder this plan's; the chunks of another plan are dropped if `replace`.

        Raises:
            UnfinishedBuildError: The folder is another plan's and `replace` is false.
        """
        path = folder / PLAN_FILE
        if path.exists():
            there = Plan.model_validate_json(path.read_text())
            names = [
                name for name in Plan.model_fields if getattr(there, name) != getattr(self, name)
            ]
            if names and not replace:
                raise UnfinishedBuildError(
                    f"{folder} holds an unfinished build that differs in {', '.join(names)}: run "
                    "with its settings to finish it, or with --overwrite to start again"
                )
            if names:
                _drop(folder)
        with atomic_path(path) as temporary:
            temporary.write_text(self.model_dump_json())


def _drop(folder: Path) -> None:
    for path in [folder / DONE_FILE, *folder.glob("checkpoint-*.faiss")]:
        path.unlink(missing_ok=True)
