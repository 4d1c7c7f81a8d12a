"""Retrieval-augmented generation: one search with the question, then the answer.

With the question alone as the query (arXiv 2005.11401; paper, section 4.2).
"""

from search_r1.baselines.answering import ANSWER_FORMAT, ask, compose
from search_r1.baselines.lookup import look_up_first, observations
from search_r1.baselines.outcome import BaselineOutcome
from search_r1.baselines.session import Session
from search_r1.evaluation.method import Tools
from search_r1.prompts import normalise_question

INSTRUCTION = f"Answer the question below. The passages before it may help. {ANSWER_FORMAT}"


async def answer(question: str, tools: Tools) -> BaselineOutcome:
    """Search for the question and answer with the passages in the prompt."""
    session, asked = Session(tools), normalise_question(question)
    await look_up_first(session, asked, session.prompt(compose(INSTRUCTION, asked)))
    return await ask(session, compose(INSTRUCTION, asked, observations(session)))
