"""Advantages as verl's own trainer computes them, against the same without inserted tokens."""

import math
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from search_r1.checks.algorithm import UNFED_ESTIMATORS

pytestmark = pytest.mark.slow

FEW = settings(max_examples=20, suppress_health_check=list(HealthCheck))
SEEDS = st.integers(0, 2**16)
GROUPED = ("grpo", "grpo_vectorized", "rloo", "rloo_vectorized", "opo", "gpg")
TAKEN = (*GROUPED, "gae", "reinforce_plus_plus", "reinforce_plus_plus_baseline", "grpo_passk")


def two_groups(count: int) -> list[str]:
    return ["a" if row < count // 2 else "b" for row in range(count)]


def batch(verl: Any, shapes: Any, noise: Any, seed: int, fill: float | None) -> Any:
    """A batch whose rewards are 0, 0.5, 1, 0.5, ..., with values and log-probabilities."""
    rewards = [(0.0, 0.5, 1.0, 0.5)[row % 4] for row in range(len(shapes))]
    data = verl.batch(shapes, rewards, two_groups(len(shapes)))
    for number, name in enumerate(("values", "old_log_probs", "ref_log_prob")):
        data[name] = verl.nested(noise(shapes, seed + number, fill))
    return data


@pytest.mark.parametrize("estimator", TAKEN)
@pytest.mark.parametrize("with_kl", [False, True])
def test_masked_positions_change_no_advantage(
    verl: Any, shape_lists: Any, noise: Any, estimator: str, with_kl: bool
) -> None:
    @FEW
    @given(shape_lists, SEEDS, st.sampled_from([100.0, -100.0]))
    def holds(shapes: Any, seed: int, fill: float) -> None:
        shapes = [*shapes, *shapes]  # so that every group has two
        found = []
        for content in (None, fill):
            data = batch(verl, shapes, noise, seed, content)
            mask = verl.mask(data)
            advantages, returns = verl.advantages(
                data, adv_estimator=estimator, use_kl_in_reward=with_kl, gamma=0.9, lam=0.8
            )
            assert verl.torch.isfinite(advantages).all()
            if estimator != "gae":
                assert (advantages[~mask] == 0).all()
            found.append((advantages[mask], returns[mask]))
        for one, other in zip(*found, strict=True):
            assert verl.torch.equal(one, other)

    holds()


def gae_of_trained_tokens(
    rewards: list[float], values: list[float], gamma: float, lam: float
) -> list[float]:
    """Generalised advantages of a sequence that holds trained tokens alone (arXiv 1506.02438)."""
    advantages, later, value = [], 0.0, 0.0
    for reward, now in zip(reversed(rewards), reversed(values), strict=True):
        later = reward + gamma * value - now + gamma * lam * later
        advantages.append(later)
        value = now
    return advantages[::-1]


@pytest.mark.parametrize(("gamma", "lam"), [(1.0, 1.0), (0.9, 0.95), (1.0, 0.5), (0.5, 0.0)])
def test_gae_passes_over_observations_as_if_they_were_not_there(
    verl: Any, shape_lists: Any, noise: Any, gamma: float, lam: float
) -> None:
    @FEW
    @given(shape_lists, SEEDS)
    def holds(shapes: Any, seed: int) -> None:
        data = batch(verl, shapes, noise, seed, None)
        values, rewards = verl.padded(data["values"]), verl.padded(data["rm_scores"])
        mask = verl.mask(data)
        advantages, returns = verl.advantages(data, adv_estimator="gae", gamma=gamma, lam=lam)
        wanted = [
            gae_of_trained_tokens(
                rewards[row][mask[row]].tolist(), v[mask[row]].tolist(), gamma, lam
            )
            for row, v in enumerate(values)
        ]
        flat = verl.torch.tensor([number for row in wanted for number in row])
        # Returns are before whitening; advantages are after it, over the trained tokens alone.
        assert verl.torch.allclose(returns[mask], flat + values[mask], atol=1e-5)
        whitened = (flat - flat.mean()) * (flat.var() + 1e-8).rsqrt()
        assert verl.torch.allclose(advantages[mask], whitened, atol=1e-3)
        assert abs(float(advantages[mask].mean())) < 1e-3

    holds()


@pytest.mark.parametrize("gamma", [1.0, 0.5])
def test_reinforce_plus_plus_discounts_by_trained_tokens_alone(
    verl: Any, shape: Any, gamma: float
) -> None:
    data = verl.batch([shape, shape], [1.0, 0.0], ["a", "b"])
    _, returns = verl.advantages(data, adv_estimator="reinforce_plus_plus", gamma=gamma)
    assert returns.tolist() == [[gamma**2, gamma, 0, 0, 0, 1.0], [0.0] * 6]


def test_the_reward_lands_on_the_last_trained_token(verl: Any, shape_lists: Any) -> None:
    @FEW
    @given(shape_lists)
    def holds(shapes: Any) -> None:
        data = verl.batch(shapes, [0.25] * len(shapes), ["a"] * len(shapes))
        rewards, mask = verl.padded(data["rm_scores"]), verl.mask(data)
        assert (rewards[mask].sum() == 0.25 * len(shapes)).item()
        assert (rewards[~mask] == 0).all()
        lengths = [sum(shape.spans) for shape in shapes]
        assert [row.nonzero().flatten().tolist() for row in rewards] == [[n - 1] for n in lengths]

    holds()


def test_a_kl_in_the_reward_is_of_trained_tokens_alone(verl: Any, short: Any) -> None:
    data = verl.batch([short, short], [1.0, 0.0], ["a", "b"])
    data["old_log_probs"] = verl.nested([[-1.0, -1.0, -1.0]] * 2)
    data["ref_log_prob"] = verl.nested([[-3.0, -9.0, -2.0]] * 2)
    _, returns = verl.advantages(data, adv_estimator="reinforce_plus_plus", use_kl_in_reward=True)
    # The controller's coefficient is 0.1: 0.2 off the first token, 0.1 off the last.
    assert returns[0].tolist() == pytest.approx([0.7, 0.0, 0.9])


def test_every_estimator_of_verl_is_taken_or_refused(verl: Any) -> None:
    assert {*TAKEN, *UNFED_ESTIMATORS} == {str(name) for name in verl.core.ADV_ESTIMATOR_REGISTRY}


@pytest.mark.parametrize(
    ("estimator", "reason"),
    [
        ("remax", "reward_baselines"),
        ("optimal_token_baseline", "sum_pi_squared"),
        ("tir_optimal_token_baseline", "sum_pi_squared"),
        ("gdpo", "gdpo_reward_keys|prompts|format"),
    ],
)
def test_why_an_estimator_is_refused(verl: Any, short: Any, estimator: str, reason: str) -> None:
    data = verl.batch([short] * 2, [1.0, 0.0], ["a", "a"])
    settings = {"gdpo_reward_keys": ["format"]}
    with pytest.raises((TypeError, AssertionError, KeyError), match=reason):
        verl.advantages(data, adv_estimator=estimator, **settings)


def test_why_pf_ppo_is_refused(verl: Any, short: Any) -> None:
    """It draws rows anew by their rewards, and the trainer writes them to the old rows' keys."""
    shapes = [short] * 8
    verl.torch.manual_seed(0)
    data = verl.batch(shapes, [1.0] + [0.0] * 7, ["a"] * 8)
    data["values"] = verl.nested([[0.0] * 3] * 8)
    _, returns = verl.advantages(
        data,
        adv_estimator="gae",
        use_pf_ppo=True,
        pf_ppo={"reweight_method": "pow", "weight_pow": 2},
    )
    # Only the first trajectory was right, and all of them get its return.
    assert (returns[:, -1] == 1.0).all()


def test_a_nan_in_a_value_would_reach_gae(verl: Any, short: Any) -> None:
    """A finding about verl; the critic's one forward pass makes no such value."""
    data = verl.batch([short] * 2, [1.0, 0.0], ["a", "b"])
    data["values"] = verl.nested([[0.0, math.nan, 0.0], [0.0] * 3])
    advantages, _ = verl.advantages(data, adv_estimator="gae")
    assert advantages.isnan().any()
