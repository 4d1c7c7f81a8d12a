"""Made trajectories."""

from collections.abc import Callable
from typing import Any

import pytest

Row = dict[str, Any]


@pytest.fixture
def row() -> Callable[..., Row]:
    """Makes a finished trajectory of one search and one right answer."""

    def make(**changes: Any) -> Row:
        em = changes.pop("em", 1.0)
        texts = changes.pop(
            "texts",
            ["<think> who wrote it </think><search> a book </search>", "<answer> x </answer>"],
        )
        return {
            "id": "q1",
            "session": 0,
            "searches": 1,
            "mean_logprob": -0.5,
            "reward_parts": {"score": em, "em": em},
            "transcript": [{"text": text} for text in texts],
        } | changes

    return make
