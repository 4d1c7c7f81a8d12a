"""Trajectories of any shape, as verl's trainer holds them between rollout and update.

Nothing of verl is imitated: our agent loop's output becomes verl's batch by verl's own functions,
and its trainer and workers compute on it. Only the queue between them is a dictionary. torch and
verl are imported when a test asks for them.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import strategies as st

from search_r1.result import RolloutResult
from search_r1.trajectory import StopReason, Trajectory


@dataclass(frozen=True)
class Shape:
    """One trajectory: how long its prompt is, and its spans: sampled, inserted, ..., sampled."""

    prompt: int
    spans: tuple[int, ...]

    @property
    def mask(self) -> list[int]:
        return [1 - place % 2 for place, length in enumerate(self.spans) for _ in range(length)]

    def trajectory(self) -> Trajectory:
        trajectory = Trajectory(list(range(1, self.prompt + 1)))
        for place, length in enumerate(self.spans):
            ids = [100 * place + number for number in range(length)]
            if place % 2:
                trajectory.append_inserted(ids)
            else:
                trajectory.append_sampled(ids, [-0.25 * (number + 1) for number in range(length)])
        return trajectory


LENGTHS = st.integers(1, 4)
SHAPES = st.builds(
    lambda prompt, first, rest: Shape(prompt, (first, *(n for pair in rest for n in pair))),
    LENGTHS,
    LENGTHS,
    st.lists(st.tuples(LENGTHS, LENGTHS), max_size=3),
)
SHAPE_LISTS = st.lists(SHAPES, min_size=2, max_size=5).filter(
    # verl whitens over the trained tokens of a batch, and one alone has no deviation.
    lambda shapes: sum(sum(shape.mask) for shape in shapes) > 1
)


@pytest.fixture(scope="session")
def shape_lists() -> st.SearchStrategy[list[Shape]]:
    return SHAPE_LISTS


@pytest.fixture(scope="session")
def shape() -> Shape:
    """A question of two tokens, a search of two, an observation of three, an answer of one."""
    return Shape(2, (2, 3, 1))


@pytest.fixture(scope="session")
def short() -> Shape:
    """A token, an observation of one token, a token."""
    return Shape(1, (1, 1, 1))


@dataclass
class Queue:
    """TransferQueue's two calls, in memory; fields of tokens are nested, as it returns them."""

    data: Any
    written: dict[str, Any] = field(default_factory=dict)

    def kv_batch_get(self, select_fields: Sequence[str], **_: Any) -> Any:
        return self.data.select(*(name for name in select_fields if name in self.data))

    def kv_batch_put(self, fields: Any, **_: Any) -> Any:
        for name, value in fields.items():
            self.data[name] = self.written[name] = value
        return None


