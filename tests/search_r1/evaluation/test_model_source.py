"""Hugging Face folders, runs and checkpoints; verl's merger is replaced."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from search_r1.evaluation.config import EvalConfig
from search_r1.evaluation.evaluate import Evaluation
from search_r1.evaluation.model_source import ModelSource
from search_r1.settings import SearchSettings

Checkpoint = Callable[..., Path]
Config = Callable[..., EvalConfig]
NO_SEARCH = SearchSettings(max_searches=0)


def test_a_hugging_face_folder_is_used_where_it_is(
    model: Path, tmp_path: Path, merger: list[list[str]]
) -> None:
    source = ModelSource.find(model)
    assert source.with_weights(tmp_path / "target") == source.folder == model
    assert not (tmp_path / "target").exists()
    assert merger == []


@pytest.mark.parametrize("part", ["", "checkpoints/global_step_20"])
def test_a_run_or_its_checkpoint_is_merged_once(
    checkpoint: Checkpoint, tmp_path: Path, merger: list[list[str]], part: str
) -> None:
    actor = checkpoint(tmp_path / "run", 20)
    target = tmp_path / "out" / "model"
    for _ in range(2):
        source = ModelSource.find(tmp_path / "run" / part)
        assert source.folder == actor / "huggingface"
        assert source.with_weights(target) == target
    assert len(merger) == 1


def test_a_folder_that_is_neither_is_named(tmp_path: Path) -> None:
    message = (
        r"model: .* is no Hugging Face folder \(it holds no config\.json\), and .* is neither a "
        r"run with .* nor a checkpoint global_step_N"
    )
    with pytest.raises(ValueError, match=message):
        ModelSource.find(tmp_path)


def test_a_checkpoint_without_the_models_description_is_named(
    checkpoint: Checkpoint, tmp_path: Path
) -> None:
    (checkpoint(tmp_path, 3) / "huggingface" / "config.json").unlink()
    with pytest.raises(ValueError, match=r"actor holds no huggingface/config\.json"):
        ModelSource.find(tmp_path)


def test_a_newer_or_changed_checkpoint_is_not_mistaken_for_the_one_that_was_merged(
    checkpoint: Checkpoint, tmp_path: Path, merger: list[list[str]]
) -> None:
    run, target = tmp_path / "run", tmp_path / "model"
    actor = checkpoint(run, 20)
    ModelSource.find(run).with_weights(target)
    checkpoint(run, 30)
    with pytest.raises(ValueError, match=r"merged from .*step_20/actor, not from .*step_30/actor"):
        ModelSource.find(run).with_weights(target)
    (actor / "model_world_size_1_rank_0.pt").write_bytes(b"trained again")
    with pytest.raises(ValueError, match=r"step_20/actor as it was before it changed; remove"):
        ModelSource.find(actor.parent).with_weights(target)
    assert len(merger) == 1


def test_a_failed_merge_leaves_no_model(
    checkpoint: Checkpoint, tmp_path: Path, merger: list[list[str]]
) -> None:
    checkpoint(tmp_path / "run", 20)
    with pytest.raises(subprocess.CalledProcessError):
        ModelSource.find(tmp_path / "run").with_weights(tmp_path / "broken")
    assert not (tmp_path / "broken").exists()


def test_the_manifest_records_checkpoint_and_step(
    checkpoint: Checkpoint,
    config: Config,
    hub_tokenizer: Any,
    tmp_path: Path,
    merger: list[list[str]],
) -> None:
    actor = checkpoint(tmp_path / "run", 20)
    one = config(model=tmp_path / "run", search=NO_SEARCH)
    evaluation = Evaluation.prepare(one, hub_tokenizer)
    assert evaluation.config.model == one.output / "model"
    settings = json.loads((one.output / "manifest.json").read_text())["settings"]
    assert settings["model"] == str(one.output / "model")
    assert settings["merged_from"]["checkpoint"] == str(actor)
    assert settings["merged_from"]["step"] == 20
    assert Evaluation.prepare(one, hub_tokenizer).config == evaluation.config
    assert len(merger) == 1


def test_a_wrong_input_is_found_before_a_model_is_merged(
    checkpoint: Checkpoint,
    config: Config,
    hub_tokenizer: Any,
    tmp_path: Path,
    merger: list[list[str]],
) -> None:
    checkpoint(tmp_path / "run", 20)
    data = tmp_path / "none.jsonl"
    with pytest.raises(OSError, match=r"none\.jsonl"):
        Evaluation.prepare(
            config(model=tmp_path / "run", data=(data,), search=NO_SEARCH), hub_tokenizer
        )
    assert merger == []


def test_the_positions_of_a_checkpoint_are_checked(
    checkpoint: Checkpoint, config: Config, tmp_path: Path
) -> None:
    actor = checkpoint(tmp_path / "run", 20)
    (actor / "huggingface" / "config.json").write_text('{"max_position_embeddings": 2048}')
    with pytest.raises(ValueError, match=r"sequence_tokens: 4096, but .* 2048 positions"):
        config(model=tmp_path / "run")
