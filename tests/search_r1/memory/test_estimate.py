"""The table of the paper's PPO run of Qwen2.5-7B on eight GPUs, by hand; and of a CPU run."""

from collections.abc import Callable

import pytest
from omegaconf import DictConfig, OmegaConf

from search_r1.memory.estimate import estimate, micro_batch_tokens, vllm_cache_bytes
from search_r1.memory.formulas import cache_tokens
from search_r1.memory.shape import KNOWN
from search_r1.memory.table import GIB, MemoryTable, Phase

Composed = Callable[..., DictConfig]
SEVEN = KNOWN["Qwen2.5-7B"]
WEIGHTS = 7_615_616_512 * 4 / 8
CRITIC = 7_070_622_721 * 4 / 8


@pytest.fixture(scope="module")
def ppo(composed: Composed) -> DictConfig:
    return composed("ppo")


@pytest.fixture(scope="module")
def cpu(composed: Composed) -> DictConfig:
    return composed("cpu_quickstart", "algo=ppo", "algorithm.use_kl_in_reward=true")


def changed(config: DictConfig, **fields: object) -> DictConfig:
    config = config.copy()
    for field, value in fields.items():
        OmegaConf.update(config, field.replace("__", "."), value, force_add=True)
    return config


def cells(table: MemoryTable, name: str) -> dict[Phase, float]:
    [row] = [row for row in table.rows if row.name == name]
    return dict(row.bytes)


def test_offloaded_states_are_there_in_their_own_phases(ppo: DictConfig) -> None:
    table = estimate(ppo, SEVEN)
    assert (table.device, table.limit_gib) == ("GPU", 80)
    assert cells(table, "actor weights") == {Phase.LOG_PROBS: WEIGHTS, Phase.ACTOR: WEIGHTS}
    assert cells(table, "actor gradients") == {Phase.ACTOR: WEIGHTS}
    assert cells(table, "actor Adam moments") == {Phase.ACTOR: 2 * WEIGHTS}
    assert cells(table, "critic Adam moments") == {Phase.CRITIC: 2 * CRITIC}


def test_without_offload_they_stay(ppo: DictConfig) -> None:
    options = "actor_rollout_ref__actor__fsdp_config__"
    stay = changed(ppo, **{f"{options}param_offload": False, f"{options}optimizer_offload": False})
    table = estimate(stay, SEVEN)
    assert cells(table, "actor weights") == dict.fromkeys(Phase, WEIGHTS)
    assert cells(table, "actor Adam moments") == dict.fromkeys(Phase, 2 * WEIGHTS)
    assert cells(table, "actor gradients") == {Phase.ACTOR: WEIGHTS}


def test_shards_follow_the_fsdp_size_and_the_dtype(ppo: DictConfig) -> None:
    options = "actor_rollout_ref__actor__fsdp_config__"
    wide = changed(ppo, **{f"{options}fsdp_size": 4, f"{options}model_dtype": "bf16"})
    assert cells(estimate(wide, SEVEN), "actor gradients") == {Phase.ACTOR: WEIGHTS}


def test_micro_batches_of_whole_trajectories(ppo: DictConfig) -> None:
    tokens = micro_batch_tokens(ppo)
    assert tokens == {Phase.LOG_PROBS: 16 * 4096, Phase.ACTOR: 8 * 4096, Phase.CRITIC: 32768}


def test_micro_batches_by_tokens(ppo: DictConfig) -> None:
    dynamic = changed(ppo, actor_rollout_ref__actor__use_dynamic_bsz=True)
    assert micro_batch_tokens(dynamic)[Phase.ACTOR] == 16384
    small = changed(dynamic, critic__ppo_infer_max_token_len_per_gpu=5000)
    assert micro_batch_tokens(small)[Phase.CRITIC] == 5000
    fixed = {"use_dynamic_bsz": False, "micro_batch_size_per_gpu": 4}
    fixed_critic = changed(ppo, **{f"critic__fsdp__{name}": v for name, v in fixed.items()})
    assert micro_batch_tokens(fixed_critic)[Phase.CRITIC] == 4 * 4096


