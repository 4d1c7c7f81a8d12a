import json
import os
from pathlib import Path

import pytest

from search_r1.stability.checkpoints import (
    BestCheckpoint,
    newest_step,
    remove_old,
    resume_from,
)


def checkpoints(folder: Path, *steps: int) -> Path:
    """Checkpoints saved in this order, a second apart."""
    for second, step in enumerate(steps):
        checkpoint = folder / f"global_step_{step}"
        (checkpoint / "actor").mkdir(parents=True)
        os.utime(checkpoint, (second, second))
    return folder


def left(folder: Path) -> list[int]:
    return sorted(int(path.name.removeprefix("global_step_")) for path in folder.iterdir())


def test_the_best_checkpoint_moves_with_its_run(tmp_path: Path) -> None:
    run = tmp_path / "run"
    best = BestCheckpoint(50, 0.4, str(run / "checkpoints" / "global_step_50"), {"repetition": 0.1})
    best.write(run)
    assert json.loads((run / "best_checkpoint.json").read_text()) == {
        "step": 50,
        "em": 0.4,
        "path": "checkpoints/global_step_50",
        "alarms": {"repetition": 0.1},
    }
    moved = run.rename(tmp_path / "moved")
    found = BestCheckpoint.read(moved)
    assert found is not None
    assert found.path == str(moved / "checkpoints" / "global_step_50")
    assert found.alarms == {"repetition": 0.1}


def test_a_checkpoint_outside_the_run_keeps_its_whole_path(tmp_path: Path) -> None:
    BestCheckpoint(1, 0.4, "/elsewhere/global_step_1").write(tmp_path)
    found = BestCheckpoint.read(tmp_path)
    assert found is not None
    assert found.path == "/elsewhere/global_step_1"


def test_no_best_checkpoint_is_none_and_a_broken_one_is_named(tmp_path: Path) -> None:
    assert BestCheckpoint.read(tmp_path) is None
    (tmp_path / "best_checkpoint.json").write_text('{"step": 1}')
    with pytest.raises(ValueError, match=r"best_checkpoint\.json: not a best checkpoint"):
        BestCheckpoint.read(tmp_path)


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
