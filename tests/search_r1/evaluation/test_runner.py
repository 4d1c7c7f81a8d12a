import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from data_prep.questions import Question
from search_r1.evaluation.answer_log import AnswerLog
from search_r1.evaluation.method import Tools
from search_r1.evaluation.methods import METHODS, find_method, search_r1
from search_r1.evaluation.prompt_probe import first_prompt
from search_r1.evaluation.runner import answer_all, unanswered
from search_r1.prompts import INSTRUCTION, STOP_STRINGS
from search_r1.result import RolloutResult
from search_r1.view import read_records

Questions = Callable[..., list[Question]]


def run(questions: list[Question], tools: Tools, path: Path, concurrency: int = 4) -> None:
    with AnswerLog(path) as log:
        todo = unanswered(questions, log)
        asyncio.run(answer_all(todo, search_r1, tools, log, concurrency=concurrency))


def test_every_question_is_answered_and_scored(
    tools: Tools, tmp_path: Path, questions_of: Questions
) -> None:
    run(questions_of(10), tools, tmp_path / "log.jsonl")
    rows = read_records(tmp_path / "log.jsonl")
    assert sorted(row["id"] for row in rows) == sorted(q.id for q in questions_of(10))
    assert sum(row["reward_parts"]["em"] for row in rows) == 5
    assert {(row["searches"], row["stop_reason"]) for row in rows} == {(1, "answered")}


@pytest.mark.parametrize("concurrency", [1, 3, 100])
def test_at_most_so_many_questions_at_a_time(
    tools: Tools, tmp_path: Path, questions_of: Questions, concurrency: int
) -> None:
    run(questions_of(20), tools, tmp_path / "log.jsonl", concurrency)
    engine: Any = tools.engine
    assert engine.most_running == min(concurrency, 20)
    assert engine.stops == [list(STOP_STRINGS)] * 20


def test_an_error_ends_the_run_and_keeps_what_is_done(
    tools: Tools, tmp_path: Path, questions_of: Questions
) -> None:
    path, asked = tmp_path / "log.jsonl", list[str]()

    async def breaks(question: str, tools: Tools) -> RolloutResult:
        asked.append(question)
        if question.endswith("w7"):
            raise RuntimeError("the engine died")
        return await search_r1(question, tools)

    with AnswerLog(path) as log, pytest.raises(RuntimeError, match="the engine died"):
        asyncio.run(answer_all(questions_of(50), breaks, tools, log, concurrency=2))
    with AnswerLog(path) as log:
        assert 5 <= len(log) < 9
    assert len(asked) < 10


def test_a_run_that_was_stopped_asks_only_what_is_left(
    tools: Tools, tmp_path: Path, questions_of: Questions, fake_engine: Any
) -> None:
    path = tmp_path / "log.jsonl"
    run(questions_of(6), tools, path)
    with path.open("a") as file:
        file.write('{"id": "nq/6", "que')
    run(questions_of(10), replace(tools, engine=fake_engine), path)
    assert fake_engine.calls == 2 * 4
    assert len(path.read_text().splitlines()) == 10


def test_a_wrong_method_lists_the_right_ones() -> None:
    with pytest.raises(ValueError, match=r"method: there is no 'magic'; give one of .*search_r1"):
        find_method("magic")


@pytest.mark.parametrize("name", METHODS)
def test_every_method_has_a_first_prompt(name: str, tools: Tools) -> None:
    prompt = first_prompt(find_method(name), tools.tokenizer, tools.settings)
    assert prompt is not None
    assert "capital of France" in prompt


def test_the_first_prompt_is_the_trained_one(tools: Tools) -> None:
    prompt = first_prompt(search_r1, tools.tokenizer, tools.settings)
    assert prompt == f"{INSTRUCTION}What is the capital of France?"


def test_a_method_that_asks_no_model_has_no_prompt(tools: Tools) -> None:
    async def silent(question: str, tools: Tools) -> Any:
        return json.loads("{}")

    assert first_prompt(silent, tools.tokenizer, tools.settings) is None
