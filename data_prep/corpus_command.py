"""The command ``search-r1 prepare corpus``."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from data_prep.console import say
from data_prep.corpus import CorpusCounts, clean_corpus, quarantine_path
from data_prep.outputs import refuse_inputs
from search_r1.exits import one_line_errors
from search_r1.files import require_place

CORPUS_EXAMPLES = """
Examples:

* `search-r1 prepare corpus wiki-18.jsonl.gz --output corpus.jsonl`

* several files, of which every row must be good:
`search-r1 prepare corpus notes.jsonl pages.jsonl.gz --max-bad-share 0 --output corpus.jsonl`
"""


def corpus_command(
    inputs: Annotated[
        list[Path],
        typer.Argument(
            exists=True,
            dir_okay=False,
            help="Passages, one JSON object a line (.jsonl or .jsonl.gz).",
            metavar="INPUT...",
        ),
    ],
    output: Annotated[Path, typer.Option(help="The corpus to write; it must end in .jsonl.")],
    max_bad_share: Annotated[
        float, typer.Option(min=0, max=1, help="Fail when more of the rows than this are bad.")
    ] = 0.01,
) -> None:
    """Check passages, wiki-18 or your own, and write one clean corpus for prepare index.

    Reads {"id", "contents"} and {"id", "title", "text"}, and writes {"id", "contents"}: wiki-18's
    own form, which every Search-R1 retrieval server reads. Contents stay
    as they are; of a title and a text, the title becomes the first line, in quotes. Other fields
    are left out.

    A row that is no JSON object, lacks a field, has one of a wrong type, has no text, or repeats
    an id is put into OUTPUT's .quarantine.jsonl with file, line, reason and raw text, and the rest
    is used. Ids must be unique over all inputs; remembering them takes 24 bytes a row
    or less. Over --max-bad-share no corpus is written and the exit code is 2.
    """
    with one_line_errors():
        _refuse_other_names(output)
        refuse_inputs(output, inputs)
        refuse_inputs(quarantine_path(output), inputs)
        started = perf_counter()
        with _byte_progress(inputs) as advance:
            counts = clean_corpus(inputs, output, max_bad_share=max_bad_share, advance=advance)
        say(f"{output}: {counts.good:,} rows; {_speed(counts, inputs, perf_counter() - started)}")
    if counts.bad_rows:
        say(_warning(counts, quarantine_path(output)), err=True)


def _refuse_other_names(output: Path) -> None:
    if output.suffix != ".jsonl":
        raise ValueError(f"output: {output} must end in .jsonl; the corpus is not compressed")
    if output.is_dir():
        raise ValueError(f"output: {output} is a folder; give a file that ends in .jsonl")
    require_place(output)


def _speed(counts: CorpusCounts, inputs: Sequence[Path], seconds: float) -> str:
    rows = counts.good + counts.bad_rows
    megabytes = _size(inputs) / 1e6
    return (
        f"read {rows:,} rows, {megabytes:,.1f} MB in {seconds:,.1f} s: "
        f"{rows / seconds:,.0f} rows/s, {megabytes / seconds:,.1f} MB/s"
    )


def _warning(counts: CorpusCounts, quarantine: Path) -> str:
    return (
        f"warning: {counts.bad_rows:,} bad rows ({counts.bad_share:.2%}) left out: "
        f"{counts.reasons()}; see {quarantine}"
    )


def _size(inputs: Sequence[Path]) -> int:
    return sum(path.stat().st_size for path in inputs)


@contextmanager
def _byte_progress(inputs: Sequence[Path]) -> Iterator[Callable[[int], None]]:
    columns = (
        TextColumn("Checking passages"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("Checking passages", total=_size(inputs))
        yield lambda read: bar.update(task, completed=read)
