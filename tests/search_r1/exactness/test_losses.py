"""Losses of verl's workers: what stands on a masked position changes not one bit of them."""

import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from search_r1.checks.algorithm import BROKEN_LOSSES
from search_r1.stability.likelihood import LIKELIHOOD_PRESERVING

pytestmark = pytest.mark.slow

FEW = settings(max_examples=20, suppress_health_check=list(HealthCheck))
TAKEN = (
    *("vanilla", "gspo", "clip_cov", "kl_cov", "cispo", "sapo", "gpg", "dro", "dppo_tv", "dppo_kl"),
    *("bypass_mode", LIKELIHOOD_PRESERVING),
)
SEEDS = st.integers(0, 2**16)


def said(verl: Any, rows: list[list[float]]) -> Any:
    """A model's output over a whole batch without padding, as a leaf of the graph."""
    return verl.nested(rows).values().clone().requires_grad_()


def gradients(verl: Any, shapes: Any, noise: Any, seed: int, mode: str, fill: float | None) -> Any:
    """The actor's loss with entropy and KL, its gradient, and the places that are trained."""
    data = verl.batch(shapes, [1.0] * len(shapes), ["a"] * len(shapes))
    for number, name in enumerate(("old_log_probs", "ref_log_prob", "advantages")):
        data[name] = verl.nested(noise(shapes, seed + number, fill))
    log_probs, entropy = (said(verl, noise(shapes, seed + n, fill, whole=True)) for n in (3, 4))
    config = verl.actor(mode, use_kl_loss=True, kl_loss_coef=0.1, entropy_coeff=0.01)
    loss = verl.actor_loss(config, {"log_probs": log_probs, "entropy": entropy}, data)
    loss.backward()
    trained = [t for s in shapes for t in [0] * (s.prompt - 1) + s.mask + [0]]
    return loss.detach(), (log_probs.grad, entropy.grad), verl.torch.tensor(trained).bool()


@pytest.mark.parametrize("mode", TAKEN)
@pytest.mark.parametrize("fill", [80.0, -80.0, 0.0])
def test_the_actors_loss_and_gradient_do_not_know_masked_positions(
    verl: Any, shape_lists: Any, noise: Any, mode: str, fill: float
) -> None:
    @FEW
    @given(shape_lists, SEEDS)
    def holds(shapes: Any, seed: int) -> None:
        loss, grads, trained = gradients(verl, shapes, noise, seed, mode, None)
        filled, grads_of_filled, _ = gradients(verl, shapes, noise, seed, mode, fill)
        assert math.isfinite(loss)
        assert verl.torch.equal(loss, filled)
        for one, other in zip(grads, grads_of_filled, strict=True):
            assert verl.torch.isfinite(one).all()
            assert verl.torch.equal(one, other)
            assert (one[~trained] == 0).all()

    holds()


def one_row_loss(
    verl: Any, mode: str, ratios: list[float], advantages: list[float], mask: list[int]
) -> float:
    """The mean loss of one trajectory with these ratios of new to old probabilities."""
    ratio, advantage = verl.torch.tensor([ratios]), verl.torch.tensor([advantages])
    loss, _ = verl.core.get_policy_loss_fn(mode)(
        log_prob=ratio.log(),
        old_log_prob=verl.torch.zeros_like(ratio),
        advantages=advantage,
        response_mask=verl.torch.tensor([mask]).bool(),
        config=verl.actor(mode, clip_ratio_low=0.2, clip_ratio_high=0.2, clip_ratio_c=3.0),
        loss_agg_mode="token-mean",
    )
    return float(loss)


def test_ppo_clips_and_clips_twice_by_hand(verl: Any) -> None:
    # Good tokens earn at most 1.2 of their advantage; the masked one counts for nothing.
    assert one_row_loss(verl, "vanilla", [1.1, 9.0, 2.0], [1.0] * 3, [1, 0, 1]) == pytest.approx(
        -(1.1 + 1.2) / 2
    )
    # Bad tokens cost at least 0.8 of it and, by the dual clip, at most 3 times it.
    assert one_row_loss(verl, "vanilla", [0.1, 2.0, 8.0], [-1.0] * 3, [1, 1, 1]) == pytest.approx(
        (0.8 + 2.0 + 3.0) / 3
    )


def test_gspo_takes_the_geometric_mean_of_trained_tokens_by_hand(verl: Any) -> None:
    found = one_row_loss(verl, "gspo", [1.1, 50.0, 1.0], [1.0] * 3, [1, 0, 1])
    assert found == pytest.approx(-((1.1 * 1.0) ** 0.5), rel=1e-5)
    # Both tokens are clipped together: the mean of 1.44 and 1 is 1.2, of 4 and 1 more than that.
    assert one_row_loss(verl, "gspo", [4.0, 1.0], [1.0] * 2, [1, 1]) == pytest.approx(-1.2)


@pytest.mark.parametrize("kind", ["kl", "abs", "mse", "low_var_kl", "k3+"])
def test_every_kl_of_the_loss_is_masked(verl: Any, shape_lists: Any, noise: Any, kind: str) -> None:
    @FEW
    @given(shape_lists, SEEDS, st.sampled_from([100.0, -100.0]))
    def holds(shapes: Any, seed: int, fill: float) -> None:
        losses = []
        for content in (None, fill):
            log_probs, reference = (
                verl.padded(verl.nested(noise(shapes, seed + n, content))) for n in (0, 1)
            )
            data = verl.batch(shapes, [0.0] * len(shapes), ["a"] * len(shapes))
            kl = verl.core.kl_penalty(log_probs, reference, kind)
            losses.append(verl.core.agg_loss(kl, verl.mask(data), "token-mean"))
        assert verl.torch.isfinite(losses[0])
        assert verl.torch.equal(*losses)

    holds()


