"""Several trajectories of each question, stored with their token ids.

Each sample is an evaluation with a seed and a folder of its own, so a run that was stopped goes on,
and more samples are only more folders. One engine serves them all.
"""

import asyncio
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, Self

from search_r1.evaluation.answer_check import answer_check
from search_r1.evaluation.answer_log import AnswerLog
from search_r1.evaluation.config import EvalConfig
from search_r1.evaluation.evaluate import Evaluation, check_searchable
from search_r1.evaluation.inputs import Inputs
from search_r1.evaluation.method import Engine, Tools
from search_r1.evaluation.methods import search_r1
from search_r1.evaluation.model_source import ModelSource
from search_r1.evaluation.output_files import ANSWERS
from search_r1.metrics import Row
from search_r1.result import RolloutResult
from search_r1.tokens import HubTokenizer

Logs = Sequence[AnswerLog]
"""One a sample."""


class SeededEngine(Engine, Protocol):
    """An engine that samples as a seed says."""

    def with_seed(self, seed: int) -> Engine:
        """The same engine with another seed."""


StartSeededEngine = Callable[[EvalConfig], AbstractAsyncContextManager[SeededEngine]]


@dataclass(frozen=True, slots=True)
class TrainableOutcome:
    """A rollout whose record holds `input_ids` and `mask`, exactly as they were sampled."""

    result: RolloutResult

    @property
    def answer(self) -> str | None:
        """The model's own last complete answer."""
        return self.result.answer

    def record(self) -> dict[str, Any]:
        """The record of the rollout, and the two lists, over prompt and response."""
        trajectory = self.result.trajectory
        return self.result.record() | {"input_ids": trajectory.ids, "mask": trajectory.loss_mask}


async def rollout_with_tokens(question: str, tools: Tools) -> TrainableOutcome:
    """The method `search_r1`, keeping the token ids.

    Raises:
        ValueError: the question is empty, or the engine broke its contract.
        RetrievalUnavailableError: so many searches failed that the run must end.
    """
    return TrainableOutcome(await search_r1(question, tools))


@dataclass(frozen=True, slots=True)
class Sampling:
    """Samples whose every input has been checked, and whose manifests are written."""

    evaluations: Sequence[Evaluation]
    """One a sample; they differ in seed and folder."""

    @classmethod
    def prepare(
        cls, config: EvalConfig, samples: int, load_tokenizer: Callable[[Path], HubTokenizer]
    ) -> Self:
        """Check everything that needs no weights, what is cheap to check first.

        Args:
            config: Of all samples; `output` will hold a folder for each, `1`, `2`, ...
            samples: Trajectories of each question.
            load_tokenizer: Reads that of a model's folder.

        Raises:
            OSError: a file cannot be read or written.
            ValueError: see `search_r1.evaluation.evaluate.Evaluation.prepare`.
            subprocess.CalledProcessError: the model could not be merged.
        """
        if samples < 1:
            raise ValueError(f"samples: {samples} must be at least 1")
        if config.temperature == 0 and samples > 1:
            raise ValueError(
                f"temperature: at 0 all {samples} samples of a question are the same; give more, "
                "or --samples 1"
            )
        check_searchable(config)
        inputs = Inputs.read(config)
        tokenizer = load_tokenizer(ModelSource.find(config.model).folder)
        inputs = inputs.ask(config)
        evaluations: list[Evaluation] = []
        for number in range(1, samples + 1):
            seed = zlib.crc32(f"{config.seed}/{number}".encode())
            one = replace(config, seed=seed, output=config.output / str(number))
            evaluation = Evaluation.prepare(one, tokenizer, inputs)
            evaluations.append(replace(evaluation, method=rollout_with_tokens))
            config = replace(config, model=evaluation.config.model)  # merged once, if at all
        return cls(evaluations)

    @property
    def total(self) -> int:
        """All trajectories."""
        return len(self.evaluations) * len(self.evaluations[0].questions)

    def open_logs(self, stack: ExitStack) -> Logs:
        """The trajectories there are, until the stack is closed.

        Raises:
            ValueError: a line is not a trajectory.
            BlockingIOError: another process is writing to one.
        """
        known = answer_check(self.evaluations[0].questions)

        def check(row: Row) -> None:
            known(row)
            if len(row.get("input_ids", ())) != len(row.get("mask", "?")):
                raise ValueError("input_ids and mask must be lists of the same length")

        paths = [one.config.output / ANSWERS for one in self.evaluations]
        return [stack.enter_context(AnswerLog(path, check)) for path in paths]

    def run(self, logs: Logs, start: StartSeededEngine, progress: Callable[[int], None]) -> None:
        """Sample what is not sampled yet.

        Args:
            logs: What `open_logs` returned.
            start: Makes the engine; not called if everything is sampled.
            progress: Called with the number of trajectories, at first and after each.

        Raises:
            RetrievalUnavailableError: so many searches failed that the run must end.
        """
        progress(sum(map(len, logs)))
        if sum(map(len, logs)) < self.total:
            asyncio.run(self._sample(logs, start, lambda: progress(sum(map(len, logs)))))

    async def _sample(
        self, logs: Logs, start: StartSeededEngine, advance: Callable[[], None]
    ) -> None:
        async with start(self.evaluations[0].config) as engine:
            for evaluation, log in zip(self.evaluations, logs, strict=True):
                await evaluation.answer(engine.with_seed(evaluation.config.seed), log, advance)

    def rows(self, logs: Logs) -> Iterator[list[Row]]:
        """All trajectories of each question, in the data's order."""
        for question in self.evaluations[0].questions:
            yield [log.row(question.id) for log in logs]
