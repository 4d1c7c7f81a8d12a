"""Questions -> answers in a log: so many at a time, each stored as soon as it is there."""

import asyncio
from collections.abc import Callable, Iterable, Iterator

from data_prep.questions import Question
from search_r1.evaluation.answer_log import AnswerLog
from search_r1.evaluation.method import Method, Tools
from search_r1.rewards import ROLLOUT, compute_score


async def answer_all(
    questions: Iterable[Question],
    method: Method,
    tools: Tools,
    log: AnswerLog,
    *,
    concurrency: int,
    advance: Callable[[], None] = lambda: None,
) -> None:
    """Answer every question and store it in `log`, at most `concurrency` at a time.

    The first error of a question ends the run at once; answers stored by then stay.

    Args:
        questions: Those that `log` does not have.
        method: Answers one question.
        tools: What the method works with.
        log: Gets a line a question, in order of completion.
        concurrency: Questions at a time.
        advance: Called after each question.
    """
    waiting = iter(questions)

    async def work() -> None:
        for question in waiting:
            log.append(question.id, await answer_line(question, method, tools))
            advance()

    workers = [asyncio.create_task(work()) for _ in range(concurrency)]
    try:
        await asyncio.gather(*workers)
    finally:
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)


async def answer_line(question: Question, method: Method, tools: Tools) -> str:
    """The answer to a question with its scores, as a line of a validation file of a training."""
    outcome = await method(question.question, tools)
    info = {
        "id": question.id,
        "question": question.question,
        "hops": question.metadata.get("hops", 0),
        ROLLOUT: outcome.record(),
    }
    scored = compute_score(question.data_source, "", question.golden_answers, info)
    return str(scored["record"])


def unanswered(questions: Iterable[Question], log: AnswerLog) -> Iterator[Question]:
    """The questions that are not in `log`, in their order."""
    return (question for question in questions if question.id not in log)
