"""Which checkpoint is resumed from, whatever a kill or a disk has left of the others."""

import logging
import shutil
from pathlib import Path
from typing import Any

import pytest

from search_r1.checkpoints.folders import NEWEST_FILE, newest_step, resume_from
from search_r1.checkpoints.manifest import MANIFEST, BrokenCheckpointError
from search_r1.checkpoints.recovery import find_newest, recover, require_whole

MODEL = "actor/model_world_size_1_rank_0.pt"


@pytest.fixture(autouse=True)
def said(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.WARNING, "verl.search_r1.checkpoints")
    return caplog


def names(checkpoints: Path) -> set[str]:
    return {path.name for path in checkpoints.iterdir()} - {NEWEST_FILE}


def test_the_newest_whole_one_is_taken_in_silence(save: Any, checkpoints: Path, said: Any) -> None:
    save(1)
    newest = save(2)
    assert recover(checkpoints) == newest
    assert newest_step(checkpoints) == 2
    assert said.messages == []


def test_no_checkpoints_are_no_news(checkpoints: Path, said: Any) -> None:
    assert recover(checkpoints) is None
    assert said.messages == []


def test_a_broken_one_is_named_and_moved_aside(save: Any, checkpoints: Path, said: Any) -> None:
    before = save(1)
    (save(2) / MODEL).write_bytes(b"wEights 2")
    assert recover(checkpoints) == before
    assert newest_step(checkpoints) == 1
    assert names(checkpoints) == {"global_step_1", "broken_global_step_2"}
    [broken, then] = said.messages
    assert f"global_step_2 is broken: {MODEL}: its checksum is another; moved to" in broken
    assert then == f"{checkpoints / NEWEST_FILE} names 2; resuming from {before}"
    # Trained again and broken again, it takes the place of the first.
    (save(2) / MODEL).unlink()
    assert recover(checkpoints) == before
    assert not (checkpoints / "broken_global_step_2" / MODEL).exists()


def test_one_cut_short_lies_beyond_the_named_one(save: Any, checkpoints: Path, said: Any) -> None:
    before = save(1)
    save(2, sealed=False, named=False)
    assert recover(checkpoints) == before
    assert names(checkpoints) == {"global_step_1", "broken_global_step_2"}
    assert f"no {MANIFEST}: it was not written to its end" in said.text


def test_verl_named_one_just_before_it_was_sealed(save: Any, checkpoints: Path, said: Any) -> None:
    save(1)
    newest = save(2, sealed=False)
    assert recover(checkpoints) == newest
    assert said.messages == [f"{newest} has no {MANIFEST}: taken on verl's word"]


def test_a_run_older_than_manifests_is_resumed(save: Any, checkpoints: Path) -> None:
    save(1, sealed=False)
    newest = save(2, sealed=False)
    assert recover(checkpoints) == newest
    assert names(checkpoints) == {"global_step_1", "global_step_2"}


@pytest.mark.parametrize("word", [None, "", "many", "9"])
def test_a_wrong_word_for_the_newest_is_put_right(
    save: Any, checkpoints: Path, said: Any, word: str | None
) -> None:
    save(1)
    newest = save(2)
    if word is None:
        (checkpoints / NEWEST_FILE).unlink()
    else:
        (checkpoints / NEWEST_FILE).write_text(word)
    assert recover(checkpoints) == newest
    assert newest_step(checkpoints) == 2
    assert f"resuming from {newest}" in said.text


def test_without_a_whole_one_the_run_starts_from_scratch(
    save: Any, checkpoints: Path, said: Any
) -> None:
    for step in (1, 2):
        shutil.rmtree(save(step) / "actor")
    assert recover(checkpoints) is None
    assert not (checkpoints / NEWEST_FILE).exists()
    assert names(checkpoints) == {"broken_global_step_1", "broken_global_step_2"}
    assert "names 2; no whole one: starting from scratch" in said.text


def test_what_a_rollback_left_behind_is_neither_taken_nor_moved(
    save: Any, checkpoints: Path
) -> None:
    earlier = save(10)
    good = save(20)
    save(30)
    resume_from(checkpoints, 20)
    assert recover(checkpoints) == good
    (good / MODEL).unlink()
    assert recover(checkpoints) == earlier
    assert names(checkpoints) == {"global_step_10", "global_step_30", "broken_global_step_20"}


def test_after_a_rollback_the_word_lost_the_last_saved_counts(save: Any, checkpoints: Path) -> None:
    for step in (10, 30, 20):
        newest = save(step)
    (checkpoints / NEWEST_FILE).unlink()
    assert find_newest(checkpoints).checkpoint == newest


def test_a_checkpoint_that_is_asked_for_must_be_whole(save: Any) -> None:
    whole, broken = save(1), save(2)
    require_whole(whole)
    (broken / MODEL).unlink()
    with pytest.raises(BrokenCheckpointError, match=rf"global_step_2 is broken: .*is {whole}"):
        require_whole(broken)
    (whole / MANIFEST).write_text("{")
    with pytest.raises(BrokenCheckpointError, match=r"not a manifest.*no whole one beside it"):
        require_whole(whole)
