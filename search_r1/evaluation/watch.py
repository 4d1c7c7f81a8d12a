"""An evaluation with a progress bar on standard error, and what its end means for the exit code."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from search_r1.evaluation import vllm_engine
from search_r1.evaluation.answer_log import AnswerLog
from search_r1.evaluation.evaluate import Evaluation
from search_r1.exits import FAILED
from search_r1.retriever import RetrievalUnavailableError

_INTERRUPTED: Final = 130
_RESUME: Final = "what was answered is kept; the same command goes on from there"
_SPEED_SECONDS: Final = 600
"""The time left is judged by so much of the past: models are loaded in between."""

_console = Console(stderr=True, highlight=False)


def run_watched(evaluation: Evaluation, log: AnswerLog) -> None:
    """Run an evaluation on vLLM. An error of a question is raised; what is done is kept.

    Raises:
        typer.Exit: the search engine is lost, or the user stopped the run.
    """
    total = len(evaluation.questions)
    with tell_how_it_ends(total), progress_bar() as bar:
        task = bar.add_task("Answering", total=total)
        evaluation.run(log, vllm_engine.start_vllm, lambda done: bar.update(task, completed=done))


@contextmanager
def tell_how_it_ends(total: int) -> Iterator[None]:
    """Say how long `total` questions took, or in a line why the run ended early.

    Raises:
        typer.Exit: the search engine is lost, or the user stopped the run.
    """
    started = time.monotonic()
    try:
        yield
    except RetrievalUnavailableError as error:
        _console.print(f"error: {error}", markup=False, style="red", soft_wrap=True)
        _console.print(_RESUME)
        raise typer.Exit(FAILED) from error
    except KeyboardInterrupt:
        _console.print(f"stopped; {_RESUME}")
        raise typer.Exit(_INTERRUPTED) from None
    _console.print(f"{total:,} questions, {time.monotonic() - started:.0f} s in this run")


def progress_bar() -> Progress:
    """A bar with the counts, the time and the time left."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=_console,
        speed_estimate_period=_SPEED_SECONDS,
    )
