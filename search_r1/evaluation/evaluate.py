"""One evaluation from its config to its tables: everything is checked before a model is loaded."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from data_prep.questions import Question
from search_r1.evaluation import manifest
from search_r1.evaluation.answer_check import answer_check
from search_r1.evaluation.answer_log import AnswerLog
from search_r1.evaluation.config import EvalConfig
from search_r1.evaluation.inputs import Inputs
from search_r1.evaluation.method import Engine, Method, Tools
from search_r1.evaluation.methods import find_method, searches
from search_r1.evaluation.model_source import ModelSource
from search_r1.evaluation.output_files import (
    ANSWERS,
    MANIFEST,
    METRICS,
    MODEL,
    TABLES,
    TRAJECTORIES,
)
from search_r1.evaluation.prompt_probe import first_prompt
from search_r1.evaluation.runner import answer_all, unanswered
from search_r1.evaluation.scores import Scores, score
from search_r1.evaluation.tables import score_tables
from search_r1.files import atomic_path, write_lines
from search_r1.passages import Passage
from search_r1.retriever import HttpRetriever, RetrievalUnavailableError, Retriever
from search_r1.tokens import HubTokenizer

StartEngine = Callable[[EvalConfig], AbstractAsyncContextManager[Engine]]


class NoRetriever:
    """Stands for the search engine that was not named."""

    async def search(self, queries: Sequence[str], top_k: int) -> list[list[Passage]]:  # noqa: ARG002
        """Refuse.

        Raises:
            RetrievalUnavailableError: always.
        """
        raise RetrievalUnavailableError("this method searches: give --retriever URL")


@dataclass(frozen=True, slots=True)
class Evaluation:
    """An evaluation whose every input has been checked, and whose manifest is written."""

    config: EvalConfig
    """Its model is a Hugging Face folder with weights."""
    questions: Sequence[Question]
    """Those to answer, in the data's order."""
    method: Method
    tokenizer: HubTokenizer

    @classmethod
    def prepare(
        cls, config: EvalConfig, tokenizer: HubTokenizer, inputs: Inputs | None = None
    ) -> Self:
        """Check everything that needs no weights, then merge the model if it is a checkpoint.

        Args:
            config: The evaluation.
            tokenizer: The model's.
            inputs: What other evaluations of the same data have gathered; None gathers it.

        Raises:
            OSError: a file cannot be read or written.
            ValueError: an input is wrong, the search engine does not answer, or the output folder
                holds answers that were made with other settings.
            subprocess.CalledProcessError: the model could not be merged.
        """
        method = find_method(config.method)
        check_searchable(config)
        inputs = inputs or Inputs.gather(config)
        prompt = first_prompt(method, tokenizer, config.search)
        model = ModelSource.find(config.model).with_weights(config.output / MODEL)
        config = replace(config, model=model)
        about = manifest.describe(config, inputs, prompt)
        manifest.write_or_check(config.output / MANIFEST, about)
        return cls(config, inputs.questions, method, tokenizer)

    def open_log(self) -> AnswerLog:
        """The answers there are, ready for more.

        Raises:
            ValueError: a line is not an answer.
            BlockingIOError: another process is writing to it.
        """
        return AnswerLog(self.config.output / ANSWERS, answer_check(self.questions))

    def run(self, log: AnswerLog, start: StartEngine, progress: Callable[[int], None]) -> Scores:
        """Answer what is not answered yet, then write trajectories, numbers and tables.

        Args:
            log: What `open_log` returned.
            start: Makes the engine; not called if every question is answered.
            progress: Called with the number of answered questions, at first and after each.

        Raises:
            RetrievalUnavailableError: so many searches failed that the run must end.
        """
        progress(len(log))
        if not self.is_answered(log):
            asyncio.run(self._start_and_answer(start, log, lambda: progress(len(log))))
        return self.finish(log)

    def is_answered(self, log: AnswerLog) -> bool:
        """Whether every question has its answer."""
        return len(log) == len(self.questions)

    async def answer(self, engine: Engine, log: AnswerLog, advance: Callable[[], None]) -> None:
        """Answer what is not answered yet with an engine that runs; `advance` follows each answer.

        Raises:
            RetrievalUnavailableError: so many searches failed that the run must end.
        """
        config = self.config
        async with _open_retriever(config) as retriever:
            await answer_all(
                unanswered(self.questions, log),
                self.method,
                Tools(engine, retriever, self.tokenizer, config.search),
                log,
                concurrency=config.concurrency,
                advance=advance,
            )

    def finish(self, log: AnswerLog) -> Scores:
        """Write trajectories, numbers and tables of an evaluation that is answered."""
        write_trajectories(self.config.output / TRAJECTORIES, self.questions, log)
        scores = score((log.row(question.id) for question in self.questions), self.config.seed)
        numbers = json.dumps(scores.to_json(), indent=2, ensure_ascii=False)
        write_lines(self.config.output / METRICS, [numbers])
        write_lines(self.config.output / TABLES, [score_tables(scores)])
        return scores

    async def _start_and_answer(
        self, start: StartEngine, log: AnswerLog, advance: Callable[[], None]
    ) -> None:
        async with start(self.config) as engine:
            await self.answer(engine, log, advance)


def check_searchable(config: EvalConfig) -> None:
    """Pass an evaluation that names a search engine, or never needs one.

    Raises:
        ValueError: its method searches, and there is nothing to search with.
    """
    if not config.searchable and searches(config.method, config.search.max_searches):
        raise ValueError(
            f"retriever: the method {config.method} searches; give --retriever URL, or "
            "--max-searches 0"
        )


def write_trajectories(target: Path, questions: Sequence[Question], log: AnswerLog) -> None:
    """Write the answers in the data's order and without times, so that equal runs are equal files.

    `search-r1 view` shows them.
    """
    with atomic_path(target) as temporary, temporary.open("wb") as file:
        file.writelines(_timeless_lines(questions, log))


def _timeless_lines(questions: Sequence[Question], log: AnswerLog) -> Iterator[bytes]:
    for question in questions:
        row = {k: v for k, v in log.row(question.id).items() if not k.endswith("_seconds")}
        yield json.dumps(row, ensure_ascii=False).encode(errors="backslashreplace") + b"\n"


@asynccontextmanager
async def _open_retriever(config: EvalConfig) -> AsyncIterator[Retriever]:
    if not config.searchable:
        yield NoRetriever()
        return
    retriever = HttpRetriever(config.search)
    try:
        yield retriever
    finally:
        await retriever.aclose()
