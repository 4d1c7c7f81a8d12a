"""Pretraining of the small policy: it learns to read, and nothing of searching.

    python -m benchmarks.learning.pretrain --output FOLDER

About ten minutes on two quiet cores that multiply bfloat16, half an hour in float32.
The loss is on the facts after the passages, and in some rows on all tokens.
"""

import os
import random
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated, Final

import torch
import torch.nn.functional as F  # noqa: N812 - its usual name
import typer
from rich.console import Console
from rich.progress import track
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

from benchmarks.learning.policy import make_model, make_tokenizer, save
from benchmarks.learning.reading import Piece, reading_texts
from data_prep.world import World, WorldConfig
from search_r1.platform.precision import cpu_dtype

_WORLDS: Final = range(100, 140)
"""Seeds; the worlds of the warm start and of RL have others."""
_ARTICLES: Final = 1_000
_BATCH: Final = 64
_LENGTH: Final = 176
"""Tokens of a row; what is longer is cut."""
_WHOLE_ROWS: Final = 0.15
_RATE: Final = 4e-3
_WARM_UP: Final = 100
_LEAST: Final = 0.05
_NO_TARGET: Final = -100

Texts = Iterator[list[Piece]]

say = Console(stderr=True).print


def row_of(
    text: Sequence[Piece], tokenizer: PreTrainedTokenizerFast, *, whole: bool = False
) -> tuple[list[int], list[int]]:
    """Ids and mask of a text, at most 176; `whole` trains all of it."""
    ids, mask = [], []
    for piece in text:
        piece_ids = tokenizer.encode(piece.text, add_special_tokens=False)
        ids += piece_ids
        mask += [int(whole or piece.trained)] * len(piece_ids)
    return ids[:_LENGTH], mask[:_LENGTH]


def batches(
    tokenizer: PreTrainedTokenizerFast, texts: Sequence[Texts], rng: random.Random
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Ids and targets, both int64 of (64, 176); a target is -100 where nothing is learnt."""
    while True:
        ids = torch.full((_BATCH, _LENGTH), tokenizer.eos_token_id)
        targets = torch.full_like(ids, _NO_TARGET)
        for row, source in enumerate(rng.choices(texts, k=_BATCH)):
            made, mask = row_of(next(source), tokenizer, whole=rng.random() < _WHOLE_ROWS)
            ids[row, : len(made)] = torch.tensor(made)
            trained = torch.tensor(mask, dtype=torch.bool)
            targets[row, : len(made)][trained] = ids[row, : len(made)][trained]
        yield ids, targets


def step_loss(
    model: LlamaForCausalLM, ids: torch.Tensor, targets: torch.Tensor
) -> tuple[torch.Tensor, float]:
    """Mean cross-entropy of the targets in nats, and the share of them that comes first."""
    wanted = targets[:, 1:].flatten()
    kept = (wanted != _NO_TARGET).nonzero().squeeze(1)
    with torch.autocast("cpu", torch.bfloat16, enabled=cpu_dtype() == "bfloat16"):
        hidden = model.model(input_ids=ids).last_hidden_state[:, :-1].flatten(0, 1)[kept]
        logits = model.lm_head(hidden).float()
    right = (logits.argmax(-1) == wanted[kept]).float().mean().item()
    return F.cross_entropy(logits, wanted[kept]), right


def train(
    model: LlamaForCausalLM,
    steps: int,
    data: Iterator[tuple[torch.Tensor, torch.Tensor]],
) -> None:
    """AdamW, its rate rising for 100 steps and falling in a line."""
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=_RATE, betas=(0.9, 0.98), weight_decay=0.01
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / _WARM_UP, 1) * max(_LEAST, 1 - step / steps)
    )
    started = time.monotonic()
    for step in track(range(1, steps + 1), "Learning to read"):
        loss, right = step_loss(model, *next(data))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 100 == 0 or step == steps:
            seconds = time.monotonic() - started
            say(f"step {step}: loss {loss.item():.3f}, right tokens {right:.2f}, {seconds:.0f} s")


def endless_texts(rng: random.Random) -> list[Texts]:
    """The texts of each world."""
    worlds = [World(WorldConfig(number, _ARTICLES, 1, 1)) for number in _WORLDS]
    return [reading_texts(world, rng) for world in worlds]


def main(
    output: Annotated[Path, typer.Option(help="The Hugging Face folder to write.")],
    steps: Annotated[int, typer.Option(help="Optimizer steps of 64 texts.")] = 1_500,
    seed: Annotated[int, typer.Option(help="Of the weights and the texts.")] = 0,
) -> None:
    """Teach a new policy to read; what exists is left as it is."""
    if output.exists():
        say(f"{output} is there")
        return
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    rng = random.Random(seed)
    texts = endless_texts(rng)
    samples = ("".join(p.text for p in text) for one in texts for text in islice(one, 100))
    tokenizer = make_tokenizer(samples)
    model = make_model(tokenizer, seed)
    train(model, steps, batches(tokenizer, texts, rng))
    save(model, tokenizer, output)


if __name__ == "__main__":
    typer.run(main)
