"""A suite with a slow engine in memory; prints what it answered and how many models it loaded.

A program, run and killed by test_suite.py: killed_suite.py OUTPUT MODEL DATA.
"""

import asyncio
import json
import random
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

from conftest import FakeHubTokenizer  # in the folder of this program

from search_r1.evaluation.config import EvalConfig
from search_r1.evaluation.suite.rows import PAPER, assign
from search_r1.evaluation.suite.run import SuiteRun
from search_r1.evaluation.suite.suite import Suite
from search_r1.rollout import Generate, Generation
from search_r1.settings import SearchSettings

counts = {"answered": 0, "loaded": 0}


class Engine:
    """Answers each question with its last word, after a while."""

    def until(self, stop: Sequence[str]) -> Generate:
        return self._generate

    async def _generate(self, ids: list[int], max_tokens: int) -> Generation:
        await asyncio.sleep(random.uniform(0.005, 0.02))
        word = "".join(map(chr, ids)).partition("Question: ")[2].partition("?")[0].split()[-1]
        return Generation(list(map(ord, f"<answer>{word}</answer>")))


@asynccontextmanager
async def start(_: EvalConfig) -> AsyncIterator[Engine]:
    counts["loaded"] += 1
    yield Engine()


def main(output: str, model: str, data: str) -> None:
    methods = {row.name: row.method for row in PAPER}
    configs = {
        name: EvalConfig(
            model=path,
            data=(Path(data),),
            output=Path(output) / name,
            searchable=False,
            method=methods[name],
            search=SearchSettings(max_searches=0),
            concurrency=3,
        )
        for name, path in assign(Path(model), []).items()
    }
    suite = Suite.prepare(Path(output), "Qwen2.5-7B", configs, lambda _: FakeHubTokenizer())
    done: dict[str, int] = {}
    with ExitStack() as stack:
        logs = suite.open_logs(stack)
        before = sum(map(len, logs.values()))
        SuiteRun(suite, logs, done.__setitem__).run(start)
    counts["answered"] = sum(done.values()) - before
    sys.stdout.write(json.dumps(counts))


main(*sys.argv[1:])
