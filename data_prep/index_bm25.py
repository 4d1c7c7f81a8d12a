"""Third stage of a BM25 index: the words of a corpus to postings in bm25s's files.

bm25s itself builds them in memory, 54 bytes for each posting where this keeps to blocks.
"""

import shutil
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import bm25s
import numpy as np
import numpy.typing as npt

from retrieval_server.corpus import Corpus
from retrieval_server.index_bm25 import BM25_FOLDER, make_tokenizer
from retrieval_server.index_types import BuildParameters

Advance = Callable[[int], None]
"""Takes how many more passages have been read."""
IntArray = npt.NDArray[np.int64]

_REPORT_EVERY: Final = 4096
_BLOCK_WORDS: Final = 1 << 23
"""Words of the passages in memory at a time: 0.6 GiB with what is computed of them."""
_WORDS_FILE: Final = "words.i4"


def write_bm25(corpus: Corpus, made_with: BuildParameters, folder: Path, advance: Advance) -> None:
    """Write the folder `bm25` of an index folder; it appears when it is complete.

    Scores are Lucene's (Kamphuis et al., ECIR 2020), and computed now. The same corpus and
    parameters give the same bytes.

    Memory: the vocabulary, 8 bytes a passage, and a block. Disk, for the time: the words and the
    postings a second time.

    Args:
        corpus: The passages.
        made_with: `k1` and `b`.
        folder: The index folder.
        advance: Told of passages read.
    """
    temporary = folder / f".{BM25_FOLDER}.part"
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    words, vocabulary = _read_words(corpus, temporary / _WORDS_FILE, advance)
    k1, b = made_with.k1 or 0.0, made_with.b or 0.0
    index = bm25s.BM25(k1=k1, b=b, method="lucene", auto_compile=False)
    index.scores = _postings(words, len(vocabulary), k1, b, temporary)
    index.vocab_dict = vocabulary
    index.nonoccurrence_array = None  # of other methods than Lucene's
    made = temporary / BM25_FOLDER
    index.save(made, show_progress=False)
    shutil.rmtree(folder / BM25_FOLDER, ignore_errors=True)
    made.rename(folder / BM25_FOLDER)
    shutil.rmtree(temporary)


@dataclass(frozen=True, slots=True)
class _Words:
    """The word numbers of all passages, one after the other, on disk."""

    numbers: npt.NDArray[np.int32]
    ends: IntArray
    """`[passages + 1]`: where each passage begins, then the end."""

    @property
    def lengths(self) -> IntArray:
        """Words of each passage."""
        return np.diff(self.ends)

    def blocks(self) -> Iterator["_Block"]:
        """The passages in blocks of about as many words."""
        begin = 0
        while begin < len(self.ends) - 1:
            reach = self.ends[begin] + _BLOCK_WORDS
            end = max(begin + 1, int(np.searchsorted(self.ends, reach, side="right")) - 1)
            yield _count(self, begin, end)
            begin = end


@dataclass(frozen=True, slots=True)
class _Block:
    """How often each word comes in each passage of a block, by word, then by passage."""

    words: IntArray
    passages: IntArray
    times: IntArray


def _read_words(corpus: Corpus, target: Path, advance: Advance) -> tuple[_Words, dict[str, int]]:
    tokenizer = make_tokenizer()
    texts = (corpus[row].contents for row in range(len(corpus)))
    ends = array("q", [0])
    with target.open("wb") as file:
        for number, ids in enumerate(tokenizer.streaming_tokenize(texts), start=1):
            file.write(array("i", ids).tobytes())
            ends.append(ends[-1] + len(ids))
            if number % _REPORT_EVERY == 0 or number == len(corpus):
                advance((number - 1) % _REPORT_EVERY + 1)
    numbers = np.memmap(target, dtype=np.int32, mode="r", shape=ends[-1])
    return _Words(numbers, np.array(ends)), dict(tokenizer.stem_to_sid)


def _count(words: _Words, begin: int, end: int) -> _Block:
    numbers = words.numbers[words.ends[begin] : words.ends[end]].astype(np.int64)
    passages = np.repeat(np.arange(end - begin), words.lengths[begin:end])
    pairs, times = np.unique(numbers * (end - begin) + passages, return_counts=True)
    of_word, of_passage = np.divmod(pairs, end - begin)
    return _Block(of_word, of_passage + begin, times)


def _postings(words: _Words, vocabulary: int, k1: float, b: float, folder: Path) -> dict[str, Any]:
    """Scores by word, then by passage, in the arrays that bm25s searches, mapped from disk."""
    holding = sum(
        (np.bincount(block.words, minlength=vocabulary) for block in words.blocks()),
        np.zeros(vocabulary, dtype=np.int64),
    )
    begins = np.concatenate([[0], np.cumsum(holding)])
    passages = len(words.lengths)
    idf = np.log1p((passages - holding + 0.5) / (holding + 0.5))
    weight = k1 * (1 - b + b * words.lengths / words.lengths.mean())
    data = _mapped(folder / "data", np.float32, begins[-1])
    indices = _mapped(folder / "indices", np.int32, begins[-1])
    free = begins[:-1].copy()
    for block in words.blocks():
        places = _places(block.words, free)
        data[places] = idf[block.words] * block.times / (block.times + weight[block.passages])
        indices[places] = block.passages
    return {"data": data, "indices": indices, "indptr": begins, "num_docs": passages}


def _places(words: IntArray, free: IntArray) -> IntArray:
    """Where the postings of sorted words go; `free`, the next place of each word, moves on."""
    distinct, first, count = np.unique(words, return_index=True, return_counts=True)
    places: IntArray = np.arange(len(words)) + np.repeat(free[distinct] - first, count)
    free[distinct] += count
    return places


def _mapped(path: Path, dtype: type[np.generic], size: int) -> "np.memmap[Any, Any]":
    return np.memmap(path, dtype=dtype, mode="w+", shape=int(size))
