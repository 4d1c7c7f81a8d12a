"""The command ``search-r1 prepare qa``."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from data_prep.console import progress, say
from data_prep.outputs import refuse_inputs
from data_prep.qa import QaFile, count_differences, evaluation_files, training_file, write_files
from data_prep.qa_sets import TRAINING, QaSplit, evaluation_sets
from data_prep.qa_source import HUB, LoadedSplit, load, open_source
from search_r1.exits import one_line_errors
from search_r1.files import require_folder

QA_EXAMPLES = """
Examples:

* all seven sets and the training data, from the hub:
`search-r1 prepare qa --train --output data/qa`

* a quick look, 350 questions over all seven, from a folder:
`search-r1 prepare qa --source flashrag --sample 350 --output data/qa-350`

* a folder of samples, of two sets only:
`search-r1 prepare qa --source samples --any-count --set nq --set musique --output data/two`
"""


def qa_command(
    output: Annotated[
        Path, typer.Option(help="Folder for SET.parquet, train.parquet and manifest.json.")
    ],
    source: Annotated[
        str,
        typer.Option(
            help="A folder that holds SET/SPLIT.jsonl or .jsonl.gz, or 'hub' to load "
            "RUC-NLPIR/FlashRAG_datasets from the Hugging Face hub."
        ),
    ] = HUB,
    sets: Annotated[
        list[str] | None,
        typer.Option("--set", help="An evaluation set; repeat for several. [default: all seven]"),
    ] = None,
    train: Annotated[
        bool,
        typer.Option("--train", help="Also merge the train splits of nq and hotpotqa, shuffled."),
    ] = False,
    sample: Annotated[
        int | None,
        typer.Option(
            help="Keep this many evaluation questions in all, as evenly over the sets as they "
            "allow; the same for the same seed. [default: every row]"
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the sample and of the training order.")] = 42,
    any_count: Annotated[
        bool,
        typer.Option(
            "--any-count", help="Only say which row counts differ from the published ones."
        ),
    ] = False,
) -> None:
    """Prepare the seven evaluation sets of the paper, and its training data.

    nq, triviaqa, popqa and bamboogle (test), hotpotqa, 2wikimultihopqa and musique (dev), in
    FlashRAG's layout: JSON lines with id, question, golden_answers. The rows of each split are
    counted: other than the published number is an error, unless --any-count is given, as for a
    folder of samples. Nothing is written before everything is read and checked.
    manifest.json says what each file was made from.
    """
    with one_line_errors():
        require_folder(output)
        if source != HUB:
            refuse_inputs(output, [Path(source)])
        splits = (*evaluation_sets(sets or []), *(TRAINING if train else ()))
        loaded = _load(source, splits)
        _check_counts(loaded, any_count=any_count)
        held_out = [one for one in loaded if one.split not in TRAINING]
        files = list(evaluation_files(held_out, sample, seed))
        if train:
            files.append(training_file([one for one in loaded if one.split in TRAINING], seed))
        with progress("Writing rows", sum(len(file.questions) for file in files)) as advance:
            settings = {"source": source, "sample": sample, "seed": seed}
            write_files(files, output, settings, advance)
    _summarise(files, output)


def _load(source: str, splits: Sequence[QaSplit]) -> list[LoadedSplit]:
    read = open_source(source)
    loaded = []
    with progress("Reading splits", len(splits)) as advance:
        for split in splits:
            loaded.append(load(read, split))
            advance(1)
    return loaded


def _check_counts(loaded: Sequence[LoadedSplit], *, any_count: bool) -> None:
    differences = count_differences(loaded)
    if differences and not any_count:
        raise ValueError(
            f"row counts differ from the published sets: {'; '.join(differences)}. Get the whole "
            "sets, or give --any-count if they are samples on purpose"
        )
    for difference in differences:
        say(f"note: {difference}", err=True)


def _summarise(files: Sequence[QaFile], output: Path) -> None:
    for file in files:
        say(f"{output / file.name}.parquet: {len(file.questions):,} rows")
