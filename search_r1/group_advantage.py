"""A group of equal rewards teaches nothing: what verl's GRPO makes of rounding is set to zero.

verl 0.9.1 divides by the group's deviation plus 1e-6 (trainer/ppo/core_algos.py, line 324). The
mean of equal rewards is off by a rounding error where they are no sums of powers of two, and so is
their deviation: eight rewards of 0.2 had an advantage of -0.015 each. Exact match is not concerned,
every reward with other weights is.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

import torch

Estimator = Callable[..., tuple[torch.Tensor, torch.Tensor]]

EQUAL_WITHIN: Final = 1e-6
"""Rewards that differ by no more are equal: a sum of weights in another order may differ so."""


def without_rounding(estimator: Estimator) -> Estimator:
    """`estimator`, a group baseline of verl's, with no advantage in groups of equal rewards."""

    @functools.wraps(estimator)
    def estimate(
        token_level_rewards: torch.Tensor,
        response_mask: torch.Tensor,
        index: Sequence[Any],
        **settings: Any,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Advantages and returns, (B, T); `index` holds the group of each of B rows."""
        advantages, returns = estimator(
            token_level_rewards=token_level_rewards,
            response_mask=response_mask,
            index=index,
            **settings,
        )
        differs = ~equal_groups(token_level_rewards.sum(dim=-1), index).unsqueeze(-1)
        return advantages * differs, returns * differs

    return estimate


def equal_groups(rewards: torch.Tensor, index: Sequence[Any]) -> torch.Tensor:
    """Whether each row's group has several rewards, all equal.

    Args:
        rewards: (B,).
        index: The group of each row.

    Returns:
        (B,) booleans. A group of one is not equal: without a baseline its reward is its advantage.
    """
    groups: dict[Any, list[int]] = {}
    for row, group in enumerate(index):
        groups.setdefault(group, []).append(row)
    equal = torch.zeros(len(rewards), dtype=torch.bool, device=rewards.device)
    for rows in groups.values():
        mine = rewards[rows]
        equal[rows] = len(rows) > 1 and bool(mine.max() - mine.min() <= EQUAL_WITHIN)
    return equal
