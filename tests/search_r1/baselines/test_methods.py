"""What holds for every baseline, whatever its way to answer."""

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import search_r1.baselines
from search_r1.baselines import METHODS
from search_r1.metrics import summarise
from search_r1.passages import Passage
from search_r1.prompts import Tag, build_messages
from search_r1.result import RolloutResult, Turn
from search_r1.retriever import RetrievalError, RetrievalUnavailableError
from search_r1.rewards import breakdown
from search_r1.rollout import run_rollout
from search_r1.settings import SearchSettings

SEARCHING = ["rag", "ircot", "search_o1", "react"]
SCRIPTS = {
    "direct": ["<answer> Ada </answer>"],
    "cot": ["<think>hm</think><answer> Ada </answer>"],
    "rag": ["<answer> Ada </answer>"],
    "ircot": ["Ada wrote it.", "So the answer is: Ada."],
    "search_o1": ["<search> who </search>", "Ada wrote notes.", "<answer> Ada </answer>"],
    "react": ["Thought: hm\nAction: Search[who]", "Action: Finish[Ada]"],
}


def test_the_names_are_those_a_person_gives() -> None:
    assert list(METHODS) == list(SCRIPTS)


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_method_answers(desk: Callable[..., Any], name: str) -> None:
    outcome = desk(*SCRIPTS[name]).run(METHODS[name])
    assert outcome.answer == "Ada"
    assert outcome.record()["stop_reason"] == "answered"


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_record_is_that_of_a_rollout_to_rewards_and_metrics(
    desk: Callable[..., Any], name: str, rollout_keys: tuple[set[str], set[str]]
) -> None:
    record = desk(*SCRIPTS[name]).run(METHODS[name]).record()
    assert set(record) == rollout_keys[0]
    assert all(set(turn) == rollout_keys[1] for turn in record["transcript"])
    parts = breakdown(record, ["Ada"])
    searching = float(name in SEARCHING)
    assert (parts["em"], parts["format"]) == (1.0, 1.0)
    assert (parts["retrieval_hit"], parts["searches"] > 0) == (searching, bool(searching))
    metrics = summarise([{**record, "hops": 1, "reward_parts": parts}])
    assert metrics["reward/em"] == 1.0


@pytest.fixture
def rollout_keys(desk: Callable[..., Any]) -> tuple[set[str], set[str]]:
    """The keys of a rollout's record and of its turns."""

    async def search_r1(question: str, tools: Any) -> RolloutResult:
        [message] = build_messages(question)
        return await run_rollout(
            tools.tokenizer.encode(message["content"]),
            generate=tools.engine.until(()),
            retriever=tools.retriever,
            tokenizer=tools.tokenizer.plain,
            settings=tools.settings,
        )

    record = desk("<answer> Ada </answer>").run(search_r1).record()
    return set(record), set(record["transcript"][0])


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_chat_template_is_applied_where_there_is_one(
    desk: Callable[..., Any], name: str
) -> None:
    d = desk(*SCRIPTS[name])
    d.tokenizer.chat_template = "a template"
    d.run(METHODS[name])
    assert all(prompt.startswith("[user]") for prompt in d.prompts)
    assert all("[assistant]" in prompt for prompt in d.prompts)


@pytest.mark.parametrize("name", SCRIPTS)
def test_an_empty_question_is_an_error(desk: Callable[..., Any], name: str) -> None:
    with pytest.raises(ValueError, match="question is empty"):
        desk().run(METHODS[name], " ? ")


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_prompts_own_example_never_counts(desk: Callable[..., Any], name: str) -> None:
    d = desk(*["just words"] * 9)
    outcome = d.run(METHODS[name])
    assert "Beijing" in d.prompts[-1]
    assert outcome.answer is None


@pytest.mark.parametrize("name", SEARCHING)
@pytest.mark.parametrize("error", [RetrievalUnavailableError("down"), RuntimeError("a bug")])
def test_an_error_that_is_not_of_one_search_propagates(
    desk: Callable[..., Any], name: str, error: Exception
) -> None:
    with pytest.raises(type(error), match=str(error)):
        desk(*SCRIPTS[name], error=error).run(METHODS[name])


@pytest.mark.parametrize("name", SCRIPTS)
def test_an_engine_that_returns_too_much_is_an_error(desk: Callable[..., Any], name: str) -> None:
    d = desk()
    d.engine.next_ids = lambda ids, max_tokens: [1] * (max_tokens + 1)
    with pytest.raises(ValueError, match="returned 10 tokens, 9 were asked"):
        d.run(METHODS[name], turn_tokens=9)


WORDS = st.sampled_from(
    [
        "<search> who </search>",
        "<answer> Ada </answer>",
        "Action: Search[who]",
        "Action: Finish[Ada]",
        "Ada wrote it. Then more.",
        "So the answer is: Ada.",
        "one two three four five six seven eight",
        "",
    ]
)
BUDGETS = st.fixed_dictionaries(
    {
        "max_searches": st.integers(0, 3),
        "turn_tokens": st.integers(1, 40),
        "observation_tokens": st.integers(1, 80),
        "answer_reserve_tokens": st.integers(0, 20),
        "max_response_length": st.integers(1, 250) | st.just(4096),
        "sequence_tokens": st.integers(1, 500) | st.just(4096),
    }
)
PASSAGES = st.lists(
    st.builds(Passage, st.just("1"), st.sampled_from(["A", "B"]), st.sampled_from(["x y", "z"])),
    max_size=4,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.sampled_from(list(SCRIPTS)),
    turns=st.lists(WORDS, min_size=16, max_size=16),
    passages=PASSAGES,
    down=st.booleans(),
    budgets=BUDGETS,
)
def test_every_budget_holds(
    desk: Callable[..., Any],
    name: str,
    turns: list[str],
    passages: list[Passage],
    down: bool,
    budgets: dict[str, int],
) -> None:
    d = desk(*turns, error=RetrievalError("http://host", "down") if down else None)
    d.library.passages = passages
    outcome = d.run(METHODS[name], **budgets)
    record, limits = outcome.record(), SearchSettings(**budgets)
    calls = list(zip(d.engine.seen, d.engine.returned, strict=True))
    assert all(len(sampled) <= limits.turn_tokens for _, sampled in calls)
    assert all(len(seen) + len(sampled) <= limits.sequence_tokens for seen, sampled in calls)
    assert record["sampled_tokens"] == sum(len(sampled) for _, sampled in calls)
    spent = record["sampled_tokens"] - outcome.aside_tokens + record["inserted_tokens"]
    assert spent <= limits.max_response_length
    assert record["searches"] == len(d.library.queries) <= limits.max_searches
    assert record["failed_searches"] == (record["searches"] if down else 0)
    assert all(t["inserted_tokens"] <= limits.observation_tokens for t in shown(outcome.turns))
    assert not (outcome.turns and outcome.turns[-1].observation)
    assert (record["answer"] is not None) == (record["stop_reason"] == "answered")


def shown(turns: list[Turn]) -> list[dict[str, Any]]:
    """The turns that the passages of a search, or word of its failure, were said to."""
    return [turn.record() for turn in turns if Tag.INFORMATION.opening in turn.observation]


def test_no_module_spells_a_tag() -> None:
    folder = Path(search_r1.baselines.__file__).parent
    for path in folder.glob("*.py"):
        texts = [
            n.value for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Constant)
        ]
        spelled = [t for t in texts for tag in Tag if isinstance(t, str) and f"{tag}>" in t]
        assert spelled == [], path
