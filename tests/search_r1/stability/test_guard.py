"""The guard over a stand-in for verl's trainer, with the same methods and arguments."""

import errno
import json
import math
import os
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from omegaconf import DictConfig, OmegaConf

from search_r1.checkpoints.folders import newest_step
from search_r1.checkpoints.manifest import BrokenCheckpointError
from search_r1.checkpoints.saving import CheckpointNotSavedError
from search_r1.stability import guard, keeper
from search_r1.stability.checkpoints import BestCheckpoint
from search_r1.stability.errors import AlarmStopError, RollBackError
from search_r1.stability.events import read_events
from search_r1.stability.guard import StabilityGuard
from search_r1.stability.state import read_state, write_state

FIRED = {"threshold": -1, "window": 1, "patience": 1}
"""An alarm that begins with the first value of its signal."""


class Trainer:
    """The methods of verl's trainer that the guard stands in front of."""

    def __init__(self, config: DictConfig) -> None:
        self.config = config
        self.global_steps = 0
        self.done: list[str] = []
        self.shown: dict[str, float] = {"actor/grad_norm": 1.0, "stability/equal_groups": 0.5}
        self.logged: list[int] = []
        self.logger = SimpleNamespace(log=lambda data, step: self.logged.append(step))
        self.actor_rollout_wg = "workers"
        self.kl_ctrl_in_reward = SimpleNamespace(value=0.001)

    def step(self, metrics: dict[str, Any], timing_raw: dict[str, Any]) -> str:
        self._compute_advantage("batch", metrics)
        self._update_critic("batch", metrics)
        self._update_actor("batch", metrics)
        metrics.update(self.shown)
        return "batch"

    def _compute_advantage(self, batch: str, metrics: dict[str, Any]) -> str:
        return batch

    def _update_critic(self, batch: str, metrics: dict[str, Any]) -> str:
        self.done.append(f"critic {self.global_steps}")
        return batch

    def _update_actor(self, batch: str, metrics: dict[str, Any]) -> str:
        self.done.append(f"actor {self.global_steps}")
        return batch

    def _save_checkpoint(self) -> None:
        assert self.config.trainer.max_actor_ckpt_to_keep is None
        folder = Path(self.config.trainer.default_local_dir)
        actor = folder / f"global_step_{self.global_steps}" / "actor"
        actor.mkdir(parents=True)
        (actor / "weights.pt").write_bytes(b"weights")
        (folder / "latest_checkpointed_iteration.txt").write_text(str(self.global_steps))

    def _load_checkpoint(self) -> None:
        self.global_steps = newest_step(Path(self.config.trainer.default_local_dir)) or 0

    def _val_metrics_update(self, em: float) -> dict[str, float]:
        return {"val/reward/em": em}


class Guarded(StabilityGuard, Trainer):
    pass


