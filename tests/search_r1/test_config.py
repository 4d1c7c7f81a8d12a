import os
import subprocess
import sys
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from search_r1.config import (
    ConfigError,
    compose,
    config_folder,
    environment,
    secrets,
    shipped_configs,
)
from search_r1.platform.precision import cpu_dtype

REQUIRED = [
    "actor_rollout_ref.model.path=model",
    "data.train_files=train.parquet",
    "data.val_files=val.parquet",
    "trainer.experiment_name=run",
]


def test_the_base_is_no_config_of_its_own() -> None:
    assert shipped_configs() == ["cpu_quickstart", "grpo", "ppo", "r1"]
    assert (config_folder() / "base.yaml").is_file()


@pytest.mark.parametrize("name", shipped_configs())
def test_a_shipped_config_is_resolved_to_its_last_value(name: str) -> None:
    config = compose(name, REQUIRED)
    assert "${" not in OmegaConf.to_yaml(config)
    assert config.actor_rollout_ref.rollout.agent.default_agent_loop == "search_r1"
    assert config.critic.model.path == "model"


def test_the_papers_settings() -> None:
    ppo, grpo = compose("ppo", REQUIRED), compose("grpo", REQUIRED)
    assert (ppo.algorithm.adv_estimator, ppo.actor_rollout_ref.rollout.n) == ("gae", 1)
    assert (grpo.algorithm.adv_estimator, grpo.actor_rollout_ref.rollout.n) == ("grpo", 5)
    assert ppo.data.train_batch_size == 512
    assert ppo.actor_rollout_ref.actor.ppo_mini_batch_size == 256
    assert ppo.actor_rollout_ref.actor.optim.lr == 1e-6
    assert ppo.critic.optim.lr == 1e-5
    assert ppo.data.max_prompt_length + ppo.data.max_response_length == 4096
    assert (ppo.search.max_searches, ppo.search.top_k) == (4, 3)


def test_r1_is_the_papers_grpo_without_searches() -> None:
    r1, grpo = compose("r1", REQUIRED), compose("grpo", REQUIRED)
    assert r1.search.max_searches == 0
    assert r1.data.max_response_length == r1.search.turn_tokens == 500
    assert r1.actor_rollout_ref.rollout.max_model_len == 1524
    assert r1.algorithm == grpo.algorithm
    assert r1.actor_rollout_ref.actor == grpo.actor_rollout_ref.actor


@pytest.mark.parametrize("dtype", [None, "float32", "bfloat16"])
def test_a_cpu_run_computes_in_one_type_throughout(dtype: str | None) -> None:
    words = [] if dtype is None else [f"cpu.dtype={dtype}"]
    config = compose("cpu_quickstart", [*REQUIRED, *words])
    expected = cpu_dtype() if dtype is None else dtype
    rollout = config.actor_rollout_ref
    engines = rollout.actor.fsdp_config, rollout.ref.fsdp_config, config.critic.fsdp
    assert rollout.rollout.dtype == config.cpu.dtype == expected
    assert {engine.mixed_precision.param_dtype for engine in engines} == {expected}


def test_the_algorithm_is_one_word() -> None:
    config = compose("cpu_quickstart", [*REQUIRED, "algo=ppo"])
    assert config.algorithm.adv_estimator == "gae"
    assert config.actor_rollout_ref.rollout.n == 1


def test_the_engines_length_follows_the_data() -> None:
    lengths = ["data.max_prompt_length=100", "data.max_response_length=200"]
    assert compose("ppo", [*REQUIRED, *lengths]).actor_rollout_ref.rollout.max_model_len == 300


def test_the_output_folder_is_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    config = compose("ppo", REQUIRED)
    assert config.output_dir == str(tmp_path / "runs" / "run")
    assert config.trainer.default_local_dir == str(tmp_path / "runs" / "run" / "checkpoints")


def test_every_required_field_is_named_at_once() -> None:
    with pytest.raises(ConfigError, match=r"model\.path.*train_files.*val_files.* must be given"):
        compose("ppo")


def test_an_unknown_config_is_told_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="cpu_quickstart, grpo, ppo, r1"):
        compose("papo", REQUIRED)


