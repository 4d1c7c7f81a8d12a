"""The log of the command as a process."""

import json
import subprocess
import sys

PROGRAM = """
import logging
from retrieval_server.logs import configure_logs
configure_logs({kind!r})
logging.getLogger("x").warning("ü %d", 1, extra={{"worker": 2, "color_message": "no"}})
logging.getLogger("faiss.loader").info("not told")
try:
    1 / 0
except ZeroDivisionError:
    logging.getLogger("y").exception("failed")
"""


def log_of(kind: str) -> list[str]:
    command = [sys.executable, "-c", PROGRAM.format(kind=kind)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == ""
    return done.stderr.splitlines()


def test_json_is_one_object_a_line_with_the_fields_of_the_message() -> None:
    first, second = map(json.loads, log_of("json"))
    assert set(first) == {"time", "level", "logger", "pid", "message", "worker"}
    assert (first["level"], first["logger"]) == ("WARNING", "x")
    assert (first["message"], first["worker"]) == ("ü 1", 2)
    assert "ZeroDivisionError" in second["exc_info"]


def test_text_is_for_people() -> None:
    first, *rest = log_of("text")
    assert first.endswith("WARNING x: ü 1")
    assert rest[-1] == "ZeroDivisionError: division by zero"
