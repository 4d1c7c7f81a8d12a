"""Small checkpoints in the layout of verl's."""

from collections.abc import Callable
from pathlib import Path

import pytest

from search_r1.checkpoints.folders import checkpoint_folder, resume_from
from search_r1.checkpoints.manifest import seal

Save = Callable[..., Path]


@pytest.fixture
def checkpoints(tmp_path: Path) -> Path:
    return tmp_path / "checkpoints"


@pytest.fixture
def save(checkpoints: Path) -> Save:
    """Writes the checkpoint of a step, as a whole one unless told otherwise."""

    def one(step: int, *, sealed: bool = True, named: bool = True) -> Path:
        folder = checkpoint_folder(checkpoints, step)
        (folder / "actor" / "huggingface").mkdir(parents=True)
        (folder / "actor" / "model_world_size_1_rank_0.pt").write_bytes(b"weights %d" % step)
        (folder / "actor" / "huggingface" / "config.json").write_text("{}")
        (folder / "data.pt").write_bytes(b"state")
        if named:
            resume_from(checkpoints, step)
        if sealed:
            seal(folder)
        return folder

    return one
