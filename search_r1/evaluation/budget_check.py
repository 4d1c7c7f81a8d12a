"""The numbers of an evaluation: in their ranges, and the budgets of a trajectory fit together."""

from math import isinf
from typing import Final

from search_r1.settings import SearchSettings

MAX_TOP_K: Final = 100
"""More is refused by our own server."""
MIN_SEQUENCE_TOKENS: Final = 64
"""Fewer hold no prompt."""


def check_range(name: str, value: float, least: float, most: float) -> None:
    """Pass a number from `least` to `most`.

    Raises:
        ValueError: it lies outside, or is no number.
    """
    if not least <= value <= most:
        wanted = f"at least {least}" if isinf(most) else f"from {least} to {most}"
        raise ValueError(f"{name}: {value} must be {wanted}")


def check_search(settings: SearchSettings, *, searches: bool) -> None:
    """Pass budgets that leave room for a prompt, a turn and, if it `searches`, an observation.

    Raises:
        ValueError: they do not; the message names the field and the fix.
    """
    sequence = settings.sequence_tokens
    if settings.top_k > MAX_TOP_K:
        raise ValueError(f"search.top_k: {settings.top_k} is too much; give at most {MAX_TOP_K}")
    if sequence < MIN_SEQUENCE_TOKENS:
        fix = f"give at least {MIN_SEQUENCE_TOKENS}"
        raise ValueError(f"search.sequence_tokens: {sequence} holds no prompt; {fix}")
    _check_room("turn_tokens", settings.turn_tokens, sequence)
    if searches:
        reserve = settings.answer_reserve_tokens
        _check_room("observation_tokens", settings.observation_tokens, sequence, reserve)


def _check_room(name: str, value: int, sequence: int, reserve: int = 0) -> None:
    if value + reserve >= sequence:
        kept = f" and answer_reserve_tokens {reserve}" if reserve else ""
        raise ValueError(
            f"search.{name}: {value}{kept} do not fit into sequence_tokens {sequence}; "
            f"give fewer, or more --sequence-tokens than {value + reserve}"
        )
