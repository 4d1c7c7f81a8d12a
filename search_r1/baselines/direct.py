"""Direct inference: the answer straight away, from what the model knows (paper, section 4.2)."""

from search_r1.baselines.answering import ANSWER_FORMAT, ask, compose
from search_r1.baselines.outcome import BaselineOutcome
from search_r1.baselines.session import Session
from search_r1.evaluation.method import Tools
from search_r1.prompts import normalise_question

INSTRUCTION = f"Answer the question below at once, without any reasoning. {ANSWER_FORMAT}"


def prompt(question: str) -> str:
    """What the model is asked; `search-r1 prepare sft` makes training data of the same words.

    Raises:
        ValueError: the question is empty.
    """
    return compose(INSTRUCTION, normalise_question(question))


async def answer(question: str, tools: Tools) -> BaselineOutcome:
    """Answer without reasoning and without search."""
    return await ask(Session(tools), prompt(question))
