import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from omegaconf import OmegaConf
from typer.testing import CliRunner

from search_r1 import train as train_module
from search_r1.check import Problem, Report
from search_r1.cli import app
from search_r1.config import shipped_configs

Run = Callable[..., Result]
PREPARE = ["world", "questions", "index", "model", "demonstrations"]


@pytest.fixture
def run() -> Run:
    def invoke(*arguments: object) -> Result:
        return CliRunner().invoke(app, [str(argument) for argument in arguments])

    return invoke


@pytest.fixture(autouse=True)
def without_verl(monkeypatch: pytest.MonkeyPatch) -> list[Problem]:
    """verl's own checks find what this list holds."""
    problems: list[Problem] = []
    monkeypatch.setattr(train_module, "validate_with_verl", lambda _: problems)
    return problems


def record(name: str, score: float) -> dict[str, Any]:
    return {
        "id": name,
        "question": f"What is {name}?",
        "golden_answers": ["x"],
        "answer": None,
        "hops": 1,
        "turns": 0,
        "searches": 0,
        "failed_searches": 0,
        "valid_actions": 0,
        "sampled_tokens": 0,
        "inserted_tokens": 0,
        "generate_seconds": 0.0,
        "search_seconds": 0.0,
        "stop_reason": "answered",
        "reward_parts": {"score": score, "em": score},
        "transcript": [],
    }


@pytest.fixture
def trajectories(tmp_path: Path) -> Path:
    path = tmp_path / "validation" / "10.jsonl"
    path.parent.mkdir()
    records = [record("low", 0.0), record("high", 1.0)]
    path.write_text("".join(json.dumps(one) + "\n" for one in records))
    return path


def test_help_comes_without_anything_heavy() -> None:
    code = (
        "import sys; from typer.testing import CliRunner; from search_r1.cli import app;"
        "print(CliRunner().invoke(app, ['train', '--help']).exit_code,"
        " sorted({'torch', 'ray', 'verl', 'hydra', 'data_prep'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "0 []"


def test_train_help_teaches_every_shipped_config_and_three_examples(run: Run) -> None:
    text = run("train", "--help").output
    assert all(f"{name}:" in text for name in shipped_configs())
    assert text.count("• search-r1 train") == 3


def test_a_config_that_can_run_passes_the_check(run: Run, run_overrides: list[str]) -> None:
    result = run("train", "ppo", *run_overrides, "--check")
    assert result.exit_code == 0
    assert "no problems" in result.stdout
    assert "estimated memory per GPU" in result.stdout


def test_a_problem_gives_exit_code_2_and_its_fix(run: Run, run_overrides: list[str]) -> None:
    result = run("train", "ppo", *run_overrides, "trainer.resume_mode=always", "--check")
    assert result.exit_code == 2
    assert "trainer.resume_mode" in result.stdout
    assert "fix: auto, disable or resume_path" in result.stdout


def test_the_check_shows_what_verl_refuses(
    run: Run, run_overrides: list[str], without_verl: list[Problem]
) -> None:
    without_verl.append(Problem("critic", "verl says no", "see verl"))
    result = run("train", "ppo", *run_overrides, "--check")
    assert result.exit_code == 2
    assert "verl says no" in result.stdout


def test_training_starts_nothing_with_a_problem(run: Run, run_overrides: list[str]) -> None:
    result = run("train", "ppo", *run_overrides, "data.train_batch_size=100000")
    assert result.exit_code == 2
    assert "do not fill one batch" in result.stderr
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["no_such"], "cpu_quickstart, grpo, ppo"),
        (["ppo"], "data.train_files=..."),
        (["ppo", "a.b=[1"], "config ppo"),
        (["missing.yaml"], "no such config"),
    ],
)
def test_a_bad_config_is_one_message(run: Run, words: list[str], message: str) -> None:
    result = run("train", *words)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.startswith("error: config")
    assert "Traceback" not in result.output


def test_a_dry_run_prints_the_command_and_a_config_that_runs_again(
    run: Run, run_overrides: list[str], tmp_path: Path
) -> None:
    result = run("train", "grpo", *run_overrides, "search.top_k=5", "--dry-run")
    assert result.exit_code == 0
    command, _, text = result.stdout.partition("\n")
    assert command.startswith("# search-r1 train grpo data.train_files=")
    assert command.endswith("search.top_k=5")
    config = OmegaConf.create(text)
    assert (config.search.top_k, config.actor_rollout_ref.rollout.n) == (5, 5)
    assert "${" not in text
    again = tmp_path / "again.yaml"
    again.write_text(text)
    repeated = OmegaConf.create(run("train", again, "--dry-run").stdout)
    for one in (config, repeated):
        # Each start writes its metrics to a file of its own.
        del one.ray_kwargs.ray_init.runtime_env.env_vars.VERL_FILE_LOGGER_PATH
    assert repeated == config


def fake_training(monkeypatch: pytest.MonkeyPatch, error: BaseException | None) -> None:
    def start(_: object) -> None:
        if error:
            raise error

    monkeypatch.setattr("search_r1.launch.start", start)