def test_the_logits_are_those_of_the_longest_sequences(ppo: DictConfig) -> None:
    table = estimate(ppo, SEVEN)
    assert cells(table, "logits") == {
        Phase.LOG_PROBS: 16 * 4096 * 152_064 * 2,
        Phase.ACTOR: 8 * 4096 * 152_064 * 6,
    }
    fused = changed(ppo, actor_rollout_ref__model__use_fused_kernels=True)
    assert "logits" not in [row.name for row in estimate(fused, SEVEN).rows]


def test_vllm_has_its_share_and_sleeps_while_training(ppo: DictConfig) -> None:
    table = estimate(ppo, SEVEN)
    assert table.total_gib(Phase.ROLLOUT) == pytest.approx(0.6 * 80)
    assert cells(table, "vLLM weights") == {Phase.ROLLOUT: 7_615_616_512 * 2}
    assert vllm_cache_bytes(ppo, SEVEN) == pytest.approx(48 * GIB - 7_615_616_512 * 2)
    awake = changed(ppo, actor_rollout_ref__rollout__free_cache_engine=False)
    assert set(cells(estimate(awake, SEVEN), "vLLM cache")) == set(Phase)


def test_tensor_parallel_shares_the_engines_weights(ppo: DictConfig) -> None:
    two = changed(ppo, actor_rollout_ref__rollout__tensor_model_parallel_size=2)
    assert cells(estimate(two, SEVEN), "vLLM weights") == {Phase.ROLLOUT: 7_615_616_512}


def test_the_totals_and_the_peak(ppo: DictConfig) -> None:
    table = estimate(ppo, SEVEN)
    gathered = 2 * 2 * (2 * 233_057_792 + 2 * 152_064 * 3_584)
    activations = 32768 * (28 * 2 * 3_584 + 225_280)
    logits = 32768 * 152_064 * 6
    assert table.peak is Phase.ACTOR
    by_hand = 4 * WEIGHTS + gathered + activations + logits
    assert table.total_gib(Phase.ACTOR) == pytest.approx(by_hand / GIB)


def test_grpo_has_no_critic(composed: Composed) -> None:
    table = estimate(composed("grpo"), SEVEN)
    assert not any(row.name.startswith("critic") for row in table.rows)
    assert all(Phase.CRITIC not in row.bytes for row in table.rows)


def test_on_a_cpu_everything_is_in_one_memory_all_the_time(cpu: DictConfig) -> None:
    table = estimate(cpu, KNOWN["Qwen2.5-3B"])
    weights = 3_085_938_688 * 4
    assert table.device == "CPU"
    assert table.limit_gib > 1
    for name in ("actor weights", "critic weights", "reference weights"):
        assert set(cells(table, name)) == set(Phase)
    assert cells(table, "reference weights")[Phase.ROLLOUT] == weights
    assert cells(table, "vLLM cache")[Phase.ROLLOUT] == GIB


def test_a_cpu_in_float32_holds_twice_the_bytes_of_compute(composed: Composed) -> None:
    half, full = (
        estimate(composed("cpu_quickstart", f"cpu.dtype={dtype}"), KNOWN["Qwen2.5-3B"])
        for dtype in ("bfloat16", "float32")
    )
    for name in ("vLLM weights", "gathered weights", "activations", "logits"):
        doubled = {phase: 2 * size for phase, size in cells(half, name).items()}
        assert cells(full, name) == doubled
    assert cells(full, "vLLM cache") == cells(half, "vLLM cache")
    assert cells(full, "actor weights") == cells(half, "actor weights")


def test_keys_and_values_in_float32_are_half_as_many_tokens() -> None:
    shape = KNOWN["Qwen2.5-3B"]
    assert cache_tokens(shape, GIB, 1, 4) == cache_tokens(shape, GIB, 1) // 2
