"""Several real processes on one port: one is killed, the service goes on."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from retrieval_server.listener import bind

Until = Callable[[Callable[[], bool]], None]
Command = Callable[..., "subprocess.Popen[str]"]

# An engine in place of an encoder, so that the processes start in seconds: the rest is real.
PROGRAM = """
import sys, time
from retrieval_server import service, supervisor
from retrieval_server.schemas import Document, ScoredDocument
from retrieval_server.settings import Settings

class Echo:
    def search(self, queries, topk):
        if "die" in queries:
            time.sleep(60)
        return [[ScoredDocument(document=Document(id=q, contents=q), score=1)] for q in queries]
    def info(self):
        return {"rows": 1, "encoder": "none"}
    def close(self):
        pass

def load(settings, report):
    if settings.encoder == "broken":
        raise ValueError("no such encoder")
    return Echo()

# The worker imports this module anew, and takes the service from here.
import retrieval_server.serve
retrieval_server.serve.run_app.__defaults__ = (load,)

if __name__ == "__main__":
    from retrieval_server.logs import configure_logs
    from pydantic_settings import CliApp
    configure_logs("json")
    sys.exit(supervisor.supervise(CliApp.run(Settings, sys.argv[1:])))
"""


@pytest.fixture
def command(tmp_path: Path) -> Iterator[Command]:
    """Start a server of several workers with some flags."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    started = []

    def run(*flags: object) -> "subprocess.Popen[str]":
        line = [sys.executable, str(program), "--index", str(tmp_path), "--log-format", "json"]
        process = subprocess.Popen(
            [*line, *map(str, flags)], stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        started.append(process)
        return process

    yield run
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


@pytest.fixture
def port() -> int:
    with bind("127.0.0.1", 0) as holder:
        return int(holder.getsockname()[1])


def health(port: int) -> dict[str, object]:
    try:
        return dict(httpx.get(f"http://127.0.0.1:{port}/health").json())
    except httpx.TransportError:
        return {}


def workers_of(process: "subprocess.Popen[str]") -> list[psutil.Process]:
    children = psutil.Process(process.pid).children()
    return [child for child in children if "spawn_main" in " ".join(child.cmdline())]


def wait_whole(port: int, restarts: int) -> None:
    whole = {"ready": 2, "of": 2, "restarts": restarts}
    deadline = time.monotonic() + 60
    while health(port).get("workers") != whole:
        assert time.monotonic() < deadline, health(port)
        time.sleep(0.1)


def ask(port: int, query: str) -> list[str]:
    body = {"queries": [query], "topk": 1}
    result = httpx.post(f"http://127.0.0.1:{port}/retrieve", json=body, timeout=30).json()
    return [document["id"] for document in result["result"][0]]


@pytest.mark.slow
def test_a_killed_worker_is_replaced_and_loses_only_what_it_was_answering(
    command: Command, port: int
) -> None:
    server = command("--workers", 2, "--port", port, "--cache-size", 0)
    wait_whole(port, restarts=0)
    victim, other = workers_of(server)
    # Connections of its own until each worker has one.
    clients = [httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30) for _ in range(16)]
    for number, client in enumerate(clients):
        client.post("/retrieve", json={"queries": [str(number)], "topk": 1})
    held = {connection.raddr.port for connection in victim.net_connections() if connection.raddr}
    assert 0 < len(held) < 16
    victim.kill()
    lost = 0
    for number, client in enumerate(clients):
        try:
            client.post("/retrieve", json={"queries": [f"again {number}"], "topk": 1})
        except httpx.TransportError:
            lost += 1
    assert lost <= len(held)
    # While it is replaced, whoever connects anew is answered by the other.
    for number in range(20):
        assert ask(port, f"new {number}") == [f"new {number}"]
    wait_whole(port, restarts=1)
    assert other.is_running()
    assert victim.pid not in [worker.pid for worker in workers_of(server)]
    shown = httpx.get(f"http://127.0.0.1:{port}/metrics").text.splitlines()
    assert "retriever_worker_restarts_total 1.0" in shown
    assert "retriever_workers_ready 2.0" in shown
    answered = 16 + (16 - lost) + 20  # of both workers, and of the one that is gone
    assert f'retriever_requests_total{{status="200"}} {answered:.1f}' in shown
    server.terminate()
    _, log = server.communicate(timeout=30)
    assert server.returncode == 0
    messages = [json.loads(line)["message"] for line in log.splitlines()]
    assert "Worker 0 ended (signal 9): started again in 0 s" in messages


@pytest.mark.slow
def test_workers_end_with_their_parent_however_it_ends(command: Command, port: int) -> None:
    server = command("--workers", 2, "--port", port)
    wait_whole(port, restarts=0)
    workers = workers_of(server)
    server.kill()
    psutil.wait_procs(workers, timeout=30)
    assert not any(worker.is_running() for worker in workers)
    with bind("127.0.0.1", port):
        pass


@pytest.mark.slow
def test_a_load_that_fails_at_the_start_ends_the_server_with_code_3(
    command: Command, port: int
) -> None:
    flags = ("--encoder", "broken", "--failed-seconds", 0)
    server = command("--workers", 2, "--port", port, *flags)
    _, log = server.communicate(timeout=60)
    assert server.returncode == 3
    assert "Loading failed: no such encoder" in log


def test_a_port_in_use_ends_it_with_code_4(command: Command) -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        server = command("--workers", 2, "--port", holder.getsockname()[1])
        _, log = server.communicate(timeout=60)
    assert server.returncode == 4
    assert "is in use" in log
