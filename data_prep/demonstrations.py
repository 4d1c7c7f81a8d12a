"""Demonstrations of the tag protocol: a world's questions, answered by a script -> parquet.

The trajectories come out of the real rollout, so ids and mask are exactly those of training. Make
them from a world of another seed than the one to be trained on, so that no answer leaks.

Command: ``search-r1 prepare demonstrations --world DIR --model DIR --output FILE``.
"""

import asyncio
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from data_prep.demonstration import Stage
from data_prep.demonstration_file import Size, write_rows
from data_prep.library import read_library
from data_prep.questions import Question, read_questions
from data_prep.world.chains import Split
from data_prep.world.write import CORPUS, question_file
from search_r1.settings import SearchSettings
from search_r1.tokens import HubTokenizer

_ROUNDS = 10
"""How often all questions are gone through, with other passages each time; not again after a
round that gave nothing."""
_ATTEMPTS = 8
"""How often other passages are drawn for a question until the budgets cut none that it needs."""


@dataclass(frozen=True, slots=True)
class DemonstrationConfig:
    """What determines the demonstrations of a world.

    Raises:
        ValueError: a setting is out of range; the message names the field and the range.
    """

    count: int = 160
    gold_share: float = 1.0
    """Chance that a hop is answered right. At 0 the demonstrations teach the tags only: they
    search the entity of the question and answer with random names from the passages."""
    guess_share: float = 0.0
    """Chance that a question is answered at once, without a search, with any title of the world,
    so that it is left to RL to find out that searching pays."""
    seed: int = 0
    search: SearchSettings = field(default_factory=SearchSettings)
    """Budgets and `top_k`; those of the training that follows."""

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ValueError(f"count: {self.count} must be at least 1")
        if not 0 <= self.gold_share <= 1:
            raise ValueError(f"gold_share: {self.gold_share} must be a share from 0 to 1")
        if not 0 <= self.guess_share <= 1:
            raise ValueError(f"guess_share: {self.guess_share} must be a share from 0 to 1")


def write_demonstrations(
    world: Path,
    tokenizer: HubTokenizer,
    output: Path,
    config: DemonstrationConfig,
    advance: Callable[[int], None] = lambda _: None,
) -> Size:
    """Write demonstrations from a world's training questions.

    Args:
        world: a folder with `corpus.jsonl` and `train.jsonl`.
        tokenizer: the Hugging Face tokenizer of the policy.
        output: the parquet file; it appears only when it is complete.
        config: what to make. The same settings give the same rows.
        advance: called with the number of rows after each group.

    Raises:
        ValueError: a file or a row of the world is wrong, or the budgets are too small.
        OSError: a file cannot be read or written.
    """
    return write_rows(demonstrations(world, tokenizer, config), output, advance)


def demonstrations(
    world: Path, tokenizer: HubTokenizer, config: DemonstrationConfig
) -> Iterator[dict[str, Any]]:
    """The rows of `write_demonstrations`.

    A demonstration is left out if the budgets cut a passage that its words rely on.
    """
    library = read_library(world / CORPUS)
    stage = Stage(library, tokenizer, config.gold_share, config.guess_share, config.search)
    path = world / question_file(Split.TRAIN)
    made = 0
    with asyncio.Runner() as runner:
        for round_ in range(_ROUNDS):
            before = made
            for row in _round(runner, stage, path, f"{config.seed}/{round_}"):
                made += 1
                yield row
                if made == config.count:
                    return
            if made == before:
                break
    raise ValueError(
        f"{path} gave {made} demonstrations, {config.count} were asked for; ask for fewer, give a "
        "world with more questions, or raise max_searches and observation_tokens"
    )


def _round(runner: asyncio.Runner, stage: Stage, path: Path, seed: str) -> Iterator[dict[str, Any]]:
    """Go through all questions once."""
    for question in read_questions(path):
        try:
            row = runner.run(_first(stage, question, f"{seed}/{question.id}"))
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error
        if row:
            yield row


async def _first(stage: Stage, question: Question, seed: str) -> dict[str, Any] | None:
    """The first of some draws that the budgets allow, so that long chains are not passed over."""
    for attempt in range(_ATTEMPTS):
        if row := await stage.demonstrate(question, random.Random(f"{seed}/{attempt}")):
            return row
    return None