@pytest.fixture
def tokens(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """What the batch's tensors show; a test may change it."""
    shown = {"stability/non_finite_tokens": 0.0}
    monkeypatch.setattr(guard, "_tokens_of", lambda _batch, _is_bypassing: None)
    monkeypatch.setattr(guard, "token_signals", lambda _: dict(shown))
    return shown


@pytest.fixture
def rates(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The learning rates that the workers were told."""
    told: list[float] = []
    monkeypatch.setattr(keeper, "set_rate", lambda _workers, rate: told.append(rate))
    return told


@pytest.fixture
def make(tmp_path: Path, tokens: dict[str, float], rates: list[float]) -> Any:
    def trainer(alarms: dict[str, Any] | None = None, keep: int | None = None) -> Guarded:
        config = OmegaConf.create(
            {
                "output_dir": str(tmp_path),
                "alarms": alarms or {},
                "algorithm": {},
                "actor_rollout_ref": {"actor": {"strategy": "fsdp2", "optim": {"lr": 0.8}}},
                "trainer": {
                    "default_local_dir": str(tmp_path / "checkpoints"),
                    "resume_mode": "auto",
                    "max_actor_ckpt_to_keep": keep,
                    "max_critic_ckpt_to_keep": None,
                },
            }
        )
        made = Guarded(config)
        made._load_checkpoint()
        return made

    return trainer


def go(trainer: Guarded, *, save: bool = False, em: float | None = None) -> dict[str, Any]:
    """One step, as verl's fit does it."""
    metrics: dict[str, Any] = {}
    trainer.global_steps += 1
    trainer.step(metrics, {})
    if save:
        trainer._save_checkpoint()
    if em is not None:
        trainer._val_metrics_update(em)
    return metrics


def test_a_quiet_step_trains_and_shows_every_alarm(make: Any) -> None:
    trainer = make()
    metrics = go(trainer)
    assert trainer.done == ["critic 1", "actor 1"]
    assert metrics["alarm/equal_groups"] == metrics["stability/update_skipped"] == 0.0
    assert metrics["stability/rate_scale"] == 1.0


def test_nothing_is_trained_on_a_batch_with_nan(make: Any, tokens: dict[str, float]) -> None:
    trainer = make()
    tokens["stability/non_finite_tokens"] = 1.0
    metrics = go(trainer)
    assert trainer.done == []
    assert metrics["alarm/non_finite"] == metrics["stability/update_skipped"] == 1.0
    tokens["stability/non_finite_tokens"] = 0.0
    assert go(trainer)["alarm/non_finite"] == 0.0
    assert trainer.done == ["critic 2", "actor 2"]


def test_a_run_that_only_skips_is_stopped(make: Any, tokens: dict[str, float]) -> None:
    trainer = make({"max_skipped": 3})
    tokens["stability/non_finite_tokens"] = 1.0
    go(trainer)
    go(trainer)
    with pytest.raises(AlarmStopError, match=r"step 3: 3 updates in a row .* non_finite"):
        go(trainer)


def test_a_stop_names_alarm_step_numbers_and_what_to_try(make: Any, tmp_path: Path) -> None:
    trainer = make({"non_finite": {"action": "stop"}})
    go(trainer)
    trainer.shown["actor/grad_norm"] = math.nan
    with pytest.raises(AlarmStopError) as caught:
        go(trainer)
    text = str(caught.value)
    assert text.startswith("step 2: alarm non_finite; the run stops\n")
    assert "non_finite is 1, above 0" in text
    assert "optim.lr" in text
    assert "alarms.non_finite.action=log" in text
    assert trainer.logged == [2]
    [event] = read_events(tmp_path)
    assert (event.step, event.alarm, event.action) == (2, "non_finite", "stop")


def test_a_lowered_rate_lasts_over_a_resume(make: Any, rates: list[float]) -> None:
    alarms = {"equal_groups": {"action": "lower_rate", **FIRED}, "rate_factor": 0.25}
    trainer = make(alarms)
    assert go(trainer, save=True)["stability/rate_scale"] == 0.25
    go(trainer)  # the alarm lasts: nothing is lowered again
    assert rates == [0.2]
    assert make(alarms)._state.rate_scale == 0.25
    assert rates == [0.2, 0.2]


def test_the_alarms_and_the_kl_coefficient_are_those_of_the_checkpoint(make: Any) -> None:
    trainer = make()
    for _ in range(3):
        go(trainer)
    trainer.kl_ctrl_in_reward.value = 0.004
    go(trainer, save=True)
    go(trainer)
    resumed = make()
    assert resumed.global_steps == 4
    assert resumed.kl_ctrl_in_reward.value == 0.004
    assert resumed._alarms.states["equal_groups"].recent == (0.5,) * 4


def test_the_best_checkpoint_is_the_quiet_one_with_the_highest_em(
    make: Any, tmp_path: Path
) -> None:
    trainer = make()
    go(trainer, em=0.9)  # not saved
    assert BestCheckpoint.read(tmp_path) is None
    for em in (0.2, 0.5, 0.4):
        go(trainer, save=True, em=em)
    trainer.shown["actor/grad_norm"] = math.nan
    go(trainer, save=True, em=0.8)  # not quiet
    best = BestCheckpoint.read(tmp_path)
    assert best is not None
    assert (best.step, best.em) == (3, 0.5)
    assert best.alarms["non_finite"] == 0.0
    assert json.loads((tmp_path / "best_checkpoint.json").read_text())["path"].endswith("step_3")


def test_old_checkpoints_go_and_the_best_stays(make: Any, tmp_path: Path) -> None:
    trainer = make(keep=1)
    for em in (0.5, 0.1, 0.1, 0.1):
        go(trainer, save=True, em=em)
    left = sorted(path.name for path in (tmp_path / "checkpoints").glob("global_step_*"))
    assert left == ["global_step_1", "global_step_4"]


ROLL_BACK = {"equal_groups": {"action": "roll_back", "threshold": 0.9, "window": 1, "patience": 1}}


def test_a_rollback_makes_the_best_checkpoint_the_newest_with_a_lower_rate(
    make: Any, tmp_path: Path, rates: list[float]
) -> None:
    trainer = make(ROLL_BACK)
    go(trainer, save=True, em=0.5)
    go(trainer, save=True, em=0.4)
    trainer.shown["stability/equal_groups"] = 1.0
    with pytest.raises(RollBackError, match=r"step 3: .*back to step 1 .*0\.500.* with 0\.5 of"):
        go(trainer)
    assert newest_step(tmp_path / "checkpoints") == 1

    again = make(ROLL_BACK)
    assert (again.global_steps, rates) == (1, [0.4])
    again.shown["stability/equal_groups"] = 1.0
    with pytest.raises(RollBackError, match=r"with 0\.25 of"):
        go(again)
    # It counts what was rolled back to the same checkpoint, too.
    last = make(ROLL_BACK)
    last.shown["stability/equal_groups"] = 1.0
    with pytest.raises(AlarmStopError, match="the run stops: rolled back 2 times before") as caught:
        go(last)
    assert not isinstance(caught.value, RollBackError)


def test_without_a_stable_checkpoint_a_rollback_is_a_stop(make: Any) -> None:
    trainer = make(ROLL_BACK)
    trainer.shown["stability/equal_groups"] = 1.0
    with pytest.raises(AlarmStopError, match="the run stops: no stable checkpoint"):
        go(trainer)


def test_a_run_resumed_by_path_remembers_what_lies_there(make: Any, tmp_path: Path) -> None:
    trainer = make()
    go(trainer, save=True)
    elsewhere = tmp_path / "elsewhere" / "global_step_1"
    state = read_state(tmp_path / "checkpoints" / "global_step_1")
    write_state(elsewhere, state)
    resumed = make()
    resumed.config.trainer.resume_mode = "resume_path"
    resumed.config.trainer.resume_from_path = str(elsewhere)
    assert resumed._resumed_from() == elsewhere


def test_a_broken_checkpoint_is_passed_over_by_the_same_command(make: Any, tmp_path: Path) -> None:
    trainer = make()
    for _ in range(2):
        go(trainer, save=True)
    (tmp_path / "checkpoints" / "global_step_2" / "actor" / "weights.pt").unlink()
    assert make().global_steps == 1
    assert (tmp_path / "checkpoints" / "broken_global_step_2").is_dir()


def test_a_broken_checkpoint_is_refused_where_it_is_asked_for(make: Any, tmp_path: Path) -> None:
    trainer = make()
    go(trainer, save=True)
    (tmp_path / "checkpoints" / "global_step_1" / "actor" / "weights.pt").unlink()
    trainer.config.trainer.resume_mode = "resume_path"
    trainer.config.trainer.resume_from_path = str(tmp_path / "checkpoints" / "global_step_1")
    with pytest.raises(BrokenCheckpointError, match=r"actor/weights\.pt: missing"):
        trainer._load_checkpoint()


def test_a_rollback_goes_to_no_broken_checkpoint(make: Any, tmp_path: Path) -> None:
    trainer = make(ROLL_BACK)
    go(trainer, save=True, em=0.5)
    (tmp_path / "checkpoints" / "global_step_1" / "actor" / "weights.pt").unlink()
    trainer.shown["stability/equal_groups"] = 1.0
    with pytest.raises(AlarmStopError, match="no stable checkpoint"):
        go(trainer)


def test_what_a_rollback_remembers_breaks_no_seal(make: Any) -> None:
    trainer = make(ROLL_BACK)
    go(trainer, save=True, em=0.5)
    trainer.shown["stability/equal_groups"] = 1.0
    with pytest.raises(RollBackError):
        go(trainer)
    assert make(ROLL_BACK).global_steps == 1


def test_a_best_checkpoint_that_is_gone_gives_way(make: Any, tmp_path: Path) -> None:
    trainer = make()
    go(trainer, save=True, em=0.5)
    shutil.rmtree(tmp_path / "checkpoints" / "global_step_1")
    go(trainer, save=True, em=0.1)
    best = BestCheckpoint.read(tmp_path)
    assert best is not None
    assert best.step == 2


def test_a_failed_save_ends_the_run_at_the_checkpoint_before(
    make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = make(keep=1)
    go(trainer, save=True)

    def fill_the_disk(_trainer: Trainer) -> None:
        (tmp_path / "checkpoints" / "global_step_2" / "actor").mkdir(parents=True)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Trainer, "_save_checkpoint", fill_the_disk)
    with pytest.raises(CheckpointNotSavedError, match=r"global_step_2 .*No space left on device"):
        go(trainer, save=True)
    assert make().global_steps == 1
    left = sorted(path.name for path in (tmp_path / "checkpoints").iterdir())
    assert left == ["global_step_1", "latest_checkpointed_iteration.txt"]
