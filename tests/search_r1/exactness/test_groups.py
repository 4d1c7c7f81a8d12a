"""Groups of trajectories of one question: their baselines, and what equal rewards teach."""

import asyncio
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.slow

FEW = settings(max_examples=20, suppress_health_check=list(HealthCheck))
GROUPED = ("grpo", "grpo_vectorized", "rloo", "rloo_vectorized", "opo", "gpg")


def first_token(verl: Any, shape: Any, rewards: list[float], groups: list[str], **how: Any) -> Any:
    """The advantage of each trajectory, which all of its trained tokens share."""
    data = verl.batch([shape] * len(rewards), rewards, groups)
    mask = verl.mask(data)
    advantages, _ = verl.advantages(data, **how)
    rows = [advantages[row][mask[row]] for row in range(len(rewards))]
    assert all((row == row[0]).all() for row in rows)
    return [float(row[0]) for row in rows]


def test_verl_alone_gives_equal_rewards_an_advantage(verl: Any) -> None:
    """The upstream fault that `search_r1.group_advantage` answers; when it goes, so may we."""
    grpo = verl.core.compute_grpo_outcome_advantage
    rewards, mask = verl.torch.full((8, 1), 0.2), verl.torch.ones(8, 1)
    assert grpo.__wrapped__(rewards, mask, ["a"] * 8)[0].abs().max() > 0.01
    assert (grpo(token_level_rewards=rewards, response_mask=mask, index=["a"] * 8)[0] == 0).all()


@pytest.mark.parametrize("with_std", [True, False])
def test_equal_rewards_have_no_advantage_in_grpo(verl: Any, shape: Any, with_std: bool) -> None:
    @FEW
    @given(st.floats(-2, 2, width=32), st.integers(2, 9))
    def holds(reward: float, size: int) -> None:
        rewards = [*[reward] * size, 0.0, 1.0]
        groups = [*["a"] * size, "b", "b"]
        how = {"adv_estimator": "grpo", "norm_adv_by_std_in_grpo": with_std}
        found = first_token(verl, shape, rewards, groups, **how)
        assert found[:size] == [0.0] * size
        assert found[-2] == -found[-1] < 0

    holds()


@pytest.mark.parametrize("estimator", GROUPED)
def test_equal_rewards_teach_nothing_whatever_the_group_baseline(
    verl: Any, shape: Any, estimator: str
) -> None:
    for reward in (0.0, 1.0, 0.5):
        found = first_token(verl, shape, [reward] * 5, ["a"] * 5, adv_estimator=estimator)
        assert found == [0.0] * 5
    # Rounding without a division by a deviation is as small as it should be.
    found = first_token(verl, shape, [0.2] * 8, ["a"] * 8, adv_estimator=estimator)
    if estimator != "grpo_vectorized":
        assert max(map(abs, found)) < 1e-6


def test_rewards_that_differ_by_rounding_are_equal(verl: Any, shape: Any) -> None:
    rewards = [0.1 + 0.2, 0.3, 0.3 + 1e-7, 0.3]
    assert first_token(verl, shape, rewards, ["a"] * 4, adv_estimator="grpo") == [0.0] * 4


def test_grpo_by_hand(verl: Any, shape: Any) -> None:
    # Mean 0.4, sample deviation sqrt(1.2 / 4).
    rewards = [1.0, 0.0, 0.0, 1.0, 0.0]
    wanted = [(reward - 0.4) / (1.2 / 4) ** 0.5 for reward in rewards]
    found = first_token(verl, shape, rewards, ["a"] * 5, adv_estimator="grpo")
    assert found == pytest.approx(wanted, abs=1e-5)
    how = {"adv_estimator": "grpo", "norm_adv_by_std_in_grpo": False}
    found = first_token(verl, shape, rewards, ["a"] * 5, **how)
    assert found == pytest.approx([0.6, -0.4, -0.4, 0.6, -0.4])


def test_rloo_by_hand(verl: Any, shape: Any) -> None:
    # Each against the mean of the others.
    found = first_token(verl, shape, [1.0, 0.0, 0.5], ["a"] * 3, adv_estimator="rloo")
    assert found == pytest.approx([0.75, -0.75, 0.0])


def test_a_group_of_one_is_reinforce(verl: Any, shape: Any) -> None:
    rewards = [1.0, 0.2, 0.0]
    for estimator in ("grpo", "rloo"):
        found = first_token(verl, shape, rewards, ["a", "b", "c"], adv_estimator=estimator)
        assert found == pytest.approx(rewards, abs=2e-6)


def test_groups_do_not_touch(verl: Any, shape: Any) -> None:
    """The same group gives the same advantages, whoever is beside it and in what order."""
    alone = first_token(verl, shape, [1.0, 0.0], ["a", "a"], adv_estimator="grpo")
    rewards, groups = [0.3, 1.0, 0.7, 0.0], ["b", "a", "b", "a"]
    beside = first_token(verl, shape, rewards, groups, adv_estimator="grpo")
    assert [beside[1], beside[3]] == alone


def test_trajectories_of_a_question_share_an_id(verl: Any) -> None:
    """verl's worker starts all of a group with the id of their question."""
    from verl.trainer.ppo.v1 import agent_loop_tq

    started: list[tuple[str, int]] = []

    class Worker(agent_loop_tq.AgentLoopWorkerTQ.__ray_metadata__.modified_class):
        def __init__(self) -> None:
            rollout = SimpleNamespace(n=3)
            self.config = SimpleNamespace(actor_rollout_ref=SimpleNamespace(rollout=rollout))

        async def _run_agent_loop(self, *_: Any, session_id: int, uid: str, **__: Any) -> None:
            started.append((uid, session_id))

    async def put(**_: Any) -> None: ...

    with patch.object(agent_loop_tq.tq, "async_kv_put", put):
        for uid in ("q", "r"):
            asyncio.run(Worker()._run_prompt({"uid": uid}, {}, {"validate": False}))
    assert started == [(uid, session) for uid in ("q", "r") for session in range(3)]


def test_two_questions_never_share_an_id(verl: Any) -> None:
    """verl's trainer gives each row of a fetch an id, even when an epoch brings it again."""
    rows = {"raw_prompt": [[{"role": "user", "content": "who?"}]] * 3}
    trainer = SimpleNamespace(train_dataloader_it=iter([dict(rows), dict(rows)]))
    fetch = verl.trainer.PPOTrainer._fetch_one_gen_batch
    ids = [uid for _ in range(2) for uid in fetch(trainer)["uid"]]
    assert len(set(ids)) == 6


def test_whitened_baselines_stay_finite_on_equal_rewards(verl: Any, shape: Any) -> None:
    for estimator in ("reinforce_plus_plus", "reinforce_plus_plus_baseline"):
        found = first_token(verl, shape, [0.2] * 4, ["a"] * 4, adv_estimator=estimator)
        assert max(map(abs, found)) < 1e-3
