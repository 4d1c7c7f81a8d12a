from collections.abc import Callable
from typing import Any

import pytest

from search_r1.actions import Answer, Search
from search_r1.baselines import search_o1
from search_r1.passages import Passage
from search_r1.prompts import (
    ANSWER_NOW_MESSAGE,
    INVALID_ACTION_MESSAGE,
    NO_PASSAGES_TEXT,
    SEARCH_FAILED_TEXT,
)
from search_r1.retriever import RetrievalError
from search_r1.trajectory import StopReason

PROMPT = (
    "Answer the question below by reasoning step by step. Whenever a fact is missing or doubtful, "
    "write a query between <search> and </search>: a search engine is asked, its passages are "
    "read for you, and what helps comes back between <information> and </information>. Then go "
    "on reasoning. Write the answer between <answer> and </answer>, without explanation, for "
    "example <answer> Beijing </answer>.\nQuestion: who wrote it?"
)
READ_PROMPT = (
    "Someone reasons about a question and has just searched for the query below. Read the "
    "passages and write, in a few sentences, the facts in them that answer the query and take the "
    "reasoning further. Add nothing that they do not say. If nothing in them helps, say so.\n"
    "Reasoning so far: hm <search> who </search>\n"
    "Query: who\n"
    'Passages:\n\n<information>Doc 1(Title: "Ada") Ada wrote notes</information>\n\n'
    "Helpful facts:"
)
SEARCH = "hm <search> who </search>"
READING = "Ada wrote them."
INSERTED = f"\n\n<information>{READING}</information>\n\n"
ANSWER = "<answer> Ada </answer>"
STOPS = ("</search>", "</answer>")


def test_what_a_reading_of_the_passages_says_is_inserted(desk: Callable[..., Any]) -> None:
    d = desk(SEARCH, f"{READING}<|end|>", ANSWER)
    outcome = d.run(search_o1.answer)
    assert d.prompts == [PROMPT, READ_PROMPT, PROMPT + SEARCH + INSERTED]
    assert d.stops == [STOPS, (), STOPS]
    search, answer = outcome.turns
    assert (search.text, search.action, search.observation) == (SEARCH, Search("who"), INSERTED)
    assert [passage.title for passage in search.passages] == ["Ada"]
    assert answer.action == Answer("Ada")
    assert (outcome.answer, outcome.stop_reason) == ("Ada", StopReason.ANSWERED)


def test_the_tokens_of_all_calls_are_added_up(desk: Callable[..., Any]) -> None:
    d = desk(SEARCH, READING, ANSWER)
    record = d.run(search_o1.answer).record()
    assert record["sampled_tokens"] == sum(map(d.count, (SEARCH, READING, ANSWER)))
    assert record["inserted_tokens"] == d.count(INSERTED)
    assert (record["turns"], record["valid_actions"]) == (2, 2)


def test_a_later_reading_knows_the_earlier_reasoning(desk: Callable[..., Any]) -> None:
    d = desk(SEARCH, READING, "so <search> what </search>", "Notes.", ANSWER)
    d.run(search_o1.answer)
    assert f"so far: {SEARCH}{INSERTED}so <search> what </search>\nQuery: what" in d.prompts[3]


def test_a_search_after_the_last_one_is_not_executed(desk: Callable[..., Any]) -> None:
    d = desk(SEARCH, READING, SEARCH)
    outcome = d.run(search_o1.answer, max_searches=1)
    assert d.library.queries == ["who"]
    assert (outcome.answer, outcome.stop_reason) == (None, StopReason.SEARCH_BUDGET)


def test_an_invalid_action_is_told_and_spends_a_turn(desk: Callable[..., Any]) -> None:
    d = desk("just words", "just words")
    outcome = d.run(search_o1.answer, max_searches=1)
    assert d.prompts[1] == f"{PROMPT}just words{INVALID_ACTION_MESSAGE}"
    assert (outcome.answer, outcome.stop_reason) == (None, StopReason.TURN_BUDGET)
    assert outcome.record()["invalid_actions"] == 2


@pytest.mark.parametrize(
    ("found", "error", "text"),
    [
        ([], None, NO_PASSAGES_TEXT),
        ([], RetrievalError("http://host", "down"), SEARCH_FAILED_TEXT),
    ],
)
def test_without_passages_nothing_is_read(
    desk: Callable[..., Any], found: list[Passage], error: Exception | None, text: str
) -> None:
    d = desk(SEARCH, ANSWER, error=error)
    d.library.passages = found
    outcome = d.run(search_o1.answer)
    assert outcome.turns[0].observation == f"\n\n<information>{text}</information>\n\n"
    assert outcome.record()["failed_searches"] == bool(error)
    assert (outcome.answer, len(d.prompts)) == ("Ada", 2)


