"""The command as a process: exit codes, one clear line, and light imports."""

import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run() -> Run:
    def command(*arguments: object) -> subprocess.CompletedProcess[str]:
        line = [sys.executable, "-m", "retrieval_server", *map(str, arguments)]
        return subprocess.run(line, capture_output=True, text=True, timeout=60, check=False)

    return command


def test_wrong_settings_end_with_code_2_and_name_the_flag(run: Run, tmp_path: Path) -> None:
    result = run("--index", tmp_path / "nowhere", "--port", "x")
    assert result.returncode == 2
    assert "--index: Path does not point to a directory" in result.stderr
    assert "--port: Input should be a valid integer" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.slow
def test_a_failed_load_ends_with_code_3_and_the_reason(run: Run, tmp_path: Path) -> None:
    result = run("--index", tmp_path, "--port", 0, "--failed-seconds", 0)
    assert result.returncode == 3
    assert "has no manifest.json" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_port_in_use_ends_with_code_4_in_one_line(run: Run, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]
        result = run("--index", tmp_path, "--port", port)
    assert result.returncode == 4
    assert result.stderr.count("\n") == 1
    assert f"127.0.0.1:{port} is in use" in result.stderr


@pytest.mark.parametrize(
    ("module", "foreign"),
    [
        ("retrieval_server.serve", "search_r1 data_prep torch transformers sentence_transformers"),
        ("data_prep.index", "torch transformers sentence_transformers"),
    ],
)
def test_nothing_heavy_or_foreign_is_imported_before_an_encoder_is_loaded(
    module: str, foreign: str
) -> None:
    code = f"import sys, {module}; print(*set({foreign.split()}) & set(sys.modules))"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert result.stdout == "\n"