class Verl:
    """What a training step of verl calls, from a finished trajectory to a loss."""

    def __init__(self) -> None:
        import torch
        from verl.trainer.ppo import core_algos
        from verl.trainer.ppo.v1 import trainer_base
        from verl.workers.utils import losses, padding

        self.torch, self.core, self.losses = torch, core_algos, losses
        self.padding, self.trainer = padding, trainer_base

    def nested(self, rows: Sequence[Sequence[float]]) -> Any:
        tensors = [self.torch.tensor(row, dtype=self.torch.float32) for row in rows]
        return self.torch.nested.as_nested_tensor(tensors, layout=self.torch.jagged)

    def batch(
        self, shapes: Sequence[Shape], rewards: Sequence[float], groups: Sequence[str]
    ) -> Any:
        """Our agent loop's outputs of `shapes`, through verl's own conversions."""
        from tensordict import NonTensorStack, TensorDict

        rows = [self._row(*one) for one in zip(shapes, rewards, strict=True)]
        names = ("prompts", "responses", "response_mask", "rollout_log_probs", "rm_scores")
        columns = {
            name: self.torch.nested.as_nested_tensor(
                [row[name] for row in rows], layout=self.torch.jagged
            )
            for name in names
        }
        return TensorDict(columns | {"uid": NonTensorStack(*groups)}, batch_size=[len(rows)])

    def _row(self, shape: Shape, reward: float) -> dict[str, Any]:
        from search_r1.agent_loop import _to_output

        result = RolloutResult(shape.trajectory(), [], StopReason.ANSWERED, 0.0, 0.0)
        output = _to_output(result, {}, [0], pad_id=0)
        output.reward_score = reward
        row: dict[str, Any] = output.as_dict()
        return row

    def advantages(self, data: Any, **algorithm: Any) -> tuple[Any, Any]:
        """What the trainer's own step makes of a batch: advantages and returns, padded, (B, T)."""
        from omegaconf import OmegaConf
        from verl.trainer.ppo.core_algos import FixedKLController

        settings = {"gamma": 1.0, "lam": 1.0, "use_kl_in_reward": False, "kl_penalty": "kl"}
        config = {
            "algorithm": settings | algorithm,
            "actor_rollout_ref": {"rollout": {"n": 2}},
        }
        trainer = SimpleNamespace(
            config=OmegaConf.create(config), kl_ctrl_in_reward=FixedKLController(0.1)
        )
        queue = Queue(data)
        keys = [f"{uid}_{row}_0" for row, uid in enumerate(data["uid"])]
        batch = self.trainer.KVBatchMeta(keys=keys, tags=[{} for _ in keys], partition_id="train")
        with patch.object(self.trainer, "tq", queue):
            self.trainer.PPOTrainer._compute_advantage(trainer, batch, {})
        return tuple(self.padded(queue.written[name]) for name in ("advantages", "returns"))

    def padded(self, tensor: Any) -> Any:
        return tensor.to_padded_tensor(0.0)

    def mask(self, data: Any) -> Any:
        return self.padded(data["response_mask"]).bool()

    def actor(self, loss_mode: str = "vanilla", **settings: Any) -> Any:
        """A config of the actor as its worker gets it."""
        from verl.workers.config import ActorConfig, PolicyLossConfig

        policy_loss = PolicyLossConfig(loss_mode=loss_mode, dro_beta=0.1)
        made = {"strategy": "fsdp2", "rollout_n": 1, "ppo_micro_batch_size_per_gpu": 1}
        return ActorConfig(**made, policy_loss=policy_loss, **settings)

    def actor_loss(self, config: Any, outputs: dict[str, Any], data: Any) -> Any:
        """The worker's loss over one micro-batch that is the whole batch."""
        self.torch.manual_seed(0)  # clip_cov draws
        loss, _ = self.losses.ppo_loss(config, outputs, self._with_sizes(data))
        return loss

    def critic_loss(self, values: Any, data: Any) -> Any:
        config = SimpleNamespace(
            cliprange_value=0.5, loss_agg_mode="token-mean", loss_scale_factor=None
        )
        loss, _ = self.losses.value_loss(config, {"values": values}, self._with_sizes(data))
        return loss

    def _with_sizes(self, data: Any) -> Any:
        from verl.utils import tensordict_utils as tu

        if "batch_num_tokens" not in data:
            tokens = int(data["response_mask"].values().sum())
            tu.assign_non_tensor(
                data, dp_size=1, batch_num_tokens=tokens, global_batch_size=len(data)
            )
        return data


@pytest.fixture(scope="session")
def verl() -> Iterator[Verl]:
    """verl, with GRPO as `search_r1.train` sets it up for the trainer."""
    from verl.trainer.ppo import core_algos

    import search_r1.policy_loss  # noqa: F401 - in verl's registry, as in every worker
    from search_r1.train import _ignore_rounding_in_groups

    original = core_algos.compute_grpo_outcome_advantage
    _ignore_rounding_in_groups()
    yield Verl()
    core_algos.compute_grpo_outcome_advantage = original


@pytest.fixture(scope="session")
def noise() -> Callable[..., list[list[float]]]:
    """Numbers for whole sequences or responses, `fill` where no token is trained."""
    return rows_of_numbers


def rows_of_numbers(
    shapes: Sequence[Shape], seed: int, fill: float | None = None, *, whole: bool = False
) -> list[list[float]]:
    """One row a trajectory, of its response or, if `whole`, of the model's output.

    The output at a place is about the next token, so that of a response begins one place early.
    """
    draw = random.Random(seed)
    rows = []
    for shape in shapes:
        numbers = [-2 * draw.random() for _ in range(shape.prompt + sum(shape.spans))]
        trained = [0] * (shape.prompt - 1) + shape.mask + [0]
        if fill is not None:
            numbers = [n if t else fill for n, t in zip(numbers, trained, strict=True)]
        start = shape.prompt - 1
        rows.append(numbers if whole else numbers[start : start + sum(shape.spans)])
    return rows
