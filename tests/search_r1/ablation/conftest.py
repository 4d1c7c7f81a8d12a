"""Ablations as their runs leave them, and a stand-in for ``search-r1 train``."""

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from search_r1.ablation.plan import RUNS, Plan, PlannedRun, Variant
from search_r1.ablation.record import Ablation, write_end, write_record
from search_r1.files import RUN_CONFIG

FAKE_TRAIN = """
import json, os, sys, time
from pathlib import Path
words = dict(word.lstrip("+").partition("=")[::2] for word in sys.argv[1:] if "=" in word)
folder = Path(words["output_dir"])
(folder / "metrics").mkdir(parents=True, exist_ok=True)
(folder / "started").open("a").write(os.environ.get("MARK", "none") + "\\n")
print("training", folder.name, flush=True)
if "fail" in words.get("mode", "").split("+") and "off" in folder.name:
    sys.exit("out of memory")
if words.get("mode") == "wait":
    time.sleep(60)
row = {"step": 1, "data": {"val/reward/em": 0.5, "reward/score": 0.25, "tokens/response": 9.0}}
(folder / "metrics" / "1.jsonl").write_text(json.dumps(row) + "\\n")
"""


SMALL_CONFIG = """
output_dir: runs/${trainer.experiment_name}
search: {top_k: 3, mask_retrieved: true, urls: [http://127.0.0.1:8000/retrieve]}
algorithm: {adv_estimator: grpo, rollout_correction: {bypass_mode: true}}
data: {train_files: x, val_files: x, max_prompt_length: 1, max_response_length: 2, seed: 42}
actor_rollout_ref: {model: {path: m}, rollout: {n: 5, max_model_len: null, seed: 42}}
ray_kwargs: {ray_init: {runtime_env: {}}}
trainer: {experiment_name: null, test_freq: 50, total_training_steps: 1, device: cuda}
"""


@pytest.fixture
def small_config(tmp_path: Path) -> str:
    """A config with the fields that ablations are about: composed in no time."""
    path = tmp_path / "small.yaml"
    path.write_text(SMALL_CONFIG)
    return str(path)


@pytest.fixture
def fake_train(tmp_path: Path) -> list[str]:
    """A command that writes a run's metrics; ``mode=fail`` fails for runs called off."""
    script = tmp_path / "fake_train.py"
    script.write_text(FAKE_TRAIN)
    return [sys.executable, str(script)]


@pytest.fixture
def make_plan(tmp_path: Path) -> Callable[..., Plan]:
    """Makes a plan over runs of these names, whose config is nothing but a number of steps."""

    def make(*names: str, words: Sequence[str] = ()) -> Plan:
        folder = tmp_path / "ablation"
        runs = []
        for name in names:
            output = folder / RUNS / name
            config = OmegaConf.create({"trainer": {"total_training_steps": 1}})
            runs.append(PlannedRun(name, output, ("grpo", *words, f"output_dir={output}"), config))
        variants = [Variant("mask", name, None, name) for name in names]
        return Plan(folder, tuple(variants), tuple(runs))

    return make


@pytest.fixture
def made_ablation(tmp_path: Path, make_plan: Callable[..., Plan]) -> Ablation:
    """The mask on with two seeds, and off with one that failed before its first validation."""
    plan = make_plan()
    variants = [
        Variant("mask", "on", 1, "on-1"),
        Variant("mask", "on", 2, "on-2"),
        Variant("mask", "off", 1, "off-1"),
        Variant("top_k", "top3", 1, "on-1"),
    ]
    rows = {
        "on-1": [(0, {"val/reward/em": 0.9}), (2, _validation(0.5)), (4, _validation(0.25))],
        "on-2": [(0, {"val/reward/em": 0.9}), (2, _validation(0.25)), (4, _validation(0.75))],
        "off-1": [(1, {"reward/score": 0.0, "tokens/response": 90.0})],
    }
    for name, steps in rows.items():
        folder = plan.folder / RUNS / name
        (folder / "metrics").mkdir(parents=True)
        lines = (json.dumps({"step": step, "data": data}) + "\n" for step, data in steps)
        (folder / "metrics" / "1.jsonl").write_text("".join(lines))
        write_settings(folder, mask=name != "off-1")
        write_end(folder, int(name == "off-1"), 60.0)
    (plan.folder / RUNS / "on-1" / "validation").mkdir()
    (plan.folder / RUNS / "on-1" / "validation" / "4.jsonl").write_text("{}\n" * 1234)
    return write_record(Plan(plan.folder, tuple(variants), ()), "search-r1 ablate ppo <b>")


def _validation(em: float) -> dict[str, float]:
    return {
        "val/reward/em": em,
        "val/reward/f1": em / 2,
        "val/search/searches_per_question": 2.0,
        "val/tokens/response": 120.0,
        "val/tokens/masked_share": 0.75,
    }


def write_settings(folder: Path, mask: bool) -> None:
    """The config of a PPO run on the paper's 7B model."""
    OmegaConf.save(
        {
            "algorithm": {"adv_estimator": "gae"},
            "actor_rollout_ref": {
                "model": {"path": "/models/Qwen2.5-7B"},
                "rollout": {"n": 1},
            },
            "search": {"top_k": 3, "mask_retrieved": mask},
            "trainer": {"total_training_steps": 4},
        },
        folder / RUN_CONFIG,
    )
