r"""How much of the evidence each search engine finds: recall of supporting titles.

    python benchmarks/retrieval_quality.py --questions dev.jsonl \
        --server bm25=http://127.0.0.1:8001/retrieve --server e5=http://127.0.0.1:8002/retrieve

Each row of the questions has `question` and `supporting_titles` (HotpotQA, MuSiQue, 2Wiki). The
question is the only query. Whatever answers the retrieval API can be measured: the server over
any index, with or without re-ranking, or another engine.
"""

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from search_r1.exits import one_line_errors
from search_r1.files import atomic_path
from search_r1.passages import Passage
from search_r1.retriever import HttpRetriever, RetrieverSettings

BATCH = 64
CUTS = (3, 10)


@dataclass(frozen=True)
class Question:
    """A question and the titles of the passages that answer it."""

    text: str
    titles: frozenset[str]


@dataclass(frozen=True)
class Quality:
    """What one engine found for all questions."""

    recall: dict[int, float]
    """Share of a question's titles in the best k, averaged over questions."""
    complete: dict[int, float]
    """Share of the questions whose titles are all in the best k."""
    queries_per_second: float


def read_questions(path: Path) -> list[Question]:
    """Read the questions.

    Raises:
        ValueError: A row lacks a field; the message names file and line.
    """
    questions = []
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        row = json.loads(line)
        if not row.get("question") or not row.get("supporting_titles"):
            raise ValueError(f"{path}:{number}: needs 'question' and 'supporting_titles'")
        questions.append(Question(row["question"], frozenset(row["supporting_titles"])))
    if not questions:
        raise ValueError(f"{path} has no rows")
    return questions


def score(
    questions: Sequence[Question], found: Sequence[Sequence[Passage]], cut: int
) -> list[float]:
    """For each question the share of its titles among the best `cut` passages."""
    return [
        len(question.titles & {passage.title for passage in passages[:cut]}) / len(question.titles)
        for question, passages in zip(questions, found, strict=True)
    ]


async def ask(url: str, questions: Sequence[Question]) -> tuple[list[list[Passage]], float]:
    """The passages of every question, and the seconds of all searches one after the other."""
    retriever = HttpRetriever(RetrieverSettings(urls=(url,)))
    found: list[list[Passage]] = []
    begin = time.perf_counter()
    for start in range(0, len(questions), BATCH):
        batch = [question.text for question in questions[start : start + BATCH]]
        found += await retriever.search(batch, max(CUTS))
    seconds = time.perf_counter() - begin
    await retriever.aclose()
    return found, seconds


def measure(url: str, questions: Sequence[Question]) -> Quality:
    """Ask one engine all questions."""
    found, seconds = asyncio.run(ask(url, questions))
    shares = {cut: score(questions, found, cut) for cut in CUTS}
    return Quality(
        {cut: sum(values) / len(values) for cut, values in shares.items()},
        {cut: sum(v == 1 for v in values) / len(values) for cut, values in shares.items()},
        len(questions) / seconds,
    )


def named_servers(servers: Sequence[str]) -> dict[str, str]:
    """Split NAME=URL.

    Raises:
        ValueError: One is not of this form, or a name comes twice.
    """
    pairs = [server.partition("=") for server in servers]
    for server, (name, _, url) in zip(servers, pairs, strict=True):
        if not name or not url.startswith("http"):
            raise ValueError(f"--server: '{server}' is not NAME=URL")
    named = {name: url for name, _, url in pairs}
    if len(named) < len(pairs):
        raise ValueError("--server: a name is given twice")
    return named


def table(measured: dict[str, Quality], questions: int, path: Path) -> Table:
    """A line for each engine."""
    made = Table(title=f"{questions} questions of {path.name}, {datetime.now(UTC).date()}")
    made.add_column("engine")
    for cut in CUTS:
        made.add_column(f"recall@{cut}", justify="right")
        made.add_column(f"all in top {cut}", justify="right")
    made.add_column("queries/s", justify="right")
    for name, quality in measured.items():
        shares = [f"{part[cut]:.3f}" for cut in CUTS for part in (quality.recall, quality.complete)]
        made.add_row(name, *shares, f"{quality.queries_per_second:,.0f}")
    return made


def main(
    questions: Annotated[
        Path, typer.Option(exists=True, dir_okay=False, help="JSON lines with supporting_titles.")
    ],
    server: Annotated[list[str], typer.Option(help="NAME=URL of a /retrieve; repeat for several.")],
    output: Annotated[Path | None, typer.Option(help="Also write the numbers as JSON.")] = None,
) -> None:
    """Measure search engines on questions whose evidence is known."""
    with one_line_errors():
        wanted = named_servers(server)
        rows = read_questions(questions)
        measured = {name: measure(url, rows) for name, url in wanted.items()}
    Console().print(table(measured, len(rows), questions))
    if output is not None:
        with atomic_path(output) as temporary:
            numbers = {name: vars(quality) for name, quality in measured.items()}
            temporary.write_text(json.dumps(numbers, indent=1) + "\n")


if __name__ == "__main__":
    typer.run(main)
