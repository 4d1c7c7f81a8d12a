"""The commands, with vLLM and the tokenizer replaced."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from data_prep.questions import Question
from search_r1.cli import app
from search_r1.retriever import RetrievalUnavailableError

FOUND = {"body": {"result": [[{"document": {"id": "1", "contents": '"Ada"\nnotes'}}]]}}
Run = Callable[..., Result]


@pytest.fixture
def run() -> Run:
    def invoke(*arguments: object) -> Result:
        return CliRunner().invoke(app, [str(argument) for argument in arguments])

    return invoke


@pytest.fixture
def evaluate(
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
    hub_tokenizer: Any,
    fake_engine: Any,
    serve: Callable[..., Any],
    model: Path,
    tmp_path: Path,
    questions_of: Callable[..., list[Question]],
    write_set: Callable[..., Path],
) -> Run:
    """Runs `search-r1 eval` on ten questions, with further words."""
    monkeypatch.setattr("search_r1.evaluation.vllm_engine.start_vllm", fake_engine.start)
    monkeypatch.setattr("search_r1.model_tokenizer.load_tokenizer", lambda _: hub_tokenizer)
    data = write_set(tmp_path / "nq" / "test.jsonl", questions_of(10))
    words = ["eval", model, "--data", data, "--retriever", serve(FOUND).url]
    return lambda name, *more: run(*words, "--output", tmp_path / name, *more)


def test_an_evaluation_prints_its_tables(evaluate: Run, tmp_path: Path) -> None:
    result = evaluate("out")
    assert result.exit_code == 0, result.output
    assert result.stdout == (tmp_path / "out" / "metrics.md").read_text()
    assert "| nq | 10 | 0.500 [" in result.stdout
    assert "10 questions" in result.stderr


def test_the_options_reach_the_manifest(evaluate: Run, tmp_path: Path) -> None:
    budgets = ["--top-k", 1, "--max-searches", 2, "--turn-tokens", 70, "--sequence-tokens", 900]
    evaluate("out", *budgets, "--sample", 4, "--seed", 7)
    settings = json.loads((tmp_path / "out" / "manifest.json").read_text())["settings"]
    assert settings["search"] == {
        "top_k": 1,
        "max_searches": 2,
        "turn_tokens": 70,
        "observation_tokens": 500,
        "answer_reserve_tokens": 64,
        "max_response_length": 900,
        "sequence_tokens": 900,
    }
    assert (settings["questions"]["count"], settings["sampling"]["seed"]) == (4, 7)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--method", "magic"], "method: there is no 'magic'"),
        (["--sample", 99], "sample: 99 is out of range"),
        (["--top-k", 0], "search.top_k must be above 0"),
        (["--temperature", "nan"], "temperature: nan must be from 0 to 10"),
        (["--top-k", 101], "search.top_k: 101 is too much; give at most 100"),
        (["--turn-tokens", 5000], "search.turn_tokens: 5000 do not fit"),
        (["--temperature", -1], "temperature: -1.0 must be from 0 to 10"),
    ],
)
def test_bad_input_is_one_message(evaluate: Run, words: list[object], message: str) -> None:
    result = evaluate("out", *words)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.output


def test_other_settings_do_not_resume(evaluate: Run) -> None:
    assert evaluate("out").exit_code == 0
    result = evaluate("out", "--top-k", 1)
    assert result.exit_code == 2
    assert "search.top_k is 3 there and 1 now" in result.stderr


def test_a_lost_search_engine_ends_the_run_with_a_message(
    evaluate: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object) -> None:
        raise RetrievalUnavailableError("9 of the last 20 searches failed")

    monkeypatch.setattr("search_r1.retriever.HttpRetriever.search", fail)
    result = evaluate("out")
    assert result.exit_code == 1
    assert "9 of the last 20 searches failed" in result.stderr
    assert "the same command goes on from there" in result.stderr


def test_ctrl_c_ends_without_a_traceback(evaluate: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    async def stop(*query: object) -> None:
        asked.append(query)
        if len(asked) > 1:  # there is one Ctrl-C, however many questions wait
            await asyncio.sleep(60)
        raise KeyboardInterrupt

    monkeypatch.setattr("search_r1.retriever.HttpRetriever.search", stop)
    result = evaluate("out")
    assert result.exit_code == 130
    assert "stopped" in result.stderr


def test_an_error_of_a_question_keeps_its_traceback(
    evaluate: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    failure = ValueError("the engine broke its contract")

    async def fail(*_: object) -> None:
        raise failure

    monkeypatch.setattr("search_r1.retriever.HttpRetriever.search", fail)
    assert evaluate("out").exception is failure


@pytest.mark.slow
def test_two_evaluations_are_compared(
    evaluate: Run, run: Run, fake_engine: Any, tmp_path: Path
) -> None:
    evaluate("a")
    fake_engine.reply = lambda word: "x"
    evaluate("b")
    result = run("compare", tmp_path / "a", tmp_path / "b", "--show", 2)
    assert result.exit_code == 0
    assert "| overall | 10 | +0.000 [" in result.stdout
    assert "10 questions changed" in result.stdout
    assert result.stdout.count("right):") == 2
    changes = tmp_path / "b" / "changed_from_a.jsonl"
    assert len(changes.read_text().splitlines()) == 10


def test_evaluations_of_other_questions_are_not_compared(
    evaluate: Run, run: Run, tmp_path: Path
) -> None:
    evaluate("a")
    evaluate("b", "--sample", 4)
    result = run("compare", tmp_path / "a", tmp_path / "b")
    assert result.exit_code == 2
    assert "6 are not in B" in result.stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", ["trajectories.jsonl", "../a/answers.jsonl", "link.jsonl"])
@pytest.mark.parametrize("folder", ["a", "b"])
def test_a_comparison_never_replaces_a_file_of_an_evaluation(
    evaluate: Run, run: Run, tmp_path: Path, folder: str, name: str
) -> None:
    evaluate("a")
    evaluate("b")
    (tmp_path / folder / "link.jsonl").symlink_to("manifest.json")
    before = {path: path.read_bytes() for path in tmp_path.glob("[ab]/*")}
    result = run("compare", tmp_path / "a", tmp_path / "b", "--output", tmp_path / folder / name)
    assert result.exit_code == 2
    assert "is a file of an evaluation; give another --output" in result.stderr
    assert {path: path.read_bytes() for path in tmp_path.glob("[ab]/*")} == before


def test_a_search_engine_is_asked_for_before_anything_is_loaded(
    evaluate: Run, run: Run, model: Path, tmp_path: Path
) -> None:
    data, out = tmp_path / "nq" / "test.jsonl", tmp_path / "out"
    result = run("eval", model, "--data", data, "--output", out)
    assert result.exit_code == 2
    assert "give --retriever URL" in result.stderr
    assert not out.exists()


def test_a_repeated_file_is_one_message(evaluate: Run, tmp_path: Path) -> None:
    result = evaluate("out", "--data", tmp_path / "nq" / "test.jsonl")
    assert result.exit_code == 2
    assert "test.jsonl is repeated" in result.stderr


@pytest.mark.parametrize(
    ("name", "text"),
    [
        *(("model/config.json", text) for text in ("[]", "no", "[" * 100_000)),
        *(("out/manifest.json", text) for text in ("{}", "[]", "no", '{"settings": []}')),
    ],
)
def test_a_broken_file_is_one_message(evaluate: Run, tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    result = evaluate("out")
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert f"{path}: no" in result.stderr
    assert "; give another" in result.stderr or "; download" in result.stderr


def test_a_model_is_asked_for(run: Run, tmp_path: Path, model: Path) -> None:
    words = ["eval", "--data", tmp_path, "--output", tmp_path / "out"]
    result = run(*words)
    assert result.exit_code == 2
    assert "model: give a Hugging Face folder, a run" in result.stderr
    result = run(*words, model, "--policy", "sft=x")
    assert result.exit_code == 2
    assert "these go with --suite paper" in result.stderr


def test_a_folder_that_is_no_model_is_one_message(run: Run, tmp_path: Path) -> None:
    result = run("eval", tmp_path, "--data", tmp_path, "--output", tmp_path / "out")
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert "is no Hugging Face folder" in result.stderr


def test_a_run_is_evaluated_by_its_newest_checkpoint(
    evaluate: Run, model: Path, checkpoint: Callable[..., Path], merger: list[list[str]]
) -> None:
    (model / "config.json").unlink()
    checkpoint(model, 20)
    for _ in range(2):
        result = evaluate("out")
        assert result.exit_code == 0, result.output
    assert len(merger) == 1


def test_a_failed_merge_ends_with_its_own_message(
    evaluate: Run, model: Path, checkpoint: Callable[..., Path], merger: list[list[str]]
) -> None:
    (model / "config.json").unlink()
    checkpoint(model, 20)
    result = evaluate("broken")
    assert result.exit_code == 1
    assert "Traceback" not in result.output


def test_help_teaches_the_files_and_examples(run: Run) -> None:
    text = run("eval", "--help").stdout
    assert all(word in text for word in ("trajectories.jsonl", "search-r1 merge", "• search-r1"))
    assert "McNemar" in run("compare", "--help").stdout
