"""Made runs: folders as training leaves them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Make = Callable[..., Any]


@pytest.fixture
def turn() -> Make:
    """Makes a search that was executed, or with `action="answer"` an answer."""

    def make(text: str = "<search> the Works </search>", **changes: Any) -> dict[str, Any]:
        query = text.partition("<search>")[2].partition("</search>")[0].strip() or None
        return {
            "text": text,
            "action": "search" if query else "answer",
            "query": query,
            "observation": "",
            "passages": [],
            "searched": query is not None,
        } | changes

    return make


@pytest.fixture
def record(turn: Make) -> Make:
    """Makes a trajectory that answered wrongly after one search that did not help."""

    def make(em: float = 0.0, hit: float = 0.0, **changes: Any) -> dict[str, Any]:
        return {
            "id": "q1",
            "question": "Who founded the Brarben Works?",
            "golden_answers": ["Mira Tolland"],
            "hops": 1,
            "answer": "Ann",
            "stop_reason": "answered",
            "turns": 2,
            "searches": 1,
            "failed_searches": 0,
            "valid_actions": 2,
            "sampled_tokens": 40,
            "inserted_tokens": 60,
            "generate_seconds": 1.0,
            "search_seconds": 0.1,
            "reward_parts": {"score": em, "em": em, "retrieval_hit": hit},
            "transcript": [
                turn("<search> Brarben Works </search>"),
                turn("<think>So.</think><answer> Ann </answer>"),
            ],
        } | changes

    return make


@pytest.fixture
def made_run(tmp_path: Path, record: Make) -> Make:
    """Makes a run of two steps with a validation before and after."""

    def make(name: str = "ppo", validations: tuple[int, ...] = (0, 2)) -> Path:
        folder = tmp_path / name
        rows = [{"step": step, "data": metrics(step)} for step in (1, 2)]
        write(folder / "metrics" / "20260101T000000.jsonl", *rows)
        for step in validations:
            records = record(), record(1.0, id="q2", question="Which one is right?")
            write(folder / "validation" / f"{step}.jsonl", *records)
        return folder

    return make


def metrics(step: int) -> dict[str, float]:
    """The numbers of a step."""
    return {
        "reward/em": step / 10,
        "tokens/sampled": 40.0 + step,
        "tokens/inserted": 60.0,
        "search/searches_per_question": 1.5,
        "timing_s/step": 30.0,
    }


def write(path: Path, *rows: Any) -> Path:
    """Write rows as JSON lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path
