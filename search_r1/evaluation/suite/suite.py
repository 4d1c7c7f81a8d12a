"""Many evaluations of the same questions: checked together, each model loaded once, one table."""

import asyncio
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from search_r1.evaluation.answer_log import AnswerLog
from search_r1.evaluation.config import EvalConfig
from search_r1.evaluation.evaluate import Evaluation, StartEngine, check_searchable
from search_r1.evaluation.inputs import Inputs
from search_r1.evaluation.model_source import ModelSource
from search_r1.evaluation.scores import Scores
from search_r1.evaluation.suite.result import RowResult, SuiteResult
from search_r1.evaluation.suite.rows import PAPER
from search_r1.evaluation.suite.table import suite_tables
from search_r1.files import write_lines
from search_r1.tokens import HubTokenizer

SUITE: Final = "suite.json"
TABLE: Final = "suite.md"

Logs = Mapping[str, AnswerLog]
Progress = Callable[[str, int], None]
"""Gets a row's name and the number of its answers."""


@dataclass(frozen=True, slots=True)
class Suite:
    """The rows that have a model, as evaluations whose every input has been checked."""

    output: Path
    base: str
    """One of `search_r1.baselines.published.BASES`, for the published numbers."""
    evaluations: Mapping[str, Evaluation]
    """By the name of the row, in the order of the table."""

    @classmethod
    def prepare(
        cls,
        output: Path,
        base: str,
        configs: Mapping[str, EvalConfig],
        load_tokenizer: Callable[[Path], HubTokenizer],
    ) -> Self:
        """Check everything that needs no weights, then merge the policies that are checkpoints.

        Questions are read, and searches tried, once for all rows.

        Args:
            output: Holds a folder for each row, and the tables.
            base: Whose published numbers stand in the table.
            configs: By the name of the row; they differ in method, model and output only.
            load_tokenizer: Reads that of a model's folder.

        Raises:
            OSError: a file cannot be read or written.
            ValueError: see `search_r1.evaluation.evaluate.Evaluation.prepare`.
            subprocess.CalledProcessError: a policy could not be merged.
        """
        for config in configs.values():
            check_searchable(config)
        inputs = Inputs.gather(next(iter(configs.values())))
        folders = {name: ModelSource.find(config.model).folder for name, config in configs.items()}
        tokenizers = {folder: load_tokenizer(folder) for folder in dict.fromkeys(folders.values())}
        return cls(
            output,
            base,
            {
                name: Evaluation.prepare(config, tokenizers[folders[name]], inputs)
                for name, config in configs.items()
            },
        )

    def open_logs(self, stack: ExitStack) -> Logs:
        """The answers there are of each row, until the stack is closed.

        Raises:
            ValueError: a line is not an answer.
            BlockingIOError: another process is writing to one.
        """
        return {name: stack.enter_context(one.open_log()) for name, one in self.evaluations.items()}

    def run(self, logs: Logs, start: StartEngine, progress: Progress) -> SuiteResult:
        """Answer what is not answered yet, a model after another, and write every file.

        The tables are written anew after each row.

        Args:
            logs: What `open_logs` returned.
            start: Makes the engine of a model; not called for one whose rows are answered.
            progress: Called for each row at first, and after each answer.

        Raises:
            RetrievalUnavailableError: so many searches failed that the run must end.
        """
        scores: dict[str, Scores] = {}
        for name, log in logs.items():
            progress(name, len(log))
        for name in self._answered(logs):
            scores[name] = self.evaluations[name].finish(logs[name])
        for names in self._by_model(name for name in logs if name not in scores):
            asyncio.run(self._answer(names, logs, start, progress, scores))
        return self._write(scores)

    async def _answer(
        self,
        names: list[str],
        logs: Logs,
        start: StartEngine,
        progress: Progress,
        scores: dict[str, Scores],
    ) -> None:
        """Answer the rows of one model, and add their scores."""
        async with start(self.evaluations[names[0]].config) as engine:
            for name in names:
                evaluation, log = self.evaluations[name], logs[name]
                await evaluation.answer(engine, log, lambda: progress(name, len(log)))  # noqa: B023
                scores[name] = evaluation.finish(log)
                self._write(scores)

    def _answered(self, logs: Logs) -> list[str]:
        return [name for name, one in self.evaluations.items() if one.is_answered(logs[name])]

    def _by_model(self, names: Iterable[str]) -> list[list[str]]:
        groups: dict[Path, list[str]] = defaultdict(list)
        for name in names:
            groups[self.evaluations[name].config.model.resolve()].append(name)
        return list(groups.values())

    def _write(self, scores: Mapping[str, Scores]) -> SuiteResult:
        """Write both files of the suite, as far as it is."""
        questions = next(iter(self.evaluations.values())).questions
        sets = Counter(question.data_source for question in questions)
        models = {name: one.config.model for name, one in self.evaluations.items()}
        rows = [RowResult(row, models.get(row.name), scores.get(row.name)) for row in PAPER]
        result = SuiteResult(self.base, sets, rows)
        text = json.dumps(result.to_json(), indent=2, ensure_ascii=False)
        write_lines(self.output / SUITE, [text])
        write_lines(self.output / TABLE, [suite_tables(result)])
        return result
