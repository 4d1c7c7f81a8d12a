"""scripts/train_ppo.sh, train_grpo.sh and train_r1.sh, without starting anything."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from omegaconf import OmegaConf

SCRIPTS = Path(__file__).parents[2] / "scripts"
NEEDED = ["--model", "Qwen/Qwen2.5-7B", "--train", "train.parquet", "--val", "test.parquet"]


def run(algorithm: str, *words: str) -> subprocess.CompletedProcess[str]:
    beside_python = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return subprocess.run(
        ["bash", str(SCRIPTS / f"train_{algorithm}.sh"), *words],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PATH": beside_python},
    )


@pytest.mark.parametrize(
    ("algorithm", "estimator"),
    [
        ("ppo", "gae"),
        pytest.param("grpo", "grpo", marks=pytest.mark.slow),
        pytest.param("r1", "grpo", marks=pytest.mark.slow),
    ],
)
def test_a_dry_run_prints_the_command_and_the_whole_config(algorithm: str, estimator: str) -> None:
    done = run(algorithm, *NEEDED, "--dry-run", "trainer.total_training_steps=7")
    assert done.returncode == 0, done.stderr
    command, _, text = done.stdout.partition("\n")
    assert command == (
        f"# search-r1 train {algorithm} actor_rollout_ref.model.path=Qwen/Qwen2.5-7B "
        "data.train_files=train.parquet data.val_files=test.parquet "
        f"trainer.experiment_name={algorithm}-qwen2.5-7b trainer.nnodes=1 "
        "trainer.total_training_steps=7"
    )
    config = OmegaConf.create(text)
    assert config.algorithm.adv_estimator == estimator
    assert config.trainer.total_training_steps == 7
    assert config.trainer.n_gpus_per_node == 8


def test_names_with_spaces_commas_and_quotes_arrive_as_they_are() -> None:
    words = ["--model", "/a b/c,d", "--train", "x=y's.parquet", "--val", "[1].parquet"]
    done = run("ppo", *words, "--name", "12", "--nodes", "2", "--dry-run")
    assert done.returncode == 0, done.stderr
    config = OmegaConf.create(done.stdout)
    assert config.actor_rollout_ref.model.path == "/a b/c,d"
    assert config.data.train_files == "x=y's.parquet"
    assert config.data.val_files == "[1].parquet"
    assert config.trainer.experiment_name == "12"
    assert config.trainer.nnodes == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "--model is missing"),
        (NEEDED[:4], "--val is missing"),
        ([*NEEDED, "--nodes", "0"], "--nodes takes a whole number"),
        ([*NEEDED, "--batch", "3"], "unknown option --batch"),
        ([*NEEDED, "hello"], "hello is neither an option nor FIELD=VALUE"),
        (["--model"], "--model needs a value"),
    ],
)
def test_a_wrong_word_is_told(words: list[str], message: str) -> None:
    done = run("grpo", *words)
    assert done.returncode == 2
    assert done.stderr.startswith("train_grpo: ")
    assert message in done.stderr


def test_help_names_every_option() -> None:
    done = run("ppo", "--help")
    assert done.returncode == 0
    for option in ("--model", "--train", "--val", "--name", "--nodes", "--check", "--dry-run"):
        assert option in done.stdout
