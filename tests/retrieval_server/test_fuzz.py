"""The server against what schemathesis makes of its own schema: right, wrong and odd requests."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

pytestmark = pytest.mark.slow

Start = Callable[..., httpx.Client]
SCHEMATHESIS = Path(sys.executable).with_name("schemathesis")


@pytest.mark.parametrize("token", [None, "sesame"])
def test_whatever_is_sent_is_answered_as_the_schema_says(
    start: Start, token: str | None, tmp_path: Path
) -> None:
    client = start(token=token, max_queries=8, max_query_chars=64, max_body_mib=0.05)
    headers = [f"--header=Authorization: Bearer {token}"] if token else []
    done = subprocess.run(
        [
            *(str(SCHEMATHESIS), "run", f"{client.base_url}/openapi.json", "--checks=all"),
            *("--mode=all", "--max-examples=100", "--seed=1", *headers),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
