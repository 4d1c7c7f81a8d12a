"""Composes a training config: our files over verl's own schema, without importing verl.

``compose("cpu_quickstart", ["algo=ppo", "trainer.total_training_steps=2"])``
"""

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from hydra import compose as hydra_compose
from hydra import initialize_config_dir
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf, open_dict
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError  # type: ignore[import-untyped]

from search_r1.config_errors import explain
from search_r1.config_types import leaves, type_problems
from search_r1.platform import PLATFORM_NAME, cpu_environment
from search_r1.platform.precision import cpu_dtype
from search_r1.retriever import TOKEN_VARIABLE

METRICS_FILE = "VERL_FILE_LOGGER_PATH"
"""verl's environment variable for the file of one start's metrics."""

_SHOWN = 3
_NOT_TO_TRAIN = {"base", "sft"}
"""What the others build on, and the config of verl's SFT trainer."""
_REQUIRED_FIELDS = (
    "output_dir",
    "actor_rollout_ref.model.path",
    "data.train_files",
    "data.val_files",
    "trainer.experiment_name",
)


class ConfigError(ValueError):
    """A config that cannot run; the message names the field and the fix."""


def config_folder() -> Path:
    """The folder of shipped configs: beside the package in a checkout, inside it when installed."""
    package = Path(__file__).resolve().parent
    inside = package / "configs"
    return inside if inside.is_dir() else package.parent / "configs"


def shipped_configs() -> list[str]:
    """The names that `compose` takes without a path, sorted."""
    names = [path.stem for path in config_folder().glob("*.yaml")]
    return sorted(name for name in names if name not in _NOT_TO_TRAIN)


def compose(name: str, overrides: Sequence[str] = ()) -> DictConfig:
    """The full, resolved config `name` with hydra `overrides` applied.

    Args:
        name: A shipped config, or the path of a YAML file that names its own ``defaults``.
        overrides: Hydra overrides, such as ``data.train_files=train.parquet`` or ``algo=ppo``.

    Raises:
        ConfigError: an unknown config, override or field, or a field without a value.
    """
    folder, stem = _locate(name)
    try:
        config = _compose(folder, stem, overrides)
        _refuse_unknown_groups(config)
        wrong = list(type_problems(config, _defaults(folder, stem))) if overrides else []
    except (HydraException, OmegaConfBaseException) as error:
        raise ConfigError(f"config {name}: {explain(error, _fields(folder, stem))}") from error
    except (YAMLError, ValueError) as error:
        raise ConfigError(f"config {name}: {' '.join(str(error).split())}") from error
    if wrong:
        more = f"; and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
        raise ConfigError(f"config {name}: {'; '.join(wrong[:_SHOWN])}{more}")
    return _finish(name, config)


def _compose(folder: Path, stem: str, overrides: Sequence[str]) -> DictConfig:
    with initialize_config_dir(str(folder), version_base=None):
        return hydra_compose(stem, [f"hydra.searchpath={_search_path(folder)}", *overrides])


def _refuse_unknown_groups(config: DictConfig) -> None:
    """Hydra takes `+ablations/maks=off`, of a group that is not there, for a field of that name."""
    for key in map(str, config):
        if "/" in key:
            folder = config_folder() / key.rpartition("/")[0]
            there = ", ".join(sorted(path.stem for path in folder.glob("*"))) or "nothing"
            raise ConfigError(f"there is no config group {key}; {folder.name} holds {there}")


@lru_cache(maxsize=8)
def _defaults(folder: Path, stem: str) -> DictConfig:
    return _compose(folder, stem, ())


def _fields(folder: Path, stem: str) -> list[str]:
    """The fields of a config without overrides; none of one that cannot be composed."""
    try:
        defaults = OmegaConf.to_container(_defaults(folder, stem))
    except (HydraException, OmegaConfBaseException):
        return []
    return [field for field, _ in leaves(defaults)]


def environment(config: DictConfig) -> dict[str, str]:
    """The environment variables that every process of the run needs."""
    started = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    defaults = {
        "TENSORBOARD_DIR": f"{config.output_dir}/tensorboard",
        "WANDB_DIR": str(config.output_dir),
        # verl starts the file anew, so each start of a resumed run has its own.
        METRICS_FILE: f"{config.output_dir}/metrics/{started}.jsonl",
    }
    if not _is_logged_in_to_wandb():
        defaults["WANDB_MODE"] = "offline"
    variables = {name: os.environ.get(name, value) for name, value in defaults.items()}
    if config.trainer.device == PLATFORM_NAME:
        variables |= cpu_environment(config.cpu.kv_cache_gib)
    return variables


def secrets() -> dict[str, str]:
    """Those that every process of the run needs, too; never in a config: it is printed and kept."""
    return {name: os.environ[name] for name in (TOKEN_VARIABLE,) if os.environ.get(name)}


def _is_logged_in_to_wandb() -> bool:
    logins = Path(os.environ.get("NETRC", "~/.netrc")).expanduser()
    return "WANDB_API_KEY" in os.environ or (logins.is_file() and "wandb" in logins.read_text())


def _locate(name: str) -> tuple[Path, str]:
    if name in shipped_configs():
        return config_folder(), name
    path = Path(name).resolve()
    if path.suffix in {".yaml", ".yml"} and path.is_file():
        return path.parent, path.stem
    raise ConfigError(
        f"config {name}: no such config; give a YAML file or one of {', '.join(shipped_configs())}"
    )


def _search_path(folder: Path) -> str:
    spec = find_spec("verl")
    if spec is None or spec.origin is None:
        raise ConfigError("package verl is not installed: run bash scripts/setup.sh")
    verl_configs = Path(spec.origin).parent / "trainer" / "config"
    folders = [verl_configs] if folder == config_folder() else [config_folder(), verl_configs]
    return "[" + ",".join(f"file://{path}" for path in folders) + "]"


def _finish(name: str, config: DictConfig) -> DictConfig:
    """Fill in what YAML cannot compute, and resolve, so that workers need no resolver of ours."""
    missing = [field for field in _REQUIRED_FIELDS if OmegaConf.select(config, field) is None]
    if missing:
        hints = " ".join(f"{field}=..." for field in missing)
        raise ConfigError(f"config {name}: {', '.join(missing)} must be given; add {hints}")
    with open_dict(config):
        config.output_dir = str(Path(config.output_dir).resolve())
        rollout = config.actor_rollout_ref.rollout
        if rollout.max_model_len is None:
            rollout.max_model_len = config.data.max_prompt_length + config.data.max_response_length
        if "cpu" in config and config.cpu.dtype is None:
            config.cpu.dtype = cpu_dtype()
        env_vars = dict(config.ray_kwargs.ray_init.runtime_env.get("env_vars") or {})
        # A stored config names the metrics of its own start, which this one must not overwrite.
        env_vars.pop(METRICS_FILE, None)
        config.ray_kwargs.ray_init.runtime_env.env_vars = environment(config) | env_vars
    try:
        OmegaConf.resolve(config)
    except OmegaConfBaseException as error:
        raise ConfigError(f"config {name}: {explain(error, ())}") from error
    return config
