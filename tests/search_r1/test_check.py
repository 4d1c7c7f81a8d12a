"""Each problem that a check finds, by the override that makes it."""

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from omegaconf import DictConfig, OmegaConf

from search_r1.check import Report, check
from search_r1.config import compose, shipped_configs

Check = Callable[..., Report]

ACTOR, ROLLOUT = "actor_rollout_ref.actor", "actor_rollout_ref.rollout"
MODEL = "actor_rollout_ref.model.path"
KWARGS = "reward.custom_reward_function.reward_kwargs"


@pytest.fixture(autouse=True)
def free_disk(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Sets the free bytes of every disk; without a call there is room for everything."""

    def be(free: float) -> None:
        monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=int(free)))

    be(1e15)
    return be


@pytest.fixture
def check_config(composed: Callable[..., DictConfig]) -> Check:
    def run(name: str, *overrides: str) -> Report:
        groups = [override for override in overrides if override.startswith("algo=")]
        config = composed(name, *groups).copy()
        for override in overrides:
            field, _, value = override.lstrip("+").partition("=")
            if override not in groups:
                parsed = OmegaConf.from_dotlist([f"value={value}"])
                OmegaConf.update(config, field, parsed.value, force_add=True)
        return check(config)

    return run


def fields(report: Report) -> list[str]:
    return [problem.field for problem in report.problems]


def texts(report: Report, field: str) -> list[str]:
    return [note.text for note in report.notes if note.field == field]


@pytest.mark.parametrize("name", shipped_configs())
def test_every_shipped_config_can_run(check_config: Check, name: str) -> None:
    report = check_config(name)
    assert report.problems == ()
    assert report.memory is not None
    assert report.memory.total_gib(report.memory.peak) > 1


@pytest.mark.parametrize("model", ["Qwen/Qwen2.5-3B", "Qwen/Qwen2.5-7B-Instruct"])
@pytest.mark.parametrize("name", ["ppo", "grpo"])
def test_the_papers_models_fit_eight_gpus(check_config: Check, name: str, model: str) -> None:
    report = check_config(name, f"{MODEL}={model}")
    assert report.problems == ()
    assert [note for note in report.notes if note.warning] == []
    assert report.memory is not None
    assert report.memory.total_gib(report.memory.peak) < 80


BAD_SETTINGS: list[tuple[str, Sequence[str], Sequence[str]]] = [
    # counts
    ("ppo", ["data.train_batch_size=0"], ["data.train_batch_size"]),
    ("ppo", ["data.train_batch_size=many"], ["data.train_batch_size"]),
    ("ppo", [f"{ROLLOUT}.n=true"], [f"{ROLLOUT}.n"]),
    ("ppo", ["trainer.total_epochs=0.5"], ["trainer.total_epochs"]),
    ("ppo", ["trainer.test_freq=never"], ["trainer.test_freq"]),
    ("ppo", ["data.train_max_samples=null"], ["data.train_max_samples"]),
    # the search section
    ("ppo", ["+search.topk=3"], ["search.topk"]),
    ("ppo", ["search.top_k=0"], ["search.top_k"]),
    ("ppo", ["search.top_k=three"], ["search.top_k"]),
    ("ppo", ["search.max_failure_rate=20"], ["search.max_failure_rate"]),
    ("ppo", ["search.urls=[]"], ["search.urls"]),
    ("ppo", ["search.urls=[10.0.0.5:8000]"], ["search.urls"]),
    ("ppo", ["trainer.nnodes=2"], ["search.urls"]),
    ("ppo", ["trainer.nnodes=2", "search.urls=[http://localhost:1/r]"], ["search.urls"]),
    ("ppo", ["trainer.nnodes=2", "search.urls=['http://[::1]:1/r']"], ["search.urls"]),
    ("ppo", ["search.mask_retrieved=1"], ["search.mask_retrieved"]),
    (
        "cpu_quickstart",
        ["search.mask_retrieved=false"],
        ["algorithm.rollout_correction.bypass_mode"],
    ),
    (
        "ppo",
        ["search.mask_retrieved=false", "algorithm.rollout_correction.rollout_is=token"],
        ["algorithm.rollout_correction.rollout_is"],
    ),
    (
        "ppo",
        ["search.mask_retrieved=false", "algorithm.rollout_correction.rollout_rs=seq_mean_k1"],
        ["algorithm.rollout_correction.rollout_rs"],
    ),
    # GPUs and batches
    ("ppo", [f"{ROLLOUT}.tensor_model_parallel_size=3"], [f"{ROLLOUT}.tensor_model_parallel_size"]),
    (
        "ppo",
        [f"{ACTOR}.ulysses_sequence_parallel_size=3"],
        [f"{ACTOR}.ulysses_sequence_parallel_size"],
    ),
    ("ppo", ["trainer.n_gpus_per_node=3"], ["data.train_batch_size", f"{ACTOR}.ppo_mini"]),
    ("ppo", ["data.train_batch_size=128"], [f"{ACTOR}.ppo_mini_batch_size", "critic.ppo_mini"]),
    ("ppo", ["critic.ppo_mini_batch_size=12"], ["critic.ppo_mini_batch_size"]),
    (
        "ppo",
        [f"{ACTOR}.ppo_micro_batch_size_per_gpu=5"],
        [f"{ACTOR}.ppo_micro_batch_size_per_gpu"],
    ),
    (
        "ppo",
        [f"{ACTOR}.ppo_micro_batch_size_per_gpu=null"],
        [f"{ACTOR}.ppo_micro_batch_size_per_gpu"],
    ),
    (
        "ppo",
        [f"{ROLLOUT}.log_prob_micro_batch_size_per_gpu=7"],
        [f"{ROLLOUT}.log_prob_micro_batch_size_per_gpu"],
    ),
    (
        "grpo",
        ["actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu=7"],
        ["actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu"],
    ),
    ("ppo", [f"{ACTOR}.ppo_micro_batch_size=64"], [f"{ACTOR}.ppo_micro_batch_size"]),
    (
        "ppo",
        [
            f"{ACTOR}.use_dynamic_bsz=true",
            f"{ROLLOUT}.log_prob_use_dynamic_bsz=true",
            f"{ACTOR}.ppo_max_token_len_per_gpu=4000",
        ],
        [f"{ACTOR}.ppo_max_token_len_per_gpu"],
    ),
    (
        "ppo",
        [f"{ACTOR}.use_dynamic_bsz=true", f"{ROLLOUT}.log_prob_use_dynamic_bsz=false"],
        [f"{ROLLOUT}.log_prob_use_dynamic_bsz"],
    ),
    (
        "ppo",
        ["++critic.ppo_infer_max_token_len_per_gpu=4095"],
        ["critic.ppo_infer_max_token_len_per_gpu"],
    ),
    (
        "ppo",
        ["+critic.fsdp.use_dynamic_bsz=false"],
        ["critic.fsdp.micro_batch_size_per_gpu", "critic.fsdp.infer_micro_batch_size_per_gpu"],
    ),
    # lengths
    ("ppo", ["data.max_response_length=40000"], ["data.max_response_length"]),
    ("ppo", ["data.max_response_length=1000"], ["data.max_response_length"]),
    ("ppo", [f"{ROLLOUT}.max_model_len=2048"], [f"{ROLLOUT}.max_model_len"]),
    (
        "ppo",
        [f"{ROLLOUT}.enable_chunked_prefill=false", f"{ROLLOUT}.max_num_batched_tokens=2048"],
        [f"{ROLLOUT}.max_num_batched_tokens"],
    ),
    # model
    ("ppo", [f"{MODEL}=/no/such/folder"], [MODEL]),
    # data
    ("ppo", ["data.train_files=[missing.parquet]"], ["data.train_files"]),
    ("ppo", ["data.val_files=missing.parquet"], ["data.val_files"]),
    ("ppo", ["data.train_batch_size=2048"], ["data.train_batch_size"]),
    ("ppo", ["data.train_max_samples=500"], ["data.train_batch_size"]),
    ("ppo", ["trainer.total_epochs=3"], ["trainer.total_epochs"]),
    # the run
    ("ppo", ["trainer.logger=[console,wandbb]"], ["trainer.logger"]),
    ("ppo", ["trainer.logger=swanlab"], ["trainer.logger"]),
    ("ppo", ["trainer.resume_mode=always"], ["trainer.resume_mode"]),
    ("ppo", ["trainer.resume_mode=resume_path"], ["trainer.resume_from_path"]),
    ("ppo", ["custom_reward_function.path=mine.py"], ["custom_reward_function.path"]),
    (
        "ppo",
        ["reward.custom_reward_function.path=mine.py"],
        ["reward.custom_reward_function.path"],
    ),
    (
        "ppo",
        ["reward.custom_reward_function.path=pkg://no_such_package"],
        ["reward.custom_reward_function.path"],
    ),
    (
        "ppo",
        ["reward.custom_reward_function.name=score"],
        ["reward.custom_reward_function.name"],
    ),
    ("ppo", [f"{ROLLOUT}.val_kwargs.n=4"], [f"{ROLLOUT}.val_kwargs.do_sample"]),
    (
        "ppo",
        [f"{ROLLOUT}.agent.default_agent_loop=single_turn_agent"],
        [f"{ROLLOUT}.agent.default_agent_loop"],
    ),
    (
        "ppo",
        ["actor_rollout_ref.model.external_lib=null"],
        ["actor_rollout_ref.model.external_lib"],
    ),
    ("ppo", ["trainer.use_v1=false"], ["trainer.use_v1"]),
    ("ppo", ["trainer.device=gpu"], ["trainer.device"]),
    ("ppo", ["data.train_files=[]"], ["data.train_files"]),
    ("ppo", ["data.val_files=5"], ["data.val_files"]),
    ("ppo", ["trainer.total_epochs=null"], ["trainer.total_epochs"]),
    # the outputs
    ("ppo", ["output_dir=/dev/null/run"], ["output_dir"]),
    ("ppo", ["trainer.default_local_dir=/dev/null/x"], ["trainer.default_local_dir"]),
    ("ppo", ["trainer.validation_data_dir=/dev/null/x"], ["trainer.validation_data_dir"]),
    # rates
    ("ppo", ["algorithm.gamma=1.1"], ["algorithm.gamma"]),
    ("ppo", ["algorithm.lam=-0.1"], ["algorithm.lam"]),
    ("ppo", ["algorithm.kl_ctrl.kl_coef=-1"], ["algorithm.kl_ctrl.kl_coef"]),
    ("ppo", [f"{ACTOR}.optim.lr=-1e-6"], [f"{ACTOR}.optim.lr"]),
    ("ppo", [f"{ACTOR}.optim.lr=fast"], [f"{ACTOR}.optim.lr"]),
    ("ppo", [f"{ACTOR}.optim.lr_warmup_steps_ratio=2"], [f"{ACTOR}.optim.lr_warmup_steps_ratio"]),
    ("ppo", [f"{ACTOR}.clip_ratio=0"], [f"{ACTOR}.clip_ratio"]),
    ("ppo", [f"{ACTOR}.clip_ratio=1"], [f"{ACTOR}.clip_ratio"]),
    ("ppo", [f"{ACTOR}.clip_ratio_c=1"], [f"{ACTOR}.clip_ratio_c"]),
    ("ppo", [f"{ACTOR}.ppo_epochs=0"], [f"{ACTOR}.ppo_epochs"]),
    ("ppo", ["critic.optim.lr=-1"], ["critic.optim.lr"]),
    ("ppo", ["critic.cliprange_value=0"], ["critic.cliprange_value"]),
    ("ppo", [f"{ROLLOUT}.temperature=0"], [f"{ROLLOUT}.temperature"]),
    ("ppo", [f"{ROLLOUT}.top_p=1.5"], [f"{ROLLOUT}.top_p"]),
    ("ppo", [f"{ROLLOUT}.gpu_memory_utilization=60"], [f"{ROLLOUT}.gpu_memory_utilization"]),
    # what verl's trainer cannot compute, or computes wrongly (tests/search_r1/exactness)
    ("ppo", ["algorithm.adv_estimator=remax"], ["algorithm.adv_estimator"]),
    ("grpo", ["algorithm.adv_estimator=gdpo"], ["algorithm.adv_estimator"]),
    ("grpo", ["algorithm.adv_estimator=optimal_token_baseline"], ["algorithm.adv_estimator"]),
    ("grpo", ["algorithm.adv_estimator=grpo_passk", f"{ROLLOUT}.n=1"], [f"{ROLLOUT}.n"]),
    ("ppo", ["critic.enable=false"], ["critic.enable"]),
    ("ppo", ["algorithm.use_pf_ppo=true"], ["algorithm.use_pf_ppo"]),
    ("grpo", [f"{ACTOR}.policy_loss.loss_mode=geo_mean"], [f"{ACTOR}.policy_loss.loss_mode"]),
    ("grpo", [f"{ACTOR}.policy_loss.loss_mode=bypass_mode"], [f"{ACTOR}.policy_loss.loss_mode"]),
    ("grpo", [f"{ACTOR}.policy_loss.loss_mode=dro"], [f"{ACTOR}.policy_loss.dro_beta"]),
    ("grpo", [f"{ACTOR}.kl_loss_type=full"], [f"{ACTOR}.kl_loss_type"]),
    ("ppo", ["algorithm.kl_penalty=k4"], ["algorithm.kl_penalty"]),
    ("ppo", ["algorithm.kl_ctrl.type=off"], ["algorithm.kl_ctrl.type"]),
    (
        "cpu_quickstart",
        [f"{ROLLOUT}.calculate_log_probs=false"],
        [f"{ROLLOUT}.calculate_log_probs"],
    ),
    (
        "cpu_quickstart",
        ["algorithm.rollout_correction.loss_type=reinforce"],
        ["algorithm.rollout_correction.loss_type"],
    ),
    (
        "cpu_quickstart",
        ["algorithm.rollout_correction.rollout_is=token"],
        ["algorithm.rollout_correction.rollout_is"],
    ),
    # 520 are filled up to 1,024 with 504 empty ones: more than a mini-batch of the actor.
    (
        "ppo",
        [
            "data.train_batch_size=520",
            "critic.ppo_mini_batch_size=512",
            f"{ACTOR}.ppo_mini_batch_size=128",
        ],
        ["data.train_batch_size"],
    ),
    # rewards
    ("ppo", ["+reward.custom_reward_function.reward_kwargs.recall=1"], [KWARGS]),
    ("ppo", ["+reward.custom_reward_function.reward_kwargs.em=much"], [KWARGS]),
    ("ppo", ["+reward.custom_reward_function.reward_kwargs.em=0"], [KWARGS]),
    ("ppo", ["+reward.custom_reward_function.reward_kwargs=em"], [KWARGS]),
    # the CPU
    ("cpu_quickstart", [f"{ACTOR}.strategy=fsdp"], [f"{ACTOR}.strategy"]),
    ("cpu_quickstart", ["algo=ppo", "critic.strategy=fsdp"], ["critic.strategy"]),
    ("cpu_quickstart", ["trainer.n_gpus_per_node=2"], ["trainer.n_gpus_per_node"]),
    ("cpu_quickstart", ["cpu.dtype=float16"], ["cpu.dtype"]),
    (
        "cpu_quickstart",
        [f"{ROLLOUT}.enable_chunked_prefill=true"],
        [f"{ROLLOUT}.enable_chunked_prefill"],
    ),
]


@pytest.mark.parametrize(
    ("name", "overrides", "wanted"), BAD_SETTINGS, ids=[" ".join(o) for _, o, _ in BAD_SETTINGS]
)
def test_a_bad_setting_is_a_problem_of_its_field(
    check_config: Check, name: str, overrides: Sequence[str], wanted: Sequence[str]
) -> None:
    report = check_config(name, *overrides)
    for field in wanted:
        assert any(found.startswith(field) for found in fields(report)), fields(report)
    assert all(problem.message and problem.fix for problem in report.problems)


def test_without_searches_no_node_needs_a_server_and_no_budget_an_observation(
    check_config: Check,
) -> None:
    assert check_config("r1", "trainer.nnodes=2").problems == ()
    report = check_config("cpu_quickstart", "search.max_searches=0", "data.max_response_length=48")
    assert report.problems == ()
    [text] = texts(report, "data.max_response_length")
    assert text == "the only turn, of search.turn_tokens=64, ends at 48"


def test_without_searches_the_rows_must_hold_the_question(
    check_config: Check, tmp_path: Path
) -> None:
    without = {
        "prompt": [{"role": "user", "content": "x"}],
        "data_source": "nq",
        "reward_model": {"ground_truth": {"target": ["a"]}},
        "extra_info": {"id": "1"},
    }
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({name: [value] for name, value in without.items()}), path)
    [problem] = check_config("r1", f"data.val_files={path}").problems
    assert problem.field == "data.val_files"
    assert "extra_info must be a mapping with question" in problem.message


def test_a_bad_setting_gives_no_other_problems(check_config: Check) -> None:
    report = check_config("ppo", f"{ROLLOUT}.tensor_model_parallel_size=16")
    assert fields(report) == [f"{ROLLOUT}.tensor_model_parallel_size"]
    assert report.problems[0].fix == "a divisor of 8"


def test_the_fix_of_a_batch_counts_the_group(check_config: Check) -> None:
    # 12 x 2 trajectories over 8 GPUs divide, 10 x 2 do not: questions must be a multiple of 4.
    small = [f"{ROLLOUT}.n=2", f"{ACTOR}.ppo_mini_batch_size=4"]
    micro = [f"{ACTOR}.ppo_micro_batch_size_per_gpu=1", f"{ROLLOUT}.log_prob_micro_batch_size=null"]
    micro += [f"{ROLLOUT}.log_prob_micro_batch_size_per_gpu=1"]
    micro += ["actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu=1"]
    assert check_config("grpo", "data.train_batch_size=12", *small, *micro).problems == ()
    [problem] = check_config("grpo", "data.train_batch_size=10", *small, *micro).problems
    assert (problem.field, problem.fix) == ("data.train_batch_size", "a multiple of 4")


@pytest.fixture
def with_file(check_config: Check, tmp_path: Path) -> Callable[[Any], Report]:
    def run(content: Any) -> Report:
        path = tmp_path / "train.parquet"
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            pq.write_table(content, path)
        return check_config("ppo", f"data.train_files={path}")

    return run


def test_a_file_that_only_ends_like_parquet(with_file: Callable[[Any], Report]) -> None:
    [problem] = with_file(b"id,question\n").problems
    assert problem.field == "data.train_files"
    assert "not a parquet file" in problem.message


def test_missing_columns_are_all_named(with_file: Callable[[Any], Report]) -> None:
    [problem] = with_file(pa.table({"prompt": ["x"] * 600, "data_source": ["nq"] * 600})).problems
    assert "no column extra_info, reward_model" in problem.message


@pytest.mark.parametrize(
    ("column", "value", "wanted"),
    [
        ("prompt", "Who?", "prompt must be a list of messages {role, content}, not string"),
        ("prompt", [{"text": "Who?"}], "prompt must be a list of messages"),
        ("data_source", 5, "data_source must be text, not int64"),
        ("reward_model", {"style": "rule"}, "reward_model must be a mapping with ground_truth"),
        ("reward_model", "Ada", "reward_model must be a mapping with ground_truth, not string"),
        ("extra_info", '{"id": "1"}', "extra_info must be a mapping, not string"),
    ],
)
def test_a_column_of_another_kind(
    with_file: Callable[[Any], Report], column: str, value: object, wanted: str
) -> None:
    row = {
        "prompt": [{"role": "user", "content": "Who?"}],
        "data_source": "nq",
        "reward_model": {"style": "rule", "ground_truth": ["x"]},
        "extra_info": {"id": "1"},
        column: value,
    }
    [problem] = with_file(pa.table({name: [cell] * 600 for name, cell in row.items()})).problems
    assert problem.field == "data.train_files"
    assert wanted in problem.message


def test_a_clip_ratio_is_the_one_that_verl_reads(run_overrides: list[str]) -> None:
    actor = compose("ppo", [*run_overrides, f"{ACTOR}.clip_ratio=0.1"]).actor_rollout_ref.actor
    assert (actor.clip_ratio_low, actor.clip_ratio_high) == (0.1, 0.1)


def test_sampling_from_a_part_of_the_distribution_is_a_warning(check_config: Check) -> None:
    report = check_config("ppo", f"{ROLLOUT}.top_p=0.9", f"{ROLLOUT}.top_k=20")
    assert report.problems == ()
    warned = [note.field for note in report.notes if note.warning]
    assert warned == [f"{ROLLOUT}.top_p", f"{ROLLOUT}.top_k"]


def test_an_estimator_without_a_critic_is_taken(check_config: Check) -> None:
    for estimator in ("rloo", "reinforce_plus_plus", "grpo_passk"):
        assert check_config("grpo", f"algorithm.adv_estimator={estimator}").problems == ()


def test_another_reward_function_has_weights_of_its_own(
    check_config: Check, tmp_path: Path
) -> None:
    path = tmp_path / "mine.py"
    path.write_text("def compute_score(*_, **__): ...")
    section = "reward.custom_reward_function"
    report = check_config("ppo", f"{section}.path={path}", f"+{section}.reward_kwargs.recall=1")
    assert report.problems == ()


def test_another_format_is_refused(check_config: Check, tmp_path: Path) -> None:
    path = tmp_path / "train.jsonl"
    path.write_text("{}\n")
    [problem] = check_config("ppo", f"data.train_files={path}").problems
    assert "does not end in .parquet" in problem.message


def test_rows_of_several_files_count_together(
    check_config: Check, run_overrides: list[str]
) -> None:
    train = run_overrides[0].partition("=")[2]
    report = check_config("ppo", f"data.train_files=[{train},{train}]")
    assert report.problems == ()
    assert texts(report, "data.train_files") == [
        "2,048 rows, 4 steps an epoch; 500 steps see 256,000 questions"
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model.safetensors": None}, "holds no weights"),
        ({"tokenizer.json": None}, "holds no tokenizer"),
        ({"config.json": None}, "holds no config"),
        ({"config.json": "{"}, "config.json"),
        ({"config.json": '{"intermediate_size": 4}'}, "num_attention_heads"),
    ],
)
def test_an_incomplete_model_folder(
    check_config: Check, tmp_path: Path, change: dict[str, str | None], message: str
) -> None:
    shape = {"num_attention_heads": 1, "hidden_size": 8, "num_hidden_layers": 1}
    shape |= {"intermediate_size": 8, "vocab_size": 8, "max_position_embeddings": 9000}
    files = {"config.json": json.dumps(shape), "model.safetensors": "", "tokenizer.json": ""}
    for name, content in (files | change).items():
        if content is not None:
            (tmp_path / name).write_text(content)
    [problem] = check_config("ppo", f"{MODEL}={tmp_path}").problems
    assert problem.field == MODEL
    assert message in problem.message


def test_what_is_no_folder_may_be_a_name(check_config: Check) -> None:
    report = check_config("ppo", f"{MODEL}=someone/unheard-of")
    assert report.problems == ()
    assert report.memory is None
    assert any("taken as a Hugging Face name" in text for text in texts(report, MODEL))


def test_budgets_that_do_not_all_fit_are_a_note(check_config: Check) -> None:
    # 4 searches of 500 + 500 tokens and a last turn of 500; 3 searches leave 72, more than 64.
    [text] = texts(check_config("ppo"), "data.max_response_length")
    assert "need 4500 of 3072" in text
    assert "3 always fit" in text


def test_a_response_without_searches_needs_one_turn(check_config: Check) -> None:
    assert (
        check_config("ppo", "search.max_searches=0", "data.max_response_length=64").problems == ()
    )


def test_a_critic_can_have_micro_batches_of_whole_trajectories(check_config: Check) -> None:
    fixed = ["use_dynamic_bsz=false", "micro_batch_size_per_gpu=4"]
    fixed.append("infer_micro_batch_size_per_gpu=8")
    report = check_config("ppo", *(f"+critic.fsdp.{setting}" for setting in fixed))
    assert report.problems == ()
    assert texts(report, "critic.ppo_infer_max_token_len_per_gpu") == []


def test_a_group_of_one_is_a_warning(check_config: Check) -> None:
    report = check_config("grpo", f"{ROLLOUT}.n=1")
    [note] = [note for note in report.notes if note.field == f"{ROLLOUT}.n"]
    assert note.warning
    assert "REINFORCE" in note.text


def test_training_on_passages_is_a_warning(check_config: Check) -> None:
    report = check_config("ppo", "search.mask_retrieved=false")
    assert report.problems == ()
    [note] = [note for note in report.notes if note.field == "search.mask_retrieved"]
    assert note.warning
    assert texts(check_config("ppo"), "search.mask_retrieved") == []


def test_a_run_that_never_validates_is_a_warning(check_config: Check) -> None:
    report = check_config("ppo", "trainer.val_before_train=false", "trainer.test_freq=-1")
    assert any("never validates" in text for text in texts(report, "trainer.test_freq"))


def test_a_batch_that_must_be_filled_up_is_a_note(check_config: Check) -> None:
    report = check_config("ppo", "data.train_batch_size=384")
    assert report.problems == ()
    [text] = texts(report, "data.train_batch_size")
    assert text.startswith("384 trajectories a step are filled up to 512")


@pytest.mark.parametrize("key", ["", "secret"])
def test_wandb_without_a_login_logs_offline_and_says_so(
    key: str, run_overrides: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("NETRC", str(tmp_path / "none"))
    monkeypatch.delenv("WANDB_MODE", raising=False)
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    if key:
        monkeypatch.setenv("WANDB_API_KEY", key)
    report = check(compose("ppo", [*run_overrides, "trainer.logger=[wandb]"]))
    assert report.problems == ()
    assert bool(texts(report, "trainer.logger")) == (not key)


def test_no_reference_model_is_a_note(check_config: Check) -> None:
    report = check_config("grpo", f"{ACTOR}.use_kl_loss=false")
    assert report.problems == ()
    assert texts(report, f"{ACTOR}.use_kl_loss") != []


def test_a_checkpoint_to_resume_from(check_config: Check, tmp_path: Path) -> None:
    folder = tmp_path / "global_step_50"
    folder.mkdir()
    mode = "trainer.resume_mode=resume_path"
    assert check_config("ppo", mode, f"trainer.resume_from_path={folder}").problems == ()


def test_memory_over_the_limit_warns_and_refuses_nothing(check_config: Check) -> None:
    report = check_config("ppo", f"{ACTOR}.fsdp_config.param_offload=false", "trainer.nnodes=1")
    assert not any("more than 80" in note.text for note in report.notes)
    report = check_config("ppo", f"{ACTOR}.ppo_micro_batch_size_per_gpu=32")
    assert report.problems == ()
    [text] = texts(report, f"{ACTOR}.ppo_micro_batch_size_per_gpu")
    assert "the actor update needs about" in text
    assert "use_fused_kernels" in text


def test_a_cache_without_room_warns(check_config: Check) -> None:
    report = check_config("ppo", f"{ROLLOUT}.gpu_memory_utilization=0.1")
    [note] = [n for n in report.notes if n.field == f"{ROLLOUT}.gpu_memory_utilization"]
    assert note.warning
    assert "holds 0 tokens" in note.text


@pytest.mark.parametrize("override", ["actor_rollout_ref.model.lora_rank=8"])
def test_what_is_not_estimated_has_no_table(check_config: Check, override: str) -> None:
    report = check_config("ppo", override)
    assert (report.problems, report.memory) == ((), None)


def test_checking_leaves_the_config_as_it_was(composed: Callable[..., DictConfig]) -> None:
    config = composed("ppo").copy()
    before = config.copy()
    check(config)
    assert config == before


DISK = "trainer.default_local_dir"
QWEN_3B = f"{MODEL}=Qwen/Qwen2.5-3B"
CHECKPOINT = 3_085_938_688 * 3 * 4
"""Weights and two moments of every parameter, in float32."""


def test_a_disk_without_room_for_the_checkpoints_is_a_warning(
    check_config: Check, free_disk: Callable[[float], None]
) -> None:
    free_disk(2 * CHECKPOINT)
    [text] = texts(check_config("grpo", QWEN_3B), DISK)
    assert "74.1 GB are free" in text
    assert "a checkpoint takes about 37.0 GB, and 10 are there at one time" in text
    assert "trainer.max_actor_ckpt_to_keep" in text
    # One that is kept, the best one, and the one being written.
    kept = "trainer.max_actor_ckpt_to_keep=1"
    [text] = texts(check_config("grpo", QWEN_3B, kept), DISK)
    assert "and 3 are there at one time" in text
    free_disk(3 * CHECKPOINT)
    assert texts(check_config("grpo", QWEN_3B, kept), DISK) == []


def test_a_critic_is_in_the_checkpoint_and_what_is_not_saved_is_not(
    check_config: Check, free_disk: Callable[[float], None]
) -> None:
    free_disk(0)
    [with_critic] = texts(check_config("ppo", QWEN_3B), DISK)
    assert "takes about 74.1 GB" in with_critic
    weights_only = "actor_rollout_ref.actor.checkpoint.save_contents=[model]"
    [weights] = texts(check_config("grpo", QWEN_3B, weights_only), DISK)
    assert "takes about 12.3 GB" in weights
    assert texts(check_config("grpo", QWEN_3B, "trainer.save_freq=-1"), DISK) == []
