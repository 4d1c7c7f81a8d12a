"""The share of a stage's bytes that were read."""

import asyncio
import logging
from pathlib import Path

import pytest

from retrieval_server.progress import LoadProgress


def test_the_fraction_is_that_of_the_bytes_of_the_stage(tmp_path: Path) -> None:
    file = tmp_path / "index"
    file.write_bytes(b"x" * 4_000_000)
    progress = LoadProgress()
    assert (progress.stage, progress.fraction) == ("start", None)
    progress("index", 8_000_000)
    file.read_bytes()
    assert progress.fraction is not None
    assert 0.5 <= progress.fraction < 0.6
    file.read_bytes()
    file.read_bytes()
    assert progress.fraction == 1.0
    progress("encoder")
    assert (progress.stage, progress.fraction) == ("encoder", None)


def test_a_long_load_is_told_of_again_and_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("retrieval_server.progress._TELL_SECONDS", 0.01)
    caplog.set_level(logging.INFO, "retrieval_server.progress")

    async def load() -> None:
        telling = asyncio.create_task(progress.keep_telling())
        await asyncio.sleep(0.1)
        telling.cancel()

    progress = LoadProgress()
    progress("index", 1 << 60)
    asyncio.run(load())
    assert caplog.messages.count("Loading: index 0% after 0 s") >= 2
