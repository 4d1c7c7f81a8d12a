"""Whether the disk has room for the checkpoints of a run."""

import math
import shutil
from pathlib import Path
from typing import Final

from omegaconf import DictConfig
from rich.filesize import decimal

from search_r1.checks.findings import Findings, Note, as_list, select
from search_r1.checks.sizes import needs_critic
from search_r1.memory.estimate import value_bytes
from search_r1.memory.shape import ModelShape

_FOLDER: Final = "trainer.default_local_dir"
_KEEP: Final = "trainer.max_actor_ckpt_to_keep"
_FEWER: Final = f"make room, or set another output_dir, {_KEEP}=1 or a larger trainer.save_freq"


def check_disk(config: DictConfig, shape: ModelShape) -> Findings:
    """A warning if the checkpoints that are there at one time do not fit on the disk."""
    if config.trainer.save_freq <= 0:
        return
    folder = Path(config.trainer.default_local_dir)
    nearest = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    free, each = shutil.disk_usage(nearest).free, checkpoint_bytes(config, shape)
    count = _kept_at_once(config)
    text = (
        f"{decimal(free)} are free on the disk of {nearest}; a checkpoint takes about "
        f"{decimal(each)}, and {count} are there at one time"
    )
    if free < count * each:
        yield Note(_FOLDER, f"{text}: {_FEWER}", warning=True)


def checkpoint_bytes(config: DictConfig, shape: ModelShape) -> int:
    """A checkpoint under FSDP: weights and Adam's two moments of the policy and of the critic."""
    actor = config.actor_rollout_ref.actor
    total = _saved_values(actor, shape.parameters) * value_bytes(actor.fsdp_config)
    if needs_critic(config):
        values = _saved_values(config.critic, shape.critic_parameters)
        total += values * value_bytes(config.critic.fsdp)
    return total


def _saved_values(role: DictConfig, parameters: int) -> int:
    contents = as_list(select(role, "checkpoint.save_contents", ["model", "optimizer"]))
    return parameters * (("model" in contents) + 2 * ("optimizer" in contents))


def _kept_at_once(config: DictConfig) -> int:
    """How many checkpoints the run holds at most: those kept, the best, and the one being written.

    Without a limit it keeps all.
    """
    saved: int = math.ceil(config.trainer.total_training_steps / config.trainer.save_freq)
    limits = [select(config, _KEEP), select(config, "trainer.max_critic_ckpt_to_keep")]
    known = [int(limit) for limit in limits if limit is not None]
    return min(saved, max(known, default=saved) + 2)
