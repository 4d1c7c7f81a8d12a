from types import SimpleNamespace
from typing import Any

import pytest

from search_r1.stability.rate import set_rate, set_worker_rate


def made_worker() -> Any:
    """verl's worker of the policy in the middle of a warm-up to 0.8: at 0.2."""
    groups = [{"lr": 0.2, "initial_lr": 0.8}]
    scheduler = SimpleNamespace(base_lrs=[0.8], optimizer=SimpleNamespace(param_groups=groups))
    return SimpleNamespace(actor=SimpleNamespace(engine=SimpleNamespace(lr_scheduler=scheduler)))


def test_a_rate_keeps_its_place_in_the_schedule() -> None:
    worker = made_worker()
    set_worker_rate(worker, 0.4)
    scheduler = worker.actor.engine.lr_scheduler
    assert scheduler.base_lrs == [0.4]
    assert scheduler.optimizer.param_groups == [{"lr": 0.1, "initial_lr": 0.4}]


@pytest.mark.slow
def test_a_real_schedule_goes_on_at_the_new_rate_and_a_checkpoint_keeps_it() -> None:
    import torch
    from verl.utils.torch_functional import get_constant_schedule_with_warmup

    def made() -> Any:
        optimizer = torch.optim.AdamW([torch.nn.Parameter(torch.zeros(1))], lr=0.8)
        return get_constant_schedule_with_warmup(optimizer, num_warmup_steps=4)

    def rate(scheduler: Any) -> float:
        return float(scheduler.optimizer.param_groups[0]["lr"])

    def step(scheduler: Any) -> float:
        scheduler.optimizer.step()
        scheduler.step()
        return rate(scheduler)

    first, second = made(), made()
    engine = SimpleNamespace(lr_scheduler=first)
    assert step(first) == pytest.approx(0.2)
    set_worker_rate(SimpleNamespace(actor=SimpleNamespace(engine=engine)), 0.4)
    assert rate(first) == pytest.approx(0.1)
    # What verl loads brings back the saved rate, not that of the config.
    second.optimizer.load_state_dict(first.optimizer.state_dict())
    second.load_state_dict(first.state_dict())
    for scheduler in (first, second):
        assert [step(scheduler) for _ in range(4)] == pytest.approx([0.2, 0.3, 0.4, 0.4])


class Workers:
    """verl's group of workers, which binds a worker's methods under the names of their roles."""

    def __init__(self) -> None:
        self.workers = [made_worker(), made_worker()]

    def critic_execute_with_func_generator(self) -> None: ...

    def actor_rollout_execute_with_func_generator(self) -> None: ...

    def execute_all_sync(self, method: str, function: Any, *arguments: Any) -> None:
        assert method == "actor_rollout_execute_with_func_generator"
        for worker in self.workers:
            function(worker, *arguments)


def test_every_worker_of_the_policy_is_told() -> None:
    group = Workers()
    set_rate(group, 0.4)
    assert [one.actor.engine.lr_scheduler.base_lrs for one in group.workers] == [[0.4], [0.4]]
