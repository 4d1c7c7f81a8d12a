"""Keeps what a run can return to: the alarms' memory in each checkpoint, and the best checkpoint.

The part of `search_r1.stability.guard.StabilityGuard` that saves, resumes and validates.
"""

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

from omegaconf import open_dict

from search_r1.checkpoints.folders import checkpoint_folder, newest_step, remove_old
from search_r1.checkpoints.recovery import recover, require_whole
from search_r1.checkpoints.saving import saving
from search_r1.stability.alarms import Alarms
from search_r1.stability.checkpoints import BestCheckpoint
from search_r1.stability.rate import set_rate
from search_r1.stability.settings import alarm_settings
from search_r1.stability.state import RunState, read_state, write_state

# Below verl's logger, which verl shields from what other libraries do to the root logger.
logger = logging.getLogger("verl.search_r1.stability")

HELD_OUT_EM = "val/reward/em"

FSDP = frozenset({"fsdp", "fsdp2"})
"""Strategies whose learning rate can be set while they run."""


class CheckpointKeeper:
    """Saves and reads the alarms' memory, and spares the best checkpoint from verl's retention."""

    config: Any
    global_steps: int
    actor_rollout_wg: Any

    def __init__(self, config: Any, *args: Any, **kwargs: Any) -> None:
        self._settings = alarm_settings(config)
        self._keep = _take_over_retention(config)
        self._state = RunState()
        self._alarms = Alarms(self._settings, {})
        super().__init__(config, *args, **kwargs)  # type: ignore[call-arg]

    def _load_checkpoint(self) -> None:
        if self.config.trainer.resume_mode == "auto":
            recover(self._checkpoints)
        elif self.config.trainer.resume_mode == "resume_path":
            require_whole(self._resumed_from())
        super()._load_checkpoint()  # type: ignore[misc]
        if self.global_steps == 0:
            return
        self._state = read_state(self._resumed_from())
        self._alarms = Alarms(self._settings, self._state.detectors)
        if self._state.kl_coef is not None and hasattr(self, "kl_ctrl_in_reward"):
            self.kl_ctrl_in_reward.value = self._state.kl_coef
        self._set_rate()

    def _save_checkpoint(self) -> None:
        controller = getattr(self, "kl_ctrl_in_reward", None)
        kl_coef = None if controller is None else float(controller.value)
        state = replace(self._state, kl_coef=kl_coef, detectors=self._alarms.states)
        is_whole_after = not _is_async(self.config)
        with saving(self._checkpoints, self.global_steps, is_whole_after=is_whole_after) as folder:
            # First, because verl's last step is to call the checkpoint whole.
            write_state(folder, state)
            super()._save_checkpoint()  # type: ignore[misc]
        if self._keep:
            best = BestCheckpoint.read(self._run)
            spared = Path(best.path) if best else None
            for folder in remove_old(self._checkpoints, self._keep, spared):
                logger.info("removed the old checkpoint %s", folder)

    def _val_metrics_update(self, *args: Any, **kwargs: Any) -> dict[str, float]:
        metrics: dict[str, float] = super()._val_metrics_update(*args, **kwargs)  # type: ignore[misc]
        is_saved = newest_step(self._checkpoints) == self.global_steps > 0
        if is_saved and not self._alarms.firing:
            self._consider(metrics[HELD_OUT_EM])
        return metrics

    def _consider(self, em: float) -> None:
        """Call this step's checkpoint the best one, unless an earlier one is better."""
        best = BestCheckpoint.read(self._run)
        if best is not None and best.em > em and Path(best.path).is_dir():
            return
        folder = str(checkpoint_folder(self._checkpoints, self.global_steps))
        measured = self._alarms.measured()
        BestCheckpoint(self.global_steps, em, folder, measured).write(self._run)
        logger.info("step %d is the best checkpoint: exact match %.3f", self.global_steps, em)

    def _set_rate(self) -> None:
        """Make the policy's learning rate the config's, as the alarms have lowered it."""
        actor = self.config.actor_rollout_ref.actor
        if actor.strategy in FSDP:
            set_rate(self.actor_rollout_wg, actor.optim.lr * self._state.rate_scale)

    @property
    def _run(self) -> Path:
        return Path(self.config.output_dir)

    @property
    def _checkpoints(self) -> Path:
        return Path(self.config.trainer.default_local_dir)

    def _resumed_from(self) -> Path:
        if self.config.trainer.resume_mode == "resume_path":
            return Path(self.config.trainer.resume_from_path)
        return checkpoint_folder(self._checkpoints, self.global_steps)


def _take_over_retention(config: Any) -> int | None:
    """How many checkpoints to keep, taken out of verl's hands; None to leave it to verl.

    verl counts the policy's and the critic's; a checkpoint is of use only whole.
    """
    trainer = config.trainer
    if _is_async(config):
        return None
    limits = [trainer.get("max_actor_ckpt_to_keep"), trainer.get("max_critic_ckpt_to_keep")]
    if trainer.get("remove_previous_ckpt_in_save", False):
        limits = [1]
    with open_dict(config):
        trainer.remove_previous_ckpt_in_save = False
        trainer.max_actor_ckpt_to_keep = trainer.max_critic_ckpt_to_keep = None
    known = [int(limit) for limit in limits if limit is not None]
    return max(known) if known else None


def _is_async(config: Any) -> bool:
    """Whether the workers go on writing a checkpoint after it is saved; Megatron's alone can."""
    return bool(config.actor_rollout_ref.actor.get("checkpoint", {}).get("async_save", False))
