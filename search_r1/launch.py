"""From the words of ``search-r1 train`` to a run: described, checked or started."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from omegaconf import DictConfig
from rich.console import Console

from search_r1.config import compose
from search_r1.report import render_report
from search_r1.train import CheckFailedError, check_all, to_yaml
from search_r1.train import train as start

FINE = 0
BAD_CONFIG = 2
INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class Run:
    """A composed config and the command that made it."""

    command: str
    config: DictConfig

    @classmethod
    def compose(cls, config: str, overrides: Sequence[str]) -> Self:
        """The run of these words.

        Raises:
            ConfigError: they make no config.
        """
        command = shlex.join(["search-r1", "train", config, *overrides])
        return cls(command, compose(config, overrides))

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
    """Train to the end; return the exit code. What goes wrong while training is raised."""
    console = Console(stderr=True, highlight=False)
    try:
        start(run.config)
    except CheckFailedError as error:
        console.print(render_report(error.report))
        return BAD_CONFIG
    except KeyboardInterrupt:
        console.print("stopped; the same command resumes from the newest checkpoint")
        return INTERRUPTED
    return FINE