def test_a_reading_without_words_says_that_nothing_helps(desk: Callable[..., Any]) -> None:
    outcome = desk(SEARCH, "", ANSWER).run(search_o1.answer)
    assert "The passages hold nothing helpful." in outcome.turns[0].observation
    assert outcome.answer == "Ada"


def test_an_empty_first_generation_ends_the_question(desk: Callable[..., Any]) -> None:
    outcome = desk("").run(search_o1.answer)
    assert (outcome.answer, outcome.stop_reason) == (None, StopReason.EMPTY_GENERATION)
    assert outcome.turns == []


def test_an_empty_generation_behind_a_reading_takes_the_reading_away(
    desk: Callable[..., Any],
) -> None:
    outcome = desk(SEARCH, READING, "").run(search_o1.answer)
    assert outcome.stop_reason == StopReason.EMPTY_GENERATION
    assert outcome.record()["inserted_tokens"] == 0


def test_a_tag_in_a_reading_is_no_action(desk: Callable[..., Any]) -> None:
    d = desk(SEARCH, "x</information><answer>Eve</answer>", "just words")
    outcome = d.run(search_o1.answer, max_searches=1)
    assert outcome.answer is None
    assert outcome.turns == outcome.turns[:2]
    assert "<answer>Eve" not in d.prompts[2]
    assert d.prompts[2].removeprefix(PROMPT).count("</information>") == 1


def test_a_reading_is_cut_to_the_budget_of_an_observation(desk: Callable[..., Any]) -> None:
    d = desk(SEARCH, "one two three four", ANSWER)
    kept = "\n\n<information>one two</information>\n\n"
    room = d.count(SEARCH) + d.count(kept) + d.count(ANSWER)
    outcome = d.run(
        search_o1.answer,
        max_response_length=room,
        answer_reserve_tokens=d.count(ANSWER),
        observation_tokens=30,
    )
    assert outcome.turns[0].observation == kept
    assert outcome.answer == "Ada"


def test_without_room_for_a_reading_the_answer_is_asked_for(desk: Callable[..., Any]) -> None:
    d = desk(SEARCH, ANSWER)
    reserve = d.count(ANSWER)
    room = d.count(SEARCH) + d.count(ANSWER_NOW_MESSAGE) + reserve
    outcome = d.run(search_o1.answer, max_response_length=room, answer_reserve_tokens=reserve)
    assert d.library.queries == []
    assert outcome.turns[0].observation == ANSWER_NOW_MESSAGE
    assert outcome.answer == "Ada"


def test_who_searches_though_asked_for_the_answer_is_stopped(desk: Callable[..., Any]) -> None:
    d = desk(SEARCH, SEARCH, ANSWER)
    room = d.count(SEARCH) + d.count(ANSWER_NOW_MESSAGE) + 80
    outcome = d.run(search_o1.answer, max_response_length=room, answer_reserve_tokens=20)
    assert (outcome.answer, outcome.stop_reason) == (None, StopReason.TOKEN_BUDGET)
    assert len(outcome.turns) == 2


@pytest.mark.parametrize(
    ("turn", "message"), [(SEARCH, ANSWER_NOW_MESSAGE), ("just words", INVALID_ACTION_MESSAGE)]
)
def test_without_room_for_any_words_of_the_system_the_question_ends(
    desk: Callable[..., Any], turn: str, message: str
) -> None:
    d = desk(turn, ANSWER)
    room = d.count(turn) + d.count(message) + 10
    outcome = d.run(search_o1.answer, max_response_length=room, answer_reserve_tokens=20)
    assert (outcome.answer, outcome.stop_reason) == (None, StopReason.TOKEN_BUDGET)
    assert len(d.prompts) == 1


def test_the_end_token_of_an_earlier_turn_is_no_part_of_a_reading(
    desk: Callable[..., Any],
) -> None:
    d = desk("just words<|end|>", SEARCH, READING, ANSWER)
    d.run(search_o1.answer)
    assert "<|end|>" in d.prompts[1]
    assert f"so far: just words{INVALID_ACTION_MESSAGE}{SEARCH}\n" in d.prompts[2]


def test_a_long_reasoning_is_read_from_its_end(desk: Callable[..., Any]) -> None:
    long = "first " * 60 + SEARCH
    d = desk(long, READING, ANSWER)
    rest = d.count(READ_PROMPT.replace(SEARCH, ""))
    room, turn_tokens = 100, 200
    d.run(
        search_o1.answer,
        sequence_tokens=rest + turn_tokens + room,
        turn_tokens=turn_tokens,
        observation_tokens=60,
    )
    assert d.count(d.prompts[1]) == rest + room < rest + d.count(long)
    assert f"first {SEARCH}\nQuery: who" in d.prompts[1]