def test_the_critics_loss_and_gradient_do_not_know_masked_positions(
    verl: Any, shape_lists: Any, noise: Any
) -> None:
    @FEW
    @given(shape_lists, SEEDS, st.sampled_from([100.0, math.nan]))
    def holds(shapes: Any, seed: int, fill: float) -> None:
        found = []
        for content in (None, fill):
            data = verl.batch(shapes, [1.0] * len(shapes), ["a"] * len(shapes))
            data["values"] = verl.nested(noise(shapes, seed, content))
            data["returns"] = verl.nested(noise(shapes, seed + 1, content))
            # What the critic says now is no NaN: one forward pass makes it of finite weights.
            now = None if content is None else 100.0
            values = said(verl, noise(shapes, seed + 2, now, whole=True))
            loss = verl.critic_loss(values, data)
            loss.backward()
            found.append((loss.detach(), values.grad))
        (loss, grad), (filled, grad_of_filled) = found
        assert verl.torch.equal(loss, filled)
        trained = verl.torch.tensor(
            [t for s in shapes for t in [0] * (s.prompt - 1) + s.mask + [0]]
        ).bool()
        assert verl.torch.equal(grad[trained], grad_of_filled[trained])
        if math.isfinite(fill):
            assert (grad_of_filled[~trained] == 0).all()

    holds()


def test_what_the_model_says_before_a_token_is_about_that_token(
    verl: Any, shape_lists: Any
) -> None:
    """Log-probabilities and values of response token j stand at place prompt - 1 + j."""

    @FEW
    @given(shape_lists)
    def holds(shapes: Any) -> None:
        data = verl.batch(shapes, [0.0] * len(shapes), ["a"] * len(shapes))
        places = verl.nested([range(s.prompt + sum(s.spans)) for s in shapes])
        wanted = [[s.prompt - 1 + j for j in range(sum(s.spans))] for s in shapes]
        # The trainer's slice for values and old log-probabilities, and the workers' for losses.
        sliced = verl.padding.response_from_nested(places, data["response_mask"])
        assert [row.tolist() for row in sliced.unbind()] == wanted
        padded = verl.padding.no_padding_2_padding(places, data)
        assert [row[: len(w)].tolist() for row, w in zip(padded, wanted, strict=True)] == wanted

    holds()


LOSS_MODES: list[str] = [*TAKEN, *BROKEN_LOSSES]


def test_every_loss_of_verl_is_taken_or_refused(verl: Any) -> None:
    assert set(verl.core.POLICY_LOSS_REGISTRY) == set(LOSS_MODES)


def by_micro_batches(
    verl: Any, noise: Callable[..., Any], shapes: Any, mode: str, parts: Any
) -> Any:
    """The gradient of a mini-batch that is summed up over micro-batches, as the engine does."""
    tokens = sum(sum(shape.mask) for shape in shapes)
    config = verl.actor(mode)
    config.global_batch_info.update(
        dp_size=1, batch_num_tokens=tokens, global_batch_size=len(shapes), loss_scale_factor=None
    )
    columns = [verl.padded(verl.nested(noise(shapes, seed))) for seed in (0, 1, 2)]
    mask = verl.mask(verl.batch(shapes, [0.0] * len(shapes), ["a"] * len(shapes)))
    log_probs = columns[0].requires_grad_()
    loss_of = verl.core.get_policy_loss_fn(mode)
    for part in parts:
        loss, _ = loss_of(
            log_prob=log_probs[part],
            old_log_prob=columns[1][part],
            advantages=columns[2][part],
            response_mask=mask[part],
            config=config,
            loss_agg_mode="token-mean",
        )
        loss.backward()
    return log_probs.grad


@pytest.mark.parametrize(
    "mode",
    [mode for mode in TAKEN if not mode.endswith("_cov")],  # they choose within a micro-batch
)
def test_a_gradient_does_not_depend_on_micro_batches(
    verl: Any, shape_lists: Any, noise: Any, mode: str
) -> None:
    @FEW
    @given(shape_lists)
    def holds(shapes: Any) -> None:
        whole = by_micro_batches(verl, noise, shapes, mode, [slice(None)])
        rows = [slice(row, row + 1) for row in range(len(shapes))]
        split = by_micro_batches(verl, noise, shapes, mode, rows)
        assert verl.torch.allclose(whole, split, rtol=1e-4, atol=1e-7)

    holds()


def test_why_geo_mean_is_refused(verl: Any, shape_lists: Any, noise: Any) -> None:
    @FEW
    @given(shape_lists)
    def holds(shapes: Any) -> None:
        whole = by_micro_batches(verl, noise, shapes, "geo_mean", [slice(None)])
        rows = [slice(row, row + 1) for row in range(len(shapes))]
        split = by_micro_batches(verl, noise, shapes, "geo_mean", rows)
        assert verl.torch.allclose(len(shapes) * whole, split, rtol=1e-4, atol=1e-7)

    holds()


def test_why_a_mini_batch_of_padding_is_refused(verl: Any) -> None:
    nothing = verl.torch.zeros(2, 3)
    loss = verl.core.agg_loss(nothing, nothing.bool(), "token-mean", batch_num_tokens=0)
    assert loss.isnan()


def test_a_nan_on_a_masked_position_would_reach_some_losses(verl: Any) -> None:
    """Why our side never lets one in: `Trajectory.append_sampled` takes finite numbers alone."""
    values = verl.torch.tensor([[1.0, math.nan]])
    mask = verl.torch.tensor([[True, False]])
    assert verl.core.agg_loss(values, mask, "token-mean") == 1
    assert verl.core.agg_loss(values, mask, "seq-mean-token-mean").isnan()
