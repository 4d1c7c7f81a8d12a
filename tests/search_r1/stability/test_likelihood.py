"""The likelihood-preserving loss, by hand and through verl's registry."""

import pytest

pytestmark = pytest.mark.slow


def log_probs(*rows: list[float]):  # noqa: ANN201 - a torch tensor
    import torch

    return torch.tensor(rows, requires_grad=True)


def test_only_fallen_tokens_of_fallen_good_trajectories_count() -> None:
    import torch

    from search_r1.stability.likelihood import likelihood_fall

    old = torch.full((4, 3), -1.0)
    new = log_probs(
        [-1.5, -0.75, -9.0],  # fell by 0.25 as a whole; its last token was inserted
        [-1.5, -0.25, -1.0],  # rose as a whole
        [-1.5, -1.5, -1.5],  # of a negative advantage
        [-1.0, -1.0, -2.0],  # of an advantage of 0: kept too
    )
    advantages = torch.tensor([[1.0] * 3, [1.0] * 3, [-1.0] * 3, [0.0] * 3])
    mask = torch.tensor([[1, 1, 0], [1, 1, 1], [1, 1, 1], [1, 1, 1]])
    fall = likelihood_fall(old, new, advantages, mask)
    assert fall.tolist() == [[0.5, 0, 0], [0, 0, 0], [0, 0, 0], [0, 0, 1.0]]
    fall.sum().backward()
    assert new.grad is not None
    # Downhill is uphill for the log-probability of what has fallen, and of nothing else.
    assert new.grad.tolist() == [
        [-1, 0, 0],
        [0, 0, 0],
        [0, 0, 0],
        [0, 0, -1],
    ]  # 0 where it stood still


def test_the_registered_loss_is_verls_plus_the_term() -> None:
    import torch
    from verl.trainer.ppo.core_algos import get_policy_loss_fn
    from verl.workers.config import FSDPActorConfig

    import search_r1.policy_loss  # noqa: F401 - registers it

    config = FSDPActorConfig(
        strategy="fsdp2", rollout_n=1, ppo_micro_batch_size_per_gpu=1, use_torch_compile=False
    )
    old = torch.full((2, 2), -1.0)
    advantages = torch.tensor([[1.0, 1.0], [-1.0, -1.0]])
    mask = torch.tensor([[1, 1], [1, 0]])
    new = log_probs([-1.5, -1.0], [-1.5, -1.0])
    arguments = old, new, advantages, mask, "token-mean", config
    plain, _ = get_policy_loss_fn("vanilla")(*arguments)
    loss, metrics = get_policy_loss_fn("likelihood_preserving")(*arguments)
    # A fall of 0.5 nats over three sampled tokens, times verl's default of 0.1.
    assert (loss - plain).item() == pytest.approx(0.1 * 0.5 / 3)
    assert metrics["actor/likelihood_fall"] == pytest.approx(0.5 / 3)
    assert "actor/pg_clipfrac" in metrics


def test_with_the_first_update_of_a_batch_the_term_is_nothing() -> None:
    import torch

    from search_r1.stability.likelihood import likelihood_fall

    new = log_probs([-1.0, -2.0])
    fall = likelihood_fall(new.detach(), new, torch.ones(1, 2), torch.ones(1, 2))
    fall.sum().backward()
    assert fall.sum().item() == 0.0
    assert new.grad is not None
    assert new.grad.abs().sum().item() == 0.0


def test_the_signals_of_tensors() -> None:
    import torch

    from search_r1.stability.signals import token_signals

    tokens = {
        "response_mask": torch.tensor([[1, 1, 0], [1, 1, 0]]),
        "old_log_probs": torch.tensor([[-1.0, float("nan"), 0.0], [-1.0, -1.0, 0.0]]),
        "rollout_log_probs": torch.tensor([[-1.0, -1.0, 0.0], [-1.5, -1.7, 0.0]]),
        "advantages": torch.tensor([[0.0, 0.0, float("inf")], [0.0, 0.0, 0.0]]),
    }
    signals = token_signals(tokens)
    # The infinite advantage is of a token that is not trained.
    assert signals["stability/non_finite_tokens"] == 1.0
    # One of four differs by more than ln 2 = 0.693: the last.
    assert signals["stability/ratio_tail"] == 0.25
    del tokens["rollout_log_probs"]
    assert "stability/ratio_tail" not in token_signals(tokens)
