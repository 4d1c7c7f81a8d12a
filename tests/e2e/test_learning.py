"""The learning proof in short: a policy that was taught the tags only learns by RL to answer."""

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.learning.experiments import EXPERIMENTS, run_folder
from benchmarks.learning.workshop import ROOT, Workshop
from search_r1.run_report.metrics_log import read_metrics

pytestmark = pytest.mark.slow

STEPS = 8


def learning(*words: object) -> None:
    command = [sys.executable, "-m", "benchmarks.learning", *map(str, words)]
    subprocess.run(command, cwd=ROOT, check=True)


def test_grpo_teaches_what_the_warm_start_did_not(tmp_path: Path) -> None:
    workshop = Workshop(tmp_path)
    learning("prepare", "--output", tmp_path, "--reading-steps", 700, "--demonstrated", 2000)
    learning(
        *("run", "--output", tmp_path, "--experiment", "grpo", "--seeds", 1),
        *(f"trainer.total_training_steps={STEPS}", f"trainer.test_freq={STEPS}"),
    )
    [grpo] = [one for one in EXPERIMENTS if one.name == "grpo"]
    metrics = read_metrics(run_folder(workshop, grpo, grpo.seeds[0]))
    em, searches = (
        dict(metrics.curve([name]))
        for name in ("val/reward/em", "val/search/searches_per_question")
    )
    assert em[0] < 0.15
    assert em[STEPS] > em[0] + 0.15
    assert abs(searches[STEPS] - 1) < abs(searches[0] - 1)
