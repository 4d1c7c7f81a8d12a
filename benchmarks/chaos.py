"""Kills the parts of a real run at random moments: does each ending come soon, say why, and resume?

    search-r1 prepare world --output world --articles 200 --train-questions 64 --test-questions 8
    search-r1 prepare index --corpus world/corpus.jsonl --output world/index --encoder minilm
    python benchmarks/chaos.py --world world --model MODEL --output chaos --kills 6 --seed 0

One run is left alone and one is killed again and again, each time resumed by the same command;
then both must have trained on the same trajectories' questions, each step once. A retrieval server
that is killed is started again at once, and the run must not notice. MODEL is a small warm-started
policy. Prints a line a kill and ends with code 1 if anything was not as it must be.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import psutil
from serving import Server, serving

from search_r1.checkpoints.folders import all_checkpoints
from search_r1.checkpoints.manifest import MANIFEST
from search_r1.checkpoints.recovery import fault_of
from search_r1.run_report.metrics_log import read_metrics

SERVER: Final = "server"
VICTIMS: Final = {
    "driver": "search-r1",
    "runner": "ray::TaskRunner",
    "trainer": "ray::WorkerDict",
    "trainer-saving": "ray::WorkerDict",
    "runner-saving": "ray::TaskRunner",
    "engine": "VLLM::EngineCore",
    "engine-worker": "VLLM::Worker",
    "engine-server": "ray::vLLMHttpServer",
    "agent-loop": "ray::AgentLoopWorker",
    "storage": "ray::SimpleStorage",
    SERVER: "",
}
"""What is killed, and how its process is called; ``-saving``: while a checkpoint is written."""

START_S: Final = 900.0
END_S: Final = 120.0
"""A run must end so soon after a kill, and nothing of it be left soon after that."""
LEFT_S: Final = 90.0


@dataclass(frozen=True)
class Kill:
    """One kill and what came of it."""

    victim: str
    after_step: int
    code: int | None
    """Of the command; None: it went on, as it must when the server is killed."""
    ended_s: float
    left: int
    """Processes of the run that were still there later."""
    said: str


class Training:
    """A run: one command, started as often as it takes."""

    def __init__(self, words: Sequence[str], output: Path) -> None:
        self.output = output
        self._words = ["search-r1", "train", *words, f"output_dir={output}"]
        self._words.append(f"trainer.experiment_name={output.name}")
        self._mark = f"{os.getpid()}-{output.name}"

    def start(self) -> None:
        """Run the command, with a log of its own."""
        self._metrics = self._count_metrics()
        self.output.mkdir(parents=True, exist_ok=True)
        starts = len(list(self.output.glob("*.log")))
        self.log = self.output / f"{starts}.log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(  # noqa: S603 - no shell
                self._words, env=os.environ | {"CHAOS": self._mark}, stdout=log, stderr=log
            )

    @property
    def steps(self) -> int:
        """The last step that was logged."""
        return max(_steps(self.output), default=0)

    def await_training(self) -> None:
        """Wait until this start comes to its first step."""
        deadline = time.monotonic() + START_S
        while self._count_metrics() == self._metrics and self.process.poll() is None:
            assert time.monotonic() < deadline, f"no step within {START_S:g} s: {self.log}"
            time.sleep(0.2)

    def await_saving(self) -> None:
        """Wait for the next checkpoint that is being written."""
        while self.process.poll() is None:
            folders = all_checkpoints(self.output / "checkpoints").values()
            if any(not (one / MANIFEST).is_file() for one in folders):
                return
            time.sleep(0.002)

    def processes(self) -> Iterator[psutil.Process]:
        """Everything that the run started, whoever its parent is now."""
        for process in psutil.process_iter():
            try:
                if process.environ().get("CHAOS") == self._mark:
                    yield process
            except psutil.Error:
                continue

    def find(self, title: str) -> psutil.Process:
        """A process of the run by what it calls itself."""
        return next(p for p in self.processes() if title in " ".join(p.cmdline()[:2]))

    def _count_metrics(self) -> int:
        return len(list((self.output / "metrics").glob("*.jsonl")))


def _steps(run: Path) -> Sequence[int]:
    try:
        return sorted(read_metrics(run).steps)
    except FileNotFoundError:
        return []


def kill_one(training: Training, victim: str, server: Server, delay_s: float) -> Kill:
    """Start the run, kill the victim some time after its first step began, and see what happens."""
    training.start()
    training.await_training()
    time.sleep(delay_s)
    step, began = training.steps, time.monotonic()
    if victim == SERVER:
        server.restart()
        code = training.process.wait()
        seconds = round(time.monotonic() - began, 1)
        return Kill(victim, step, code, seconds, _left(training), _said(training))
    process = training.find(VICTIMS[victim])
    if victim.endswith("-saving"):
        training.await_saving()
        step, began = training.steps, time.monotonic()
    process.kill()
    try:
        code = training.process.wait(END_S)
    except subprocess.TimeoutExpired:
        code = None
    ended_s = time.monotonic() - began
    kill = Kill(victim, step, code, round(ended_s, 1), _left(training), _said(training))
    for process in training.processes():
        process.kill()
    training.process.wait()
    return kill


def _left(training: Training) -> int:
    deadline = time.monotonic() + LEFT_S
    while (left := len(list(training.processes()))) and time.monotonic() < deadline:
        time.sleep(1)
    return left


def _said(training: Training) -> str:
    lines = [one for one in training.log.read_text(errors="replace").splitlines() if one.strip()]
    errors = [one for one in lines if "a process of the run died" in one or "Error" in one]
    return (errors or lines or [""])[-1][-200:]


def batches(run: Path) -> dict[int, list[Any]]:
    """Which question each trajectory of each step is of."""
    files = sorted((run / "rollouts").glob("*.jsonl"), key=lambda path: int(path.stem))
    return {
        int(path.stem): [(row["id"], row["session"]) for row in map(json.loads, path.open())]
        for path in files
    }


def compare(alone: Path, killed: Path, steps: int) -> list[str]:
    """What differs between the two runs, and what is broken in the killed one."""
    wrong = []
    if batches(alone) != batches(killed):
        wrong.append("the batches of the two runs are not the same")
    if _steps(killed) != list(range(1, steps + 1)):
        wrong.append(f"the killed run logged the steps {_steps(killed)}")
    folders = all_checkpoints(killed / "checkpoints").values()
    faults = ((folder, fault_of(folder, is_vouched_for=False)) for folder in folders)
    return wrong + [f"{folder}: {fault}" for folder, fault in faults if fault]


def main() -> None:
    """Run both, kill one of them, compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--world", type=Path, required=True)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--kills", type=int, default=6)
    parser.add_argument(
        "--victims", nargs="*", choices=VICTIMS, help="in this order; else drawn by the seed"
    )
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with serving(["-m", "retrieval_server", "--index", options.world / "index"]) as server:
        wrong = chaos(options, server)
    print("\n".join(wrong) or "every kill was survived")
    sys.exit(bool(wrong))


