"""Chain of thought: reasoning, then the answer, without search (arXiv 2201.11903)."""

from search_r1.baselines.answering import ANSWER_FORMAT, ask, compose
from search_r1.baselines.outcome import BaselineOutcome
from search_r1.baselines.session import Session
from search_r1.evaluation.method import Tools
from search_r1.prompts import Tag, normalise_question

INSTRUCTION = (
    "Answer the question below. First reason about it, one step after another, between "
    f"{Tag.THINK.opening} and {Tag.THINK.closing}. {ANSWER_FORMAT}"
)


async def answer(question: str, tools: Tools) -> BaselineOutcome:
    """Reason and answer without search."""
    return await ask(Session(tools), compose(INSTRUCTION, normalise_question(question)))
