"""BM25 against scores computed by hand, its analysis, and its order."""

import json
import math
import random
from pathlib import Path

import bm25s
import numpy as np
import pytest

from data_prep import index_bm25
from data_prep.index_build import build_index
from data_prep.index_stages import IndexRequest
from retrieval_server.engines.assemble import load_service
from retrieval_server.index import NO_ROW
from retrieval_server.index_bm25 import Bm25Index, make_tokenizer, split_words
from retrieval_server.index_types import IndexType
from retrieval_server.manifest import ManifestError
from retrieval_server.service import IndexService
from retrieval_server.settings import Settings

TEXTS = [
    "The cats sat.",
    "A cat and a dog ran past the cat.",
    "Nothing here!",
    "cat",
    "dogs",
    "dog",
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = [json.dumps({"id": str(n), "contents": text}) for n, text in enumerate(TEXTS)]
    (tmp_path / "c.jsonl").write_text("\n".join(rows))
    build_index(tmp_path / "c.jsonl", tmp_path / "index", None, IndexRequest(type=IndexType.BM25))
    return tmp_path / "index"


@pytest.fixture
def index(folder: Path) -> Bm25Index:
    return Bm25Index.load(folder / "bm25")


@pytest.mark.parametrize("block_words", [1, 3, 1000])
def test_postings_are_those_of_bm25s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block_words: int
) -> None:
    rng = random.Random(0)
    texts = [" ".join(rng.choices(["cat", "dog", "ran", "sat", "x"], k=k % 9)) for k in range(40)]
    rows = [json.dumps({"id": str(n), "contents": text}) for n, text in enumerate(texts)]
    (tmp_path / "c.jsonl").write_text("\n".join(rows))
    monkeypatch.setattr(index_bm25, "_BLOCK_WORDS", block_words)
    build_index(tmp_path / "c.jsonl", tmp_path / "index", None, IndexRequest(type=IndexType.BM25))
    built = bm25s.BM25.load(tmp_path / "index" / "bm25")
    tokenizer = make_tokenizer()
    expected = bm25s.BM25(k1=0.9, b=0.4, method="lucene", auto_compile=False)
    expected.index(
        tokenizer.tokenize(texts, return_as="tuple", show_progress=False), show_progress=False
    )
    assert built.vocab_dict == expected.vocab_dict
    assert np.array_equal(built.scores["indptr"], expected.scores["indptr"])
    assert np.array_equal(built.scores["indices"], expected.scores["indices"])
    assert np.allclose(built.scores["data"], expected.scores["data"], rtol=1e-6)


def lucene(frequency: int, length: int, with_word: int) -> float:
    """Lucene's BM25 with k1 0.9 and b 0.4 over `TEXTS`, whose words are counted by hand."""
    # cat sat | cat dog ran past cat | noth here | cat | dog | dog
    average = (2 + 5 + 2 + 1 + 1 + 1) / 6
    idf = math.log(1 + (6 - with_word + 0.5) / (with_word + 0.5))
    return idf * frequency / (frequency + 0.9 * (1 - 0.4 + 0.4 * length / average))


def test_scores_are_those_of_lucene(index: Bm25Index) -> None:
    scores, rows = index.search(["Cats!"], 6)
    expected = {0: lucene(1, 2, 3), 1: lucene(2, 5, 3), 3: lucene(1, 1, 3)}
    order = sorted(expected, key=lambda row: -expected[row])
    assert rows.tolist() == [[*order, NO_ROW, NO_ROW, NO_ROW]]
    assert scores[0, :3].tolist() == pytest.approx([expected[row] for row in order], rel=1e-5)
    both, _ = index.search(["cat dog"], 1)
    assert both[0, 0] == pytest.approx(lucene(2, 5, 3) + lucene(1, 5, 3), rel=1e-5)


def test_equal_scores_come_in_the_order_of_the_rows_however_few_are_asked_for(
    index: Bm25Index,
) -> None:
    assert index.search(["dog"], 6)[1].tolist() == [[4, 5, 1, NO_ROW, NO_ROW, NO_ROW]]
    for topk in (1, 2, 3):
        assert index.search(["dog"], topk)[1].tolist() == [[4, 5, 1][:topk]]


@pytest.mark.parametrize("query", ["", "the of and", "zebra", "?!"])
def test_a_query_without_known_words_finds_nothing(index: Bm25Index, query: str) -> None:
    assert index.search([query], 2)[1].tolist() == [[NO_ROW, NO_ROW]]


def test_more_passages_than_there_are_is_all_of_them(index: Bm25Index) -> None:
    assert index.search(["dog", "cat"], 50)[1].shape == (2, 6)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Lincoln's DOGS", ["lincoln", "dogs"]),
        ("O\N{RIGHT SINGLE QUOTATION MARK}Neil don't", ["o", "neil", "don", "t"]),
        ("A-1, 3.14 Čapek", ["a", "1", "3", "14", "čapek"]),
        ("it's s", ["it", "s"]),
    ],
)
def test_words_are_split_as_lucene_does(text: str, words: list[str]) -> None:
    assert split_words(text) == words


def serve(folder: Path, **settings: object) -> IndexService:
    wanted = Settings.model_validate({"index": folder} | settings)
    return load_service(wanted, lambda *_: None)


def test_words_are_served_without_an_encoder(folder: Path) -> None:
    service = serve(folder)
    found = service.search(["dog", "zebra"], 2)
    assert [[passage.document.id for passage in passages] for passages in found] == [["4", "5"], []]
    info = service.info()
    assert (info["backend"], info["metric"], info["encoder"]) == ("bm25", "bm25", None)
    assert info["parameters"]["k1"] == 0.9
    service.close()


def test_settings_of_vectors_are_refused(folder: Path) -> None:
    with pytest.raises(ManifestError, match="a bm25 index has no encoder: leave --encoder out"):
        serve(folder, encoder="minilm")
    with pytest.raises(ValueError, match="--nprobe: this type of index has no such choice"):
        serve(folder, nprobe=4)


def test_a_folder_that_is_not_whole_is_refused(folder: Path) -> None:
    (folder / "bm25" / "vocab.index.json").unlink()
    with pytest.raises(ValueError, match="bm25 is not a whole BM25 index"):
        serve(folder)
