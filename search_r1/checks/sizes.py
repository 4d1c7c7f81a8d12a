"""The sizes of a step that follow from a config: GPUs, trajectories, mini-batches.

Sources in verl 0.9.1: ``trainer/ppo/utils.py`` (need_critic, need_reference_policy) and
``trainer/ppo/v1/trainer_base.py`` (_balance_batch, which fills a batch up to whole mini-batches).
"""

import math
from dataclasses import dataclass

from omegaconf import DictConfig

from search_r1.checks.findings import select

CRITIC_MAX_TOKENS = 32768
"""verl's default of ``critic.ppo_infer_max_token_len_per_gpu``."""


@dataclass(frozen=True, slots=True)
class Batches:
    """The sizes of a step, in trajectories."""

    gpus: int
    replicas: int
    """Data-parallel ranks: the GPUs over the sequence-parallel size."""
    trajectories: int
    """Sampled in a step, filled up to whole mini-batches."""
    sampled: int
    mini: int
    """Trajectories in the actor's mini-batch, over all GPUs."""
    smallest_mini: int
    """Trajectories in the smaller of the actor's and the critic's mini-batches."""

    @classmethod
    def of(cls, config: DictConfig) -> "Batches":
        """The sizes that follow from `config`."""
        n, gpus = config.actor_rollout_ref.rollout.n, total_gpus(config)
        replicas = max(gpus // sequence_parallel(config), 1)
        mini = config.actor_rollout_ref.actor.ppo_mini_batch_size * n
        sampled = config.data.train_batch_size * n
        minis = [mini]
        if needs_critic(config):
            minis.append(config.critic.ppo_mini_batch_size * n)
        whole = math.lcm(replicas, *minis)
        trajectories = math.ceil(sampled / whole) * whole
        return cls(gpus, replicas, trajectories, sampled, mini, min(minis))


def total_gpus(config: DictConfig) -> int:
    """GPUs of the run; a CPU counts as one."""
    return int(config.trainer.nnodes * config.trainer.n_gpus_per_node)


def sequence_parallel(config: DictConfig) -> int:
    """GPUs that share one sequence in the actor."""
    actor = config.actor_rollout_ref.actor
    sizes = (
        select(actor, "ulysses_sequence_parallel_size", 1),
        select(actor, "fsdp_config.ulysses_sequence_parallel_size", 1),
    )
    return int(max(sizes))


def needs_critic(config: DictConfig) -> bool:
    """Whether verl trains a critic: when asked to, else for GAE."""
    enabled = select(config, "critic.enable")
    return bool(enabled) if enabled is not None else config.algorithm.adv_estimator == "gae"


def needs_reference(config: DictConfig) -> bool:
    """Whether verl loads a reference model: for a KL in the reward or in the loss."""
    return bool(config.algorithm.use_kl_in_reward or config.actor_rollout_ref.actor.use_kl_loss)


def longest_trajectory(config: DictConfig) -> int:
    """The most tokens that a prompt and its response can have."""
    return int(config.data.max_prompt_length + config.data.max_response_length)


def is_dynamic(config: DictConfig) -> bool:
    """Whether the actor's micro-batches are filled by tokens rather than by trajectories."""
    return bool(select(config, "actor_rollout_ref.actor.use_dynamic_bsz", default=False))


def critic_is_dynamic(config: DictConfig) -> bool:
    """Whether the critic's micro-batches are filled by tokens.

    verl 0.9.1 asks the critic's engine alone, whose default is yes; ``critic.use_dynamic_bsz`` and
    ``critic.ppo_micro_batch_size_per_gpu`` have no effect.
    """
    return bool(select(config, "critic.fsdp.use_dynamic_bsz", default=True))


def critic_tokens(config: DictConfig) -> int:
    """The most tokens of a micro-batch of the critic on one GPU."""
    if critic_is_dynamic(config):
        field = "critic.ppo_infer_max_token_len_per_gpu"
        return int(select(config, field, CRITIC_MAX_TOKENS))
    return int(select(config, "critic.fsdp.micro_batch_size_per_gpu") * longest_trajectory(config))
