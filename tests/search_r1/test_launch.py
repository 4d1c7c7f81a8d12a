"""How a training ends: exit codes, what is said, and the new start after a rollback."""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf

from search_r1 import launch
from search_r1.checkpoints.saving import CheckpointNotSavedError
from search_r1.launch import Run
from search_r1.stability.errors import AlarmStopError, RollBackError
from search_r1.worker_watch import WorkerDiedError

RUN = Run(("ppo", "output_dir=runs/a b"), OmegaConf.create())

Raise = Callable[[Exception], None]


class RayError(Exception):
    """Ray's error of a task: the cause, and a traceback as its text."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(f"Traceback {cause}")
        self.cause = cause


class RayStopError(RayError, AlarmStopError):
    pass


class RayRollBackError(RayError, RollBackError):
    pass


@pytest.fixture
def raise_in_training(monkeypatch: pytest.MonkeyPatch) -> Raise:
    def install(error: Exception) -> None:
        def start(_: Any) -> None:
            os.environ["VERL_FILE_LOGGER_PATH"] = "of the first start"
            raise error

        monkeypatch.delenv("VERL_FILE_LOGGER_PATH", raising=False)
        monkeypatch.setattr(launch, "start", start)

    yield install
    os.environ.pop("VERL_FILE_LOGGER_PATH", None)


def test_an_alarm_ends_with_its_own_code_and_report(
    raise_in_training: Raise, capsys: pytest.CaptureFixture[str]
) -> None:
    raise_in_training(RayStopError(AlarmStopError("step 7: alarm repetition; [the run] stops")))
    assert launch.train(RUN) == launch.ALARM == 3
    said = capsys.readouterr().err
    assert said == "step 7: alarm repetition; [the run] stops\n"


class RayNotSavedError(RayError, CheckpointNotSavedError):
    pass


def test_a_checkpoint_that_cannot_be_saved_has_its_own_code(
    raise_in_training: Raise, capsys: pytest.CaptureFixture[str]
) -> None:
    raise_in_training(RayNotSavedError(CheckpointNotSavedError("global_step_7: no space")))
    assert launch.train(RUN) == launch.NOT_SAVED == 4
    assert capsys.readouterr().err == "global_step_7: no space\n"


class RayDiskError(RayError, OSError):
    pass


def test_a_full_disk_has_its_own_code_and_says_what_is_free(
    raise_in_training: Raise, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    raise_in_training(RayDiskError(RayDiskError(full)))
    run = Run(("ppo",), OmegaConf.create({"output_dir": str(tmp_path)}))
    assert launch.train(run) == launch.NOT_SAVED == 4
    said = capsys.readouterr().err
    assert said.startswith("the disk is full: [Errno 28] No space left on device\n")
    assert f"B in {tmp_path} (" in said
    assert "Traceback" not in said


def test_another_error_of_a_file_is_raised(raise_in_training: Raise) -> None:
    raise_in_training(RayDiskError(PermissionError(errno.EACCES, "denied")))
    with pytest.raises(RayDiskError, match="denied"):
        launch.train(RUN)


def test_a_dead_process_ends_with_its_name_and_no_traceback(
    raise_in_training: Raise, capsys: pytest.CaptureFixture[str]
) -> None:
    raise_in_training(WorkerDiedError("WorkerDict died"))
    assert launch.train(RUN) == 1
    assert capsys.readouterr().err == "WorkerDict died\n"


def test_a_rollback_runs_the_same_command_again(
    raise_in_training: Raise, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    started: list[tuple[str, list[str], dict[str, str]]] = []
    monkeypatch.setattr(os, "execve", lambda *words: started.append(words))
    raise_in_training(RayRollBackError(RollBackError("step 7: back to step 5")))
    launch.train(RUN)
    [(program, command, environment)] = started
    assert Path(program).name.startswith("python")
    assert command[1:] == [
        *("-m", "search_r1", "train", "ppo", "output_dir=runs/a b"),
        "trainer.resume_mode=auto",
    ]
    # The new start names its own metrics.
    assert "VERL_FILE_LOGGER_PATH" not in environment
    assert "back to step 5" in capsys.readouterr().err


def test_a_run_knows_the_command_that_a_person_types() -> None:
    assert RUN.command == "search-r1 train ppo 'output_dir=runs/a b'"
