"""What a stored trajectory must look like, and what is wrong with one that does not.

A trajectory is a line that `search_r1.rewards.compute_score` made, with the turns that
`search_r1.result.Turn.record` made.
"""

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

_LARGEST: Final = 1e15
_SHOWN: Final = 40


@dataclass(frozen=True, slots=True)
class _Kind:
    name: str
    fits: Callable[[Any], bool]


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    # False of NaN, too.
    return -_LARGEST < value < _LARGEST


def _is_list(value: object, of: type) -> bool:
    return isinstance(value, list) and all(isinstance(one, of) for one in value)


_TEXT: Final = _Kind("text", lambda value: isinstance(value, str))
_TEXT_OR_NULL: Final = _Kind("text or null", lambda value: value is None or _TEXT.fits(value))
_TEXTS: Final = _Kind("a list of texts", lambda value: _is_list(value, str))
_NUMBER: Final = _Kind("a number", _is_number)
_NUMBER_OR_NULL: Final = _Kind("a number or null", lambda value: value is None or _is_number(value))
_COUNT: Final = _Kind("a whole number", lambda value: _is_number(value) and isinstance(value, int))
_OBJECT: Final = _Kind("an object", lambda value: isinstance(value, dict))
_OBJECTS: Final = _Kind("a list of objects", lambda value: _is_list(value, dict))

_VIEWED: Final = {
    "id": _TEXT,
    "question": _TEXT,
    "golden_answers": _TEXTS,
    "answer": _TEXT_OR_NULL,
    "stop_reason": _TEXT,
    "transcript": _OBJECTS,
    "reward_parts": _OBJECT,
}
_COUNTED: Final = {
    "hops": _COUNT,
    "turns": _COUNT,
    "searches": _COUNT,
    "failed_searches": _COUNT,
    "valid_actions": _COUNT,
    "sampled_tokens": _COUNT,
    "inserted_tokens": _COUNT,
    "generate_seconds": _NUMBER,
    "search_seconds": _NUMBER,
}
_ROW: Final = {**_VIEWED, **_COUNTED, "masked_tokens": _COUNT, "data_source": _TEXT}
_TURN: Final = {
    "text": _TEXT,
    "action": _TEXT,
    "observation": _TEXT,
    "query": _TEXT_OR_NULL,
    "passages": _OBJECTS,
}
_PASSAGE: Final = {"id": _TEXT, "title": _TEXT, "score": _NUMBER_OR_NULL}

SUMMARISED: Final = frozenset(_COUNTED)
"""The fields of which `search_r1.metrics.summarise` takes means."""


def check_row(row: Mapping[str, Any], fields: Collection[str], parts: Collection[str]) -> None:
    """Pass a trajectory that can be shown; `fields` and `parts` are what else it must have.

    Raises:
        ValueError: the message names the field.
    """
    if fault := next(_row_faults(row, fields, parts), None):
        raise ValueError(fault)


def _row_faults(
    row: Mapping[str, Any], fields: Collection[str], parts: Collection[str]
) -> Iterator[str]:
    """What is wrong; only the first fault is sure, for the others may come of it."""
    yield from _faults(row, _ROW, {**_VIEWED, **dict.fromkeys(fields)})
    needed = {"score": None, "em": None, **dict.fromkeys(parts)}
    scores = row["reward_parts"]
    yield from _faults(scores, dict.fromkeys([*needed, *scores], _NUMBER), needed, "reward_parts.")
    for place, turn in enumerate(row["transcript"]):
        yield from _turn_faults(turn, f"transcript[{place}].")


def _turn_faults(turn: Mapping[str, Any], where: str) -> Iterator[str]:
    yield from _faults(turn, _TURN, ("text", "action", "observation"), where)
    for place, passage in enumerate(turn.get("passages", ())):
        yield from _faults(passage, _PASSAGE, ("id", "title"), f"{where}passages[{place}].")


def _faults(
    row: Mapping[str, Any], kinds: Mapping[str, _Kind], needed: Collection[str], where: str = ""
) -> Iterator[str]:
    for name, kind in kinds.items():
        if name not in row:
            if name in needed:
                yield f"no field {where}{name}"
        elif not kind.fits(row[name]):
            yield f"{where}{name} must be {kind.name}, not {_shown(row[name])}"


def _shown(value: object) -> str:
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    text = json.dumps(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
