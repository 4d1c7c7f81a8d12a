from collections.abc import Callable
from typing import Any

import pytest

from search_r1.actions import Answer, Invalid, Search
from search_r1.baselines import ircot
from search_r1.passages import Passage
from search_r1.prompts import SEARCH_FAILED_TEXT
from search_r1.retriever import RetrievalError
from search_r1.trajectory import StopReason

BLOCK = '\n\n<information>Doc 1(Title: "Ada") Ada wrote notes</information>\n\n'
REASON_INSTRUCTION = (
    "Work towards the answer to the question below, one sentence at a time. The passages before "
    "it may help. Write only the next sentence of the reasoning. Once the answer is known, that "
    'sentence must be "So the answer is:" followed by the answer alone.'
)
READ_INSTRUCTION = (
    "Answer the question below. The passages before it and the reasoning behind it may help. "
    "Write the answer between <answer> and </answer>, without explanation, for example <answer> "
    "Beijing </answer>."
)
ANSWER = "<answer> Ada </answer>"
ADA = Passage("1", "Ada", "Ada wrote notes", 0.9)
FIRST = (
    f"{REASON_INSTRUCTION}{BLOCK}Question: who wrote it?\nReasoning so far: none\nNext sentence:"
)


def test_sentences_and_searches_take_turns_until_the_answer_is_said(
    desk: Callable[..., Any],
) -> None:
    d = desk("Notes exist.\n", "So the answer is: Ada.")
    outcome = d.run(ircot.answer)
    second = FIRST.replace("so far: none", "so far: Notes exist.")
    assert d.prompts == [FIRST, second]
    assert d.stops == [("\n",)] * 2
    assert d.library.queries == ["who wrote it?", "Notes exist."]
    actions = [Search("who wrote it?"), Search("Notes exist."), Answer("Ada")]
    assert [turn.action for turn in outcome.turns] == actions
    assert (outcome.answer, outcome.stop_reason) == ("Ada", StopReason.ANSWERED)


def test_a_reader_answers_when_the_searches_are_spent(desk: Callable[..., Any]) -> None:
    d = desk("Notes exist.", "Someone wrote.", ANSWER)
    outcome = d.run(ircot.answer, max_searches=2)
    assert d.prompts[-1] == (
        f"{READ_INSTRUCTION}{BLOCK}Question: who wrote it?\nReasoning: Notes exist. Someone wrote."
    )
    assert d.stops[-1] == ("</answer>",)
    assert d.library.queries == ["who wrote it?", "Notes exist."]
    assert (outcome.turns[2].action, outcome.turns[2].searched) == (Search("Someone wrote."), False)
    assert (outcome.answer, outcome.stop_reason) == ("Ada", StopReason.ANSWERED)


def test_without_searches_one_sentence_goes_before_the_reader(desk: Callable[..., Any]) -> None:
    d = desk("Notes exist.", ANSWER)
    assert d.run(ircot.answer, max_searches=0).answer == "Ada"
    assert (len(d.prompts), d.library.queries) == (2, [])
    assert "<information>" not in d.prompts[-1]


@pytest.mark.parametrize("text", ["", "\n", "<|end|>"])
def test_a_chain_that_stops_goes_to_the_reader(desk: Callable[..., Any], text: str) -> None:
    d = desk(text, ANSWER)
    outcome = d.run(ircot.answer)
    assert len(d.library.queries) == 1
    assert outcome.answer == "Ada"
    assert all(turn.action == Invalid() for turn in outcome.turns[1:-1])


def test_a_reader_without_an_answer_ends_the_question(desk: Callable[..., Any]) -> None:
    outcome = desk("Notes exist.", "no idea").run(ircot.answer, max_searches=0)
    assert (outcome.answer, outcome.stop_reason) == (None, StopReason.NO_ANSWER)


