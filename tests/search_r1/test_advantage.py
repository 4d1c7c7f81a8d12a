"""verl's own PPO advantage on a trajectory whose budget ended right behind an observation."""

import pytest

from search_r1.trajectory import Trajectory

pytestmark = pytest.mark.slow


def advantages(trajectory: Trajectory) -> list[float]:
    """Of one row next to a row without reward, scored as verl does: on the last response token."""
    import torch
    from verl.trainer.ppo.core_algos import compute_gae_advantage_return

    mask = torch.tensor([trajectory.response_mask] * 2, dtype=torch.float32)
    rewards = torch.zeros_like(mask)
    rewards[0, -1] = 1.0
    found, _ = compute_gae_advantage_return(rewards, torch.zeros_like(mask), mask, 1.0, 1.0)
    return [float(value) for value in found[0]]


def test_an_observation_at_the_end_would_cost_the_reward_and_is_dropped() -> None:
    trajectory = Trajectory([1])
    trajectory.append_sampled([2, 3], [-0.5, -0.5])
    trajectory.append_inserted([4])
    trajectory.append_sampled([5, 6], [-0.5, -0.5])
    trajectory.append_inserted([7, 8])
    assert all(value <= 0 for value in advantages(trajectory))
    trajectory.drop_trailing_inserted()
    assert all(value > 0 for value in advantages(trajectory)[:2])
    assert all(value > 0 for value in advantages(trajectory)[3:])
