"""Real processes, with a stand-in for ``search-r1 train``."""

import signal
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
def interruptible() -> Iterator[None]:
    """SIGINT as in a terminal: a shell starts what runs in its background with it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_a_stop_reaches_the_run_and_leaves_it_unfinished(trainer: Trainer, make_plan: Make) -> None:
    plan = make_plan("on", "off", words=["mode=wait"])

    def interrupt_when_started() -> None:
        log = plan.folder / "logs" / "on.log"
        while not (log.is_file() and log.read_text()):
            time.sleep(0.02)
        signal.raise_signal(signal.SIGINT)

    killer = threading.Thread(target=interrupt_when_started)
    killer.start()
    with pytest.raises(KeyboardInterrupt):
        trainer.train_all(plan, lambda: None)
    killer.join()
    assert exit_code(plan.runs[0].folder) is None
    assert not plan.runs[1].folder.exists()
    assert "KeyboardInterrupt" in (plan.folder / "logs" / "on.log").read_text()
