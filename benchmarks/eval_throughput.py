"""What an evaluation costs outside the engine and the search server: rows a second, and memory.

    python benchmarks/eval_throughput.py --rows 51713 --concurrency 256

Questions, engine and search engine are made up, and answer at once, so all time is the runner's
own: the rollout, scoring, storing each answer, the ordered file, and the bootstrap intervals.
"""

import asyncio
import resource
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from data_prep.questions import Question
from search_r1.evaluation.answer_check import answer_check
from search_r1.evaluation.answer_log import AnswerLog
from search_r1.evaluation.evaluate import write_trajectories
from search_r1.evaluation.method import Tools
from search_r1.evaluation.methods import search_r1
from search_r1.evaluation.runner import answer_all, unanswered
from search_r1.evaluation.scores import score
from search_r1.passages import Passage
from search_r1.prompts import INSTRUCTION, Tag
from search_r1.rollout import Generate, Generation
from search_r1.settings import SearchSettings

SETS = 7
PASSAGES = [Passage(str(i), "Ada Lovelace", "Ada wrote notes. " * 25, 0.5) for i in range(3)]
THOUGHT = Tag.THINK.wrap("I think. " * 20)


class CharacterTokenizer:
    """One id a character, so that it costs next to nothing."""

    chat_template = None

    def encode(self, text: str, *, add_special_tokens: bool = True) -> list[int]:  # noqa: ARG002
        """The code of each character."""
        return list(map(ord, text))

    def decode(self, token_ids: list[int], *, clean_up_tokenization_spaces: bool) -> str:  # noqa: ARG002
        """The characters of the codes."""
        return "".join(map(chr, token_ids))

    def apply_chat_template(self, conversation: list[dict[str, str]], **options: Any) -> Any:  # noqa: ANN401
        """Refuse: there is no template."""
        raise NotImplementedError


class Engine:
    """Searches once, then answers."""

    def __init__(self) -> None:
        self._prompt = len(INSTRUCTION) + 100
        self._search = list(map(ord, THOUGHT + Tag.SEARCH.wrap("who wrote the notes")))
        self._answer = list(map(ord, THOUGHT + Tag.ANSWER.wrap("Ada Lovelace")))

    def until(self, stop: Sequence[str]) -> Generate:  # noqa: ARG002 - scripted
        """The same for every method."""
        return self._generate

    async def _generate(self, ids: list[int], max_tokens: int) -> Generation:
        await asyncio.sleep(0)
        turn = self._search if len(ids) < self._prompt else self._answer
        return Generation(turn[:max_tokens])


class Library:
    """The same passages for every query."""

    async def search(self, queries: Sequence[str], top_k: int) -> list[list[Passage]]:
        """The passages, at once."""
        await asyncio.sleep(0)
        return [PASSAGES[:top_k] for _ in queries]


def timed(table: Table, name: str, rows: int, work: Callable[[], object]) -> None:
    """Run `work` and add its seconds, its rows a second and the memory so far to the table."""
    started = time.perf_counter()
    work()
    seconds = time.perf_counter() - started
    mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    table.add_row(name, f"{seconds:.1f}", f"{rows / seconds:,.0f}", f"{mib:,.0f}")


def main(
    rows: Annotated[int, typer.Option(help="Questions, in seven sets.")] = 51_713,
    concurrency: Annotated[int, typer.Option(help="Questions at a time.")] = 256,
) -> None:
    """Measure and print."""
    budgets = SearchSettings(turn_tokens=1_000, observation_tokens=1_500)
    tools = Tools(Engine(), Library(), CharacterTokenizer(), budgets)
    questions = [
        Question(f"set{i % SETS}/{i}", f"Who wrote note {i}?", ("Ada Lovelace",), f"set{i % SETS}")
        for i in range(rows)
    ]
    table = Table("phase", "seconds", "rows/s", "peak MiB", title=f"{rows:,} rows")
    with tempfile.TemporaryDirectory() as folder:
        path, target = Path(folder) / "answers.jsonl", Path(folder) / "trajectories.jsonl"

        def answer(log: AnswerLog) -> None:
            todo = unanswered(questions, log)
            asyncio.run(answer_all(todo, search_r1, tools, log, concurrency=concurrency))

        def resume() -> None:
            with AnswerLog(path, answer_check(questions)):
                pass

        with AnswerLog(path) as log:
            timed(table, "answer and store", rows, lambda: answer(log))
            timed(table, "ordered file", rows, lambda: write_trajectories(target, questions, log))
            answers = (log.row(question.id) for question in questions)
            timed(table, "scores and intervals", rows, lambda: score(answers, seed=0))
        timed(table, "read to resume", rows, resume)
        table.caption = f"{path.stat().st_size / rows / 1024:.1f} KiB a row on disk"
    Console().print(table)


if __name__ == "__main__":
    typer.run(main)
