"""Checks a config before anything heavy starts: what would fail later is told now, with its fix.

Nothing here imports torch, Ray or verl; `search_r1.train.validate_with_verl` adds verl's own
checks. Command: ``search-r1 train CONFIG --check``.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from omegaconf import DictConfig

from search_r1.checks.alarms import check_alarms
from search_r1.checks.algorithm import check_algorithm
from search_r1.checks.batches import check_batches
from search_r1.checks.data import check_data
from search_r1.checks.disk import check_disk
from search_r1.checks.findings import Finding, Findings, Note, Problem, select
from search_r1.checks.model import PATH, check_model
from search_r1.checks.numbers import check_numbers
from search_r1.checks.rates import check_rates
from search_r1.checks.remedies import check_remedies
from search_r1.checks.run import check_run
from search_r1.checks.search import check_rollout, check_search
from search_r1.checks.sizes import longest_trajectory
from search_r1.memory.estimate import compute_bytes, estimate, is_on_cpu, vllm_cache_bytes
from search_r1.memory.formulas import cache_tokens
from search_r1.memory.shape import ModelShape, find_shape
from search_r1.memory.table import MemoryTable, Phase

__all__ = ["Note", "Problem", "Report", "check"]

_FIRST = (check_numbers, check_rates, check_search)
"""The other checks compute with what these look at."""
_CHECKS = (
    check_data,
    check_model,
    check_batches,
    check_algorithm,
    check_rollout,
    check_run,
    check_alarms,
    check_remedies,
)
_ROLLOUT = "actor_rollout_ref.rollout"


@dataclass(frozen=True, slots=True)
class Report:
    """What was found; a run starts only without problems."""

    problems: tuple[Problem, ...]
    notes: tuple[Note, ...] = ()
    memory: MemoryTable | None = None
    """None with problems, and where the model's shape or parallelism is not one we estimate."""


def check(config: DictConfig) -> Report:
    """Check `config`, as `search_r1.config.compose` made it."""
    findings = [finding for one in _FIRST for finding in one(config)]
    if findings:
        return _report(findings, None)
    findings = [finding for one in _CHECKS for finding in one(config)]
    if any(isinstance(finding, Problem) for finding in findings):
        return _report(findings, None)
    shape, memory = _estimable_shape(config), None
    if shape:
        memory = estimate(config, shape)
        findings += [*_judge_memory(config, shape, memory), *check_disk(config, shape)]
    else:
        findings.append(
            Note(PATH, "memory and disk are not estimated: unknown shape, LoRA or Megatron")
        )
    return _report(findings, memory)


def _report(findings: Sequence[Finding], memory: MemoryTable | None) -> Report:
    problems = tuple(finding for finding in findings if isinstance(finding, Problem))
    notes = tuple(finding for finding in findings if isinstance(finding, Note))
    return Report(problems, notes, memory)


def _estimable_shape(config: DictConfig) -> ModelShape | None:
    is_fsdp = config.actor_rollout_ref.actor.strategy in {"fsdp", "fsdp2"}
    if not is_fsdp or config.actor_rollout_ref.model.lora_rank > 0:
        return None
    return find_shape(str(select(config, PATH)))


def _judge_memory(config: DictConfig, shape: ModelShape, memory: MemoryTable) -> Findings:
    peak = memory.peak
    if memory.total_gib(peak) > memory.limit_gib:
        text = (
            f"the {peak} needs about {memory.total_gib(peak):.0f} GiB if every sequence has its "
            f"greatest length, more than {memory.limit_gib:.0f}: {_REMEDIES[peak]}"
        )
        yield Note(_FIELDS[peak], text, warning=True)
    engine = config.actor_rollout_ref.rollout.tensor_model_parallel_size
    tokens = cache_tokens(shape, vllm_cache_bytes(config, shape), engine, compute_bytes(config))
    sequences = tokens / longest_trajectory(config)
    text = f"vLLM's cache holds {tokens:,} tokens, {sequences:.1f} of the longest trajectories"
    field = "cpu.kv_cache_gib" if is_on_cpu(config) else f"{_ROLLOUT}.gpu_memory_utilization"
    yield Note(field, text, warning=sequences < 1)


_SMALLER = "smaller micro-batches, or actor_rollout_ref.model.use_fused_kernels=true"
_FIELDS = {
    Phase.ROLLOUT: f"{_ROLLOUT}.gpu_memory_utilization",
    Phase.LOG_PROBS: f"{_ROLLOUT}.log_prob_micro_batch_size_per_gpu",
    Phase.ACTOR: "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu",
    Phase.CRITIC: "critic.ppo_infer_max_token_len_per_gpu",
}
_REMEDIES = {
    Phase.ROLLOUT: "a smaller share for vLLM, or offload the actor and the critic",
    Phase.LOG_PROBS: _SMALLER,
    Phase.ACTOR: _SMALLER,
    Phase.CRITIC: "fewer tokens in a micro-batch",
}
