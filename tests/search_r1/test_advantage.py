"""verl's own advantages on what the rollout masks, and of a group of one."""

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


@pytest.mark.parametrize("masked", [True, False])
def test_the_advantage_reaches_an_observation_only_without_its_mask(masked: bool) -> None:
    trajectory = Trajectory([1])
    trajectory.append_sampled([2], [-0.5])
    trajectory.append_inserted([3, 4], masked=masked)
    trajectory.append_sampled([5], [-0.5])
    sampled, *observed, last = grpo_advantages([trajectory.response_mask] * 2, [1.0, 0.0], "aa")[0]
    # The group's scores 1 and 0 have mean 1/2 and standard deviation sqrt(1/2).
    assert sampled == last == pytest.approx(0.5**0.5, abs=1e-4)
    assert observed == [0.0 if masked else sampled] * 2


def test_a_group_of_one_is_reinforce_without_a_baseline() -> None:
    found = grpo_advantages([[1, 1]] * 3, [1.0, 0.0, 0.25], "abc")
    assert found == [pytest.approx([score] * 2, abs=1e-4) for score in (1.0, 0.0, 0.25)]


def grpo_advantages(masks: list[list[int]], scores: list[float], groups: str) -> list[list[float]]:
    """Of rows with these scores, written as verl does: on the last response token."""
    import numpy as np
    import torch
    from verl.trainer.ppo.core_algos import compute_grpo_outcome_advantage

    mask = torch.tensor(masks, dtype=torch.float32)
    rewards = torch.zeros_like(mask)
    rewards[:, -1] = torch.tensor(scores)
    found, _ = compute_grpo_outcome_advantage(rewards, mask, np.array(list(groups)))
    rows: list[list[float]] = found.tolist()
    return rows
