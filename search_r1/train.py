"""Trains a policy: our config, our monitor and agent loop, verl's trainer.

Command: ``search-r1 train cpu_quickstart data.train_files=... data.val_files=...``.
"""

import contextlib
import io
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from hydra.errors import InstantiationException
from omegaconf import DictConfig, OmegaConf

from search_r1.check import Problem, Report, check
from search_r1.checks.findings import as_list
from search_r1.checks.sizes import needs_critic, needs_reference
from search_r1.config import ConfigError, secrets
from search_r1.files import RUN_CONFIG, write_lines
from search_r1.worker_watch import ended_by_dead_workers


class CheckFailedError(ConfigError):
    """The config cannot run; `report` holds every problem with its fix."""

    def __init__(self, report: Report) -> None:
        super().__init__("; ".join(f"{p.field}: {p.message}" for p in report.problems))
        self.report = report


def train(config: DictConfig) -> None:
    """Run `config`, as `search_r1.config.compose` made it, to its last step.

    Starts Ray unless it runs; resumes from the newest checkpoint in ``trainer.default_local_dir``
    unless ``trainer.resume_mode`` is ``disable``.

    Raises:
        CheckFailedError: the config has problems; nothing was started.
        WorkerDiedError: a process of the run died.
        ray.exceptions.RayTaskError: what went wrong in a worker, as it was raised there.
    """
    report = check_all(config)
    if report.problems:
        raise CheckFailedError(report)
    write_lines(Path(config.output_dir) / RUN_CONFIG, [to_yaml(config)])
    Path(os.environ["VERL_FILE_LOGGER_PATH"]).parent.mkdir(parents=True, exist_ok=True)
    import ray
    from verl.trainer.main_ppo import TaskRunnerV1, run_ppo

    verl_runner = TaskRunnerV1.__ray_metadata__.modified_class

    class TaskRunner(verl_runner):  # type: ignore[misc, valid-type] # verl is not typed
        """verl's task runner, with every trainer of its registry under our mixins."""

        def run(self, config: DictConfig) -> None:
            _monitor_trainers()
            _ignore_rounding_in_groups()
            super().run(config)

    try:
        with ended_by_dead_workers():
            run_ppo(config, _remote(TaskRunner))
    finally:
        ray.shutdown()


def _remote(runner: type) -> Any:
    """The runner as an actor class, with the secrets in its environment and its children's."""
    import ray

    if known := secrets():
        return ray.remote(runtime_env={"env_vars": known})(runner)
    return ray.remote(runner)


def _monitor_trainers() -> None:
    from verl.trainer.ppo.v1.trainer_base import TRAINER_REGISTRY

    from search_r1.engine_watch import EngineWatch
    from search_r1.monitor import SearchMonitor
    from search_r1.stability.guard import StabilityGuard

    for mode, trainer in TRAINER_REGISTRY.items():
        bases = (StabilityGuard, SearchMonitor, EngineWatch, trainer)
        TRAINER_REGISTRY[mode] = type(f"Monitored{trainer.__name__}", bases, {})


def _ignore_rounding_in_groups() -> None:
    """verl/trainer/ppo/ray_trainer.py calls its GRPO by this name, whatever its registry holds."""
    from verl.trainer.ppo import core_algos

    from search_r1.group_advantage import without_rounding

    core_algos.compute_grpo_outcome_advantage = without_rounding(
        core_algos.compute_grpo_outcome_advantage
    )


def check_all(config: DictConfig) -> Report:
    """Our own checks and, once they find no problem, verl's; takes the time to import verl."""
    report = check(config)
    if report.problems:
        return report
    return replace(report, problems=tuple(validate_with_verl(config)))


def validate_with_verl(config: DictConfig) -> list[Problem]:
    """What verl's own dataclasses and `validate_config` refuse.

    The model and its tokenizer are read only from a local folder: nothing is downloaded.
    """
    # verl reads its platform from the environment while it is imported.
    os.environ.update(config.ray_kwargs.ray_init.runtime_env.env_vars)
    from verl.trainer.ppo.core_algos import get_adv_estimator_fn, get_policy_loss_fn
    from verl.utils.config import omega_conf_to_dataclass, validate_config
    from verl.utils.import_utils import import_external_libs

    config = config.copy()
    sections = ["actor_rollout_ref.actor", "actor_rollout_ref.rollout", "critic", "algorithm"]
    if Path(config.actor_rollout_ref.model.path).is_dir():
        sections.append("actor_rollout_ref.model")
    else:
        config.critic.model = None
    problems = []
    for section in sections:
        problems += _refusal(section, omega_conf_to_dataclass, OmegaConf.select(config, section))
    estimator = config.algorithm.adv_estimator
    problems += _refusal("algorithm.adv_estimator", get_adv_estimator_fn, estimator)
    import_external_libs(as_list(config.actor_rollout_ref.model.external_lib))
    loss = config.actor_rollout_ref.actor.policy_loss.loss_mode
    loss_field = "actor_rollout_ref.actor.policy_loss.loss_mode"
    problems += _refusal(loss_field, get_policy_loss_fn, loss)
    if not problems:
        needs = needs_reference(config), needs_critic(config)
        problems += _refusal("config", validate_config, config, *needs)
    return problems


def _refusal(field: str, verify: Callable[..., object], *values: Any) -> list[Problem]:
    """The problem that `verify` raises, if any; what verl prints meanwhile is dropped."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            verify(*values)
    except (AssertionError, TypeError, ValueError, InstantiationException) as error:
        reason = str(error.__cause__ or error)
        return [Problem(field, reason, "see this section of verl's ppo_trainer.yaml")]
    return []


def to_yaml(config: DictConfig) -> str:
    """The resolved config as YAML."""
    return OmegaConf.to_yaml(config)
