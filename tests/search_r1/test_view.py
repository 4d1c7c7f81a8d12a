import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from search_r1.view import read_records, render, reward, select_records


def turn(text: str, action: str = "search", observation: str = "", **more: Any) -> dict[str, Any]:
    return {"text": text, "action": action, "observation": observation, "passages": []} | more


def record(score: float = 1.0, **changes: Any) -> dict[str, Any]:
    return {
        "id": "q1",
        "question": "Who founded the Works?",
        "golden_answers": ["Mira Tolland", "M. Tolland"],
        "data_source": "world",
        "hops": 2,
        "answer": "Mira Tolland",
        "stop_reason": "answered",
        "searches": 1,
        "sampled_tokens": 41,
        "inserted_tokens": 59,
        "reward_parts": {"score": score, "em": score},
        "transcript": [
            turn(
                "<think>I need it.</think> <search>the Works</search>",
                observation="\n\n<information>Doc 1 text</information>\n\n",
                passages=[{"id": "a7", "title": "Works", "score": 0.81234}],
            ),
            turn("<answer>Mira Tolland</answer>", "answer"),
        ],
    } | changes


def shown(one: dict[str, Any], *, colour: bool = False, width: int = 100) -> str:
    console = Console(
        width=width, force_terminal=colour, color_system="standard" if colour else None
    )
    with console.capture() as capture:
        console.print(render(one), highlight=False)
    return capture.get()


def write(path: Path, *records: Any) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in records))
    return path


def test_a_whole_trajectory_is_there() -> None:
    text = shown(record())
    for part in ("q1", "Who founded", "Mira Tolland | M. Tolland", "exact match", "score 1, em 1"):
        assert part in text
    for part in ("data_source world", "hops 2", "41 sampled", "59 inserted", "stopped: answered"):
        assert part in text
    assert text.index("I need it.") < text.index("Doc 1 text") < text.index("<answer>")
    assert "passages: a7 (0.812)" in text


def test_each_kind_of_text_has_its_own_look() -> None:
    text = shown(record(), colour=True)
    assert "\x1b[2m<think>I need it.</think>" in text
    assert "\x1b[36m<search>the Works</search>" in text
    assert "\x1b[32m<information>Doc 1 text</information>" in text
    assert "\x1b[1m<answer>Mira Tolland</answer>" in text


def test_inserted_text_is_marked_on_every_line_even_without_colours() -> None:
    long = turn("<search>x</search>", observation="\n\n" + "word " * 60 + "\n\n")
    lines = shown(record(transcript=[long]), width=40).splitlines()
    assert all(line.startswith("┃ ") for line in lines if "word" in line)
    assert sum("word" in line for line in lines) > 5
    assert not any(line.startswith("┃") for line in lines if "<search>" in line)


def test_a_block_that_is_never_closed_keeps_its_look() -> None:
    text = shown(record(transcript=[turn("<think>and on", "invalid")]), colour=True)
    assert "\x1b[2m<think>and on\x1b[0m" in text


def test_no_answer_and_no_match() -> None:
    text = shown(record(0.0, answer=None, transcript=[], stop_reason="token_budget"))
    assert "answer  none  no match" in text
    assert "stopped: token_budget" in text


MARKUP = "[bold red]x[/bold red] [link=https://a]y[/link] [/] :smile: [nothing"


@pytest.mark.parametrize("field", ["question", "answer", "id", "stop_reason"])
def test_markup_in_a_field_is_shown_as_it_is(field: str) -> None:
    assert MARKUP in shown(record(**{field: MARKUP}), width=200)


def test_markup_in_a_transcript_is_shown_as_it_is() -> None:
    hits = [{"id": MARKUP, "title": "t", "score": None}]
    hostile = turn(MARKUP, MARKUP, observation=MARKUP, passages=hits)
    text = shown(record(golden_answers=[MARKUP], transcript=[hostile]), width=200)
    assert text.count(MARKUP) == 5


@pytest.mark.parametrize("bad", ["\x1b[31m", "\x1b]8;;x\x07", "\x9b31m", "\r", "\b", "\u202e"])
def test_control_characters_never_reach_the_terminal(bad: str) -> None:
    hits = [{"id": bad, "title": bad, "score": 0.5}]
    hostile = turn(f"a{bad}b", observation=f"a{bad}b", passages=hits)
    one = record(id=bad, question=bad, answer=bad, golden_answers=[bad], transcript=[hostile])
    text = shown(one)
    assert bad[0] not in text
    assert f"a\\x{ord(bad[0]):02x}" in text


def test_half_a_character_is_shown() -> None:
    assert "a\\ud800b" in shown(record(question="a\ud800b"))


@given(st.text(), st.text())
def test_any_text_can_be_shown(text: str, observation: str) -> None:
    rendered = shown(record(transcript=[turn(text, observation=observation)]))
    assert "\x1b" not in rendered


def test_records_are_chosen_by_reward_or_id(tmp_path: Path) -> None:
    scores = {"a": 0.2, "b": 1.0, "c": 0.0}
    path = write(tmp_path / "1.jsonl", *(record(score, id=i) for i, score in scores.items()))
    records = read_records(path)
    assert [one["id"] for one in select_records(records, best=2)] == ["b", "a"]
    assert [one["id"] for one in select_records(records, worst=1)] == ["c"]
    assert [one["id"] for one in select_records(records, best=1, worst=1)] == ["b", "c"]
    assert [one["id"] for one in select_records(records, best=9)] == ["b", "a", "c"]
    assert [reward(one) for one in select_records(records, record_id="a")] == [0.2]
    with pytest.raises(ValueError, match="no trajectory has the id 'z'"):
        select_records(records, record_id="z")


def test_a_bad_file_names_the_line_and_the_field(tmp_path: Path) -> None:
    other = {key: value for key, value in record().items() if key != "transcript"}
    with pytest.raises(ValueError, match=r"1\.jsonl:2: no field transcript"):
        read_records(write(tmp_path / "1.jsonl", record(), other))
    with pytest.raises(ValueError, match=r"1\.jsonl:1: not a JSON object"):
        read_records(write(tmp_path / "1.jsonl", [1]))
    with pytest.raises(ValueError, match="holds no trajectories"):
        read_records(write(tmp_path / "1.jsonl"))
    with pytest.raises(OSError, match="missing"):
        read_records(tmp_path / "missing.jsonl")
