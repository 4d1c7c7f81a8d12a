"""The policy's learning rate while a run goes on: set in verl's workers, where the optimizer is."""

from typing import Any, Final

_ROLES: Final = ("actor", "actor_rollout", "actor_rollout_ref")
"""verl's names of the worker that trains the policy."""

_EXECUTE: Final = "execute_with_func_generator"
"""verl's own way to run a function in a worker; its dispatch takes no plain arguments."""


def set_rate(worker_group: Any, rate: float) -> None:
    """Make `rate` the learning rate after warm-up, on every worker, from the next update on.

    verl's checkpoints bring back the rate that they were saved with, whatever the config says.

    Args:
        worker_group: The trainer's workers of the policy.
        rate: Above 0.
    """
    [method] = {
        f"{role}_{_EXECUTE}" for role in _ROLES if hasattr(worker_group, f"{role}_{_EXECUTE}")
    }
    worker_group.execute_all_sync(method, set_worker_rate, rate)


def set_worker_rate(worker: Any, rate: float) -> None:
    """In a worker: scale the rate of every group, and what the schedule multiplies, to `rate`."""
    scheduler = worker.actor.engine.lr_scheduler
    scale = rate / scheduler.base_lrs[0]
    scheduler.base_lrs = [base * scale for base in scheduler.base_lrs]
    for group in scheduler.optimizer.param_groups:
        group["lr"] *= scale
        group["initial_lr"] *= scale
