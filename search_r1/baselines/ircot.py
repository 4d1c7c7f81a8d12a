"""IRCoT: sentences of reasoning and searches take turns (arXiv 2212.10509, section 3).

The question is the first query and each sentence the next one. Once a sentence says the answer,
that is it; otherwise a reader answers from all passages and the reasoning.
"""

import re

from search_r1.actions import Action, Answer, Invalid, Search
from search_r1.baselines.answering import ANSWER_FORMAT, ask, compose
from search_r1.baselines.lookup import Found, look_up, look_up_first, observation, observations
from search_r1.baselines.outcome import BaselineOutcome
from search_r1.baselines.sentences import first_sentence
from search_r1.baselines.session import Session
from search_r1.evaluation.method import Tools
from search_r1.observation import NOTHING, Insert
from search_r1.passages import Passage
from search_r1.prompts import normalise_question
from search_r1.trajectory import StopReason

ANSWER_PHRASE = "So the answer is:"
REASON_INSTRUCTION = (
    "Work towards the answer to the question below, one sentence at a time. The passages before "
    "it may help. Write only the next sentence of the reasoning. Once the answer is known, that "
    f'sentence must be "{ANSWER_PHRASE}" followed by the answer alone.'
)
READ_INSTRUCTION = (
    "Answer the question below. The passages before it and the reasoning behind it may help. "
    f"{ANSWER_FORMAT}"
)

_SAID_ANSWER = re.compile(rf"{ANSWER_PHRASE}?(.*)", re.IGNORECASE)


async def answer(question: str, tools: Tools) -> BaselineOutcome:
    """Reason and search in turns; answer from the chain, or else from a reader."""
    session, asked = Session(tools), normalise_question(question)
    await look_up_first(session, asked, session.prompt(reason_prompt(session, asked)))
    while await _extend(session, asked):
        pass
    if session.turns and isinstance(session.turns[-1].action, Answer):
        return session.finish(StopReason.ANSWERED)
    return await ask(session, read_prompt(session, asked))


def reason_prompt(session: Session, question: str) -> str:
    """Asks for the next sentence."""
    task = compose(REASON_INSTRUCTION, question, observations(session))
    return f"{task}\nReasoning so far: {_chain(session)}\nNext sentence:"


def read_prompt(session: Session, question: str) -> str:
    """Asks for the answer."""
    task = compose(READ_INSTRUCTION, question, observations(session))
    return f"{task}\nReasoning: {_chain(session)}"


async def _extend(session: Session, question: str) -> bool:
    """One more sentence and its search; False once the chain is at its end."""
    ids, settings = session.prompt(reason_prompt(session, question)), session.tools.settings
    written = await session.write(ids, ("\n",), reserve=settings.answer_reserve_tokens)
    if written.stop:
        return False
    sentence = first_sentence(written.text)
    action = _to_action(sentence)
    session.note(sentence, action, len(written.token_ids))
    if not isinstance(action, Search) or _searches(session) == settings.max_searches:
        return False
    insert = await look_up(session, sentence, ids + written.token_ids, _show_new)
    return insert is not None


def _to_action(sentence: str) -> Action:
    said = _SAID_ANSWER.search(sentence)
    if said and (text := said[1].strip().removesuffix(".").strip()):
        return Answer(text)
    return Search(sentence) if sentence else Invalid()


async def _show_new(session: Session, found: Found, max_tokens: int) -> Insert | None:
    """The passages that no earlier search has shown."""
    shown = {_content(passage) for turn in session.turns for passage in turn.passages}
    new = found and [passage for passage in found if _content(passage) not in shown]
    return NOTHING if found and not new else observation(new, session.tokenizer, max_tokens)


def _content(passage: Passage) -> tuple[str, str]:
    # Not the passage itself: its score is another one for each query.
    return passage.title, passage.text


def _chain(session: Session) -> str:
    return " ".join(turn.text for turn in session.turns if turn.text) or "none"


def _searches(session: Session) -> int:
    return sum(turn.searched for turn in session.turns)
