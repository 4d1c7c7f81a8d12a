from collections.abc import Callable
from typing import Any

import pytest

from search_r1.actions import Answer, Invalid, Search
from search_r1.baselines import react
from search_r1.prompts import SEARCH_FAILED_TEXT
from search_r1.retriever import RetrievalError
from search_r1.trajectory import StopReason

PROMPT = (
    'Answer the question below in steps. Each step is a line that begins with "Thought:" and '
    'holds your reasoning, and then a line that begins with "Action:" and holds one of two '
    "actions. Search[query] asks a search engine; what it finds comes back as an "
    '"Observation:". Finish[answer] gives the final answer, without explanation, for example '
    "Finish[Beijing].\nQuestion: who wrote it?"
)
INVALID_MESSAGE = (
    "\nObservation: That step had no valid action. Write Search[query] to search or "
    "Finish[answer] to answer.\n"
)
ANSWER_NOW_MESSAGE = "\nObservation: No more searches are possible. Write Finish[answer] now.\n"
BLOCK = '<information>Doc 1(Title: "Ada") Ada wrote notes</information>'
OBSERVATION = f"\nObservation:\n\n{BLOCK}\n\n"
SEARCH = "Thought: hm\nAction: Search[who]"
FINISH = "Thought: clear\nAction: Finish[ Ada ]"


def test_actions_and_observations_take_turns_until_the_finish(desk: Callable[..., Any]) -> None:
    d = desk(SEARCH, FINISH)
    outcome = d.run(react.answer)
    assert d.prompts == [PROMPT, PROMPT + SEARCH + OBSERVATION]
    assert d.stops == [("]",)] * 2
    search, finish = outcome.turns
    assert (search.text, search.action, search.observation) == (SEARCH, Search("who"), OBSERVATION)
    assert (finish.action, outcome.stop_reason) == (Answer("Ada"), StopReason.ANSWERED)
    assert outcome.answer == "Ada"
    assert outcome.record()["inserted_tokens"] == d.count(OBSERVATION)


def test_the_engine_continues_the_very_ids_it_sampled(desk: Callable[..., Any]) -> None:
    d = desk(SEARCH, FINISH)
    d.run(react.answer)
    plain = d.tokenizer.plain
    assert d.engine.seen[1] == (
        plain.encode(PROMPT) + plain.sampled(SEARCH) + plain.encode(OBSERVATION)
    )


@pytest.mark.parametrize(
    ("text", "kept", "action"),
    [
        ("Action: Search[who]\n\n", "Action: Search[who]", Search("who")),
        ("Thought: a [1]\nAction: search[ who ]", "Thought: a [1]\nAction: search[ who ]", None),
        ("Action: Search[ ]", "Action: Search[ ]", Invalid()),
        ("Thought: just words", "Thought: just words", Invalid()),
        ("Action: Search[who", "Action: Search[who", Invalid()),
        ("Research[who]", "Research[who]", Invalid()),
    ],
)
def test_the_first_complete_action_counts(
    desk: Callable[..., Any], text: str, kept: str, action: Any
) -> None:
    turn = desk(text, FINISH).run(react.answer).turns[0]
    assert (turn.text, turn.action) == (kept, action or Search("who"))


def test_an_answer_may_be_empty(desk: Callable[..., Any]) -> None:
    outcome = desk("Action: Finish[]").run(react.answer)
    assert (outcome.answer, outcome.stop_reason) == ("", StopReason.ANSWERED)


def test_an_answer_block_is_no_finish(desk: Callable[..., Any]) -> None:
    outcome = desk("<answer> Ada </answer>").run(react.answer, max_searches=0)
    assert (outcome.answer, outcome.stop_reason) == (None, StopReason.TURN_BUDGET)


def test_a_turn_without_an_action_is_told(desk: Callable[..., Any]) -> None:
    d = desk("Thought: hm", FINISH)
    outcome = d.run(react.answer)
    assert d.prompts[1] == f"{PROMPT}Thought: hm{INVALID_MESSAGE}"
    assert (outcome.answer, outcome.record()["invalid_actions"]) == ("Ada", 1)


def test_a_search_after_the_last_one_is_not_executed(desk: Callable[..., Any]) -> None:
    d = desk(SEARCH, SEARCH, SEARCH)
    outcome = d.run(react.answer, max_searches=2)
    assert d.library.queries == ["who", "who"]
    assert (outcome.answer, outcome.stop_reason) == (None, StopReason.SEARCH_BUDGET)


def test_a_failed_search_is_observed_and_counted(desk: Callable[..., Any]) -> None:
    d = desk(SEARCH, FINISH, error=RetrievalError("http://host", "down"))
    outcome = d.run(react.answer)
    failed = f"<information>{SEARCH_FAILED_TEXT}</information>"
    assert outcome.turns[0].observation == OBSERVATION.replace(BLOCK, failed)
    assert (outcome.record()["searches"], outcome.record()["failed_searches"]) == (1, 1)
    assert outcome.answer == "Ada"


@pytest.mark.parametrize("turns", [("",), (SEARCH, "")])
def test_an_empty_generation_ends_the_question(
    desk: Callable[..., Any], turns: tuple[str, ...]
) -> None:
    outcome = desk(*turns).run(react.answer)
    assert (outcome.answer, outcome.stop_reason) == (None, StopReason.EMPTY_GENERATION)
    assert outcome.record()["inserted_tokens"] == 0


def test_an_observation_keeps_its_budget_with_its_label(desk: Callable[..., Any]) -> None:
    d = desk(SEARCH, FINISH)
    outcome = d.run(react.answer, observation_tokens=d.count(OBSERVATION) - 2)
    assert outcome.turns[0].observation == OBSERVATION.replace(" notes", "")


def test_without_room_for_an_observation_the_answer_is_asked_for(
    desk: Callable[..., Any],
) -> None:
    d = desk(SEARCH, FINISH)
    reserve = d.count(FINISH)
    room = d.count(SEARCH) + d.count(ANSWER_NOW_MESSAGE) + reserve
    outcome = d.run(react.answer, max_response_length=room, answer_reserve_tokens=reserve)
    assert d.library.queries == []
    assert outcome.turns[0].observation == ANSWER_NOW_MESSAGE
    assert outcome.answer == "Ada"
