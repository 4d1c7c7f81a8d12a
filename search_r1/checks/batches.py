"""How batches divide over GPUs, mini-batches and micro-batches, as verl 0.9.1 divides them.

Sources in verl: ``utils/config.py`` (validate_config), ``workers/engine_workers.py``
(train_mini_batch) and ``workers/engine/utils.py`` (prepare_micro_batches).
"""

import math

from omegaconf import DictConfig

from search_r1.checks.findings import Findings, Note, Problem, select
from search_r1.checks.sizes import (
    Batches,
    critic_is_dynamic,
    critic_tokens,
    is_dynamic,
    longest_trajectory,
    needs_critic,
    needs_reference,
    sequence_parallel,
)

_ACTOR = "actor_rollout_ref.actor"
_ROLLOUT = "actor_rollout_ref.rollout"


def check_batches(config: DictConfig) -> Findings:
    """Everything divides as verl asserts it later, in its workers."""
    batches = Batches.of(config)
    yield from _check_gpus(config, batches)
    yield from _check_mini_batches(config, batches)
    if is_dynamic(config):
        yield from _check_token_limits(config)
    else:
        yield from _check_micro_batches(config, batches)
    if needs_critic(config):
        yield from _check_critic(config, batches)
    if batches.trajectories != batches.sampled:
        text = (
            f"{batches.sampled} trajectories a step are filled up to {batches.trajectories} with "
            "empty ones, to whole mini-batches"
        )
        yield Note("data.train_batch_size", text)


def _check_gpus(config: DictConfig, batches: Batches) -> Findings:
    rollout = config.actor_rollout_ref.rollout
    engine = rollout.tensor_model_parallel_size * select(rollout, "data_parallel_size", 1)
    if batches.gpus % engine:
        message = f"a vLLM engine of {engine} GPUs does not divide {batches.gpus} GPUs"
        field = f"{_ROLLOUT}.tensor_model_parallel_size"
        yield Problem(field, message, f"a divisor of {batches.gpus}")
    if batches.gpus % sequence_parallel(config):
        message = f"{sequence_parallel(config)} does not divide {batches.gpus} GPUs"
        field = f"{_ACTOR}.ulysses_sequence_parallel_size"
        yield Problem(field, message, f"a divisor of {batches.gpus}")
    if batches.sampled % batches.gpus and not is_dynamic(config):
        n = rollout.n
        message = f"{batches.sampled} trajectories ({n} a question) over {batches.gpus} GPUs"
        multiple = batches.gpus // math.gcd(batches.gpus, n)
        yield Problem("data.train_batch_size", message, f"a multiple of {multiple}")


def _check_mini_batches(config: DictConfig, batches: Batches) -> Findings:
    sections = [_ACTOR, "critic"] if needs_critic(config) else [_ACTOR]
    for section in sections:
        field = f"{section}.ppo_mini_batch_size"
        mini, n = select(config, field), config.actor_rollout_ref.rollout.n
        if mini > config.data.train_batch_size:
            message = f"{mini} is more than data.train_batch_size={config.data.train_batch_size}"
            yield Problem(field, message, f"at most {config.data.train_batch_size}")
        if mini * n % batches.replicas:
            message = f"{mini * n} trajectories ({n} a question) over {batches.replicas} GPUs"
            multiple = batches.replicas // math.gcd(batches.replicas, n)
            yield Problem(field, message, f"a multiple of {multiple}")


def _check_micro_batches(config: DictConfig, batches: Batches) -> Findings:
    parts = {
        f"{_ACTOR}.ppo_micro_batch_size": batches.mini // batches.replicas,
        f"{_ROLLOUT}.log_prob_micro_batch_size": batches.trajectories // batches.replicas,
    }
    if needs_reference(config):
        field = "actor_rollout_ref.ref.log_prob_micro_batch_size"
        parts[field] = batches.trajectories // batches.replicas
    for field, per_gpu in parts.items():
        if select(config, field) is not None:
            yield Problem(field, "is deprecated in verl", f"set {field}_per_gpu alone")
            continue
        yield from _check_micro(config, field, per_gpu)


def _check_micro(config: DictConfig, field: str, per_gpu: int) -> Findings:
    micro = select(config, f"{field}_per_gpu")
    if not isinstance(micro, int) or micro < 1 or per_gpu % micro:
        message = f"{micro} does not divide the {per_gpu} trajectories of a GPU"
        yield Problem(f"{field}_per_gpu", message, f"a divisor of {per_gpu}")


def _check_token_limits(config: DictConfig) -> Findings:
    if not select(config, f"{_ROLLOUT}.log_prob_use_dynamic_bsz", default=False):
        field = f"{_ROLLOUT}.log_prob_use_dynamic_bsz"
        yield Problem(field, f"must be as {_ACTOR}.use_dynamic_bsz", "true")
    fields = [f"{_ACTOR}.ppo_max_token_len_per_gpu", f"{_ROLLOUT}.log_prob_max_token_len_per_gpu"]
    if needs_reference(config):
        fields.append("actor_rollout_ref.ref.log_prob_max_token_len_per_gpu")
    for field in fields:
        yield from _check_token_limit(config, field, select(config, field, 0))


def _check_critic(config: DictConfig, batches: Batches) -> Findings:
    if not critic_is_dynamic(config):
        mini = config.critic.ppo_mini_batch_size * config.actor_rollout_ref.rollout.n
        parts = {"micro_batch_size": mini, "infer_micro_batch_size": batches.trajectories}
        for name, trajectories in parts.items():
            yield from _check_micro(config, f"critic.fsdp.{name}", trajectories // batches.replicas)
        return
    field, tokens = "critic.ppo_infer_max_token_len_per_gpu", critic_tokens(config)
    yield from _check_token_limit(config, field, tokens)
    text = f"the critic's micro-batches hold up to {tokens:,} tokens: verl 0.9.1 heeds this alone"
    yield Note(field, text)


def _check_token_limit(config: DictConfig, field: str, tokens: int) -> Findings:
    longest = math.ceil(longest_trajectory(config) / sequence_parallel(config))
    if tokens < longest:
        message = f"{tokens} tokens do not hold one whole trajectory"
        yield Problem(field, message, f"at least {longest}")
