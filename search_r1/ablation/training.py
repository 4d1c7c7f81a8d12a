"""Trains the runs of an ablation, one after another, each in a process of its own.

So nothing of Ray, vLLM or torch is left over from one run to the next, and a run that dies takes
no other with it.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

from search_r1.ablation.plan import Plan, PlannedRun
from search_r1.ablation.record import exit_code, forget_end, write_end
from search_r1.run_report.metrics_log import last_step

TRAIN: Final = (str(Path(sys.executable).with_name("search-r1")), "train")

_LOOK_SECONDS: Final = 2.0
"""Between two looks at how far a run is."""
_STOP_SECONDS: Final = 120
"""For a run that was asked to stop."""
_SHOWN_LINES: Final = 8
_SHOWN_BYTES: Final = 4096


@dataclass(frozen=True, slots=True)
class Trainer:
    """How runs are trained and where that is said."""

    command: Sequence[str]
    """What the arguments of a run are appended to: `TRAIN`."""
    environment: Mapping[str, str]
    console: Console

    def train_all(self, plan: Plan, after_each: Callable[[], None]) -> list[str]:
        """Train what is not finished; whoever fails is reported, and the others go on.

        Args:
            plan: The ablation. A run that was begun is resumed, as ``search-r1 train`` does it.
            after_each: Called behind each run that ended.

        Returns:
            The names of the runs that failed.
        """
        failed = []
        with _progress(self.console) as bar:
            every = bar.add_task("runs", total=len(plan.runs))
            for run in plan.runs:
                if exit_code(run.folder) == 0:
                    self._say(f"{run.name}: finished before")
                else:
                    failed += [run.name] * (self._train(run, plan.folder, bar) != 0)
                    after_each()
                bar.advance(every)
        return failed

    def _train(self, run: PlannedRun, folder: Path, bar: Progress) -> int:
        log, started = folder / "logs" / f"{run.name}.log", time.monotonic()
        forget_end(run.folder)
        task = bar.add_task(f"steps of {run.name}", total=run.config.trainer.total_training_steps)
        code = self._run(run, log, bar, task)
        bar.remove_task(task)
        seconds = time.monotonic() - started
        write_end(run.folder, code, seconds)
        if code == 0:
            self._say(f"{run.name}: finished in {seconds:.0f} s")
        else:
            self._say(f"{run.name}: failed with exit code {code}; the end of {log}:", "red")
            self._say(_tail(log))
        return code

    def _run(self, run: PlannedRun, log: Path, bar: Progress, task: TaskID) -> int:
        log.parent.mkdir(parents=True, exist_ok=True)
        command = [*self.command, *run.arguments]
        with log.open("ab") as target, _started(command, target.fileno(), self.environment) as one:
            while True:
                try:
                    return one.wait(_LOOK_SECONDS)
                except subprocess.TimeoutExpired:
                    bar.update(task, completed=last_step(run.folder))

    def _say(self, text: str, style: str = "") -> None:
        self.console.print(text, style=style, markup=False, soft_wrap=True)


@contextmanager
def _started(
    command: Sequence[str], log: int, environment: Mapping[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    """A process of its own group, stopped gently when the block ends before it does."""
    with _interruptible_children():
        process = subprocess.Popen(  # noqa: S603 - no shell
            command,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=environment,
            # A Ctrl-C in the terminal reaches us alone, and from us it reaches the run once.
            start_new_session=True,
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            _stop(process)


@contextmanager
def _interruptible_children() -> Iterator[None]:
    """Start processes that heed SIGINT, even if a shell started us in its background without it."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGINT)
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _tail(log: Path) -> str:
    end = log.read_bytes()[-_SHOWN_BYTES:].decode(errors="replace")
    return "\n".join(end.rstrip().splitlines()[-_SHOWN_LINES:])


def _progress(console: Console) -> Progress:
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    return Progress(*columns, TimeElapsedColumn(), console=console)
