"""How the run is started, resumed, logged, validated and rewarded."""

import importlib
import os
from importlib.util import find_spec
from pathlib import Path
from typing import get_args

from omegaconf import DictConfig, OmegaConf

from search_r1 import rewards
from search_r1.checks.findings import Findings, Note, Problem, as_list, select
from search_r1.checks.sizes import needs_critic, needs_reference
from search_r1.platform import PLATFORM_NAME
from search_r1.platform.precision import Dtype

LOGGERS = (
    "wandb",
    "mlflow",
    "swanlab",
    "vemlp_wandb",
    "tensorboard",
    "console",
    "clearml",
    "trackio",
    "file",
    "rl_insight",
)
"""verl's: ``verl.utils.tracking.Tracking.supported_backend``."""

DEVICES = ("cuda", "npu", PLATFORM_NAME)

_BUILT_IN_LOGGERS = {"console", "file", "vemlp_wandb", "rl_insight"}
_REWARD = "reward.custom_reward_function"
_OUTPUTS = ("output_dir", "trainer.default_local_dir", "trainer.validation_data_dir")


def check_run(config: DictConfig) -> Findings:
    """Outputs, logging, resuming, reward, validation, algorithm and device."""
    yield from _check_outputs(config)
    yield from _check_loggers(config)
    yield from _check_resume(config)
    yield from _check_reward(config)
    yield from _check_validation(config)
    yield from _check_algorithm(config)
    if config.trainer.device not in DEVICES:
        yield Problem("trainer.device", f"is {config.trainer.device!r}", " or ".join(DEVICES))
    if config.trainer.device == PLATFORM_NAME:
        yield from _check_cpu(config)


def _check_outputs(config: DictConfig) -> Findings:
    for field in _OUTPUTS:
        folder = Path(str(select(config, field, ".")))
        nearest = next(path for path in (folder, *folder.absolute().parents) if path.exists())
        if not nearest.is_dir():
            yield Problem(field, f"{folder}: {nearest} is a file", "a folder, which may be missing")
        elif not os.access(nearest, os.W_OK | os.X_OK):
            yield Problem(field, f"{folder}: {nearest} cannot be written", "a folder you may write")


def _check_loggers(config: DictConfig) -> Findings:
    loggers = as_list(select(config, "trainer.logger"))
    for name in loggers:
        if name not in LOGGERS:
            yield Problem("trainer.logger", f"{name} is unknown", f"from {', '.join(LOGGERS)}")
        elif name not in _BUILT_IN_LOGGERS and find_spec(name) is None:
            yield Problem("trainer.logger", f"{name} is not installed", f"pip install {name}")
    mode = config.ray_kwargs.ray_init.runtime_env.env_vars.get("WANDB_MODE")
    if "wandb" in loggers and mode == "offline":
        yield Note("trainer.logger", f"no wandb login: offline, in {config.output_dir}/wandb")


def _check_resume(config: DictConfig) -> Findings:
    mode = config.trainer.resume_mode
    if mode not in {"auto", "disable", "resume_path"}:
        yield Problem("trainer.resume_mode", f"is {mode!r}", "auto, disable or resume_path")
    if mode == "resume_path":
        folder = str(select(config, "trainer.resume_from_path", ""))
        if not Path(folder).name.startswith("global_step_") or not Path(folder).is_dir():
            message = f"{folder or 'null'} is not a checkpoint"
            yield Problem("trainer.resume_from_path", message, "a folder global_step_N")


def _check_reward(config: DictConfig) -> Findings:
    if select(config, "custom_reward_function.path"):
        yield Problem("custom_reward_function.path", "verl ignores this section", f"set {_REWARD}")
    path, name = select(config, f"{_REWARD}.path", ""), select(config, f"{_REWARD}.name")
    if not path.startswith("pkg://"):
        if not Path(path.removeprefix("file://")).is_file():
            yield Problem(
                f"{_REWARD}.path", f"there is no file {path!r}", "pkg://search_r1.rewards"
            )
        return
    module = path.removeprefix("pkg://").replace("/", ".")
    try:
        if not hasattr(importlib.import_module(module), str(name)):
            yield Problem(f"{_REWARD}.name", f"{module} has no {name}", "compute_score")
        elif module == rewards.__name__:
            yield from _check_weights(config)
    except ImportError as error:
        message = f"{module} cannot be imported: {error}"
        yield Problem(f"{_REWARD}.path", message, "pkg://search_r1.rewards")


def _check_weights(config: DictConfig) -> Findings:
    field = f"{_REWARD}.reward_kwargs"
    weights = OmegaConf.select(config, field)
    try:
        rewards.RewardWeights.from_mapping({} if weights is None else weights)
    except (AttributeError, TypeError, ValueError) as error:
        yield Problem(field, str(error), "numbers by name, as in configs/rubrics/em.yaml")


def _check_validation(config: DictConfig) -> Findings:
    validation = config.actor_rollout_ref.rollout.val_kwargs
    if validation.n > 1 and not validation.do_sample:
        field = "actor_rollout_ref.rollout.val_kwargs.do_sample"
        yield Problem(field, f"{validation.n} greedy answers a question are all the same", "true")
    if not config.trainer.val_before_train and config.trainer.test_freq <= 0:
        yield Note("trainer.test_freq", "the run never validates: no held-out EM", warning=True)
    if not select(config, "trainer.validation_data_dir"):
        yield Note("trainer.validation_data_dir", "validation stores no trajectories", warning=True)


def _check_algorithm(config: DictConfig) -> Findings:
    if config.algorithm.adv_estimator == "grpo" and config.actor_rollout_ref.rollout.n == 1:
        text = "groups of one have no baseline: verl makes this REINFORCE with the baseline 0"
        yield Note("actor_rollout_ref.rollout.n", text, warning=True)
    if not needs_reference(config):
        text = "neither algorithm.use_kl_in_reward nor this is set: no KL to the reference model"
        yield Note("actor_rollout_ref.actor.use_kl_loss", text)


def _check_cpu(config: DictConfig) -> Findings:
    sections = ["actor_rollout_ref.actor", "actor_rollout_ref.ref"]
    for section in [*sections, "critic"] if needs_critic(config) else sections:
        strategy = select(config, f"{section}.strategy")
        if strategy != "fsdp2":
            yield Problem(f"{section}.strategy", f"{strategy} does not run on a CPU", "fsdp2")
    if config.trainer.nnodes * config.trainer.n_gpus_per_node > 1:
        message = "a CPU is one device"
        yield Problem("trainer.n_gpus_per_node", message, "1, and trainer.nnodes=1")
    if (dtype := select(config, "cpu.dtype")) not in get_args(Dtype):
        yield Problem("cpu.dtype", f"is {dtype!r}", "null, float32 or bfloat16")
    field = "actor_rollout_ref.rollout.enable_chunked_prefill"
    if select(config, field):
        # Every turn has a seed, and torch's CPU generator has no offset to turn back.
        yield Problem(field, "ends vLLM's CPU build at a seeded request", "false")