def test_a_finished_run_ends_with_0(
    run: Run, run_overrides: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_training(monkeypatch, None)
    assert run("train", "ppo", *run_overrides).exit_code == 0


def test_ctrl_c_ends_without_a_traceback(
    run: Run, run_overrides: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_training(monkeypatch, KeyboardInterrupt())
    result = run("train", "ppo", *run_overrides)
    assert result.exit_code == 130
    assert "the same command resumes" in result.stderr


def test_an_error_in_training_keeps_its_traceback(
    run: Run, run_overrides: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    failure = RuntimeError("a worker died")
    fake_training(monkeypatch, failure)
    result = run("train", "ppo", *run_overrides)
    assert result.exit_code == 1
    assert result.exception is failure


def test_serve_becomes_the_server_with_the_same_words(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[object] = []
    monkeypatch.setattr(os, "execv", lambda *arguments: seen.extend(arguments))
    run("serve", "--index", "folder", "--port", "1", "--help")
    server = [sys.executable, "-m", "retrieval_server"]
    words = ["--index", "folder", "--port", "1", "--help"]
    assert seen == [sys.executable, [*server, *words]]


def test_prepare_offers_every_command(run: Run) -> None:
    result = run("prepare", "--help")
    assert result.exit_code == 0
    assert "Usage: search-r1 prepare" in result.stdout
    assert all(f"│ {name}" in result.stdout for name in PREPARE)


def test_a_prepared_model_is_kept(run: Run, tmp_path: Path) -> None:
    result = run("prepare", "model", "--output", tmp_path)
    assert (result.exit_code, result.stdout.strip()) == (0, str(tmp_path))


def test_warm_start_takes_its_own_words(run: Run, tmp_path: Path) -> None:
    result = run("warm-start", "--help")
    assert result.exit_code == 0
    assert "Usage: search-r1 warm-start" in result.stdout
    missing = ["--data", tmp_path / "none.parquet", "--output", tmp_path / "x"]
    assert run("warm-start", "--model", "m", *missing).exit_code == 2


def test_prepare_passes_on_errors(run: Run, tmp_path: Path) -> None:
    result = run(
        "prepare", "questions", tmp_path / "none.jsonl", "--output", tmp_path / "x.parquet"
    )
    assert result.exit_code == 2
    assert "none.jsonl" in result.stderr


def test_view_shows_the_best_by_default(run: Run, trajectories: Path) -> None:
    result = run("view", trajectories)
    assert result.exit_code == 0
    assert "What is high?" in result.stdout
    assert "What is low?" not in result.stdout


def test_view_shows_what_is_asked_for(run: Run, trajectories: Path) -> None:
    assert "What is high?" not in run("view", trajectories, "--worst", 1).stdout
    both = run("view", trajectories, "--best", 1, "--worst", 1).stdout
    assert both.index("What is high?") < both.index("What is low?")
    assert "What is low?" in run("view", trajectories, "--id", "low").stdout


@pytest.mark.parametrize("words", [["--id", "none"], ["--best", "-1"]])
def test_view_refuses_what_it_cannot_show(run: Run, trajectories: Path, words: list[str]) -> None:
    assert run("view", trajectories, *words).exit_code == 2


def test_view_of_a_missing_file(run: Run, tmp_path: Path) -> None:
    result = run("view", tmp_path / "none.jsonl")
    assert result.exit_code == 2
    assert "none.jsonl" in result.stderr


def test_summary_reads_a_run(run: Run, trajectories: Path) -> None:
    result = run("summary", trajectories.parents[1])
    assert result.exit_code == 0
    assert "step 10" in result.stdout
    assert run("summary", trajectories.parent).exit_code == 2


def test_merge_without_a_checkpoint(run: Run, tmp_path: Path) -> None:
    result = run("merge", tmp_path, tmp_path / "out")
    assert result.exit_code == 2
    assert "trainer.save_freq" in result.stderr


def test_merge_that_fails_ends_with_1(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise subprocess.CalledProcessError(1, "merge")

    monkeypatch.setattr("search_r1.merge.merge", fail)
    assert run("merge", tmp_path, tmp_path / "out").exit_code == 1


@pytest.mark.parametrize(("well", "code"), [(True, 0), (False, 1)])
def test_doctor_ends_with_1_if_something_is_wrong(
    run: Run, monkeypatch: pytest.MonkeyPatch, well: bool, code: int
) -> None:
    monkeypatch.setattr("search_r1.doctor.print_diagnoses", lambda *_: well)
    assert run("doctor").exit_code == code


def test_our_problems_come_before_verls(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = Report((Problem("a", "b", "c"),))
    monkeypatch.setattr(train_module, "check", lambda _: ours)
    monkeypatch.setattr(train_module, "validate_with_verl", lambda _: pytest.fail("was asked"))
    assert train_module.check_all(OmegaConf.create()) is ours
