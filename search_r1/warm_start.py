"""Supervised fine-tuning: a warm start on the tag protocol, and the paper's SFT baselines.

Command: ``search-r1 warm-start --model DIR --data demonstrations.parquet --output DIR``; on several
GPUs ``torchrun --nproc-per-node 8 --no-python search-r1 warm-start ...``.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from search_r1.exits import one_line_errors


@dataclass(frozen=True, kw_only=True)
class WarmStartConfig:
    """A warm start.

    Raises:
        ValueError: a setting is out of range; the message names the field and the range.
    """

    model: str
    """A Hugging Face folder or name."""
    data: Path
    """Parquet with `input_ids` and `mask`, see `data_prep.demonstration_file.SCHEMA`."""
    output: Path
    """The Hugging Face folder to write; it must not exist."""
    learning_rate: float = 4e-4
    """At its highest: it rises over `warmup_share` of the steps and falls to 0 as a cosine."""
    epochs: float = 1.0
    steps: int | None = None
    """Optimizer steps; if given, `epochs` does not count."""
    batch_size: int = 4
    """Demonstrations a step, on all devices together."""
    micro_batch_size: int = 1
    """Demonstrations a forward pass. More than one costs padding; a CPU gains nothing from it."""
    warmup_share: float = 0.1
    seed: int = 0
    """The same seed gives the same order of demonstrations."""
    fsdp: bool = False
    """Shard weights and optimizer over the devices, for models that do not fit into one."""
    gradient_checkpointing: bool = False
    """Recompute activations in the backward pass: less memory, a third more time."""

    def __post_init__(self) -> None:
        for name in ("learning_rate", "epochs", "batch_size", "micro_batch_size"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name}: {getattr(self, name)} must be above 0")
        if self.steps is not None and self.steps < 1:
            raise ValueError(f"steps: {self.steps} must be at least 1")
        if not 0 <= self.warmup_share < 1:
            raise ValueError(f"warmup_share: {self.warmup_share} must be at least 0 and below 1")


def warm_start_command(
    model: Annotated[str, typer.Option(help="The policy: a Hugging Face folder or name.")],
    data: Annotated[
        Path,
        typer.Option(
            exists=True,
            dir_okay=False,
            help="From search-r1 prepare demonstrations, sft or rejection-samples.",
        ),
    ],
    output: Annotated[Path, typer.Option(help="The Hugging Face folder to write.")],
    learning_rate: Annotated[
        float, typer.Option(help="At its highest.")
    ] = WarmStartConfig.learning_rate,
    epochs: Annotated[
        float, typer.Option(help="Passes over the demonstrations.")
    ] = WarmStartConfig.epochs,
    steps: Annotated[
        int | None, typer.Option(help="Optimizer steps, in place of --epochs.")
    ] = None,
    batch_size: Annotated[
        int, typer.Option(help="Demonstrations a step.")
    ] = WarmStartConfig.batch_size,
    micro_batch_size: Annotated[
        int, typer.Option(help="Demonstrations a forward pass.")
    ] = WarmStartConfig.micro_batch_size,
    seed: Annotated[int, typer.Option(help="Of the order.")] = WarmStartConfig.seed,
    fsdp: Annotated[bool, typer.Option(help="Shard the model over the GPUs of torchrun.")] = False,
    gradient_checkpointing: Annotated[
        bool, typer.Option(help="Save memory, at a third more time.")
    ] = False,
) -> None:
    """Fine-tune a policy on demonstrations; stopped early, it starts anew and leaves nothing.

    On several GPUs of one or more nodes, start it with torchrun and give --fsdp for a model that
    does not fit into one: torchrun --nproc-per-node 8 --no-python search-r1 warm-start --fsdp ...
    The defaults are those of a warm start; for a model of billions of parameters give a
    --learning-rate near 1e-5 and a larger --batch-size.
    """
    # Read when torch is loaded. Threads that spin while idle made a step 15 times as long beside
    # another job on the same cores.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    from search_r1.fine_tune import fine_tune

    with one_line_errors():
        config = WarmStartConfig(
            model=model,
            data=data,
            output=output,
            learning_rate=learning_rate,
            epochs=epochs,
            steps=steps,
            batch_size=batch_size,
            micro_batch_size=micro_batch_size,
            seed=seed,
            fsdp=fsdp,
            gradient_checkpointing=gradient_checkpointing,
        )
        summary = fine_tune(config)
    typer.echo(f"{output}: {summary}")
