"""What a checkpoint consists of, and every way in which it can break."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from xxhash import xxh3_128

from search_r1.checkpoints.manifest import (
    MANIFEST,
    BrokenCheckpointError,
    Manifest,
    faults,
    seal,
    unseal,
)

MODEL = "actor/model_world_size_1_rank_0.pt"


def damage(folder: Path) -> list[str]:
    manifest = Manifest.read(folder)
    assert manifest is not None
    return faults(folder, manifest)


def test_every_file_is_listed_with_its_size_and_checksum(save: Any) -> None:
    folder = save(7)
    listed = json.loads((folder / MANIFEST).read_text())["files"]
    assert listed.keys() == {MODEL, "actor/huggingface/config.json", "data.pt"}
    assert listed[MODEL] == {"bytes": 9, "xxh3_128": xxh3_128(b"weights 7").hexdigest()}
    manifest = Manifest.read(folder)
    assert manifest is not None
    assert manifest.bytes == 9 + 2 + 5
    assert damage(folder) == []


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:3])


def flip(path: Path) -> None:
    path.write_bytes(b"wEights 7")


def replace_by_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (truncate, "3 bytes rather than 9"),
        (flip, "its checksum is another"),
        (Path.unlink, "missing"),
        (replace_by_folder, "missing"),
    ],
)
def test_a_changed_file_is_named(save: Any, change: Callable[[Path], None], fault: str) -> None:
    folder = save(7)
    change(folder / MODEL)
    assert damage(folder) == [f"{MODEL}: {fault}"]


def test_further_files_and_the_alarms_memory_do_no_harm(save: Any) -> None:
    folder = save(7, sealed=False)
    (folder / "alarms.json").write_text("{}")
    (folder / ".alarms.json.17.part").write_text("{")
    seal(folder)
    (folder / "alarms.json").write_text('{"rollbacks": 1}')
    (folder / "actor" / "extra.tmp").write_text("?")
    assert damage(folder) == []


@pytest.mark.parametrize("text", ["", "[]", '{"files": {}}', '{"saved": 1, "files": {"a": {}}}'])
def test_a_broken_manifest_is_named(save: Any, text: str) -> None:
    folder = save(7)
    (folder / MANIFEST).write_text(text)
    with pytest.raises(BrokenCheckpointError, match=r"manifest\.json: not a manifest"):
        Manifest.read(folder)


def test_without_its_manifest_a_checkpoint_has_none(save: Any) -> None:
    folder = save(7)
    unseal(folder)
    assert Manifest.read(folder) is None
    unseal(folder)
