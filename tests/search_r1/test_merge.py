import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from search_r1.checkpoints.manifest import BrokenCheckpointError, seal
from search_r1.merge import MERGED_FROM, find_actor, find_best, merge, origin
from search_r1.stability.checkpoints import BestCheckpoint

Checkpoint = Callable[..., Path]


@pytest.mark.parametrize(
    "part", ["", "checkpoints", "checkpoints/global_step_20", "checkpoints/global_step_20/actor"]
)
def test_the_actor_is_found_from_the_run_down(
    checkpoint: Checkpoint, tmp_path: Path, part: str
) -> None:
    checkpoint(tmp_path, 3)
    newest = checkpoint(tmp_path, 20)
    assert find_actor(tmp_path / part) == newest


def test_an_older_checkpoint_can_be_named(checkpoint: Checkpoint, tmp_path: Path) -> None:
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
    checkpoint: Checkpoint, tmp_path: Path, part: str, content: bytes, message: str
) -> None:
    checkpoint(tmp_path, 20)
    (tmp_path / "checkpoints" / "latest_checkpointed_iteration.txt").write_bytes(content)
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        find_actor(tmp_path / part)


def test_the_folder_appears_once_it_is_whole(
    checkpoint: Checkpoint, tmp_path: Path, merger: list[list[str]]
) -> None:
    actor = checkpoint(tmp_path / "run", 3)
    output = tmp_path / "models" / "policy"
    assert merge(tmp_path / "run", output) == actor
    [command] = merger
    assert command[1:5] == ["-m", "verl.model_merger", "merge", "--backend"]
    assert command[command.index("--local_dir") + 1] == str(actor)
    assert [path.name for path in output.parent.iterdir()] == ["policy"]


def test_a_failed_merge_leaves_nothing(
    checkpoint: Checkpoint, tmp_path: Path, merger: list[list[str]]
) -> None:
    checkpoint(tmp_path / "run", 3)
    output = tmp_path / "models" / "broken"
    with pytest.raises(subprocess.CalledProcessError):
        merge(tmp_path / "run", output)
    assert list(output.parent.iterdir()) == []


def test_what_is_there_is_never_replaced(
    checkpoint: Checkpoint, tmp_path: Path, merger: list[list[str]]
) -> None:
    checkpoint(tmp_path / "run", 3)
    with pytest.raises(FileExistsError, match="remove it"):
        merge(tmp_path / "run", tmp_path)
    assert merger == []


def test_an_output_that_cannot_be_made_is_refused_before_the_merge(
    checkpoint: Checkpoint, tmp_path: Path, merger: list[list[str]]
) -> None:
    checkpoint(tmp_path / "run", 3)
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match=r"output: .*/file is a file"):
        merge(tmp_path / "run", tmp_path / "file" / "model")
    assert merger == []


def test_a_merged_folder_says_what_it_was_made_of(
    checkpoint: Checkpoint, tmp_path: Path, merger: list[list[str]]
) -> None:
    actor = checkpoint(tmp_path / "run", 30)
    merge(tmp_path / "run", tmp_path / "policy")
    said = json.loads((tmp_path / "policy" / MERGED_FROM).read_text())
    assert said == origin(actor)
    assert (said["checkpoint"], said["step"]) == (str(actor), 30)
    assert said["files"].keys() == {"fsdp_config.json"}


def test_a_checkpoint_of_another_name_has_no_step(checkpoint: Checkpoint, tmp_path: Path) -> None:
    actor = checkpoint(tmp_path, 3)
    renamed = actor.parent.rename(tmp_path / "best") / "actor"
    assert origin(renamed)["step"] is None


def test_the_best_checkpoint_of_a_run_is_merged(
    checkpoint: Checkpoint, tmp_path: Path, merger: list[list[str]]
) -> None:
    best = checkpoint(tmp_path, 3)
    checkpoint(tmp_path, 20)
    BestCheckpoint(3, 0.5, str(best.parent)).write(tmp_path)
    assert merge(tmp_path, tmp_path / "out", best=True) == best
    assert str(best) in merger[0]


def test_a_run_without_a_best_checkpoint_is_told_why(
    checkpoint: Checkpoint, tmp_path: Path
) -> None:
    checkpoint(tmp_path, 20)
    with pytest.raises(
        FileNotFoundError, match=r"no best_checkpoint\.json: .*merge without --best"
    ):
        find_best(tmp_path)
    BestCheckpoint(3, 0.5, str(tmp_path / "checkpoints" / "global_step_3")).write(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"names step 3, but there is no .*fsdp_config"):
        find_best(tmp_path)


@pytest.mark.parametrize("best", [False, True])
def test_a_broken_checkpoint_is_not_merged(
    checkpoint: Checkpoint, tmp_path: Path, merger: list[list[str]], best: bool
) -> None:
    whole, actor = checkpoint(tmp_path, 3), checkpoint(tmp_path, 20)
    BestCheckpoint(20, 0.5, str(actor.parent)).write(tmp_path)
    for folder in (whole, actor):
        seal(folder.parent)
    (actor / "fsdp_config.json").write_text('{"world_size": 2}')
    with pytest.raises(
        BrokenCheckpointError, match=rf"actor/fsdp_config.*checksum.*whole one is {whole.parent}"
    ):
        merge(tmp_path, tmp_path / "out", best=best)
    assert merger == []
