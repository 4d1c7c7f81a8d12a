"""One evaluation from its config to its tables: everything is checked before a model is loaded."""

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from data_prep.questions import Question
from search_r1.doctor import query
from search_r1.evaluation import manifest
from search_r1.evaluation.answer_log import AnswerLog
from search_r1.evaluation.config import EvalConfig
from search_r1.evaluation.method import Engine, Method, Tools
from search_r1.evaluation.methods import find_method, searches
from search_r1.evaluation.output_files import ANSWERS, MANIFEST, METRICS, TABLES, TRAJECTORIES
from search_r1.evaluation.prompt_probe import first_prompt
from search_r1.evaluation.question_sets import join, read_files, sample
from search_r1.evaluation.runner import answer_all, unanswered
from search_r1.evaluation.scores import Scores, score
from search_r1.evaluation.tables import score_tables
from search_r1.files import atomic_path, write_lines
from search_r1.passages import Passage
from search_r1.retriever import HttpRetriever, RetrievalUnavailableError
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
    questions: Sequence[Question]
    """Those to answer, in the data's order."""
    method: Method
    tokenizer: HubTokenizer

    @classmethod
    def prepare(cls, config: EvalConfig, tokenizer: HubTokenizer) -> Self:
        """Check everything that needs no model.

        Raises:
            OSError: a file cannot be read or written.
            ValueError: an input is wrong, the search engine does not answer, or the output folder
                holds answers that were made with other settings.
        """
        method = find_method(config.method)
        _check_searchable(config)
        files = read_files(config.data)
        questions = join(files.values())
        if config.sample is not None:
            questions = sample(questions, config.sample, config.seed)
        _check_search(config)
        prompt = first_prompt(method, tokenizer, config.search)
        about = manifest.describe(config, files, questions, prompt)
        manifest.write_or_check(config.output / MANIFEST, about)
        return cls(config, questions, method, tokenizer)

    def open_log(self) -> AnswerLog:
        """The answers there are, ready for more.

        Raises:
            ValueError: a line is not an answer.
            BlockingIOError: another process is writing to it.
        """
        return AnswerLog(self.config.output / ANSWERS)

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
        if len(log) < len(self.questions):
            asyncio.run(self._answer(start, log, lambda: progress(len(log))))
        write_trajectories(self.config.output / TRAJECTORIES, self.questions, log)
        return self._write_scores(log)

    async def _answer(
        self, start: StartEngine, log: AnswerLog, advance: Callable[[], None]
    ) -> None:
        config = self.config
        retriever = HttpRetriever(config.search) if config.searchable else NoRetriever()
        async with start(config) as engine:
            await answer_all(
                unanswered(self.questions, log),
                self.method,
                Tools(engine, retriever, self.tokenizer, config.search),
                log,
                concurrency=config.concurrency,
                advance=advance,
            )

    def _write_scores(self, log: AnswerLog) -> Scores:
        scores = score((log.row(question.id) for question in self.questions), self.config.seed)
        numbers = json.dumps(scores.to_json(), indent=2, ensure_ascii=False)
        write_lines(self.config.output / METRICS, [numbers])
        write_lines(self.config.output / TABLES, [score_tables(scores)])
        return scores


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


def _check_searchable(config: EvalConfig) -> None:
    if not config.searchable and searches(config.method, config.search.max_searches):
        raise ValueError(
            f"retriever: the method {config.method} searches; give --retriever URL, or "
            "--max-searches 0"
        )


def _check_search(config: EvalConfig) -> None:
    if not config.searchable:
        return
    for url in config.search.urls:
        found = query(url)
        if not found.ok:
            raise ValueError(f"retriever: {found.detail}; {found.fix}")
