"""The commands of `search-r1 prepare`: from settings or question files to training data."""

from pathlib import Path
from typing import Annotated

import typer

from data_prep.console import progress, say
from data_prep.outputs import refuse_inputs, require_parquet
from data_prep.parquet import write_parquet
from data_prep.questions import Question, merge, not_empty, read_questions
from data_prep.world import Split, WorldConfig, write_world
from data_prep.world.write import MANIFEST, question_file
from search_r1.exits import one_line_errors
from search_r1.files import atomic_files, require_folder

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Make training data, worlds and indexes.",
)


@app.command()
def world(
    output: Annotated[Path, typer.Option(help="Folder to write; files in it are replaced.")],
    articles: Annotated[int, typer.Option(help="Number of articles, 100 to 1,000,000.")] = 2_000,
    seed: Annotated[int, typer.Option(help="The same seed gives the same bytes.")] = 0,
    train_questions: Annotated[int, typer.Option(help="Number of training questions.")] = 3_000,
    test_questions: Annotated[int, typer.Option(help="Number of held-out questions.")] = 300,
    hops: Annotated[
        list[int] | None,
        typer.Option(help="Facts a question joins, 1 to 3; repeat for several. [default: 1 2 3]"),
    ] = None,
    distractors: Annotated[
        float, typer.Option(help="Share of articles that only imitate another's name, 0 to 0.4.")
    ] = 0.2,
    held_out: Annotated[
        float, typer.Option(help="Share of facts that only held-out questions use, 0.01 to 0.99.")
    ] = 0.2,
) -> None:
    """Make a fictional encyclopedia with questions that only its articles answer.

    Writes corpus.jsonl, train.jsonl, test.jsonl and manifest.json, and train.parquet and
    test.parquet for verl.
    """
    with one_line_errors():
        require_folder(output)
        config = WorldConfig(
            seed=seed,
            articles=articles,
            train_questions=train_questions,
            test_questions=test_questions,
            hops=tuple(hops or (1, 2, 3)),
            distractors=distractors,
            held_out=held_out,
        )
        steps = articles + 2 * (train_questions + test_questions)
        with progress("Writing the world", steps) as advance, atomic_files(output, MANIFEST) as new:
            write_world(config, new, advance)
            for split in Split:
                made = read_questions(new / question_file(split))
                write_parquet(made, new / f"{split}.parquet", split, advance)
    say(
        f"{output}: {articles:,} articles, {train_questions:,} training questions, "
        f"{test_questions:,} held-out questions"
    )


@app.command()
def questions(
    inputs: Annotated[
        list[Path],
        typer.Argument(
            help="Question sets (.jsonl or .jsonl.gz) with id, question, golden_answers.",
            metavar="INPUT...",
        ),
    ],
    output: Annotated[Path, typer.Option(help="The file to write; it must end in .parquet.")],
    data_source: Annotated[
        list[str] | None,
        typer.Option(
            help="Data source of rows that name none: once for all inputs, or once "
            "for each input, in their order."
        ),
    ] = None,
    split: Annotated[str, typer.Option(help="Name of the split, kept in each row.")] = "train",
    seed: Annotated[
        int | None, typer.Option(help="Shuffle with this seed; without it the order is kept.")
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Keep only the first rows, after the shuffle.")
    ] = None,
) -> None:
    """Merge question sets into one parquet file for verl, with ids unique over all of them."""
    with one_line_errors():
        require_parquet(output)
        refuse_inputs(output, inputs)
        merged = _merged(inputs, _sources(data_source or [], len(inputs)), seed)[:limit]
        with progress("Writing rows", len(merged)) as advance:
            rows = write_parquet(merged, output, split, advance)
    say(f"{output}: {rows:,} rows")


def _merged(inputs: list[Path], sources: list[str | None], seed: int | None) -> list[Question]:
    pairs = list(zip(inputs, sources, strict=True))
    for number, (path, source) in enumerate(pairs):
        if (path.resolve(), source) in [(other.resolve(), name) for other, name in pairs[:number]]:
            raise ValueError(f"input: {path} is given twice; give each file once")
    sets = [not_empty(read_questions(path, source), path) for path, source in pairs]
    return merge(sets, seed, inputs)


def _sources(named: list[str], inputs: int) -> list[str | None]:
    if len(named) <= 1:
        return [named[0] if named else None] * inputs
    if len(named) != inputs:
        raise ValueError(
            f"data-source: given {len(named)} times for {inputs} inputs; give it once, or once "
            "for each input"
        )
    return [*named]
