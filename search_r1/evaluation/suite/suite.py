"""Many evaluations of the same questions, checked together before a model is loaded."""

from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from search_r1.evaluation.answer_log import AnswerLog
from search_r1.evaluation.config import EvalConfig
from search_r1.evaluation.evaluate import Evaluation, check_searchable
from search_r1.evaluation.inputs import Inputs
from search_r1.evaluation.model_source import ModelSource
from search_r1.evaluation.scores import Scores
from search_r1.evaluation.suite.result import RowResult, SuiteResult
from search_r1.evaluation.suite.rows import PAPER
from search_r1.tokens import HubTokenizer

Logs = Mapping[str, AnswerLog]
"""By the name of the row."""


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
        first = next(iter(configs.values()))
        inputs = Inputs.read(first)
        folders = {name: ModelSource.find(config.model).folder for name, config in configs.items()}
        tokenizers = {folder: load_tokenizer(folder) for folder in dict.fromkeys(folders.values())}
        inputs = inputs.ask(first)
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

    def result(self, scores: Mapping[str, Scores]) -> SuiteResult:
        """The table, as far as there are scores."""
        questions = next(iter(self.evaluations.values())).questions
        sets = Counter(question.data_source for question in questions)
        models = {name: one.config.model for name, one in self.evaluations.items()}
        rows = [RowResult(row, models.get(row.name), scores.get(row.name)) for row in PAPER]
        return SuiteResult(self.base, sets, rows)
