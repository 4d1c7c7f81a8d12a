"""The experiments of the learning proof: what each changes in learning.yaml, and by which server.

Each run is `search-r1 train` in a process of its own; one that was stopped is resumed.
"""

import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.learning.workshop import COMMAND, ROOT, Workshop
from benchmarks.serving import serving
from search_r1.ablation.record import exit_code, write_end

CONFIG: Final = Path(__file__).with_name("learning.yaml")


@dataclass(frozen=True, slots=True)
class Experiment:
    """One line of the proof."""

    name: str
    overrides: Sequence[str]
    seeds: Sequence[int]
    server: Sequence[str] = ("-m", "retrieval_server")
    """Python's arguments."""


PPO: Final = (
    "algo=ppo",
    "data.train_batch_size=128",
    "actor_rollout_ref.actor.ppo_mini_batch_size=64",
    "critic.ppo_mini_batch_size=64",
    "algorithm.use_kl_in_reward=false",
)
PRICED: Final = ("+rubrics=thrift", "algorithm.norm_adv_by_std_in_grpo=false")
"""Each search costs a fiftieth of a right answer. Advantages are not divided by their spread, or in
a group of wrong answers the price would weigh as much as exact match does in others."""
EXPERIMENTS: Final = (
    Experiment("grpo", (), (1, 2, 3)),
    Experiment("ppo", PPO, (1, 2, 3)),
    Experiment("mask-off", ("search.mask_retrieved=false",), (1, 2, 3)),
    Experiment("priced", PRICED, (1,)),
    Experiment("random-retriever", PRICED, (1,), ("-m", "benchmarks.learning.random_retriever")),
    Experiment("no-search", ("search.max_searches=0",), (1,)),
)


def run_folder(workshop: Workshop, experiment: Experiment, seed: int) -> Path:
    """Where a run is."""
    return workshop.folder / "runs" / f"{experiment.name}-{seed}"


def train(workshop: Workshop, experiment: Experiment, overrides: Sequence[str]) -> None:
    """Train every seed that is not finished, with a retrieval server of the experiment's own.

    Raises:
        subprocess.CalledProcessError: a run failed; its log is beside its folder.
    """
    waiting = [
        seed for seed in experiment.seeds if exit_code(run_folder(workshop, experiment, seed)) != 0
    ]
    if not waiting:
        return
    log = workshop.folder / f"server-{experiment.name}.log"
    with serving([*experiment.server, "--index", workshop.index], log) as server:
        url = f"{server.url}/retrieve"
        for seed in waiting:
            folder = run_folder(workshop, experiment, seed)
            words = _words(workshop, experiment, seed, url, overrides)
            started = time.monotonic()
            with folder.with_suffix(".log").open("a") as log:
                subprocess.run(words, cwd=ROOT, stdout=log, stderr=log, check=True)  # noqa: S603
            write_end(folder, 0, time.monotonic() - started)


def _words(
    workshop: Workshop, experiment: Experiment, seed: int, url: str, overrides: Sequence[str]
) -> list[str]:
    folder = run_folder(workshop, experiment, seed)
    folder.parent.mkdir(parents=True, exist_ok=True)
    return [
        *(COMMAND, "train", str(CONFIG)),
        *experiment.overrides,
        f"trainer.experiment_name={experiment.name}-{seed}",
        f"output_dir={folder}",
        f"data.seed={seed}",
        f"actor_rollout_ref.rollout.seed={seed}",
        f"data.train_files={workshop.world}/train.parquet",
        f"data.val_files={workshop.world}/test.parquet",
        f"actor_rollout_ref.model.path={workshop.policy}",
        f"search.urls=[{url}]",
        *overrides,
    ]
