import json
from pathlib import Path

import pytest

from search_r1.evaluation.answer_log import AnswerLog


def line(name: str, **more: object) -> str:
    return json.dumps({"id": name} | more, ensure_ascii=False)


def test_answers_come_back_by_id(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    with AnswerLog(path) as log:
        log.append("a", line("a", x="é"))
        log.append("b", line("b"))
        assert log.row("a") == {"id": "a", "x": "é"}
        log.append("c", line("c"))
    with AnswerLog(path) as log:
        assert [name in log for name in "abcd"] == [True, True, True, False]
        assert (len(log), log.row("c"), log.row("b")) == (3, {"id": "c"}, {"id": "b"})


@pytest.mark.parametrize("torn", ['{"id": "c', '{"id": "c"}', "\x00\x00"])
def test_a_torn_last_line_is_dropped_and_said(
    tmp_path: Path, torn: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(line("a") + "\n" + torn)
    with AnswerLog(path) as log:
        assert "c" not in log
        log.append("c", line("c"))
    assert path.read_text() == line("a") + "\n" + line("c") + "\n"
    assert "torn last line" in caplog.text


@pytest.mark.parametrize("bad", ["no", "[]", "{}"])
def test_any_other_bad_line_is_an_error(tmp_path: Path, bad: str) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(f"{line('a')}\n{bad}\n")
    with pytest.raises(ValueError, match=r"log\.jsonl:2: not an answer"):
        AnswerLog(path)


def test_a_question_is_answered_once(tmp_path: Path) -> None:
    with AnswerLog(tmp_path / "log.jsonl") as log:
        log.append("a", line("a"))
        with pytest.raises(ValueError, match="'a' was answered twice"):
            log.append("a", line("a"))


def test_halves_of_characters_survive(tmp_path: Path) -> None:
    with AnswerLog(tmp_path / "log.jsonl") as log:
        log.append("a", line("a", x="\ud800!"))
        assert log.row("a")["x"] == "\ud800!"


def test_two_processes_do_not_write_at_once(tmp_path: Path) -> None:
    with (
        AnswerLog(tmp_path / "log.jsonl"),
        pytest.raises(BlockingIOError, match="another process is writing"),
    ):
        AnswerLog(tmp_path / "log.jsonl")


def test_a_row_that_the_check_refuses_is_named_with_its_fault(tmp_path: Path) -> None:
    def check(row: object) -> None:
        if row == {"id": "b"}:
            raise ValueError("no field answer")

    path = tmp_path / "log.jsonl"
    path.write_text(f"{line('a')}\n{line('b')}\n")
    with pytest.raises(ValueError, match=r"log\.jsonl:2: not an answer: no field answer; remove"):
        AnswerLog(path, check)


def test_a_second_answer_to_a_question_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(f"{line('a')}\n{line('b')}\n{line('a')}\n")
    with pytest.raises(ValueError, match=r"log\.jsonl:3: .*'a' has an answer in a line above"):
        AnswerLog(path)
