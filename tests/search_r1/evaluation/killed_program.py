"""An evaluation with a slow method of its own; prints how many questions it answered.

A program, run and killed by test_evaluate.py: killed_program.py MODEL DATA OUTPUT.
"""

import asyncio
import random
import sys
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from search_r1.evaluation.config import EvalConfig
from search_r1.evaluation.evaluate import Evaluation
from search_r1.evaluation.method import Tools
from search_r1.evaluation.question_sets import join, read_files

asked: list[str] = []


@dataclass(frozen=True)
class Said:
    answer: str

    def record(self) -> dict[str, Any]:
        counts = ("turns", "searches", "failed_searches", "valid_actions", "invalid_actions")
        tokens = {"sampled_tokens": 1, "inserted_tokens": 0}
        seconds = {"generate_seconds": random.random(), "search_seconds": random.random()}
        ends = {"answer": self.answer, "stop_reason": "answered", "transcript": []}
        return ends | dict.fromkeys(counts, 1) | tokens | seconds


async def slow(question: str, tools: Tools) -> Said:
    asked.append(question)
    await asyncio.sleep(random.uniform(0.01, 0.05))
    return Said(question.split()[-1])


def main(model: str, data: str, output: str) -> None:
    config = EvalConfig(
        model=Path(model), data=(Path(data),), output=Path(output), searchable=False, concurrency=3
    )
    questions = join(read_files(config.data).values())
    config.output.mkdir(exist_ok=True)
    tokenizer: Any = None
    evaluation = Evaluation(config, questions, slow, tokenizer)
    engine: Any = nullcontext()
    with evaluation.open_log() as log:
        evaluation.run(log, lambda _: engine, lambda _: None)
    sys.stdout.write(str(len(asked)))


main(*sys.argv[1:])
