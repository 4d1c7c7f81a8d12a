"""The settings of a run, from the config that it stored."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError  # type: ignore[import-untyped]

from search_r1.config_types import leaves
from search_r1.files import RUN_CONFIG

SHOWN: Final = (
    "algorithm.adv_estimator",
    "actor_rollout_ref.model.path",
    "actor_rollout_ref.actor.optim.lr",
    "actor_rollout_ref.rollout.n",
    "actor_rollout_ref.rollout.temperature",
    "data.train_files",
    "data.train_batch_size",
    "search.top_k",
    "search.max_searches",
    "trainer.total_training_steps",
)
"""Fields that are shown even where all runs agree."""


def read_settings(run: Path) -> dict[str, str]:
    """Every field of the run's config by its dotted name; empty if it stored none.

    Raises:
        ValueError: the file is not a config.
    """
    path = run / RUN_CONFIG
    if not path.is_file():
        return {}
    try:
        config = OmegaConf.to_container(OmegaConf.load(path))
    except (YAMLError, OmegaConfBaseException, OSError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"{path}: not YAML: {reason}; mend it or move it away") from error
    if not isinstance(config, dict):
        raise ValueError(f"{path}: not a config but a list; mend it or move it away")
    return settings_of(config)


def settings_of(config: Mapping[Any, Any]) -> dict[str, str]:
    """Every field of nested mappings by its dotted name."""
    return {name: str(value) for name, value in leaves(config)}


def shown_fields(settings: Sequence[Mapping[str, str]]) -> list[str]:
    """The fields of `SHOWN` that a run has, then all others in which the runs differ."""
    stored = [fields for fields in settings if fields]
    every = dict.fromkeys(field for fields in stored for field in fields)
    differing = [field for field in every if len({fields.get(field) for fields in stored}) > 1]
    return list(dict.fromkeys([*(field for field in SHOWN if field in every), *differing]))
