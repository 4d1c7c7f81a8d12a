"""Remedies (configs/remedies) that would do nothing in the config that they are added to."""

from omegaconf import DictConfig

from search_r1.checks.findings import Findings, Note, select
from search_r1.stability.likelihood import LIKELIHOOD_PRESERVING

_ACTOR = "actor_rollout_ref.actor"


def check_remedies(config: DictConfig) -> Findings:
    """Each remedy finds what it needs."""
    actor = config.actor_rollout_ref.actor
    is_one_update = (
        actor.ppo_mini_batch_size >= config.data.train_batch_size
        and select(config, f"{_ACTOR}.ppo_epochs", 1) == 1
    )
    loss = select(config, f"{_ACTOR}.policy_loss.loss_mode")
    is_bypassing = select(config, "algorithm.rollout_correction.bypass_mode")
    if loss == LIKELIHOOD_PRESERVING and is_one_update and not is_bypassing:
        text = "with one update a batch no likelihood falls within it: the term is 0"
        yield Note(f"{_ACTOR}.ppo_mini_batch_size", text, warning=True)
    if select(config, "algorithm.filter_groups.enable") and config.actor_rollout_ref.rollout.n == 1:
        text = "groups of one are never all alike: nothing is filtered"
        yield Note("algorithm.filter_groups.enable", text, warning=True)
    is_adaptive = select(config, "algorithm.kl_ctrl.type") == "adaptive"
    if is_adaptive and not config.algorithm.use_kl_in_reward:
        text = "an adaptive KL acts on algorithm.use_kl_in_reward, which is off"
        yield Note("algorithm.kl_ctrl.type", text, warning=True)
