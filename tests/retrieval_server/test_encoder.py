"""Encoder settings: presets by name, everything else in full, nothing guessed."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from retrieval_server.encoder import PRESETS, resolve_encoder
from retrieval_server.sentence_encoder import model_location


def test_presets_are_the_published_settings() -> None:
    e5 = PRESETS["e5"]
    assert (e5.model, e5.query_prefix, e5.passage_prefix, e5.pooling, e5.normalize) == (
        "intfloat/e5-base-v2",
        "query: ",
        "passage: ",
        "mean",
        True,
    )
    minilm = PRESETS["minilm"]
    assert (minilm.query_prefix, minilm.pooling, minilm.max_length) == ("", "mean", 256)


def test_a_preset_can_be_changed_field_by_field() -> None:
    changed = resolve_encoder("e5", query_prefix="", device="cpu", pooling=None)
    assert changed == PRESETS["e5"].model_copy(update={"query_prefix": "", "device": "cpu"})


@pytest.mark.parametrize("name", ["intfloat/e5-base-v2", "BAAI/bge-base-en"])
def test_prefixes_and_pooling_of_another_model_must_be_given(name: str) -> None:
    with pytest.raises(ValueError, match="give --passage-prefix, --pooling as its model card"):
        resolve_encoder(name, query_prefix="")
    full = resolve_encoder(name, query_prefix="", passage_prefix="", pooling="cls")
    assert (full.model, full.pooling) == (name, "cls")


def test_a_folder_becomes_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "model").mkdir()
    monkeypatch.chdir(tmp_path)
    settings = resolve_encoder("model", query_prefix="", passage_prefix="", pooling="mean")
    assert settings.model == str(tmp_path / "model")


def test_an_unknown_pooling_is_refused() -> None:
    with pytest.raises(ValidationError, match="pooling"):
        resolve_encoder("minilm", pooling="average")


def test_identity_leaves_out_what_only_decides_the_speed() -> None:
    fast = resolve_encoder("minilm", batch_size=1, device="cuda")
    assert fast.identity() == PRESETS["minilm"].identity()
    assert resolve_encoder("minilm", max_length=8).identity() != fast.identity()


def test_a_package_that_is_not_installed_is_named() -> None:
    assert model_location("some/name") == "some/name"
    with pytest.raises(ValueError, match="pip install not-installed-model"):
        model_location("package:not_installed_model")
