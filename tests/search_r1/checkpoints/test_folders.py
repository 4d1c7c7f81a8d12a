import os
from pathlib import Path

import pytest

from search_r1.checkpoints.folders import newest_step, remove_old, resume_from


def checkpoints(folder: Path, *steps: int) -> Path:
    """Checkpoints saved in this order, a second apart."""
    for second, step in enumerate(steps):
        checkpoint = folder / f"global_step_{step}"
        (checkpoint / "actor").mkdir(parents=True)
        os.utime(checkpoint, (second, second))
    return folder


def left(folder: Path) -> list[int]:
    return sorted(int(path.name.removeprefix("global_step_")) for path in folder.iterdir())


def test_the_newest_are_kept_and_the_best_is_spared(tmp_path: Path) -> None:
    folder = checkpoints(tmp_path, 10, 20, 30, 40)
    removed = remove_old(folder, keep=2, spared=folder / "global_step_10")
    assert [path.name for path in removed] == ["global_step_20"]
    assert left(folder) == [10, 30, 40]


def test_the_best_is_spared_under_any_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoints(tmp_path / "saved", 10, 20)
    monkeypatch.chdir(tmp_path)
    remove_old(Path("saved"), keep=1, spared=tmp_path / "saved" / "global_step_10")
    assert left(tmp_path / "saved") == [10, 20]


def test_after_a_rollback_later_steps_are_the_older_ones(tmp_path: Path) -> None:
    folder = checkpoints(tmp_path, 10, 30, 40, 20)
    remove_old(folder, keep=1, spared=folder / "global_step_10")
    assert left(folder) == [10, 20]


def test_a_run_resumes_from_the_step_it_is_told(tmp_path: Path) -> None:
    assert newest_step(tmp_path) is None
    resume_from(tmp_path, 20)
    assert newest_step(tmp_path) == 20
    (tmp_path / "latest_checkpointed_iteration.txt").write_text("broken")
    assert newest_step(tmp_path) is None
