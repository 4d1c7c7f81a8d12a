"""scripts/launch_retriever.sh: what it refuses, and with which exit code."""

import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "launch_retriever.sh"
Launch = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def launch() -> Launch:
    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", str(SCRIPT), *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            env=os.environ | {"PYTHON": sys.executable},
        )

    return run


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        return int(holder.getsockname()[1])


def test_help_is_an_answer_and_no_arguments_are_not(launch: Launch) -> None:
    told = launch("--help")
    assert (told.returncode, told.stderr) == (0, "")
    assert told.stdout.startswith("Usage: bash scripts/launch_retriever.sh INDEX_DIR [PORT]")
    assert launch().returncode == 2


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["/nowhere/at/all"], "no folder /nowhere/at/all"),
        ([".", "http"], "PORT must be a number above 0, not 'http'"),
        ([".", "--wait", "soon"], "--wait takes whole seconds, not 'soon'"),
        ([".", "--threads", "2"], "unknown option --threads"),
    ],
)
def test_wrong_arguments_are_named(launch: Launch, arguments: list[str], reason: str) -> None:
    result = launch(*arguments)
    assert result.returncode == 2
    assert reason in result.stderr


def test_another_server_on_the_port_is_not_taken_for_this_one(
    launch: Launch, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]
        result = launch(tmp_path, port)
    assert result.returncode == 4
    assert f"port {port} is in use" in result.stderr


@pytest.mark.slow
def test_a_failed_load_ends_the_wait_with_its_reason_and_code(
    launch: Launch, tmp_path: Path
) -> None:
    result = launch(tmp_path, free_port(), "--", "--failed-seconds", "1")
    assert result.returncode == 3
    assert "has no manifest.json" in result.stderr
