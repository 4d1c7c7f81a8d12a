"""A server dies with its engine, and with nothing else."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from threading import Thread

import pytest

from search_r1.engine_watch import EngineWatch, watch

Start = Callable[[str], subprocess.Popen[bytes]]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts children that call themselves as they are told, and sleep."""
    children: list[subprocess.Popen[bytes]] = []

    def one(title: str) -> subprocess.Popen[bytes]:
        command = [title, "-c", "print(flush=True); import time; time.sleep(60)"]
        children.append(
            subprocess.Popen(command, executable=sys.executable, stdout=subprocess.PIPE)
        )
        assert children[-1].stdout is not None
        children[-1].stdout.readline()
        return children[-1]

    yield one
    for child in children:
        child.kill()
        child.wait()


def test_the_loss_of_an_engine_is_told_by_its_name(start: Start) -> None:
    engine, other = start("VLLM::EngineCore"), start("python")
    told: list[str] = []
    watching = Thread(target=watch, args=(told.append, 0.01))
    watching.start()
    other.kill()
    watching.join(0.3)
    assert watching.is_alive()
    engine.kill()  # nobody waits for it: what is left of it is no engine
    watching.join(10)
    [said] = told
    assert said.startswith("VLLM::EngineCore")
    assert said.endswith(f", process {engine.pid}")


class Trainer:
    def fit(self, agent_loop_manager: object) -> None:
        self.fitted_with = agent_loop_manager


class Watched(EngineWatch, Trainer):
    pass


def test_every_server_watches_before_anything_is_trained(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    class Call:
        def __init__(self, server: str) -> None:
            self._server = server

        def remote(self, function: Callable[..., None]) -> str:
            calls.append(f"{self._server} {function.__name__}")
            return self._server

    class Handle:
        def __init__(self, name: str) -> None:
            self.__ray_call__ = Call(name)

    class Replica:
        def __init__(self, *names: str) -> None:
            self.servers = [Handle(name) for name in names]

    class Manager:
        def get_replicas(self) -> list[Replica]:
            return [Replica("a", "b"), Replica("c")]

    class Ray:
        def get(self, references: list[str]) -> None:
            assert references == ["a", "b", "c"]

    monkeypatch.setitem(sys.modules, "ray", Ray())
    trainer = Watched()
    trainer.llm_server_manager = Manager()
    trainer.fit("loops")
    assert calls == [f"{name} die_with_engine" for name in "abc"]
    assert trainer.fitted_with == "loops"
