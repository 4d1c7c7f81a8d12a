import hashlib
import json
import os
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest

from data_prep.world import WorldConfig, write_world

CONFIG = WorldConfig(seed=3, articles=120, train_questions=60, test_questions=15)
FILES = ("corpus.jsonl", "train.jsonl", "test.jsonl")

PINNED = "5b78004255fc8bfa1b7060718ca88f50d90347022dba194479a7b0f7547e2e34"
"""Of the three files of CONFIG. It changes only when the generator is changed on purpose."""


def digest(folder: Path) -> str:
    return hashlib.sha256(b"".join((folder / name).read_bytes() for name in FILES)).hexdigest()


def test_the_same_seed_gives_the_same_bytes_in_another_process(tmp_path: Path) -> None:
    code = (
        "from pathlib import Path; from data_prep.world import *; "
        f"write_world({CONFIG!r}, Path({str(tmp_path)!r}))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "123", "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
    assert digest(tmp_path) == PINNED


def test_the_same_settings_always_give_the_pinned_bytes(tmp_path: Path) -> None:
    write_world(CONFIG, tmp_path)
    assert digest(tmp_path) == PINNED


def test_another_seed_gives_other_bytes(tmp_path: Path) -> None:
    write_world(WorldConfig(4, 120, 60, 15), tmp_path)
    assert digest(tmp_path) != PINNED


def test_the_manifest_describes_the_files(tmp_path: Path) -> None:
    steps: list[int] = []
    manifest = write_world(CONFIG, tmp_path, steps.append)
    stored = json.loads((tmp_path / "manifest.json").read_text())
    assert stored["settings"]["articles"] == 120
    assert stored["questions"]["test"] == {"1": 5, "2": 5, "3": 5}
    assert manifest.questions == {"train": {1: 20, 2: 20, 3: 20}, "test": {1: 5, 2: 5, 3: 5}}
    for name in FILES:
        data = (tmp_path / name).read_bytes()
        assert stored["sha256"][name] == hashlib.sha256(data).hexdigest()
        assert len(data.splitlines()) == {"corpus.jsonl": 120, "train.jsonl": 60}.get(name, 15)
    assert sum(steps) == 120 + 60 + 15


def test_a_failed_run_leaves_an_earlier_world_whole(tmp_path: Path) -> None:
    write_world(CONFIG, tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(ValueError, match="test_questions"):
        write_world(WorldConfig(3, 100, 0, 1_000), tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_failed_run_makes_no_folder(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="test_questions"):
        write_world(WorldConfig(3, 100, 0, 1_000), tmp_path / "new" / "world")
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_place_of_the_folder_is_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "world").touch()
    with pytest.raises(NotADirectoryError, match="world is a file; give a folder"):
        write_world(CONFIG, tmp_path / "world")


@pytest.mark.slow
def test_memory_grows_by_less_than_a_hundred_bytes_an_article(tmp_path: Path) -> None:
    peaks = []
    for articles in (1_500, 5_000):
        tracemalloc.start()
        write_world(WorldConfig(1, articles, 30, 6), tmp_path)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] - peaks[0] < 100 * (5_000 - 1_500)
    assert peaks[1] < (tmp_path / "corpus.jsonl").stat().st_size / 2
