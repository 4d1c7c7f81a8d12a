"""Rows as people write them, read back by offset."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval_server.corpus import Corpus, parse_row, split_contents
from retrieval_server.schemas import Document


@pytest.mark.parametrize(
    ("contents", "expected"),
    [
        ('"T"\ntext', ("T", "text")),
        ('"T"\nline\nline', ("T", "line\nline")),
        ('"A "B" C"\ntext', ('A "B" C', "text")),
        ('"T"\n', ("T", "")),
        ('"T"', (None, None)),
        ('""\ntext', (None, None)),
        ('"\ntext', (None, None)),
        ("T\ntext", (None, None)),
        ('"T" text', (None, None)),
        ("", (None, None)),
    ],
)
def test_title_and_text_are_split_only_when_the_first_line_is_quoted(
    contents: str, expected: tuple[str | None, str | None]
) -> None:
    assert split_contents(contents) == expected


single_line = st.text(min_size=1).filter(lambda title: "\n" not in title)


@given(single_line, st.text())
def test_both_forms_of_a_row_are_the_same_document(title: str, text: str) -> None:
    contents = f'"{title}"\n{text}'
    apart = parse_row(json.dumps({"id": "1", "title": title, "text": text}).encode())
    whole = parse_row(json.dumps({"id": "1", "contents": contents}).encode())
    assert apart == whole == Document(id="1", contents=contents, title=title, text=text)


def test_fields_of_the_row_win_over_what_its_contents_say() -> None:
    row = {"id": 7, "contents": '"A"\nb', "title": "T", "text": "x", "more": [1]}
    expected = Document(id="7", contents='"A"\nb', title="T", text="x")
    assert parse_row(json.dumps(row).encode()) == expected


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"{", "Invalid JSON"),
        (b"[1]", "object"),
        (b'{"contents": "x"}', "field 'id': Field required"),
        (b'{"id": "1"}', "the row needs 'contents', or 'text'"),
        (b'{"id": "1", "title": "T"}', "the row needs 'contents', or 'text'"),
        (b'{"id": null, "contents": "x"}', "field 'id'"),
        (b'{"id": "1", "contents": ["x"]}', "field 'contents'"),
        (b'{"id": "1", "contents": "\xff"}', "Invalid JSON"),
        (b'{"id": "1", "contents": "\\ud800"}', "Invalid JSON"),
    ],
)
def test_a_bad_row_says_which_field(line: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_row(line)


def test_rows_are_read_by_offset(tmp_path: Path) -> None:
    lines = [b'{"id": "0", "contents": "\xe2\x80\xa8\xc2\x85"}\n', b'{"id": "1", "text": "b"}']
    (tmp_path / "c.jsonl").write_bytes(b"".join(lines))
    np.save(tmp_path / "o.npy", np.array([0, len(lines[0]), sum(map(len, lines))]))
    corpus = Corpus(tmp_path / "c.jsonl", tmp_path / "o.npy")
    assert len(corpus) == 2
    assert [document.contents for document in corpus.fetch([1, 0, 1])] == ["b", "\u2028\x85", "b"]
    for row in (-1, 2):
        with pytest.raises(IndexError, match="of a corpus of 2"):
            corpus[row]
    corpus.close()


def test_a_table_of_another_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "c.jsonl").write_bytes(b'{"id": "0", "contents": "a"}')
    np.save(tmp_path / "o.npy", np.array([0, 5]))
    with pytest.raises(ValueError, match="ends at byte 5"):
        Corpus(tmp_path / "c.jsonl", tmp_path / "o.npy")
