"""Third stage of a BM25 index: the words of a corpus to postings (bm25s)."""

import shutil
from array import array
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import overload

import bm25s

from retrieval_server.corpus import Corpus
from retrieval_server.index_bm25 import BM25_FOLDER, make_tokenizer
from retrieval_server.index_types import BuildParameters

Advance = Callable[[int], None]
"""Takes how many more passages have been read."""

_REPORT_EVERY = 4096


def write_bm25(corpus: Corpus, made_with: BuildParameters, folder: Path, advance: Advance) -> None:
    """Write the folder `bm25` of an index folder; it appears when it is complete.

    Scores are Lucene's, and computed now. The same corpus and parameters give the same bytes.
    Memory: 4 bytes for each word of the corpus, then about 30 for each different word of each
    passage while bm25s sorts them.

    Args:
        corpus: The passages.
        made_with: `k1` and `b`.
        folder: The index folder.
        advance: Told of passages read.
    """
    tokenizer = make_tokenizer()
    texts = (corpus[row].contents for row in range(len(corpus)))
    words = _Words()
    for number, ids in enumerate(tokenizer.streaming_tokenize(texts), start=1):
        words.append(ids)
        if number % _REPORT_EVERY == 0 or number == len(corpus):
            advance((number - 1) % _REPORT_EVERY + 1)
    index = bm25s.BM25(k1=made_with.k1, b=made_with.b, method="lucene", auto_compile=False)
    tokens = bm25s.tokenization.Tokenized(ids=words, vocab=dict(tokenizer.stem_to_sid))
    index.index(tokens, show_progress=False)
    temporary = folder / f".{BM25_FOLDER}.part"
    shutil.rmtree(temporary, ignore_errors=True)
    index.save(temporary, show_progress=False)
    shutil.rmtree(folder / BM25_FOLDER, ignore_errors=True)
    temporary.rename(folder / BM25_FOLDER)


class _Words(Sequence[list[int]]):
    """Word ids of every passage, packed: a list of lists would take ten times the memory."""

    def __init__(self) -> None:
        self._ids = array("i")
        self._ends = array("q", [0])

    def append(self, ids: list[int]) -> None:
        self._ids.extend(ids)
        self._ends.append(len(self._ids))

    def __len__(self) -> int:
        return len(self._ends) - 1

    @overload
    def __getitem__(self, passage: int) -> list[int]: ...
    @overload
    def __getitem__(self, passage: slice) -> list[list[int]]: ...
    def __getitem__(self, passage: int | slice) -> list[int] | list[list[int]]:
        if isinstance(passage, slice):
            return [self[number] for number in range(*passage.indices(len(self)))]
        if not 0 <= passage < len(self):
            raise IndexError(passage)
        return self._ids[self._ends[passage] : self._ends[passage + 1]].tolist()

    def __iter__(self) -> Iterator[list[int]]:
        return (self[number] for number in range(len(self)))
