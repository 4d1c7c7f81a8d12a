"""A term that keeps good trajectories as likely as they were when they were sampled.

After Deng et al. 2025 (arXiv 2512.04220): in search RL the updates of a batch lower the likelihood
of right trajectories too, and a policy that trusts its own words less collapses. Only methods of
tensors are used, so that importing this module imports no torch.
"""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from torch import Tensor

LIKELIHOOD_PRESERVING: Final = "likelihood_preserving"
"""The name of the policy loss with this term, registered with verl by `search_r1.policy_loss`."""


def likelihood_fall(
    old_log_prob: "Tensor", log_prob: "Tensor", advantages: "Tensor", mask: "Tensor"
) -> "Tensor":
    """How far each token's log-probability has fallen, where that is to be undone; else 0.

    A token counts if it was sampled, its advantage is not negative, its own log-probability has
    fallen, and so has the sum over those tokens of its trajectory.

    Args:
        old_log_prob: When the batch was sampled, (B, T).
        log_prob: Now, with gradient, (B, T).
        advantages: (B, T).
        mask: 1 for sampled tokens, (B, T), of any dtype.

    Returns:
        (B, T), at least 0, in nats; its gradient raises the log-probability of what has fallen.
    """
    kept = (mask.bool() & (advantages >= 0)).to(log_prob.dtype)
    change = (log_prob - old_log_prob) * kept
    has_fallen = change.detach().sum(dim=-1, keepdim=True) < 0
    # Unlike clamp, whose gradient at 0 is 1: what has not moved is left alone.
    return (-change).relu() * has_fallen
