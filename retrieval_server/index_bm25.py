"""BM25 over the words of the passages (bm25s), memory-mapped; searched without an encoder."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import bm25s
import numpy as np
import Stemmer

from retrieval_server.encoder import FloatArray
from retrieval_server.index import NO_ROW, RowArray

BM25_FOLDER: Final = "bm25"

# Lucene's English analysis: no possessive 's, Porter's stems, 33 stop words (bm25s's "english").
_APOSTROPHES = "'\N{RIGHT SINGLE QUOTATION MARK}"
_WORD = re.compile(rf"(?<![{_APOSTROPHES}])\b\w+|(?<=[{_APOSTROPHES}])(?!s\b)\w+")


def split_words(text: str) -> list[str]:
    """The words of a text in lower case, without the possessive 's."""
    return _WORD.findall(text.lower())


def make_tokenizer() -> bm25s.tokenization.Tokenizer:
    """The analysis of passages and queries; it learns its vocabulary from the passages."""
    stem: Callable[[str], str] = Stemmer.Stemmer("porter").stemWord
    return bm25s.tokenization.Tokenizer(
        lower=False, splitter=split_words, stopwords="english", stemmer=stem
    )


class Bm25Index:
    """Finds the rows whose words are a query's; a `service.RowSearch`.

    Args:
        index: With a vocabulary from stem to column.
    """

    def __init__(self, index: bm25s.BM25) -> None:
        self._index = index
        tokenizer = make_tokenizer()
        self._stem = tokenizer.stemmer
        self._stopwords = frozenset(tokenizer.stopwords)

    @classmethod
    def load(cls, folder: Path) -> "Bm25Index":
        """Open a folder that `bm25s.BM25.save` wrote; postings stay on disk until they are used.

        Raises:
            ValueError: The folder is not whole.
        """
        try:
            return cls(bm25s.BM25.load(folder, mmap=True, show_progress=False))
        except (OSError, ValueError, KeyError) as error:
            raise ValueError(f"{folder} is not a whole BM25 index: {error}") from error

    @property
    def rows(self) -> int:
        """Number of passages."""
        return int(self._index.scores["num_docs"])

    def search(self, queries: Sequence[str], topk: int) -> tuple[FloatArray, RowArray]:
        """Return scores (descending) and rows, equal scores by row, `[n, min(topk, rows)]`.

        A row without any of a query's words is not found: `NO_ROW` stands in its place.
        """
        topk = min(topk, self.rows)
        scores = np.full((len(queries), topk), -np.inf, dtype=np.float32)
        rows = np.full((len(queries), topk), NO_ROW, dtype=np.int64)
        for number, query in enumerate(queries):
            found, of_query = self._best(query, topk)
            rows[number, : len(found)], scores[number, : len(found)] = found, of_query
        return scores, rows

    def _best(self, query: str, topk: int) -> tuple[RowArray, FloatArray]:
        words = [word for word in split_words(query) if word not in self._stopwords]
        columns = self._index.get_tokens_ids([self._stem(word) for word in words])
        scores: FloatArray = self._index.get_scores_from_ids(columns)
        # All rows of the last place's score, so that the lowest rows can be chosen among them.
        least = np.partition(scores, -topk)[-topk]
        rows = np.flatnonzero((scores >= least) & (scores > 0))
        rows = rows[np.argsort(-scores[rows], kind="stable")][:topk]
        return rows, scores[rows]
