import json
import re
from datetime import datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import escape

from search_r1.run_report.page import mark_golds, render
from search_r1.run_report.runs import read_runs

MADE = datetime(2026, 1, 2, 3, 4)
VOID = {"meta"}


class Elements(HTMLParser):
    """Collects the elements of a page, and fails when one is closed that is not open."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def elements(page: str) -> list[tuple[str, dict[str, str | None]]]:
    parser = Elements()
    parser.feed(page)
    assert parser.open == []
    return parser.seen


def page_of(*folders: Path) -> str:
    return render(read_runs(folders, 5, 0), MADE)


def test_a_page_holds_every_part(made_run: Any) -> None:
    page = page_of(made_run("ppo"), made_run("grpo"))
    for part in ("Search-R1: ppo, grpo", "made 2026-01-02 03:04", "Training reward"):
        assert part in page
    for part in ("not retrieved", "Who founded the Brarben Works?", "Which one is right?"):
        assert part in page
    assert page.count("<figure") == 5
    assert page.lstrip().startswith("<!doctype html>")


def test_a_page_asks_for_nothing_else(made_run: Any) -> None:
    page = page_of(made_run())
    for tag, attributes in elements(page):
        assert tag not in {"script", "link", "iframe", "img", "object"}
        addresses = [attributes.get(name) or "" for name in ("href", "src", "xlink:href")]
        assert all(address[:1] in {"", "#"} for address in addresses)
    assert "@import" not in page
    assert not re.search(r"url\((?!#)", page)


def test_a_run_that_has_only_trained(made_run: Any) -> None:
    page = page_of(made_run("ppo", ()))
    elements(page)
    assert "No run has validated yet." in page
    assert "Why answers are wrong" not in page


HOSTILE = "</span></details><script>alert(1)</script>{{ 7 * 7 }}&amp;\x1b[31m\u202e\ud800"


def test_text_of_a_run_is_never_markup(made_run: Any, record: Any, turn: Any) -> None:
    folder = made_run()
    hits = [{"id": "x", "title": HOSTILE, "score": 0.5}]
    shown = f"\n\n<information>{HOSTILE}</information>\n\n"
    turns = [
        turn(HOSTILE, observation=shown, passages=hits),
        turn(f"<think>{HOSTILE}</think>", observation=HOSTILE),
    ]
    fields = dict.fromkeys(("id", "question", "answer", "stop_reason"), HOSTILE)
    hostile = record(**fields, golden_answers=[HOSTILE], transcript=turns)
    (folder / "validation" / "2.jsonl").write_text(json.dumps(hostile))
    page = page_of(folder)
    assert "script" not in {tag for tag, _ in elements(page)}
    assert page.count("&lt;script&gt;alert(1)") > 8
    assert "{{ 7 * 7 }}&amp;amp;\\x1b[31m" in page
    assert not {"\x1b", "\u202e", "\ud800"} & set(page)


def test_gold_answers_are_marked_as_whole_words() -> None:
    marked = mark_golds("Ann <b> met ANN, Anna and Ann Lee.", ["Ann", "Ann Lee", " "])
    expected = "<mark>Ann</mark> &lt;b&gt; met <mark>ANN</mark>, Anna and <mark>Ann Lee</mark>."
    assert marked == expected


@given(st.text(), st.lists(st.text()))
def test_marking_adds_nothing_else(text: str, golds: list[str]) -> None:
    bare = mark_golds(text, golds).replace("<mark>", "").replace("</mark>", "")
    assert bare == mark_golds(text, [])


@pytest.mark.parametrize("text", ["", "plain", "<b>"])
def test_without_golds_text_is_escaped(text: str) -> None:
    assert mark_golds(text, []) == escape(text)
