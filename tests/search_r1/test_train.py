"""What verl itself refuses, through a command, and what its task runner starts with."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf

from search_r1.check import Report
from search_r1.config import config_folder, shipped_configs

pytestmark = pytest.mark.slow

COMMAND = str(Path(sys.executable).with_name("search-r1"))
PROGRAM = Path(__file__).with_name("check_program.py")
# A name rather than a folder: the made one has no tokenizer that verl could load.
MODEL = "actor_rollout_ref.model.path=Qwen/Qwen2.5-7B"
WITH_REMEDIES = ("ppo", "grpo", "cpu_quickstart")


@pytest.fixture(scope="module")
def problems(run_overrides: list[str]) -> dict[str, list[str]]:
    """What is wrong with each shipped config, and with some under every remedy at once."""
    remedies = sorted(path.stem for path in (config_folder() / "remedies").glob("*.yaml"))
    cured = f"+remedies=[{','.join(remedies)}]"
    asked = {name: [name, *run_overrides, MODEL] for name in shipped_configs()}
    asked |= {f"{name} cured": [name, *run_overrides, MODEL, cured] for name in WITH_REMEDIES}
    on_cpu = {label: words for label, words in asked.items() if "cpu" in label}
    on_gpu = {label: words for label, words in asked.items() if "cpu" not in label}
    return check_together(on_cpu) | check_together(on_gpu)


def check_together(asked: dict[str, list[str]]) -> dict[str, list[str]]:
    done = subprocess.run(
        [sys.executable, PROGRAM],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, list[str]] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("name", shipped_configs())
def test_verl_takes_every_shipped_config(name: str, problems: dict[str, list[str]]) -> None:
    assert problems[name] == []


@pytest.mark.parametrize("name", WITH_REMEDIES)
def test_verl_takes_every_remedy(name: str, problems: dict[str, list[str]]) -> None:
    assert problems[f"{name} cured"] == []


def test_verls_refusals_name_their_section(run_overrides: list[str]) -> None:
    wrong = (
        "actor_rollout_ref.actor.loss_agg_mode=median",
        "actor_rollout_ref.actor.policy_loss.loss_mode=wish",
        "+actor_rollout_ref.rollout.no_such_setting=1",
        "algorithm.adv_estimator=guess",
    )
    command = [COMMAND, "train", "ppo", *run_overrides, MODEL, *wrong, "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 2
    for part in (
        "Invalid loss_agg_mode: median",
        "no_such_setting",
        "actor_rollout_ref.rollout",
        "algorithm.adv_estimator",
        "policy_loss.loss_mode",
    ):
        assert part in done.stdout
    assert "Traceback" not in done.stderr


def test_the_trainer_starts_with_our_monitor_and_our_group_baseline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from verl.trainer import main_ppo
    from verl.trainer.ppo import core_algos
    from verl.trainer.ppo.v1.trainer_base import TRAINER_REGISTRY

    from search_r1 import train
    from search_r1.monitor import SearchMonitor

    runner_class = main_ppo.TaskRunnerV1.__ray_metadata__.modified_class
    grpo, seen = core_algos.compute_grpo_outcome_advantage, list[object]()

    def run(_runner: object, _config: object) -> None:
        seen.append(core_algos.compute_grpo_outcome_advantage)
        seen.append(TRAINER_REGISTRY["sync"])

    def run_here(config: object, runner: Any) -> None:
        made = runner.__ray_metadata__.modified_class
        made.run(object.__new__(made), config)

    monkeypatch.setattr(runner_class, "run", run)
    monkeypatch.setattr(main_ppo, "run_ppo", run_here)
    monkeypatch.setattr(train, "check_all", lambda _config: Report(()))
    monkeypatch.setattr(core_algos, "compute_grpo_outcome_advantage", grpo)
    for mode, trainer in TRAINER_REGISTRY.items():
        monkeypatch.setitem(TRAINER_REGISTRY, mode, trainer)
    monkeypatch.setenv("VERL_FILE_LOGGER_PATH", str(tmp_path / "metrics" / "log.jsonl"))
    train.train(OmegaConf.create({"output_dir": str(tmp_path)}))
    estimator, trainer = seen
    assert estimator.__wrapped__ is grpo
    assert issubclass(trainer, SearchMonitor)
