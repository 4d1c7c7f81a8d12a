"""ReAct: thoughts, actions and observations take turns (arXiv 2210.03629, section 2)."""

import re
from dataclasses import replace

from search_r1.actions import Action, Answer, Invalid, Search
from search_r1.baselines.agent import Notation, converse
from search_r1.baselines.answering import compose
from search_r1.baselines.lookup import Found, observation
from search_r1.baselines.outcome import BaselineOutcome
from search_r1.baselines.session import Session
from search_r1.evaluation.method import Tools
from search_r1.observation import Insert
from search_r1.prompts import normalise_question

INSTRUCTION = (
    'Answer the question below in steps. Each step is a line that begins with "Thought:" and '
    'holds your reasoning, and then a line that begins with "Action:" and holds one of two '
    "actions. Search[query] asks a search engine; what it finds comes back as an "
    '"Observation:". Finish[answer] gives the final answer, without explanation, for example '
    "Finish[Beijing]."
)
OBSERVATION_LABEL = "\nObservation:"
INVALID_MESSAGE = (
    f"{OBSERVATION_LABEL} That step had no valid action. Write Search[query] to search or "
    "Finish[answer] to answer.\n"
)
ANSWER_NOW_MESSAGE = (
    f"{OBSERVATION_LABEL} No more searches are possible. Write Finish[answer] now.\n"
)

_ACTION = re.compile(r"\b(?P<name>Search|Finish)\[(?P<body>[^\]]*)\]", re.IGNORECASE)


async def answer(question: str, tools: Tools) -> BaselineOutcome:
    """Think and act until the model finishes or a budget is spent."""
    session = Session(tools)
    prompt = session.prompt(compose(INSTRUCTION, normalise_question(question)))
    return await converse(session, prompt, _NOTATION)


def _parse(text: str) -> tuple[str, Action]:
    action = _ACTION.search(text)
    if action is None:
        return text, Invalid()
    return text[: action.end()], _to_action(action["name"].lower(), action["body"].strip())


def _to_action(name: str, body: str) -> Action:
    if name == "finish":
        return Answer(body)
    return Search(body) if body else Invalid()


async def _show(session: Session, found: Found, max_tokens: int) -> Insert | None:
    label = session.tokenizer.encode(OBSERVATION_LABEL)
    block = observation(found, session.tokenizer, max_tokens - len(label))
    return block and replace(
        block, text=OBSERVATION_LABEL + block.text, token_ids=label + block.token_ids
    )


_NOTATION = Notation(
    # Not "]" and a line break: a chat model ends its turn right behind the bracket, and its end
    # token would stand before the observation.
    stop=("]",),
    parse=_parse,
    show=_show,
    invalid_message=INVALID_MESSAGE,
    answer_now_message=ANSWER_NOW_MESSAGE,
)
