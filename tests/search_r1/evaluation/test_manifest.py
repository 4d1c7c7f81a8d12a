import json
from collections.abc import Callable
from math import inf, nan
from pathlib import Path
from typing import Any

import pytest

from data_prep.questions import Question
from search_r1.evaluation.config import EvalConfig
from search_r1.evaluation.inputs import Inputs, ask_health
from search_r1.evaluation.manifest import describe, write_or_check
from search_r1.settings import SearchSettings

Config = Callable[..., EvalConfig]
ONE = [Question("nq/1", "Who?", ("x",), "nq")]


def manifest(
    config: EvalConfig, prompt: str = "prompt", health: dict[str, Any] | None = None
) -> dict[str, Any]:
    return describe(config, Inputs({config.data[0]: 1}, ONE, "hash", health or {}), prompt)


def test_it_says_what_the_answers_were_made_with(config: Config) -> None:
    one = config(search=SearchSettings(top_k=5), sample=1)
    made = manifest(one)
    settings = made["settings"]
    assert settings["data"] == {str(one.data[0].resolve()): 1}
    assert settings["questions"]["count"] == 1
    assert settings["search"]["top_k"] == 5
    assert settings["sampling"] == {"temperature": 0.0, "top_p": 1.0, "seed": 0}
    assert settings["model_files"].keys() == {"config.json", "model.safetensors"}
    assert "search-r1" in settings["versions"]
    assert made["about"]["prompt"] == "prompt"
    assert json.loads(json.dumps(made))["about"]["health"] == {}


def test_the_same_settings_resume_and_other_resources_do_not_matter(
    config: Config, tmp_path: Path
) -> None:
    path = tmp_path / "m.json"
    write_or_check(path, manifest(config()))
    before = path.read_bytes()
    write_or_check(path, manifest(config(concurrency=9, search=SearchSettings(max_attempts=2))))
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"temperature": 0.5}, r"sampling\.temperature is 0\.0 there and 0\.5 now"),
        ({"method": "direct"}, "method is 'search_r1' there and 'direct' now"),
        ({"search": SearchSettings(top_k=1)}, r"search\.top_k is 3 there and 1 now"),
        ({"sample": 1}, "sample is None there and 1 now"),
    ],
)
def test_other_settings_are_an_error_with_field_and_values(
    config: Config, tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    write_or_check(tmp_path / "m.json", manifest(config()))
    with pytest.raises(ValueError, match=f"other settings: {message}.*another --output"):
        write_or_check(tmp_path / "m.json", manifest(config(**changes)))


def test_another_model_prompt_or_question_is_an_error(config: Config, tmp_path: Path) -> None:
    one = config()
    write_or_check(tmp_path / "m.json", manifest(one))
    with pytest.raises(ValueError, match="prompt_sha256"):
        write_or_check(tmp_path / "m.json", manifest(one, "other"))
    (one.model / "model.safetensors").write_bytes(b"trained")
    with pytest.raises(ValueError, match=r"model_files\.model\.safetensors is '7 bytes, "):
        write_or_check(tmp_path / "m.json", manifest(one))


def test_a_server_without_health_has_none(serve: Callable[..., Any]) -> None:
    # The local server answers no GET.
    assert ask_health(serve({"body": {}}).url) is None
    assert ask_health("http://127.0.0.1:9/retrieve") is None


def test_what_the_server_serves_is_part_of_the_settings(config: Config) -> None:
    health = {"status": "ready", "rows": 4, "encoder": {"model": "e5"}}
    servers = {"http://one/retrieve": health, "http://two/retrieve": health}
    made = manifest(config(searchable=True), health=servers)
    assert made["settings"]["retriever"] == {"rows": 4, "encoder": {"model": "e5"}}
    assert made["about"]["health"] == servers


def test_servers_that_differ_or_say_nothing_are_all_told(config: Config) -> None:
    health = {"http://one/retrieve": {"rows": 4}, "http://two/retrieve": {"rows": 5}, "x": None}
    made = manifest(config(searchable=True), health=health)
    assert made["settings"]["retriever"] == [{"rows": 4}, {"rows": 5}, None]
    assert made["about"]["health"] == health


def test_so_are_the_parts_of_an_engine_that_is_made_of_others(config: Config) -> None:
    index = {"rows": 4, "encoder": {"model": "e5"}}
    hybrid = {"rows": 4, "fusion": {"k": 60}, "parts": [index | {"created": "today"}]}
    health = {"status": "ready", "model": "m", "depth": 20, "rows": 4, "parts": [hybrid]}
    served = manifest(config(searchable=True), health={"u": health})["settings"]["retriever"]
    told = hybrid | {"parts": [index]}
    assert served == {"model": "m", "depth": 20, "rows": 4, "parts": [told]}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"concurrency": 0}, "concurrency: 0 must be at least 1"),
        *(
            ({"temperature": wrong}, f"temperature: {wrong} must be from 0 to 10")
            for wrong in (-1.0, 10.5, nan, inf)
        ),
        *(
            ({"seed": wrong}, f"seed: {wrong} must be from 0 to 4294967295")
            for wrong in (-1, 2**32)
        ),
        (
            {"search": SearchSettings(top_k=101)},
            r"search\.top_k: 101 is too much; give at most 100",
        ),
        (
            {"search": SearchSettings(sequence_tokens=63)},
            r"search\.sequence_tokens: 63 .* least 64",
        ),
        (
            {"search": SearchSettings(turn_tokens=4096)},
            r"search\.turn_tokens: 4096 do not fit into sequence_tokens 4096; give fewer",
        ),
        (
            {"search": SearchSettings(observation_tokens=4032)},
            r"search\.observation_tokens: 4032 and answer_reserve_tokens 64 do not fit",
        ),
        ({"model": Path("none")}, "model: none is no Hugging Face folder.*nor a checkpoint"),
    ],
)
def test_settings_out_of_range(config: Config, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        config(**changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"temperature": 10.0, "seed": 2**32 - 1},
        {"search": SearchSettings(top_k=100, turn_tokens=4095, observation_tokens=4031)},
        {"search": SearchSettings(sequence_tokens=64, turn_tokens=63, max_searches=0)},
        {"method": "cot", "search": SearchSettings(observation_tokens=9000)},
    ],
)
def test_settings_at_the_end_of_their_range(config: Config, changes: dict[str, Any]) -> None:
    assert config(**changes)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", r"config\.json: not a JSON object; download"),
        ("<html>", r"config\.json: not JSON: Expecting value.*; download"),
        ('{"max_position_embeddings": "x"}', r"max_position_embeddings must be .*'x'; download"),
    ],
)
def test_a_broken_config_of_a_model_is_named(
    config: Config, model: Path, text: str, message: str
) -> None:
    (model / "config.json").write_text(text)
    with pytest.raises(ValueError, match=message):
        config()


def test_a_sequence_must_fit_the_model(config: Config, model: Path) -> None:
    (model / "config.json").write_text('{"max_position_embeddings": 2048}')
    config(search=SearchSettings(sequence_tokens=2048))
    with pytest.raises(ValueError, match=r"search\.sequence_tokens: 4096, but .* 2048 positions"):
        config()
