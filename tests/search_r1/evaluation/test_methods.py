"""The methods that answer with a trained policy: what they ask it, word for word."""

import asyncio
from typing import Any

import pytest

from search_r1.baselines import direct
from search_r1.evaluation.method import Tools
from search_r1.evaluation.methods import METHODS, find_method, searches
from search_r1.evaluation.prompt_probe import first_prompt
from search_r1.settings import SearchSettings

WITHOUT_SEARCH = (
    "Answer the question at the end. First reason about it between <think> and </think>. Then "
    "give the final answer between <answer> and </answer>, without explanation. For example: "
    "<answer> Beijing </answer>. Question: What is the capital of France?"
)


def prompt(name: str, tokenizer: Any, **budgets: int) -> str | None:
    return first_prompt(find_method(name), tokenizer, SearchSettings(**budgets))


def test_r1_is_asked_as_it_was_trained_and_so_is_any_policy_without_searches(
    hub_tokenizer: Any,
) -> None:
    assert prompt("r1", hub_tokenizer) == WITHOUT_SEARCH
    assert prompt("search_r1", hub_tokenizer, max_searches=0) == WITHOUT_SEARCH
    assert "search engine" in str(prompt("search_r1", hub_tokenizer))


def test_sft_is_asked_as_direct_is(hub_tokenizer: Any) -> None:
    assert METHODS["sft"] is direct.answer
    assert prompt("sft", hub_tokenizer) == prompt("direct", hub_tokenizer)


@pytest.mark.parametrize("name", ["r1", "sft", "direct", "cot"])
def test_these_need_no_search_engine(name: str) -> None:
    assert not searches(name, max_searches=4)


def test_r1_never_searches(tools: Tools) -> None:
    outcome = asyncio.run(METHODS["r1"]("Who is w1", tools))  # type: ignore[arg-type] # a coroutine
    record = outcome.record()
    assert (record["searches"], record["stop_reason"]) == (0, "search_budget")
