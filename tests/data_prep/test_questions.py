import gzip
import json
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data_prep.questions import Question, merge, parse_question, read_questions

ROW = {"id": "nq_1", "question": "who?", "golden_answers": ["A", "B"], "data_source": "nq"}


def row(**changes: object) -> str:
    return json.dumps({**ROW, **changes})


def question(id_: str, source: str = "nq") -> Question:
    return Question(id_, "who?", ("A",), source)


def test_a_row_keeps_its_fields_and_its_further_keys() -> None:
    parsed = parse_question(row(hops=2, type="bridge", supporting_ids=["3", "4"]))
    metadata = {"hops": 2, "type": "bridge", "supporting_ids": ["3", "4"]}
    assert parsed == Question("nq_1", "who?", ("A", "B"), "nq", metadata)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "not JSON"),
        ("[]", "a row must be a JSON object, not list"),
        (row(id=None), "id: missing"),
        (row(id=7), "id: must be text that is not empty, not 7"),
        (row(question=" "), "question: must be text that is not empty"),
        (row(question=" ? "), "question: .* has no words"),
        (row(golden_answers=None), "golden_answers: missing"),
        (row(golden_answers="A"), "golden_answers: must be a list of texts, not 'A'"),
        (row(golden_answers=[]), "golden_answers: must be a list of texts"),
        (row(golden_answers=["A", 3]), "golden_answers: 3 must be text"),
        (row(data_source=""), "data_source: must be text"),
        (row(hops="two"), "hops: must be a whole number, not 'two'"),
        ("[" * 100_000, "not JSON for a question: nested too deeply"),
        (row(id="\ud800"), r"id: '\\ud800' is half of a character"),
        (row(golden_answers=["\udc00x"]), r"golden_answers: '\\udc00' is half of a character"),
        (row(data_source="\ud800"), r"data_source: .* is half of a character"),
        (row(supporting_ids=["\ud800"]), r"supporting_ids: .* is half of a character"),
        (row(hops=2**63), "hops: must be a whole number, not 9223372036854775808"),
        (row(hops=True), "hops: must be a whole number, not True"),
        (row(supporting_ids=[1]), "supporting_ids: must be a list of texts"),
    ],
)
def test_a_bad_row_names_file_line_and_field(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "set.jsonl"
    path.write_text(f"{row()}\n\n{line}\n")
    with pytest.raises(ValueError, match=rf"set\.jsonl:3: {message}"):
        list(read_questions(path))


def test_a_row_without_data_source_takes_the_name_given() -> None:
    line = json.dumps({key: value for key, value in ROW.items() if key != "data_source"})
    assert parse_question(line, "popqa").data_source == "popqa"
    assert parse_question(row(), "popqa").data_source == "nq"
    with pytest.raises(ValueError, match=r"data_source: missing; .* --data-source"):
        parse_question(line)


def test_null_for_a_data_source_is_as_none() -> None:
    assert parse_question(row(data_source=None), "popqa").data_source == "popqa"
    with pytest.raises(ValueError, match=r"data_source: missing; .* --data-source"):
        parse_question(row(data_source=None))


def test_text_in_another_encoding_names_file_and_line(tmp_path: Path) -> None:
    path = tmp_path / "set.jsonl"
    good = (row() + "\n").encode() * 1_000
    path.write_bytes(good + row().replace("who", "caf\xe9").encode("latin-1") + b"\n" + good)
    with pytest.raises(ValueError, match=r"set\.jsonl:1001: not readable as UTF-8 text"):
        list(read_questions(path))


def test_a_whole_character_of_two_escapes_is_kept() -> None:
    assert parse_question(row(question="\U0001f600 who?")).question == "\U0001f600 who?"


def test_gzip_and_plain_files_read_the_same(tmp_path: Path) -> None:
    text = row(question="naïve?") + "\n" + row(id="nq_2") + "\n"
    (tmp_path / "a.jsonl").write_text(text, encoding="utf-8")
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(text.encode()))
    plain = list(read_questions(tmp_path / "a.jsonl"))
    assert [q.id for q in plain] == ["nq_1", "nq_2"]
    assert list(read_questions(tmp_path / "a.jsonl.gz")) == plain


def test_a_truncated_or_false_gzip_names_the_file(tmp_path: Path) -> None:
    whole = gzip.compress(("\n".join(row(id=f"nq_{i}") for i in range(2000))).encode())
    for content in (whole[:-200], b"not gzip"):
        path = tmp_path / "set.jsonl.gz"
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"set\.jsonl\.gz:\d+: not readable"):
            list(read_questions(path))


def test_merging_prefixes_ids_with_their_source_once() -> None:
    merged = merge([[question("1"), question("nq_2")], [question("1", "popqa")]])
    assert [q.id for q in merged] == ["nq/1", "nq_2", "popqa/1"]
    assert merge([merged]) == merged


def test_merging_refuses_two_questions_with_one_id() -> None:
    with pytest.raises(ValueError, match="id: 'nq/1' occurs twice in data source 'nq'"):
        merge([[question("1")], [question("1")]])


@pytest.mark.parametrize(
    ("sets", "message"),
    [
        ([["1", "1"], []], r"^a: id: 'nq/1' occurs twice in data source 'nq'; give"),
        ([["1"], ["2", "1"]], r"^b: id: 'nq/1' occurs twice in data source 'nq', first in a; give"),
    ],
)
def test_a_duplicate_id_names_its_sets(sets: list[list[str]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        merge([map(question, ids) for ids in sets], names=["a", "b"])


@given(st.sets(st.integers(0, 10_000), min_size=2), st.integers(0, 2**31), st.randoms())
def test_the_merged_order_depends_on_seed_and_ids_only(
    numbers: set[int], seed: int, random: Random
) -> None:
    questions = [question(str(number)) for number in numbers]
    merged = merge([questions], seed)
    random.shuffle(questions)
    middle = len(questions) // 2
    assert merge([questions[:middle], questions[middle:]], seed) == merged
    assert len({q.id for q in merged}) == len(numbers)


def test_another_seed_gives_another_order() -> None:
    questions = [question(str(number)) for number in range(50)]
    assert merge([questions], 1) != merge([questions], 2)
