"""Any passages as JSON lines -> one corpus of good rows, and the bad ones set aside.

Run it as `search-r1 prepare corpus INPUT... --output corpus.jsonl`.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TextIO

from data_prep.corpus_rows import BadRowError, Reason, check_row, corpus_line
from data_prep.id_set import IdSet
from data_prep.index_corpus import corpus_lines
from search_r1.files import atomic_path


@dataclass(frozen=True, slots=True)
class CorpusCounts:
    """How many rows were good, and how many bad for each reason."""

    good: int
    bad: dict[Reason, int]

    @property
    def bad_rows(self) -> int:
        """All that were set aside."""
        return sum(self.bad.values())

    @property
    def bad_share(self) -> float:
        """Of all rows; 0 when there are none."""
        return self.bad_rows / max(1, self.good + self.bad_rows)

    def reasons(self) -> str:
        """The counts of bad rows, most frequent first, in words."""
        ordered = sorted(self.bad.items(), key=lambda pair: -pair[1])
        return ", ".join(f"{reason} {count:,}" for reason, count in ordered)


@dataclass(frozen=True, slots=True)
class _Line:
    file: Path
    number: int
    raw: bytes


def quarantine_path(output: Path) -> Path:
    """`corpus.quarantine.jsonl` for `corpus.jsonl`."""
    return output.with_suffix(".quarantine.jsonl")


class TooManyBadRowsError(ValueError):
    """The inputs are not what they should be; no corpus was written, the bad rows were."""


def clean_corpus(
    inputs: Iterable[Path],
    output: Path,
    *,
    max_bad_share: float,
    advance: Callable[[int], None] = lambda _: None,
) -> CorpusCounts:
    """Write the good rows of all inputs as one corpus, a line at a time.

    Bad rows go to `quarantine_path(output)`, each with its file, line, reason and raw text; there
    is no such file when every row is good. Memory: that of an `IdSet`.

    Args:
        inputs: JSONL or JSONL.gz of `{"id", "contents"}` or `{"id", "title", "text"}`; blank lines
            are passed over.
        output: the corpus, `{"id", "contents"}` in each line; it appears only when complete.
        max_bad_share: the share of bad rows up to which there is a corpus.
        advance: told how many bytes of all inputs have been read, now and then.

    Raises:
        TooManyBadRowsError: there are more, or no others; the message has the counts.
        CorpusError: a file is damaged.
        ValueError: there are no rows.
    """
    quarantine = quarantine_path(output)
    with atomic_path(quarantine) as set_aside, atomic_path(output) as corpus:
        with corpus.open("w", encoding="utf-8") as good, set_aside.open("w") as bad:
            counts = _separate(_lines(inputs, advance), good, bad)
        if not counts.good and not counts.bad_rows:
            raise ValueError("the inputs have no rows")
        if counts.bad_share > max_bad_share or not counts.good:
            set_aside.replace(quarantine)
            raise TooManyBadRowsError(_refusal(counts, max_bad_share, quarantine))
    if not counts.bad_rows:
        quarantine.unlink()
    return counts


def _lines(inputs: Iterable[Path], advance: Callable[[int], None]) -> Iterator[_Line]:
    before = 0
    for file in inputs:
        report = partial(_report, advance, before)
        for number, raw in enumerate(corpus_lines(file, report), start=1):
            if raw.strip():
                yield _Line(file, number, raw)
        before += file.stat().st_size


def _report(advance: Callable[[int], None], before: int, read: int) -> None:
    advance(before + read)


def _separate(lines: Iterable[_Line], good: TextIO, bad: TextIO) -> CorpusCounts:
    seen = IdSet()
    reasons: Counter[Reason] = Counter()
    for line in lines:
        try:
            good.write(corpus_line(check_row(line.raw, seen)))
        except BadRowError as error:
            reasons[error.reason] += 1
            bad.write(_quarantined(line, error))
    return CorpusCounts(len(seen), dict(reasons))


def _quarantined(line: _Line, error: BadRowError) -> str:
    row = {
        "file": str(line.file),
        "line": line.number,
        "reason": error.reason,
        "message": str(error),
        # Escaped, bytes that are no UTF-8 come back by .encode("utf-8", "surrogateescape").
        "raw": line.raw.rstrip(b"\n").decode("utf-8", "surrogateescape"),
    }
    return json.dumps(row) + "\n"


def _refusal(counts: CorpusCounts, max_bad_share: float, quarantine: Path) -> str:
    rows = counts.good + counts.bad_rows
    bad = (
        f"{counts.bad_rows:,} of {rows:,} rows are bad ({counts.bad_share:.2%}, more than the "
        f"{max_bad_share:.2%} of --max-bad-share)"
    )
    return (
        f"{bad if counts.good else f'none of {rows:,} rows is good'}: {counts.reasons()}. No "
        f"corpus was written; the rows are in {quarantine}"
    )
