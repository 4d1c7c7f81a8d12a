import signal
import subprocess
import sys
import time
from pathlib import Path


def wait_for_a_file(folder: Path) -> None:
    for _ in range(600):
        if any(folder.rglob("*.part/**/*")):
            return
        time.sleep(0.1)
    raise TimeoutError(f"nothing appeared in {folder}")


def test_a_terminated_command_leaves_nothing(tmp_path: Path) -> None:
    code = "from search_r1.prepare import gather_commands; gather_commands()()"
    arguments = ["world", "--output", str(tmp_path / "world"), "--articles", "500000"]
    with subprocess.Popen([sys.executable, "-c", code, *arguments]) as process:
        wait_for_a_file(tmp_path)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 128 + signal.SIGTERM
    assert list(tmp_path.iterdir()) == []
