import json
from pathlib import Path

import pytest

from search_r1.stability.checkpoints import BestCheckpoint


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