def test_an_engine_that_says_nothing_at_all_gives_no_answer(desk: Callable[..., Any]) -> None:
    outcome = desk("", "").run(ircot.answer)
    assert (outcome.answer, outcome.stop_reason) == (None, StopReason.EMPTY_GENERATION)


def test_a_failed_search_is_said_and_counted_and_the_chain_goes_on(
    desk: Callable[..., Any],
) -> None:
    d = desk("Notes exist.", "So the answer is: Ada.", error=RetrievalError("http://host", "down"))
    outcome = d.run(ircot.answer)
    assert d.prompts[1].count(f"<information>{SEARCH_FAILED_TEXT}</information>") == 2
    assert (outcome.record()["searches"], outcome.record()["failed_searches"]) == (2, 2)
    assert outcome.answer == "Ada"


def test_passages_accumulate_and_none_is_shown_twice(desk: Callable[..., Any]) -> None:
    d = desk("Notes exist.", "So the answer is: Ada.")
    again = Passage("1", "Ada", "Ada wrote notes", 0.1)
    found = iter([[ADA], [again, Passage("2", "Bob", "Bob read")]])

    async def search(queries: list[str], top_k: int) -> list[list[Passage]]:
        return [next(found)]

    d.library.search = search
    d.run(ircot.answer)
    assert BLOCK + BLOCK.replace("Ada", "Bob").replace("wrote notes", "read") in d.prompts[1]


def test_without_room_for_more_passages_the_reader_answers(desk: Callable[..., Any]) -> None:
    d = desk("Notes exist.", ANSWER)
    room = d.count(BLOCK) + d.count("Notes exist.") + d.count(ANSWER)
    outcome = d.run(
        ircot.answer,
        max_response_length=room,
        answer_reserve_tokens=d.count(ANSWER),
        observation_tokens=d.count(BLOCK),
    )
    assert d.library.queries == ["who wrote it?"]
    assert outcome.answer == "Ada"
    record = outcome.record()
    assert record["sampled_tokens"] + record["inserted_tokens"] == room


def test_a_sentence_counts_as_what_more_passages_would_follow(desk: Callable[..., Any]) -> None:
    d = desk("Notes exist.", ANSWER)
    limit = d.count(FIRST) + d.count("Notes exist.")
    d.run(ircot.answer, sequence_tokens=limit + 9, answer_reserve_tokens=0, observation_tokens=40)
    assert d.library.queries == ["who wrote it?"]


def test_a_sentence_leaves_room_for_the_reader(desk: Callable[..., Any]) -> None:
    d = desk("one two three four five six", ANSWER)
    reserve = d.count(ANSWER)
    outcome = d.run(
        ircot.answer, max_searches=0, max_response_length=reserve + 5, answer_reserve_tokens=reserve
    )
    assert d.engine.max_tokens == [5, reserve]
    assert outcome.answer == "Ada"


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("So the answer is: Ada Lovelace.", "Ada Lovelace"),
        ("so the answer is Ada<|end|>", "Ada"),
        ("Thus, so the answer is: Dr. J. K. Ada. More words.", "Dr. J. K. Ada"),
    ],
)
def test_the_phrase_holds_the_answer(desk: Callable[..., Any], text: str, answer: str) -> None:
    assert desk(text).run(ircot.answer).answer == answer


@pytest.mark.parametrize("text", ["Notes exist. So the answer is: Eve.", "Notes exist.<|end|>"])
def test_only_the_first_sentence_of_a_call_counts(desk: Callable[..., Any], text: str) -> None:
    d = desk(text, "So the answer is: Ada.")
    outcome = d.run(ircot.answer)
    assert outcome.turns[1].text == "Notes exist."
    assert outcome.turns[1].sampled_tokens == d.count(text)
    assert outcome.answer == "Ada"


def test_a_phrase_without_an_answer_is_none(desk: Callable[..., Any]) -> None:
    assert desk("So the answer is:", ANSWER).run(ircot.answer, max_searches=1).answer == "Ada"
