"""Trains a policy: our config, our monitor and agent loop, verl's trainer.

Command: ``search-r1 train cpu_quickstart data.train_files=... data.val_files=...``.
"""

import os

from omegaconf import DictConfig, OmegaConf

from search_r1.config import environment


def train(config: DictConfig) -> None:
    """Run `config`, as `search_r1.config.compose` made it, to its last step.

    Starts Ray unless it runs; resumes from the newest checkpoint in ``trainer.default_local_dir``
    unless ``trainer.resume_mode`` is ``disable``.

    Raises:
        ray.exceptions.RayTaskError: what went wrong in a worker, as it was raised there.
    """
    # verl reads its platform from the environment while it is imported.
    os.environ.update(environment(config))
    import ray
    from verl.trainer.main_ppo import TaskRunnerV1, run_ppo

    verl_runner = TaskRunnerV1.__ray_metadata__.modified_class

    class TaskRunner(verl_runner):  # type: ignore[misc, valid-type] # verl is not typed
        """verl's task runner, with every trainer of its registry under our monitor."""

        def run(self, config: DictConfig) -> None:
            _monitor_trainers()
            super().run(config)

    run_ppo(config, ray.remote(TaskRunner))
    ray.shutdown()


def _monitor_trainers() -> None:
    from verl.trainer.ppo.v1.trainer_base import TRAINER_REGISTRY

    from search_r1.monitor import SearchMonitor

    for mode, trainer in TRAINER_REGISTRY.items():
        TRAINER_REGISTRY[mode] = type(f"Monitored{trainer.__name__}", (SearchMonitor, trainer), {})


def to_yaml(config: DictConfig) -> str:
    """The resolved config as YAML."""
    return OmegaConf.to_yaml(config)
