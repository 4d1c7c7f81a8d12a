"""Settings that are shares, rates or coefficients, each with the range in which it means one."""

import math
from dataclasses import dataclass
from typing import Final

from omegaconf import DictConfig

from search_r1.checks.findings import Findings, Problem, select
from search_r1.checks.sizes import needs_critic

_ACTOR = "actor_rollout_ref.actor"
_ROLLOUT = "actor_rollout_ref.rollout"


@dataclass(frozen=True, slots=True)
class _Range:
    low: float = 0.0
    high: float = math.inf
    above: bool = False
    """Whether `low` itself is out."""
    below: bool = False
    """Whether `high` itself is out."""

    def holds(self, value: float) -> bool:
        over = value > self.low if self.above else value >= self.low
        under = value < self.high if self.below else value <= self.high
        return over and under

    def __str__(self) -> str:
        low = f"{'above' if self.above else 'at least'} {self.low:g}"
        if math.isinf(self.high):
            return low
        return f"{low} and {'below' if self.below else 'at most'} {self.high:g}"


_AT_LEAST_0: Final = _Range()
_ABOVE_0: Final = _Range(above=True)
_SHARE: Final = _Range(high=1.0)
_SHARE_ABOVE_0: Final = _Range(high=1.0, above=True)

_RANGES: Final = {
    "algorithm.gamma": _SHARE,
    "algorithm.lam": _SHARE,
    "algorithm.kl_ctrl.kl_coef": _AT_LEAST_0,
    f"{_ACTOR}.clip_ratio": _Range(high=1.0, above=True, below=True),
    f"{_ACTOR}.clip_ratio_low": _SHARE_ABOVE_0,
    f"{_ACTOR}.clip_ratio_high": _ABOVE_0,
    f"{_ACTOR}.clip_ratio_c": _Range(low=1.0, above=True),
    f"{_ACTOR}.kl_loss_coef": _AT_LEAST_0,
    f"{_ACTOR}.optim.lr": _AT_LEAST_0,
    f"{_ACTOR}.optim.lr_warmup_steps_ratio": _SHARE,
    f"{_ACTOR}.optim.weight_decay": _AT_LEAST_0,
    f"{_ACTOR}.optim.clip_grad": _ABOVE_0,
    f"{_ROLLOUT}.temperature": _ABOVE_0,
    f"{_ROLLOUT}.top_p": _SHARE_ABOVE_0,
    f"{_ROLLOUT}.gpu_memory_utilization": _SHARE_ABOVE_0,
    f"{_ROLLOUT}.val_kwargs.temperature": _AT_LEAST_0,
    f"{_ROLLOUT}.val_kwargs.top_p": _SHARE_ABOVE_0,
}
_CRITIC_RANGES: Final = {
    "critic.cliprange_value": _ABOVE_0,
    "critic.optim.lr": _AT_LEAST_0,
    "critic.optim.lr_warmup_steps_ratio": _SHARE,
    "critic.optim.weight_decay": _AT_LEAST_0,
    "critic.optim.clip_grad": _ABOVE_0,
}


def check_rates(config: DictConfig) -> Findings:
    """Every rate lies in its range; one that verl may leave out may be null."""
    ranges = _RANGES | (_CRITIC_RANGES if needs_critic(config) else {})
    for field, allowed in ranges.items():
        value = select(config, field)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int | float):
            yield Problem(field, f"is {value!r}, not a number", str(allowed))
        elif not allowed.holds(value):
            yield Problem(field, f"is {value}", str(allowed))
