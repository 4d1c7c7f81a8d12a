import json
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data_prep.library import Library, read_library
from search_r1.passages import Passage

TITLES = [
    "Zermund Trurdos",
    "Slovka Trurdos",
    "Trurdos",
    "The Queen of Velmor",
    "Velmor",
    "Drengez Guild",
    "Furstik Guild",
    "Lake Tolnoda",
]
LIBRARY = Library(Passage(str(row), title, f"About {title}.") for row, title in enumerate(TITLES))


@given(st.sampled_from(TITLES), st.integers(1, 20), st.integers())
def test_the_article_that_a_query_names_is_always_found(title: str, top_k: int, seed: int) -> None:
    found = LIBRARY.find(f" {title.upper()} ", top_k, random.Random(seed))
    assert title in [passage.title for passage in found]
    assert len({passage.id for passage in found}) == len(found) == min(top_k, len(TITLES))


@given(st.text(), st.integers(1, 20), st.integers())
def test_any_query_finds_something(query: str, top_k: int, seed: int) -> None:
    found = LIBRARY.find(query, top_k, random.Random(seed))
    assert len({passage.id for passage in found}) == len(found) == min(top_k, len(TITLES))


def test_the_article_stands_at_every_rank_and_most_often_at_the_first() -> None:
    titles = [
        [p.title for p in LIBRARY.find("Velmor", 3, random.Random(seed))] for seed in range(400)
    ]
    counts = [sum(found[rank] == "Velmor" for found in titles) for rank in range(3)]
    assert counts[0] == pytest.approx(200, abs=40)
    assert counts[1] == pytest.approx(100, abs=40)
    assert sum(counts) == 400


def test_names_alike_are_preferred() -> None:
    found = [LIBRARY.find("Drengez Guild", 2, random.Random(seed)) for seed in range(50)]
    assert all("Furstik Guild" in [p.title for p in pair] for pair in found)


def test_the_same_draws_find_the_same() -> None:
    assert LIBRARY.find("Velmor", 3, random.Random(5)) == LIBRARY.find(
        "Velmor", 3, random.Random(5)
    )


@pytest.mark.parametrize(
    ("text", "titles"),
    [
        ("She heard the Queen of Velmor in Velmor.", ["The Queen of Velmor", "Velmor"]),
        ("Slovka Trurdos's home; Trurdos' dog", ["Slovka Trurdos", "Trurdos"]),
        ("Velmor, Velmor", ["Velmor"]),
        ("Velmorland and Lake Other", []),
        ("", []),
    ],
)
def test_the_longest_titles_in_a_text_are_found(text: str, titles: list[str]) -> None:
    assert LIBRARY.titles_in(text) == titles


@given(st.lists(st.sampled_from(TITLES), unique=True))
def test_every_title_between_other_words_is_found(titles: list[str]) -> None:
    assert LIBRARY.titles_in(" or also, ".join(titles)) == titles


def test_both_forms_of_a_corpus_are_read(tmp_path: Path) -> None:
    rows = [
        {"id": "0", "contents": '"Velmor"\nA town.'},
        {"id": "1", "title": "Lake X", "text": "Deep."},
    ]
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text("".join(json.dumps(row) + "\n" for row in rows))
    library = read_library(corpus)
    assert len(library) == 2
    assert library.find("lake x", 1, random.Random(0)) == [Passage("1", "Lake X", "Deep.")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"id": "0", "contents": "x"}\n{"id": 3}\n', "corpus.jsonl:2: "),
        ("not json\n", "corpus.jsonl:1: "),
        ("", "corpus.jsonl has no rows"),
    ],
)
def test_a_bad_corpus_is_named_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text(text)
    with pytest.raises(ValueError, match=message):
        read_library(corpus)
