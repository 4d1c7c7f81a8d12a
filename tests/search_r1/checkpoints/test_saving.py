"""A checkpoint is written whole or not at all, whatever goes wrong meanwhile."""

import errno
import os
import pickle
import resource
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from search_r1.checkpoints.folders import newest_step, resume_from
from search_r1.checkpoints.manifest import MANIFEST
from search_r1.checkpoints.recovery import recover
from search_r1.checkpoints.saving import CheckpointNotSavedError, saving


def test_what_was_written_is_sealed_at_the_end(checkpoints: Path) -> None:
    with saving(checkpoints, 3) as folder:
        folder.mkdir(parents=True)
        (folder / "data.pt").write_bytes(b"state")
        assert not (folder / MANIFEST).exists()
    assert (folder / MANIFEST).is_file()


def test_one_that_is_still_written_is_not_sealed(checkpoints: Path) -> None:
    with saving(checkpoints, 3, is_whole_after=False) as folder:
        folder.mkdir(parents=True)
    assert not (folder / MANIFEST).exists()


def test_the_manifest_goes_before_anything_is_written_again(save: Any, checkpoints: Path) -> None:
    save(3)
    with saving(checkpoints, 3) as folder:
        assert not (folder / MANIFEST).exists()


@pytest.mark.parametrize("was_named", [False, True])
def test_a_full_disk_keeps_the_checkpoint_before(
    save: Any, checkpoints: Path, was_named: bool
) -> None:
    before, folder = save(1), checkpoints / "global_step_2"

    def fill_the_disk() -> None:
        with saving(checkpoints, 2):
            save(2, sealed=False, named=was_named)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(CheckpointNotSavedError) as caught:
        fill_the_disk()
    said = str(caught.value)
    assert f"the checkpoint {folder} could not be saved: [Errno 28] No space left" in said
    assert "B were free on that disk" in said
    assert f"{before} is kept and takes 16 bytes" in said
    assert "trainer.max_actor_ckpt_to_keep" in said
    assert not folder.exists()
    assert newest_step(checkpoints) == 1
    assert recover(checkpoints) == before
    assert str(pickle.loads(pickle.dumps(caught.value))) == said  # it goes through Ray


def test_the_first_checkpoint_of_a_run_leaves_nothing(save: Any, checkpoints: Path) -> None:
    def break_off() -> None:
        with saving(checkpoints, 2):
            save(2, sealed=False)
            raise RuntimeError("PytorchStreamWriter failed writing file data/0")

    with pytest.raises(CheckpointNotSavedError, match="there is no earlier one"):
        break_off()
    assert newest_step(checkpoints) is None


@pytest.fixture
def small_files() -> Iterator[None]:
    """No file of this process may grow over 4 KiB: the kernel refuses, as on a full disk."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    signal.signal(signal.SIGXFSZ, before)


@pytest.mark.usefixtures("small_files")
def test_a_write_that_the_kernel_refuses_is_told_as_it_is(checkpoints: Path) -> None:
    def write_too_much() -> None:
        with saving(checkpoints, 2) as folder:
            folder.mkdir()
            (folder / "model.pt").write_bytes(bytes(8192))

    resume_from(checkpoints, 1)
    with pytest.raises(CheckpointNotSavedError, match=r"global_step_2.*File too large"):
        write_too_much()
    assert not (checkpoints / "global_step_2").exists()
