"""`search-r1 eval --suite paper`, with vLLM and the tokenizer replaced."""

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
def suite(
    monkeypatch: pytest.MonkeyPatch,
    hub_tokenizer: Any,
    fake_engine: Any,
    serve: Callable[..., Any],
    tmp_path: Path,
    questions_of: Callable[..., list[Question]],
    write_set: Callable[..., Path],
) -> Run:
    """Runs the suite on four questions, with further words."""
    monkeypatch.setattr("search_r1.evaluation.vllm_engine.start_vllm", fake_engine.start)
    monkeypatch.setattr("search_r1.model_tokenizer.load_tokenizer", lambda _: hub_tokenizer)
    data = write_set(tmp_path / "nq" / "test.jsonl", questions_of(4))
    words = ["eval", "--suite", "paper", "--data", data, "--retriever", serve(FOUND).url]
    words += ["--output", tmp_path / "out"]
    return lambda *more: CliRunner().invoke(app, [str(word) for word in (*words, *more)])


def test_it_prints_the_table(suite: Run, model: Path, tmp_path: Path) -> None:
    result = suite(model, "--policy", f"search_r1_grpo_base={model}")
    assert result.exit_code == 0, result.output
    assert result.stdout == (tmp_path / "out" / "suite.md").read_text()
    assert "| Search-R1 GRPO, base | 0.500 [" in result.stdout
    assert "| *paper, Qwen2.5-7B* | 0.395 | 0.395 |" in result.stdout
    assert "| SFT (missing: give `--policy sft=MODEL`) | - | - |" in result.stdout
    assert "nq 4 of 3,610" in result.stdout
    assert "28 questions" in result.stderr


def test_policies_alone_leave_the_other_rows_missing(suite: Run, model: Path) -> None:
    result = suite("--policy", f"sft={model}", "--published", "Qwen2.5-3B")
    assert result.exit_code == 0, result.output
    assert "| RAG (missing: give `MODEL`) | - | - |" in result.stdout
    assert "| *paper, Qwen2.5-3B* | 0.249 | 0.249 |" in result.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "model: none is given; give a MODEL"),
        (["--policy", "ppo=x"], "policy: 'ppo=x' must be NAME=MODEL, and NAME one of sft, r1_"),
        (["--policy", "sft=no-such"], "model: no-such is no Hugging Face folder"),
        (["--method", "rag"], "method: a suite has methods of its own"),
        (["--suite", "all"], "suite: there is no 'all'; give paper"),
        (["--published", "GPT"], "published: there is no table of 'GPT'; give Qwen2.5-7B or"),
    ],
)
def test_bad_words_are_one_message(
    suite: Run, words: list[str], message: str, tmp_path: Path
) -> None:
    result = suite(*words)
    assert result.exit_code == 2
    assert message in result.stderr
    assert not (tmp_path / "out").exists()


def test_a_lost_search_engine_ends_the_suite_with_a_message(
    suite: Run, model: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async def fail(*_: object) -> None:
        raise RetrievalUnavailableError("9 of the last 20 searches failed")

    monkeypatch.setattr("search_r1.retriever.HttpRetriever.search", fail)
    result = suite(model)
    assert result.exit_code == 1
    assert "9 of the last 20 searches failed" in result.stderr
    assert "the same command goes on from there" in result.stderr
    table = (tmp_path / "out" / "suite.md").read_text()
    assert "| CoT | 0." in table
    assert "IRCoT (not finished)" in table