def chaos(options: argparse.Namespace, server: Server) -> list[str]:
    """Train twice, once with kills; what was not as it should be."""
    draw = random.Random(options.seed)
    victims = options.victims or draw.choices(list(VICTIMS), k=options.kills)
    words = [
        *("cpu_quickstart", "algo=grpo", f"data.train_files={options.world}/train.parquet"),
        f"data.val_files={options.world}/test.parquet",
        f"actor_rollout_ref.model.path={options.model}",
        f"search.urls=[{server.url}/retrieve]",
        f"trainer.total_training_steps={options.steps}",
        *("trainer.save_freq=1", "trainer.test_freq=-1", "trainer.val_before_train=false"),
        "trainer.rollout_data_dir=${output_dir}/rollouts",
        # What the engine computes depends a little on what it computes together.
        "actor_rollout_ref.rollout.max_num_seqs=1",
    ]
    wrong = []
    alone = Training(words, options.output / "alone")
    if alone.steps < options.steps:
        alone.start()
        assert alone.process.wait() == 0, alone.log
    killed = Training(words, options.output / "killed")
    for victim in victims:
        kill = kill_one(killed, victim, server, draw.uniform(0, 30))
        print(json.dumps(asdict(kill)), flush=True)
        if kill.code is None or kill.left or (kill.code == 0) != (victim == SERVER):
            wrong.append(f"{victim}: code {kill.code}, {kill.left} processes left")
    if killed.steps < options.steps:
        killed.start()
        wrong += [f"the last start ended with {code}"] if (code := killed.process.wait()) else []
    return wrong + compare(alone.output, killed.output, options.steps)


if __name__ == "__main__":
    main()
