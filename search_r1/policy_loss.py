"""Policy losses of our own, in verl's registry by importing this module.

`search_r1.agent_loop` imports it, so that every process that has our agent loop has them, whatever
else ``external_lib`` lists.
"""

from typing import Any

from torch import Tensor
from verl.trainer.ppo.core_algos import (
    agg_loss,
    compute_policy_loss_vanilla,
    register_policy_loss,
)

from search_r1.stability.likelihood import LIKELIHOOD_PRESERVING, likelihood_fall


@register_policy_loss(LIKELIHOOD_PRESERVING)  # type: ignore[untyped-decorator]
def likelihood_preserving_loss(
    old_log_prob: Tensor,
    log_prob: Tensor,
    advantages: Tensor,
    response_mask: Tensor,
    loss_agg_mode: str = "token-mean",
    config: Any = None,
    rollout_is_weights: Tensor | None = None,
) -> tuple[Tensor, dict[str, Any]]:
    """The clipped loss plus ``policy_loss.ppo_kl_coef`` times the mean `likelihood_fall`.

    Args:
        old_log_prob: When the batch was sampled, (B, T).
        log_prob: Now, with gradient, (B, T).
        advantages: (B, T).
        response_mask: 1 for sampled tokens, (B, T).
        loss_agg_mode: How verl averages tokens; the term is averaged likewise.
        config: verl's ActorConfig.
        rollout_is_weights: Of rollout correction, (B, T); the term needs none.

    Returns:
        The loss, a scalar, and verl's metrics with ``actor/likelihood_fall`` in nats a token.
    """
    loss, metrics = compute_policy_loss_vanilla(
        old_log_prob, log_prob, advantages, response_mask, loss_agg_mode, config, rollout_is_weights
    )
    fall = likelihood_fall(old_log_prob, log_prob, advantages, response_mask)
    term = agg_loss(
        loss_mat=fall,
        loss_mask=response_mask,
        loss_agg_mode=loss_agg_mode,
        **config.global_batch_info,
    )
    shown = (fall.detach().sum() / response_mask.sum().clamp(min=1)).item()
    loss = loss + config.policy_loss.ppo_kl_coef * term
    return loss, metrics | {"actor/likelihood_fall": shown}
