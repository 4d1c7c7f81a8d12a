"""Real processes, with a stand-in for ``search-r1 train``."""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from search_r1.ablation.plan import Plan
from search_r1.ablation.record import exit_code
from search_r1.ablation.training import Trainer

Make = Callable[..., Plan]


@pytest.fixture
def console() -> Console:
    return Console(file=StringIO(), width=200)


@pytest.fixture
def trainer(fake_train: list[str], console: Console) -> Trainer:
    return Trainer(fake_train, {"MARK": "clean"}, console)


def said(console: Console) -> str:
    file = console.file
    assert isinstance(file, StringIO)
    return file.getvalue()


def starts(folder: Path) -> int:
    return len((folder / "started").read_text().splitlines())


def test_every_run_is_trained_once(trainer: Trainer, make_plan: Make, console: Console) -> None:
    plan, ended = make_plan("on", "off"), []
    assert trainer.train_all(plan, lambda: ended.append(1)) == []
    assert trainer.train_all(plan, lambda: ended.append(1)) == []
    assert [starts(run.folder) for run in plan.runs] == [1, 1]
    assert len(ended) == 2
    assert "on: finished before" in said(console)
    assert (plan.runs[0].folder / "started").read_text() == "clean\n"


def test_who_fails_is_told_with_its_last_words_and_the_others_go_on(
    trainer: Trainer, make_plan: Make, console: Console
) -> None:
    plan = make_plan("off", "on", words=["mode=fail"])
    assert trainer.train_all(plan, lambda: None) == ["off"]
    assert [exit_code(run.folder) for run in plan.runs] == [1, 0]
    assert "off: failed with exit code 1" in said(console)
    assert "out of memory" in said(console)
    # The same command tries again only who failed.
    assert trainer.train_all(make_plan("off", "on"), lambda: None) == []
    assert [starts(run.folder) for run in plan.runs] == [2, 1]
    log = (plan.folder / "logs" / "off.log").read_text()
    assert log.count("training off") == 2


@pytest.fixture
def signals() -> Iterator[None]:
    """A test may set how it takes SIGINT and SIGTERM."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def stop_once_started(trainer: Trainer, plan: Plan, number: int) -> str:
    """What the first run logged, which a signal to us stopped as soon as it had started."""
    log = plan.folder / "logs" / f"{plan.runs[0].name}.log"

    def interrupt_when_started() -> None:
        while not (log.is_file() and log.read_text()):
            time.sleep(0.02)
        os.kill(os.getpid(), number)

    killer = threading.Thread(target=interrupt_when_started)
    killer.start()
    with pytest.raises((KeyboardInterrupt, SystemExit)):
        trainer.train_all(plan, lambda: None)
    killer.join()
    return log.read_text()


@pytest.mark.usefixtures("signals")
def test_a_stop_reaches_the_run_and_leaves_it_unfinished(trainer: Trainer, make_plan: Make) -> None:
    plan = make_plan("on", "off", words=["mode=wait"])
    signal.signal(signal.SIGINT, signal.default_int_handler)
    assert "KeyboardInterrupt" in stop_once_started(trainer, plan, signal.SIGINT)
    assert exit_code(plan.runs[0].folder) is None
    assert not plan.runs[1].folder.exists()


@pytest.mark.usefixtures("signals")
def test_in_the_background_of_a_shell_a_stop_reaches_the_run_too(
    trainer: Trainer, make_plan: Make
) -> None:
    # A shell's background ignores SIGINT, and what is started from there would, too.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    plan = make_plan("on", words=["mode=wait"])
    assert "KeyboardInterrupt" in stop_once_started(trainer, plan, signal.SIGTERM)
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
