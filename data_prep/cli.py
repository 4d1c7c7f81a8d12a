"""The commands of `search-r1 prepare`: from settings or question files to training data."""

from pathlib import Path
from typing import Annotated

import typer

from data_prep.console import progress, say
from data_prep.parquet import write_parquet
from data_prep.questions import Question, merge, read_questions
from data_prep.world import Split, WorldConfig, write_world
from data_prep.world.write import question_file
from search_r1.exits import one_line_errors

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
        with progress("Writing the world", steps) as advance:
            write_world(config, output, advance)
            for split in Split:
                made = read_questions(output / question_file(split))
                write_parquet(made, output / f"{split}.parquet", split, advance)
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
    output: Annotated[Path, typer.Option(help="The parquet file to write.")],
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
        sources = _sources(data_source or [], len(inputs))
        sets = [read_questions(*pair) for pair in zip(inputs, sources, strict=True)]
        merged: list[Question] = merge(sets, seed)[:limit]
        with progress("Writing rows", len(merged)) as advance:
            rows = write_parquet(merged, output, split, advance)
    say(f"{output}: {rows:,} rows")


def _sources(named: list[str], inputs: int) -> list[str | None]:
    if len(named) <= 1:
        return [named[0] if named else None] * inputs
    if len(named) != inputs:
        raise ValueError(
            f"data-source: given {len(named)} times for {inputs} inputs; give it once, or once "
            "for each input"
        )
    return [*named]
