"""A suite from its first question to its tables: a model after another, each loaded once."""

import asyncio
import json
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Final

from search_r1.evaluation.evaluate import StartEngine
from search_r1.evaluation.method import Engine
from search_r1.evaluation.scores import Scores
from search_r1.evaluation.suite.result import SuiteResult
from search_r1.evaluation.suite.suite import Logs, Suite
from search_r1.evaluation.suite.table import suite_tables
from search_r1.files import write_lines

SUITE: Final = "suite.json"
TABLES: Final = "suite.md"


class SuiteRun:
    """Answers what is not answered yet, and writes the tables anew after each row.

    Args:
        suite: What to answer.
        logs: The answers there are.
        progress: Gets a row's name and the number of its answers, at first and after each answer.
    """

    def __init__(self, suite: Suite, logs: Logs, progress: Callable[[str, int], None]) -> None:
        self._suite = suite
        self._logs = logs
        self._progress = progress
        self._scores: dict[str, Scores] = {}

    def run(self, start: StartEngine) -> SuiteResult:
        """Answer every row, and write every file.

        Args:
            start: Makes the engine of a model; not called for one whose rows are answered.

        Raises:
            RetrievalUnavailableError: so many searches failed that the run must end.
        """
        for name, log in self._logs.items():
            self._progress(name, len(log))
        groups = self._unanswered()
        waiting = {name for names in groups for name in names}
        for name in self._logs:
            if name not in waiting:
                self._finish(name)
        for names in groups:
            asyncio.run(self._answer_with(start, names))
        return self._write()

    def _unanswered(self) -> list[list[str]]:
        """The rows with open questions, those of the same model together."""
        groups: dict[Path, list[str]] = defaultdict(list)
        for name, one in self._suite.evaluations.items():
            if not one.is_answered(self._logs[name]):
                groups[one.config.model.resolve()].append(name)
        return list(groups.values())

    async def _answer_with(self, start: StartEngine, names: list[str]) -> None:
        async with start(self._suite.evaluations[names[0]].config) as engine:
            for name in names:
                await self._answer(name, engine)
                self._finish(name)
                self._write()

    async def _answer(self, name: str, engine: Engine) -> None:
        log = self._logs[name]
        evaluation = self._suite.evaluations[name]
        await evaluation.answer(engine, log, lambda: self._progress(name, len(log)))

    def _finish(self, name: str) -> None:
        self._scores[name] = self._suite.evaluations[name].finish(self._logs[name])

    def _write(self) -> SuiteResult:
        result = self._suite.result(self._scores)
        text = json.dumps(result.to_json(), indent=2, ensure_ascii=False)
        write_lines(self._suite.output / SUITE, [text])
        write_lines(self._suite.output / TABLES, [suite_tables(result)])
        return result
