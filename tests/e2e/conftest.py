"""Real parts for the end-to-end tests: a world, its index, a server, a tiny model, and runs.

Everything is made once a session through the commands a user would type. The model is a random
Llama of two layers, warm-started until it writes tags, so that its rollouts really search.
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

HANGS = 1800
"""Seconds after which a command hangs, on however busy a machine."""

GRPO = (
    "algo=grpo",
    "actor_rollout_ref.actor.use_kl_loss=true",
    # What the engine computes depends a little on what it computes together; alone, it is exact.
    "actor_rollout_ref.rollout.max_num_seqs=1",
    "actor_rollout_ref.rollout.enable_prefix_caching=false",
)

MARK = {"SEARCH_R1_E2E": f"{os.getpid()}-{time.time_ns()}"}
"""An environment variable that all processes of this session's commands inherit, and no others."""

REPOSITORY = Path(__file__).resolve().parents[2]
COMMAND = str(Path(sys.executable).with_name("search-r1"))


@dataclass(frozen=True)
class Run:
    """A finished training run."""

    folder: Path
    code: int
    log: str

    def metrics(self) -> dict[int, dict[str, Any]]:
        """What the run logged, by step; the last start of a resumed run wins."""
        steps: dict[int, dict[str, Any]] = {}
        for path in sorted((self.folder / "metrics").glob("*.jsonl")):
            for line in path.read_text().splitlines():
                entry = json.loads(line)
                steps.setdefault(entry["step"], {}).update(entry["data"])
        return steps

    def trajectories(self, kind: str, step: int) -> list[dict[str, Any]]:
        """The stored trajectories of a step; `kind` is ``rollouts`` or ``validation``."""
        lines = (self.folder / kind / f"{step}.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]


Train = Callable[..., Run]


def search_r1(*arguments: object, timeout: float = HANGS) -> subprocess.CompletedProcess[str]:
    """Run the installed command and return what it said."""
    return subprocess.run(
        [COMMAND, *map(str, arguments)],
        cwd=REPOSITORY,
        env=os.environ | MARK,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def succeed(*arguments: object, timeout: float = HANGS) -> str:
    done = search_r1(*arguments, timeout=timeout)
    assert done.returncode == 0, f"{arguments}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="session")
def run_command() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs `search-r1` with words and returns what it said."""
    return search_r1


@pytest.fixture(scope="session")
def do() -> Callable[..., str]:
    """Runs `search-r1` with words, which must succeed."""
    return succeed


@pytest.fixture(scope="session")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("e2e")


@pytest.fixture(scope="session")
def world(workshop: Path) -> Path:
    """A world of 200 articles with its index."""
    folder = workshop / "world"
    succeed(
        *("prepare", "world", "--output", folder, "--articles", 200, "--seed", 7),
        *("--train-questions", 64, "--test-questions", 8),
    )
    succeed(
        *("prepare", "index", "--corpus", folder / "corpus.jsonl"),
        *("--output", folder / "index", "--encoder", "minilm"),
    )
    return folder


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass(frozen=True)
class Server:
    """A real retrieval server over the world's index."""

    process: subprocess.Popen[bytes]
    url: str

    @classmethod
    def start(cls, index: Path) -> "Server":
        port = free_port()
        command = [sys.executable, "-m", "retrieval_server", "--index", str(index)]
        process = subprocess.Popen([*command, "--port", str(port)], cwd=REPOSITORY)
        await_ready(f"http://127.0.0.1:{port}/health", process)
        return cls(process, f"http://127.0.0.1:{port}/retrieve")


@pytest.fixture(scope="session")
def server(world: Path) -> Iterator[Server]:
    server = Server.start(world / "index")
    yield server
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(timeout=30) == 0


@pytest.fixture(scope="module")
def mortal_server(world: Path) -> Iterator[Server]:
    """A server of the module's own, to be killed."""
    server = Server.start(world / "index")
    yield server
    server.process.kill()
    server.process.wait()


def await_ready(url: str, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        assert server.poll() is None, "the server ended before it was ready"
        try:
            if httpx.get(url).status_code == httpx.codes.OK:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.2)
    raise TimeoutError(url)


@pytest.fixture(scope="session")
def random_llama(workshop: Path) -> Path:
    """Two layers, random weights, the tokenizer of SmolLM2; pad is eos."""
    import torch
    from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

    base, folder = workshop / "smollm2", workshop / "random-llama"
    succeed("prepare", "model", "--output", base)
    tokenizer = AutoTokenizer.from_pretrained(base)
    torch.manual_seed(0)
    shape = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=2048,
        tie_word_embeddings=True,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    LlamaForCausalLM(shape).to(torch.bfloat16).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def tiny_model(workshop: Path, random_llama: Path) -> Path:
    """The random Llama after a warm start on another world: it writes tags, and knows nothing."""
    school, folder = workshop / "school", workshop / "tiny-model"
    succeed(
        *("prepare", "world", "--output", school, "--articles", 200, "--seed", 8),
        *("--train-questions", 64, "--test-questions", 8),
    )
    demonstrations = workshop / "demonstrations.parquet"
    succeed(
        *("prepare", "demonstrations", "--world", school, "--model", random_llama),
        *("--output", demonstrations, "--count", 48),
    )
    succeed(
        *("warm-start", "--model", random_llama, "--data", demonstrations, "--output", folder),
        *("--epochs", 8, "--learning-rate", 5e-3),
    )
    return folder


@pytest.fixture(scope="session")
def tiny_run(world: Path, tiny_model: Path, server: Server) -> list[str]:
    """A config and overrides: two steps of the tiny model in the world.

    It knows nothing, so exact match alone would teach it nothing: format counts too.
    """
    return [
        "cpu_quickstart",
        f"data.train_files={world}/train.parquet",
        f"data.val_files={world}/test.parquet",
        f"actor_rollout_ref.model.path={tiny_model}",
        f"search.urls=[{server.url}]",
        "+reward.custom_reward_function.reward_kwargs.format=1.0",
        "actor_rollout_ref.actor.optim.lr=1e-3",
        "algorithm.rollout_correction.bypass_mode=false",
        "trainer.total_training_steps=2",
        "trainer.test_freq=2",
        "trainer.rollout_data_dir=${output_dir}/rollouts",
    ]


@pytest.fixture(scope="session")
def grpo_words() -> tuple[str, ...]:
    """The overrides of a GRPO run that can be repeated exactly."""
    return GRPO


@pytest.fixture(scope="session")
def ablation(workshop: Path, tiny_run: list[str]) -> Path:
    """An ablation of the mask: two GRPO runs, of which the masked one is the tests' GRPO run."""
    folder = workshop / "ablation"
    words = ("ablate", *tiny_run, *GRPO, "trainer.save_freq=1", "--axis", "mask")
    said = succeed(*words, "--output", folder)
    (workshop / "ablation.log").write_text(said)
    return folder


@pytest.fixture(scope="session")
def grpo(ablation: Path) -> Run:
    """A GRPO run of two steps, with a checkpoint of each."""
    log = (ablation / "logs" / "mask-on.log").read_text()
    return Run(ablation / "runs" / "mask-on", 0, log)


@pytest.fixture(scope="session")
def train(workshop: Path, tiny_run: list[str], server: Server) -> Iterator[Train]:
    """Runs ``search-r1 train`` on the tiny model, with overrides."""

    def run(name: str, *overrides: str, url: str = server.url) -> Run:
        folder = workshop / name
        done = search_r1(
            *("train", *tiny_run),
            f"trainer.experiment_name={name}",
            f"output_dir={folder}",
            f"search.urls=[{url}]",
            *overrides,
        )
        log = done.stdout + done.stderr
        (workshop / f"{name}.log").write_text(log)
        return Run(folder, done.returncode, log)

    yield run
    kill_stray_processes()


def kill_stray_processes() -> None:
    """End what a killed run may have left of Ray: every process that has our mark."""
    for process in marked_processes():
        with contextlib.suppress(psutil.Error):
            process.kill()


def marked_processes() -> list[psutil.Process]:
    """What this session's commands have started and is still there."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().items() >= MARK.items():
                found.append(process)
    return found


@pytest.fixture(scope="session")
def left_of_runs() -> Callable[[], list[psutil.Process]]:
    """Says what this session's commands have started and is still there."""
    return marked_processes
