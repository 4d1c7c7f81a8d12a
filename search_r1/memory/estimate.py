"""Estimates the memory per GPU of each phase of a step: an upper bound at the greatest lengths.

The CUDA context, NCCL's buffers and fragmentation (a few GiB) are not in it. On a CPU all of it
lies in the machine's memory; the processes themselves (about a GiB each) are not in it.
Shown by ``search-r1 train CONFIG --check``; the formulae are in `search_r1.memory.formulas`.
"""

import os
from collections.abc import Iterable

from omegaconf import DictConfig

from search_r1.checks.findings import select
from search_r1.checks.sizes import (
    Batches,
    critic_tokens,
    is_dynamic,
    longest_trajectory,
    needs_critic,
    needs_reference,
    sequence_parallel,
    total_gpus,
)
from search_r1.memory import formulas
from search_r1.memory.shape import ModelShape
from search_r1.memory.table import GIB, MemoryRow, MemoryTable, Phase
from search_r1.platform import PLATFORM_NAME

GPU_MEMORY_GIB = 80.0
_VALUE_BYTES = {"bf16": 2, "bfloat16": 2, "fp16": 2, "float16": 2}
_FULL_TYPES = {"float32", "float"}


def estimate(config: DictConfig, shape: ModelShape) -> MemoryTable:
    """The memory of `config` for a model of this shape, trained under FSDP."""
    on_cpu = is_on_cpu(config)
    rows = [*_engine(config, "actor", shape.parameters)]
    if needs_critic(config):
        rows += _engine(config, "critic", shape.critic_parameters)
    if on_cpu and needs_reference(config):
        # On a GPU, verl keeps the reference in the machine's memory.
        reference = formulas.sharded_weights(shape.parameters, formulas.FULL, 1)
        rows.append(MemoryRow("reference weights", dict.fromkeys(Phase, reference)))
    wider = compute_bytes(config) / formulas.HALF
    rows += [row.times(wider) for row in _compute(config, shape)]
    rows += _vllm(config, shape)
    limit = _machine_gib() if on_cpu else GPU_MEMORY_GIB
    return MemoryTable("CPU" if on_cpu else "GPU", limit, tuple(rows))


def is_on_cpu(config: DictConfig) -> bool:
    """Whether the run uses the CPU platform."""
    return bool(config.trainer.device == PLATFORM_NAME)


def value_bytes(options: DictConfig) -> int:
    """Bytes of one weight, as the FSDP `options` of the actor or the critic name its type."""
    return _VALUE_BYTES.get(options.model_dtype, formulas.FULL)


def compute_bytes(config: DictConfig) -> int:
    """Bytes of a number in compute; a CPU that is slow in bfloat16 works in float32."""
    dtype = config.actor_rollout_ref.rollout.dtype
    return formulas.FULL if dtype in _FULL_TYPES else formulas.HALF


def vllm_cache_bytes(config: DictConfig, shape: ModelShape) -> float:
    """What vLLM leaves for keys and values: its share of the GPU less the weights."""
    if is_on_cpu(config):
        return float(config.cpu.kv_cache_gib * GIB)
    share = config.actor_rollout_ref.rollout.gpu_memory_utilization * GPU_MEMORY_GIB * GIB
    return float(share - _vllm_weights(config, shape))


def _vllm_weights(config: DictConfig, shape: ModelShape) -> float:
    engine = config.actor_rollout_ref.rollout.tensor_model_parallel_size
    return formulas.sharded_weights(shape.parameters, compute_bytes(config), engine)


def _engine(config: DictConfig, name: str, parameters: int) -> Iterable[MemoryRow]:
    """Weights, gradients and moments; what is offloaded is there in its own phases only."""
    actor = name == "actor"
    options = config.actor_rollout_ref.actor.fsdp_config if actor else config.critic.fsdp
    shards = options.fsdp_size if options.fsdp_size > 0 else total_gpus(config)
    weights = formulas.sharded_weights(parameters, value_bytes(options), shards)
    update = Phase.ACTOR if actor else Phase.CRITIC
    always, on_cpu = list(Phase), is_on_cpu(config)
    used = [Phase.LOG_PROBS, update] if actor else [update]
    weight_phases = used if options.param_offload and not on_cpu else always
    moment_phases = [update] if options.optimizer_offload and not on_cpu else always
    yield MemoryRow(f"{name} weights", dict.fromkeys(weight_phases, weights))
    yield MemoryRow(f"{name} gradients", {update: weights})
    yield MemoryRow(f"{name} Adam moments", dict.fromkeys(moment_phases, 2 * weights))


def _compute(config: DictConfig, shape: ModelShape) -> Iterable[MemoryRow]:
    """Gathered weights (and in updates their gradients), activations and logits."""
    tokens = micro_batch_tokens(config)
    model = config.actor_rollout_ref.model
    actor = formulas.gathered_weights(shape, with_output=True)
    critic = formulas.gathered_weights(shape, with_output=False)
    gathered = {Phase.LOG_PROBS: actor, Phase.ACTOR: 2 * actor, Phase.CRITIC: 2 * critic}
    yield MemoryRow("gathered weights", {p: gathered[p] for p in tokens})
    kept = {
        phase: formulas.layer_activations(shape, count)
        if phase is Phase.LOG_PROBS
        else formulas.stored_activations(
            shape, count, checkpointing=model.enable_gradient_checkpointing
        )
        for phase, count in tokens.items()
    }
    yield MemoryRow("activations", kept)
    if not model.use_fused_kernels:
        compiled = config.actor_rollout_ref.actor.fsdp_config.use_torch_compile
        logits = {
            phase: formulas.logits(
                shape, tokens[phase], backward=phase is Phase.ACTOR, compiled=compiled
            )
            for phase in (Phase.LOG_PROBS, Phase.ACTOR)
        }
        yield MemoryRow("logits", logits)


def micro_batch_tokens(config: DictConfig) -> dict[Phase, int]:
    """The most tokens of a micro-batch on one GPU, for each phase that computes."""
    batches, longest = Batches.of(config), longest_trajectory(config)
    actor, rollout = config.actor_rollout_ref.actor, config.actor_rollout_ref.rollout
    if is_dynamic(config):
        limits = rollout.log_prob_max_token_len_per_gpu, actor.ppo_max_token_len_per_gpu
    else:
        micro = rollout.log_prob_micro_batch_size_per_gpu, actor.ppo_micro_batch_size_per_gpu
        limits = tuple(size * longest // sequence_parallel(config) for size in micro)
    all_tokens = batches.mini * longest // batches.gpus
    tokens = {Phase.LOG_PROBS: limits[0], Phase.ACTOR: min(limits[1], all_tokens)}
    if needs_critic(config):
        tokens[Phase.CRITIC] = min(critic_tokens(config), all_tokens)
    return tokens


def _vllm(config: DictConfig, shape: ModelShape) -> Iterable[MemoryRow]:
    rollout = config.actor_rollout_ref.rollout
    sleeps = rollout.free_cache_engine and select(rollout, "enable_sleep_mode", default=True)
    phases = [Phase.ROLLOUT] if sleeps else list(Phase)
    yield MemoryRow("vLLM weights", dict.fromkeys(phases, _vllm_weights(config, shape)))
    cache = max(vllm_cache_bytes(config, shape), 0.0)
    yield MemoryRow("vLLM cache", dict.fromkeys(phases, cache))


def _machine_gib() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / GIB
