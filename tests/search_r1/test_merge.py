import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from search_r1.merge import find_actor, find_best, merge
from search_r1.stability.checkpoints import BestCheckpoint


def checkpoint(run: Path, step: int, *, newest: bool = True) -> Path:
    """A run's checkpoint of a step, without its weights."""
    actor = run / "checkpoints" / f"global_step_{step}" / "actor"
    actor.mkdir(parents=True)
    (actor / "fsdp_config.json").write_text('{"world_size": 1}')
    if newest:
        (run / "checkpoints" / "latest_checkpointed_iteration.txt").write_text(str(step))
    return actor


@pytest.fixture
def merger(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Takes the place of verl's merger: notes its commands and writes a config."""
    commands: list[list[str]] = []

    def run(command: Sequence[str], *, check: bool, **_: Any) -> None:
        commands.append(list(command))
        target = Path(command[command.index("--target_dir") + 1])
        target.mkdir()
        (target / "config.json").write_text("{}")
        if "broken" in str(target):
            raise subprocess.CalledProcessError(1, command)

    monkeypatch.setattr(subprocess, "run", run)
    return commands


@pytest.mark.parametrize(
    "part", ["", "checkpoints", "checkpoints/global_step_20", "checkpoints/global_step_20/actor"]
)
def test_the_actor_is_found_from_the_run_down(tmp_path: Path, part: str) -> None:
    checkpoint(tmp_path, 3)
    newest = checkpoint(tmp_path, 20)
    assert find_actor(tmp_path / part) == newest


def test_an_older_checkpoint_can_be_named(tmp_path: Path) -> None:
    older = checkpoint(tmp_path, 3)
    checkpoint(tmp_path, 20)
    assert find_actor(tmp_path / "checkpoints" / "global_step_3") == older


def test_a_run_without_a_checkpoint_is_told_the_setting(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"trainer\.save_freq"):
        find_actor(tmp_path)


@pytest.mark.parametrize("part", ["", "checkpoints"])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"30", r"iteration\.txt names step 30, but there is no .*global_step_30.*; write there"),
        (b"abc", r"iteration\.txt: 'abc' is no step; write there"),
        (b"", r"iteration\.txt: '' is no step; write there"),
        (b"\xff", r"iteration\.txt: .* is no step; write there"),
    ],
)
def test_a_wrong_word_for_the_newest_is_named(
    tmp_path: Path, part: str, content: bytes, message: str
) -> None:
    checkpoint(tmp_path, 20)
    (tmp_path / "checkpoints" / "latest_checkpointed_iteration.txt").write_bytes(content)
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        find_actor(tmp_path / part)


def test_the_folder_appears_once_it_is_whole(tmp_path: Path, merger: list[list[str]]) -> None:
    actor = checkpoint(tmp_path / "run", 3)
    output = tmp_path / "models" / "policy"
    assert merge(tmp_path / "run", output) == actor
    [command] = merger
    assert command[1:5] == ["-m", "verl.model_merger", "merge", "--backend"]
    assert command[command.index("--local_dir") + 1] == str(actor)
    assert [path.name for path in output.parent.iterdir()] == ["policy"]


def test_a_failed_merge_leaves_nothing(tmp_path: Path, merger: list[list[str]]) -> None:
    checkpoint(tmp_path / "run", 3)
    output = tmp_path / "models" / "broken"
    with pytest.raises(subprocess.CalledProcessError):
        merge(tmp_path / "run", output)
    assert list(output.parent.iterdir()) == []


def test_what_is_there_is_never_replaced(tmp_path: Path, merger: list[list[str]]) -> None:
    checkpoint(tmp_path / "run", 3)
    with pytest.raises(FileExistsError, match="remove it"):
        merge(tmp_path / "run", tmp_path)
    assert merger == []


def test_the_best_checkpoint_of_a_run_is_merged(tmp_path: Path, merger: list[list[str]]) -> None:
    best = checkpoint(tmp_path, 3)
    checkpoint(tmp_path, 20)
    BestCheckpoint(3, 0.5, str(best.parent)).write(tmp_path)
    assert merge(tmp_path, tmp_path / "out", best=True) == best
    assert str(best) in merger[0]


def test_a_run_without_a_best_checkpoint_is_told_why(tmp_path: Path) -> None:
    checkpoint(tmp_path, 20)
    with pytest.raises(
        FileNotFoundError, match=r"no best_checkpoint\.json: .*merge without --best"
    ):
        find_best(tmp_path)
    BestCheckpoint(3, 0.5, str(tmp_path / "checkpoints" / "global_step_3")).write(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"names step 3, but there is no .*fsdp_config"):
        find_best(tmp_path)
