"""`search-r1 prepare corpus`: what is kept, what is set aside, and when it fails."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer import Typer
from typer.testing import CliRunner

from data_prep.corpus import clean_corpus
from data_prep.corpus_command import corpus_command
from data_prep.corpus_rows import BadRowError, Reason, check_row
from data_prep.id_set import IdSet
from data_prep.index_corpus import CorpusError
from retrieval_server.corpus import parse_row


def passage(number: int) -> bytes:
    return json.dumps({"id": str(number), "contents": f'"T{number}"\ntext {number}'}).encode()


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """200 good rows, and one bad."""
    path = tmp_path / "in.jsonl"
    path.write_bytes(b"\n".join([*map(passage, range(200)), b"", b'{"id": "x"}', b""]))
    return path


def run(*arguments: object) -> tuple[int, str]:
    app = Typer()
    app.command()(corpus_command)
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    return result.exit_code, result.output


@pytest.mark.parametrize(
    ("line", "contents"),
    [
        ({"id": "1", "contents": "plain"}, "plain"),
        ({"id": "1", "contents": '"T"\nx', "source": "wiki"}, '"T"\nx'),
        ({"id": 1, "title": "T", "text": "x é\u2028"}, '"T"\nx é\u2028'),
        ({"id": 1, "title": None, "text": "x"}, "x"),
    ],
)
def test_both_forms_become_one(tmp_path: Path, line: dict[str, Any], contents: str) -> None:
    (tmp_path / "in.jsonl").write_text(json.dumps(line))
    output = tmp_path / "corpus.jsonl"
    clean_corpus([tmp_path / "in.jsonl"], output, max_bad_share=0)
    assert json.loads(output.read_text()) == {"id": "1", "contents": contents}


@given(st.text(min_size=1).filter(lambda title: "\n" not in title), st.text().filter(str.strip))
def test_the_server_reads_title_and_text_back(title: str, text: str) -> None:
    line = json.dumps({"id": "1", "title": title, "text": text}).encode()
    document = check_row(line, IdSet())
    again = parse_row(json.dumps({"id": "1", "contents": document.contents}).encode())
    assert (again.title, again.text) == (title, text)


@pytest.mark.parametrize(
    ("line", "reason", "message"),
    [
        (b"{", Reason.JSON, "Invalid JSON"),
        (b"[1]", Reason.JSON, "an object"),
        (b'{"id": "1", "text": "\xff"}', Reason.JSON, "Invalid JSON"),
        (b'{"text": "x"}', Reason.MISSING, "field 'id'"),
        (b'{"id": "1", "title": "x"}', Reason.MISSING, "'contents', or 'text'"),
        (b'{"id": ["1"], "text": "x"}', Reason.TYPE, "field 'id'"),
        (b'{"id": "1", "contents": ["x"]}', Reason.TYPE, "field 'contents'"),
        (b'{"id": "1", "contents": " "}', Reason.EMPTY, "no text"),
        (b'{"id": "1", "title": "T", "text": "\\n"}', Reason.EMPTY, "no text"),
        (b'{"id": "1", "contents": "\\"T\\"\\n"}', Reason.EMPTY, "no text"),
        (b'{"id": " ", "text": "x"}', Reason.ID, "field 'id'"),
        (passage(0), Reason.DUPLICATE, "field 'id': '0'"),
    ],
)
def test_a_bad_row_has_a_reason(line: bytes, reason: Reason, message: str) -> None:
    seen = IdSet()
    check_row(passage(0), seen)
    with pytest.raises(BadRowError, match=message) as caught:
        check_row(line, seen)
    assert caught.value.reason == reason


def test_a_bad_row_does_not_take_its_id() -> None:
    seen = IdSet()
    with pytest.raises(BadRowError):
        check_row(b'{"id": "1", "text": ""}', seen)
    assert check_row(b'{"id": "1", "text": "x"}', seen).id == "1"


def test_bad_rows_are_set_aside_with_a_warning(source: Path, tmp_path: Path) -> None:
    output = tmp_path / "out" / "corpus.jsonl"
    code, text = run(source, "--output", output)
    assert code == 0, text
    assert f"{output}: 200 rows; read 201 rows" in text
    assert "warning: 1 bad rows (0.50%) left out: missing field 1; see" in text
    assert output.read_bytes() == b"".join(passage(n) + b"\n" for n in range(200))
    (bad,) = rows(tmp_path / "out" / "corpus.quarantine.jsonl")
    assert (bad["file"], bad["line"], bad["raw"]) == (str(source), 202, '{"id": "x"}')
    assert bad["reason"] == "missing field"
    assert "the row needs 'contents'" in bad["message"]


def test_too_many_bad_rows_leave_only_them(source: Path, tmp_path: Path) -> None:
    output = tmp_path / "out" / "corpus.jsonl"
    code, text = run(source, "--output", output, "--max-bad-share", 0.004)
    assert code == 2
    last = text.splitlines()[-1]
    assert last.startswith("error: 1 of 201 rows are bad (0.50%, more than the 0.40%")
    assert "missing field 1. No corpus was written" in last
    assert [path.name for path in output.parent.iterdir()] == ["corpus.quarantine.jsonl"]
    assert len(rows(output.parent / "corpus.quarantine.jsonl")) == 1


def test_raw_bytes_come_back_from_the_quarantine(tmp_path: Path) -> None:
    line = b'{"id": "\xc3\xa9", "text": "\xff"}'
    (tmp_path / "in.jsonl").write_bytes(passage(0) + b"\n" + line + b"\n")
    output = tmp_path / "corpus.jsonl"
    clean_corpus([tmp_path / "in.jsonl"], output, max_bad_share=1)
    (bad,) = rows(tmp_path / "corpus.quarantine.jsonl")
    assert bad["raw"].encode("utf-8", "surrogateescape") == line


def test_ids_are_unique_over_all_inputs_and_progress_is_of_all(tmp_path: Path) -> None:
    plain, packed = tmp_path / "a.jsonl", tmp_path / "b.jsonl.gz"
    plain.write_bytes(b"\n".join(map(passage, range(5))))
    packed.write_bytes(gzip.compress(b"\n".join(map(passage, range(4, 9)))))
    read: list[int] = []
    output = tmp_path / "corpus.jsonl"
    counts = clean_corpus([plain, packed], output, max_bad_share=0.2, advance=read.append)
    assert (counts.good, counts.bad) == (9, {Reason.DUPLICATE: 1})
    (bad,) = rows(tmp_path / "corpus.quarantine.jsonl")
    assert (bad["file"], bad["line"]) == (str(packed), 1)
    assert [row["id"] for row in rows(output)] == [str(n) for n in range(9)]
    assert read[-1] == plain.stat().st_size + packed.stat().st_size
    assert read == sorted(read)


def test_a_quarantine_of_an_earlier_run_goes_when_all_is_good(source: Path, tmp_path: Path) -> None:
    output = tmp_path / "corpus.jsonl"
    assert run(source, "--output", output)[0] == 0
    source.write_bytes(passage(0))
    code, text = run(source, "--output", output, "--max-bad-share", 0)
    assert (code, "warning" in text) == (0, False)
    assert not (tmp_path / "corpus.quarantine.jsonl").exists()


def test_a_damaged_file_leaves_nothing(tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl.gz"
    source.write_bytes(gzip.compress(b"\n".join(map(passage, range(3000))))[:-100])
    with pytest.raises(CorpusError, match=r"in\.jsonl\.gz is damaged after line \d+"):
        clean_corpus([source], tmp_path / "corpus.jsonl", max_bad_share=1)
    assert list(tmp_path.iterdir()) == [source]


def test_unusable_inputs_are_refused_in_one_line(source: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty.jsonl"
    empty.write_bytes(b"\n")
    for arguments, message in [
        ((empty, "--output", tmp_path / "c.jsonl"), "error: the inputs have no rows"),
        ((source, "--output", tmp_path / "c.gz"), "c.gz must end in .jsonl"),
    ]:
        code, text = run(*arguments)
        assert code == 2
        assert message in text.splitlines()[-1]
    assert run(tmp_path / "none.jsonl", "--output", tmp_path / "c.jsonl")[0] == 2


def test_an_input_is_never_replaced(source: Path, tmp_path: Path) -> None:
    set_aside = tmp_path / "c.quarantine.jsonl"
    set_aside.write_bytes(passage(500))
    before = source.read_bytes()
    for output in (source, tmp_path / "c.jsonl"):
        code, text = run(source, set_aside, "--output", output)
        assert code == 2
        assert "is also an input, and would be replaced" in text.splitlines()[-1]
    assert (source.read_bytes(), set_aside.read_bytes()) == (before, passage(500))


def test_inputs_of_bad_rows_only_are_not_called_empty(tmp_path: Path) -> None:
    (tmp_path / "junk.jsonl").write_text("junk\n")
    output = tmp_path / "c.jsonl"
    code, text = run(tmp_path / "junk.jsonl", "--output", output, "--max-bad-share", 1)
    assert code == 2
    assert "none of 1 rows is good: not a JSON object 1. No corpus" in text.splitlines()[-1]
    assert not output.exists()
    assert len(rows(tmp_path / "c.quarantine.jsonl")) == 1


def test_a_row_nested_too_deeply_is_set_aside() -> None:
    with pytest.raises(BadRowError) as caught:
        check_row(b'{"id": ' + b"[" * 100_000, IdSet())
    assert caught.value.reason == Reason.JSON
