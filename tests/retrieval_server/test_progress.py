"""The share of a stage's bytes that were read."""

from pathlib import Path

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
