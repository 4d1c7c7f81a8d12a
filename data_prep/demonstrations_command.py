"""The command ``search-r1 prepare demonstrations``."""

from pathlib import Path
from typing import Annotated

import typer

from data_prep.console import progress
from data_prep.demonstrations import DemonstrationConfig, write_demonstrations
from data_prep.outputs import refuse_inputs, require_parquet
from data_prep.world import Split
from search_r1.exits import one_line_errors
from search_r1.model_tokenizer import load_tokenizer
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
    output: Annotated[Path, typer.Option(help="The file to write; it must end in .parquet.")],
    count: Annotated[int, typer.Option(help="Number of demonstrations.")] = _DEFAULT.count,
    gold_share: Annotated[
        float, typer.Option(help="Chance that a hop is answered right; 0 teaches the tags only.")
    ] = _DEFAULT.gold_share,
    guess_share: Annotated[
        float, typer.Option(help="Chance to answer at once, with any name, without a search.")
    ] = _DEFAULT.guess_share,
    seed: Annotated[int, typer.Option(help="The same seed gives the same rows.")] = _DEFAULT.seed,
    top_k: Annotated[int, typer.Option(help="As search.top_k of the training.")] = 3,
    max_searches: Annotated[int, typer.Option(help="As search.max_searches of the training.")] = 3,
    observation_tokens: Annotated[
        int, typer.Option(help="As search.observation_tokens of the training.")
    ] = 200,
) -> None:
    """Make demonstrations of the tag protocol, for search-r1 warm-start."""
    with one_line_errors():
        require_parquet(output)
        # The world's other files end otherwise; these belong to it, though they are not read.
        refuse_inputs(output, [world / f"{split}.parquet" for split in Split])
        search = SearchSettings(
            top_k=top_k, max_searches=max_searches, observation_tokens=observation_tokens
        )
        config = DemonstrationConfig(count, gold_share, guess_share, seed, search)
        tokenizer = load_tokenizer(model)
        with progress("Demonstrating", count) as advance:
            size = write_demonstrations(world, tokenizer, output, config, advance)
    typer.echo(f"{output}: {size}")
