"""The command ``search-r1 prepare demonstrations``."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress

from data_prep.demonstrations import DemonstrationConfig, write_demonstrations
from search_r1.exits import BAD_INPUT
from search_r1.settings import SearchSettings

_DEFAULT = DemonstrationConfig()


def demonstrations_command(
    world: Annotated[
        Path,
        typer.Option(
            exists=True, file_okay=False, help="World to make them from, not to train on."
        ),
    ],
    model: Annotated[
        Path, typer.Option(exists=True, file_okay=False, help="The policy, for its tokenizer.")
    ],
    output: Annotated[Path, typer.Option(help="The parquet file to write.")],
    count: Annotated[int, typer.Option(help="Number of demonstrations.")] = _DEFAULT.count,
    gold_share: Annotated[
        float, typer.Option(help="Chance that a hop is answered right; 0 teaches the tags only.")
    ] = _DEFAULT.gold_share,
    seed: Annotated[int, typer.Option(help="The same seed gives the same rows.")] = _DEFAULT.seed,
    top_k: Annotated[int, typer.Option(help="As search.top_k of the training.")] = 3,
    max_searches: Annotated[int, typer.Option(help="As search.max_searches of the training.")] = 3,
    observation_tokens: Annotated[
        int, typer.Option(help="As search.observation_tokens of the training.")
    ] = 200,
) -> None:
    """Make demonstrations of the tag protocol, for search-r1 warm-start."""
    from transformers import AutoTokenizer

    console = Console(stderr=True)
    try:
        search = SearchSettings(
            top_k=top_k, max_searches=max_searches, observation_tokens=observation_tokens
        )
        config = DemonstrationConfig(count, gold_share, seed, search)
        tokenizer = AutoTokenizer.from_pretrained(model)
        with Progress(console=console) as progress:
            task = progress.add_task("Demonstrating", total=count)
            tokens = write_demonstrations(
                world, tokenizer, output, config, lambda rows: progress.advance(task, rows)
            )
    except (ValueError, OSError) as error:
        console.print(f"error: {error}", markup=False, style="red", soft_wrap=True)
        raise typer.Exit(BAD_INPUT) from error
    typer.echo(f"{output}: {count:,} demonstrations, {tokens:,} tokens")
