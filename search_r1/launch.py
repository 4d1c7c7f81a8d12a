"""From the words of ``search-r1 train`` to a run: described, checked or started."""

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from omegaconf import DictConfig
from rich.console import Console

from search_r1.checkpoints.saving import CheckpointNotSavedError
from search_r1.config import compose
from search_r1.disk_full import full_disk_behind
from search_r1.disk_full import report as report_full_disk
from search_r1.exits import BAD_INPUT, FAILED
from search_r1.report import render_report
from search_r1.stability.errors import AlarmStopError, RollBackError
from search_r1.train import CheckFailedError, check_all, to_yaml
from search_r1.train import train as start
from search_r1.worker_watch import WorkerDiedError

FINE = 0
BAD_CONFIG = BAD_INPUT
ALARM = 3
"""An alarm stopped the run; its report is on standard error."""
NOT_SAVED = 4
"""A checkpoint, or any other file, could not be written to a full disk; standard error names it."""
INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class Run:
    """A composed config and the command that made it."""

    words: tuple[str, ...]
    config: DictConfig

    @property
    def command(self) -> str:
        """The command as a person types it."""
        return shlex.join(["search-r1", "train", *self.words])

    @classmethod
    def compose(cls, config: str, overrides: Sequence[str]) -> Self:
        """The run of these words.

        Raises:
            ConfigError: they make no config.
        """
        return cls((config, *overrides), compose(config, overrides))

    def describe(self) -> str:
        """The command as a comment, and the whole resolved config: a YAML file that runs."""
        return f"# {self.command}\n{to_yaml(self.config)}"


def check(run: Run) -> int:
    """Print the report of every check, verl's own last; return the exit code."""
    console = Console(highlight=False)
    with Console(stderr=True).status("checking, with verl's own checks (half a minute)"):
        report = check_all(run.config)
    console.print(render_report(report))
    return BAD_CONFIG if report.problems else FINE


def train(run: Run) -> int:
    """Train to the end; return the exit code. What goes wrong while training is raised.

    A rollback replaces this process by one of the same command, which resumes from the checkpoint
    that the alarm has chosen: a new process has nothing of the old one's Ray and CUDA.
    """
    console = Console(stderr=True, highlight=False)
    # Starting verl changes it; the metrics of a new start need a file of their own.
    environment = dict(os.environ)
    try:
        start(run.config)
    except RollBackError as error:
        console.print(_cause(error), markup=False, style="yellow", soft_wrap=True)
        return restart(run, environment)
    except AlarmStopError as error:
        console.print(_cause(error), markup=False, style="red", soft_wrap=True)
        return ALARM
    except CheckpointNotSavedError as error:
        console.print(_cause(error), markup=False, style="red", soft_wrap=True)
        return NOT_SAVED
    except WorkerDiedError as error:
        console.print(str(error), markup=False, style="red", soft_wrap=True)
        return FAILED
    except CheckFailedError as error:
        console.print(render_report(error.report))
        return BAD_CONFIG
    except OSError as error:
        full = full_disk_behind(error)
        if full is None:
            raise
        text = report_full_disk(full, Path(run.config.output_dir))
        console.print(text, markup=False, style="red", soft_wrap=True)
        return NOT_SAVED
    except KeyboardInterrupt:
        console.print("stopped; the same command resumes from the newest checkpoint")
        return INTERRUPTED
    return FINE


def restart(run: Run, environment: Mapping[str, str]) -> int:
    """Run the command again in this process's place, from the newest checkpoint."""
    command = [sys.executable, "-m", "search_r1", "train", *run.words, "trainer.resume_mode=auto"]
    os.execve(sys.executable, command, dict(environment))  # noqa: S606 - no shell


def _cause(error: Exception) -> str:
    """What was raised in the trainer's process, without Ray's traceback of it."""
    return str(getattr(error, "cause", error))