@pytest.mark.parametrize("override", ["no.such_field=1", "algo=dpo", "trainer.nnodes", "a=[1"])
def test_a_bad_override_is_a_config_error(override: str) -> None:
    with pytest.raises(ConfigError, match="config ppo"):
        compose("ppo", [*REQUIRED, override])


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("alarms=5", "alarms is 5, not a section; give its fields one by one (alarms.FIELD=...: "),
        ("trainer=null", "trainer is gone, not a section"),
        ("alarms.non_finite=5", "alarms.non_finite is 5, not a section"),
        ("algo=dpo", "algo: there is no 'dpo'; give one of grpo, ppo"),
        ("search.topk=4", "search.topk: there is no such field; did you mean search.top_k?"),
        (
            "max_searches=4",
            "max_searches: there is no such field; did you mean search.max_searches?",
        ),
        ("zzz.bar=1", "zzz: there is no such field; +zzz=... adds one"),
        ("search.top_k=[1", "'search.top_k=[1' cannot be read as an override; give FIELD=VALUE"),
        ("data.val_files=${nope}", "data.val_files: Interpolation key 'nope' not found"),
    ],
)
def test_a_wrong_override_is_told_in_one_line_with_its_field(override: str, message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        compose("ppo", [*REQUIRED, override])
    said = str(raised.value)
    assert said.startswith(f"config ppo: {message}")
    assert "\n" not in said
    assert "hydra" not in said


def test_a_file_of_ones_own_builds_on_ours(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(
        "defaults: [base, algo: grpo, hardware: h100x8, _self_]\n"
        "search: {top_k: 5}\n"
        "trainer: {experiment_name: mine}\n"
    )
    config = compose(str(file), REQUIRED[:3])
    assert (config.search.top_k, config.search.max_searches) == (5, 4)
    assert config.trainer.experiment_name == "mine"


def test_only_a_cpu_run_selects_the_cpu_platform() -> None:
    cpu = environment(compose("cpu_quickstart", REQUIRED))
    assert (cpu["VERL_PLATFORM"], cpu["VLLM_CPU_KVCACHE_SPACE"]) == ("cpu", "1")
    assert "VERL_PLATFORM" not in environment(compose("ppo", REQUIRED))


def test_every_worker_gets_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_DIR", "/elsewhere")
    config = compose("cpu_quickstart", REQUIRED)
    variables = config.ray_kwargs.ray_init.runtime_env.env_vars
    assert variables["VERL_USE_EXTERNAL_MODULES"] == "search_r1.platform.cpu"
    assert variables["TENSORBOARD_DIR"] == f"{config.output_dir}/tensorboard"
    assert variables["WANDB_DIR"] == "/elsewhere"


def test_a_stored_config_does_not_write_over_the_metrics_of_its_own_start(tmp_path: Path) -> None:
    config = compose("ppo", [*REQUIRED, f"output_dir={tmp_path}"])
    variables = "ray_kwargs.ray_init.runtime_env.env_vars"
    first = f"{tmp_path}/metrics/20260101T000000.jsonl"
    OmegaConf.update(config, f"{variables}.VERL_FILE_LOGGER_PATH", first)
    OmegaConf.update(config, f"{variables}.MINE", "1", force_add=True)
    OmegaConf.save(config, tmp_path / "config.yaml")
    again = compose(str(tmp_path / "config.yaml")).ray_kwargs.ray_init.runtime_env.env_vars
    assert Path(again["VERL_FILE_LOGGER_PATH"]).parent == tmp_path / "metrics"
    assert "20260101T000000" not in again["VERL_FILE_LOGGER_PATH"]
    assert again["MINE"] == "1"


def test_composing_loads_nothing_heavy() -> None:
    code = (
        "import sys; from search_r1.config import compose;"
        f"compose('ppo', {REQUIRED});"
        "print(sorted({'torch', 'ray', 'verl'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=os.environ, check=True
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("actor_rollout_ref.actor.optim.lr=fast", "optim.lr is 'fast', not a number"),
        ("actor_rollout_ref.actor.use_kl_loss=maybe", "use_kl_loss is 'maybe', not true or false"),
        ("search.top_k=true", "search.top_k is True, not a number"),
        ("search.timeout_seconds=nan", "search.timeout_seconds is nan, not finite"),
        ("~search.urls", "search.urls is gone"),
        ("~search", "search is gone, not a section"),
        ("+ablations/maks=off", "no config group ablations/maks; ablations holds .*mask, model"),
        ("+remedies/clip_higher=on", "no config group remedies/clip_higher; remedies holds clip_"),
    ],
)
def test_an_override_keeps_the_type_of_its_field(override: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        compose("cpu_quickstart", [*REQUIRED, override])


def test_of_many_broken_fields_some_are_named_and_the_others_counted() -> None:
    names = ("timeout_seconds", "max_searches", "turn_tokens", "top_k", "max_failure_rate")
    with pytest.raises(ConfigError, match=r"top_k is 'x', not a number.*; and 2 more"):
        compose("ppo", [*REQUIRED, *(f"search.{name}=x" for name in names)])


def test_null_turns_a_number_off_and_text_may_become_anything() -> None:
    overrides = ["trainer.total_training_steps=null", "trainer.logger=console"]
    assert compose("ppo", [*REQUIRED, *overrides]).trainer.total_training_steps is None


def test_a_broken_file_names_itself(tmp_path: Path) -> None:
    path = tmp_path / "broken.yaml"
    path.write_text("a: [1")
    with pytest.raises(ConfigError, match=r"broken\.yaml"):
        compose(str(path), REQUIRED)


def test_the_token_is_handed_on_and_is_in_no_config(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RETRIEVER_TOKEN", raising=False)
    assert secrets() == {}
    monkeypatch.setenv("RETRIEVER_TOKEN", "open-sesame")
    assert secrets() == {"RETRIEVER_TOKEN": "open-sesame"}
    assert "open-sesame" not in OmegaConf.to_yaml(compose("ppo", REQUIRED))
