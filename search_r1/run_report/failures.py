"""Why a trajectory's answer is wrong: pure functions of its record, and no model's opinion.

The classes exclude each other: they are asked in the order of `Failure`, and the first that
fits wins. `MEANINGS` defines each one; the page shows it.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from itertools import pairwise
from typing import Final

from search_r1.metrics import Row
from search_r1.qa_metrics import normalise_answer
from search_r1.trajectory import StopReason


class Failure(StrEnum):
    """The class of a wrong trajectory, first match first."""

    FORMAT = "format"
    STOPPED_EARLY = "stopped early"
    MISREAD = "misread"
    REPEATED_QUERY = "repeated query"
    BAD_QUERY = "bad query"
    NOT_RETRIEVED = "not retrieved"


MEANINGS: Final[Mapping[Failure, str]] = {
    Failure.FORMAT: "It gave no complete answer, and no limit is to blame: its last action was "
    "invalid, or it wrote nothing.",
    Failure.STOPPED_EARLY: "The limit on searches or on tokens ended it before it answered; or no "
    "gold answer was shown to it, and it answered after fewer searches than the question has hops, "
    "or after none.",
    Failure.MISREAD: "A gold answer stands, as whole words, in a passage that it was shown, and it "
    "answered something else. Of a yes-or-no question this says little: the word alone counts.",
    Failure.REPEATED_QUERY: "No gold answer was shown to it, and it sent the same query twice; "
    "case, punctuation and articles do not count.",
    Failure.BAD_QUERY: "No gold answer was shown to it, and its queries together hold fewer than "
    "half of the question's key words: the capitalised words and the numbers after the first word "
    "or, of a question without any, the words of four letters or more.",
    Failure.NOT_RETRIEVED: "No gold answer was shown to it, and none of the above holds: its "
    "queries name what the question is about, and no passage with a gold answer came back.",
}

_LIMITS: Final = (StopReason.SEARCH_BUDGET, StopReason.TOKEN_BUDGET)
_WORD: Final = re.compile(r"[^\W_]+")
_SHORTEST_KEY_WORD: Final = 4
_KEY_WORDS_ASKED: Final = 0.5


def classify(record: Row) -> Failure | None:
    """The class of a trajectory whose answer is wrong; None if its answer is right."""
    if record["reward_parts"]["em"]:
        return None
    return next((failure for failure, fits in _RULES if fits(record)), Failure.NOT_RETRIEVED)


def queries(record: Row) -> list[str]:
    """The queries that were sent to the search engine, in their order."""
    turns = record["transcript"]
    return [turn["query"] for turn in turns if turn.get("searched") and turn.get("query")]


def key_words(question: str) -> set[str]:
    """The words that a query about the question should hold, see `MEANINGS`; normalised."""
    words = _WORD.findall(question)
    names = [word for word in words[1:] if word[0].isupper() or word[0].isdigit()]
    long = [word for word in words if len(word) >= _SHORTEST_KEY_WORD]
    return _normalised(names) or _normalised(long)


def _has_no_answer(record: Row) -> bool:
    return record["answer"] is None and record["stop_reason"] not in _LIMITS


def _stopped_early(record: Row) -> bool:
    if record["answer"] is None:
        return record["stop_reason"] in _LIMITS
    return not _was_shown(record) and record["searches"] < max(record["hops"], 1)


def _was_shown(record: Row) -> bool:
    return bool(record["reward_parts"]["retrieval_hit"])


def _repeats_a_query(record: Row) -> bool:
    asked = sorted(normalise_answer(query) for query in queries(record))
    return any(one == other for one, other in pairwise(asked))


def _asks_beside_the_question(record: Row) -> bool:
    wanted, sent = key_words(record["question"]), queries(record)
    asked = _normalised(word for query in sent for word in _WORD.findall(query))
    return bool(sent) and len(wanted & asked) < _KEY_WORDS_ASKED * len(wanted)


def _normalised(words: Iterable[str]) -> set[str]:
    return {bare for word in words if (bare := normalise_answer(word))}


_RULES: Final[tuple[tuple[Failure, Callable[[Row], bool]], ...]] = (
    (Failure.FORMAT, _has_no_answer),
    (Failure.STOPPED_EARLY, _stopped_early),
    (Failure.MISREAD, _was_shown),
    (Failure.REPEATED_QUERY, _repeats_a_query),
    (Failure.BAD_QUERY, _asks_beside_the_question),
)
