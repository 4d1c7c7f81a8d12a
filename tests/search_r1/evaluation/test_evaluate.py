import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from data_prep.questions import Question
from search_r1.evaluation.config import EvalConfig
from search_r1.evaluation.evaluate import Evaluation
from search_r1.evaluation.methods import METHODS, NEVER_SEARCH
from search_r1.evaluation.scores import Scores
from search_r1.settings import SearchSettings
from search_r1.view import read_records

Config = Callable[..., EvalConfig]
FOUND = {"body": {"result": [[{"document": {"id": "1", "contents": '"Ada"\nnotes'}}]]}}
PROGRAM = Path(__file__).with_name("killed_program.py")


@pytest.fixture
def searching(config: Config, serve: Callable[..., Any]) -> Config:
    """Evaluations with a real HTTP server."""

    def make(**changes: Any) -> EvalConfig:
        search = SearchSettings(urls=(serve(FOUND).url,))
        return config(**({"searchable": True, "search": search} | changes))

    return make


def run(config: EvalConfig, tokenizer: Any, engine: Any, seen: list[int] | None = None) -> Scores:
    evaluation = Evaluation.prepare(config, tokenizer)
    with evaluation.open_log() as log:
        return evaluation.run(log, engine.start, (seen if seen is not None else []).append)


def test_an_evaluation_leaves_every_file(
    searching: Config, hub_tokenizer: Any, fake_engine: Any, tmp_path: Path
) -> None:
    seen: list[int] = []
    scores = run(searching(), hub_tokenizer, fake_engine, seen)
    assert seen == [0, *range(1, 11)]
    assert scores.macro.estimates["em"].mean == 0.5
    out = tmp_path / "out"
    assert {path.name for path in out.iterdir()} == {
        "manifest.json",
        "answers.jsonl",
        "trajectories.jsonl",
        "metrics.json",
        "metrics.md",
    }
    records = read_records(out / "trajectories.jsonl")
    assert [row["id"] for row in records] == [f"nq/{i}" for i in range(10)]
    assert not any(key.endswith("_seconds") for key in records[0])
    assert json.loads((out / "metrics.json").read_text())["sets"]["nq"]["em"]["mean"] == 0.5


def test_a_finished_evaluation_starts_no_engine_again(
    searching: Config, hub_tokenizer: Any, fake_engine: Any, tmp_path: Path
) -> None:
    one = searching()
    first = run(one, hub_tokenizer, fake_engine)
    calls, before = fake_engine.calls, (tmp_path / "out" / "trajectories.jsonl").read_bytes()
    assert run(one, hub_tokenizer, fake_engine) == first
    assert fake_engine.calls == calls
    assert (tmp_path / "out" / "trajectories.jsonl").read_bytes() == before


def test_a_sample_is_what_is_answered(
    searching: Config, hub_tokenizer: Any, fake_engine: Any
) -> None:
    assert run(searching(sample=4), hub_tokenizer, fake_engine).macro.questions == 4


def test_nothing_is_written_if_the_search_engine_does_not_answer(
    config: Config, hub_tokenizer: Any, tmp_path: Path
) -> None:
    search = SearchSettings(urls=("http://127.0.0.1:9/retrieve",))
    with pytest.raises(ValueError, match=r"retriever: http://127\.0\.0\.1:9/retrieve.*start it"):
        Evaluation.prepare(config(searchable=True, search=search), hub_tokenizer)
    assert not (tmp_path / "out").exists()


def test_a_search_engine_that_finds_nothing_for_the_trial_question_is_taken(
    config: Config, hub_tokenizer: Any, serve: Any
) -> None:
    # One of words finds no passage that shares none with it.
    search = SearchSettings(urls=(serve({"body": {"result": [[]]}}).url,))
    Evaluation.prepare(config(searchable=True, search=search), hub_tokenizer)


@pytest.mark.parametrize("method", sorted(set(METHODS) - NEVER_SEARCH))
def test_a_method_that_searches_needs_a_search_engine(
    config: Config, hub_tokenizer: Any, method: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=f"retriever: .* {method} searches; give --retriever URL"):
        Evaluation.prepare(config(method=method), hub_tokenizer)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("method", sorted(NEVER_SEARCH))
def test_a_method_that_never_searches_needs_none(
    config: Config, hub_tokenizer: Any, method: str
) -> None:
    assert Evaluation.prepare(config(method=method), hub_tokenizer).questions


@pytest.mark.parametrize("method", sorted(METHODS))
def test_without_searches_no_method_needs_a_search_engine(
    config: Config, hub_tokenizer: Any, fake_engine: Any, method: str
) -> None:
    one = config(method=method, search=SearchSettings(max_searches=0))
    assert run(one, hub_tokenizer, fake_engine).macro.questions == 10


def program(config: EvalConfig) -> list[str]:
    return [
        sys.executable,
        str(PROGRAM),
        str(config.model),
        str(config.data[0]),
        str(config.output),
    ]


@pytest.mark.slow
def test_a_killed_evaluation_ends_as_one_that_was_not(
    config: Config,
    tmp_path: Path,
    questions_of: Callable[[int], list[Question]],
    write_set: Callable[..., Path],
) -> None:
    data = (write_set(tmp_path / "nq" / "test.jsonl", questions_of(60)),)
    killed, whole = config(data=data), config(data=data, output=tmp_path / "whole")
    answers = killed.output / "answers.jsonl"
    with subprocess.Popen(program(killed)) as running:
        while not (answers.is_file() and answers.read_bytes().count(b"\n") > 10):
            assert running.poll() is None
            time.sleep(0.01)
        running.send_signal(signal.SIGKILL)
    assert not (killed.output / "trajectories.jsonl").exists()
    done = answers.read_bytes().count(b"\n")
    with answers.open("a") as file:
        file.write('{"id": "nq/')
    resumed = subprocess.run(program(killed), check=True, capture_output=True, text=True)
    assert int(resumed.stdout) == 60 - done
    subprocess.run(program(whole), check=True, capture_output=True)
    ids = [json.loads(line)["id"] for line in answers.read_text().splitlines()]
    assert len(ids) == len(set(ids)) == 60
    final = [(one.output / "trajectories.jsonl").read_bytes() for one in (killed, whole)]
    assert final[0] == final[1]


@pytest.mark.parametrize("count", [1_000, pytest.param(51_713, marks=pytest.mark.slow)])
def test_no_row_is_lost(
    config: Config,
    searching: Config,
    hub_tokenizer: Any,
    fake_engine: Any,
    tools: Any,
    tmp_path: Path,
    count: int,
    questions_of: Callable[..., list[Question]],
    monkeypatch: pytest.MonkeyPatch,
    write_set: Callable[..., Path],
) -> None:
    sizes = {"nq": count // 3, "popqa": count - count // 3}
    data = tuple(
        write_set(tmp_path / name / "dev.jsonl", questions_of(size, name))
        for name, size in sizes.items()
    )
    evaluate = "search_r1.evaluation.evaluate"
    monkeypatch.setattr(f"{evaluate}.HttpRetriever", lambda _: tools.retriever)
    scores = run(searching(data=data, concurrency=64), hub_tokenizer, fake_engine)
    assert {one.name: one.questions for one in scores.sets} == sizes
    with (tmp_path / "out" / "trajectories.jsonl").open() as file:
        ids = [json.loads(line)["id"] for line in file]
    assert ids == [f"{name}/{i}" for name, size in sizes.items() for i in range(size)]
