"""Search-o1: an agent that searches while it reasons (arXiv 2501.05366, section 3).

A call of its own reads the passages ("Reason-in-Documents"): with the reasoning so far and the
query it writes what helps, and that, not the passages, goes into the reasoning.
"""

from bisect import bisect_left

from search_r1.actions import Action, Search, kept_text, parse_action
from search_r1.baselines.agent import Notation, converse
from search_r1.baselines.answering import ANSWER_FORMAT, compose
from search_r1.baselines.lookup import Found, observation
from search_r1.baselines.outcome import BaselineOutcome
from search_r1.baselines.sentences import without_special_tokens
from search_r1.baselines.session import Session
from search_r1.evaluation.method import Tools
from search_r1.observation import Insert, Tokenizer, fit_passages, fit_text
from search_r1.prompts import (
    ANSWER_NOW_MESSAGE,
    INVALID_ACTION_MESSAGE,
    STOP_STRINGS,
    Tag,
    normalise_question,
)

REASON_INSTRUCTION = (
    "Answer the question below by reasoning step by step. Whenever a fact is missing or doubtful, "
    f"write a query between {Tag.SEARCH.opening} and {Tag.SEARCH.closing}: a search engine is "
    "asked, its passages are read for you, and what helps comes back between "
    f"{Tag.INFORMATION.opening} and {Tag.INFORMATION.closing}. Then go on reasoning. "
    f"{ANSWER_FORMAT}"
)
READ_INSTRUCTION = (
    "Someone reasons about a question and has just searched for the query below. Read the "
    "passages and write, in a few sentences, the facts in them that answer the query and take the "
    "reasoning further. Add nothing that they do not say. If nothing in them helps, say so."
)
NOTHING_READ_TEXT = "The passages hold nothing helpful."
"""Stands in the information block when the reading has no words."""


async def answer(question: str, tools: Tools) -> BaselineOutcome:
    """Reason, search and read until there is an answer or a budget is spent."""
    session = Session(tools)
    prompt = session.prompt(compose(REASON_INSTRUCTION, normalise_question(question)))
    return await converse(session, prompt, _NOTATION)


def read_prompt(reasoning: str, query: str, passages: str) -> str:
    """Asks for what the passages say about a query."""
    return (
        f"{READ_INSTRUCTION}\nReasoning so far: {reasoning}\nQuery: {query}\n"
        f"Passages:{passages}Helpful facts:"
    )


def _parse(text: str) -> tuple[str, Action]:
    return kept_text(text), parse_action(text)


async def _show(session: Session, found: Found, max_tokens: int) -> Insert | None:
    """What the reading says of the passages; nothing is read if there are none."""
    if not found:
        return observation(found, session.tokenizer, max_tokens)
    wanted = session.tools.settings.observation_tokens
    block = fit_passages(found, session.tokenizer, wanted)
    if block is None:
        return None
    insert = _fit_words(await _read(session, block.text), session.tokenizer, max_tokens)
    return insert and Insert(insert.text, insert.token_ids, block.passages)


async def _read(session: Session, passages: str) -> str:
    action = session.turns[-1].action
    query = action.query if isinstance(action, Search) else ""
    reasoning = _recent_reasoning(session, read_prompt("", query, passages))
    text = await session.write_aside(session.prompt(read_prompt(reasoning, query, passages)))
    return without_special_tokens(text) or NOTHING_READ_TEXT


def _recent_reasoning(session: Session, rest_of_prompt: str) -> str:
    """The end of the conversation so far that leaves room for the rest and for the reading."""
    said = "".join(turn.text + turn.observation for turn in session.turns)
    ids = session.tokenizer.encode(without_special_tokens(said))
    settings = session.tools.settings
    taken = len(session.prompt(rest_of_prompt)) + settings.turn_tokens
    room = max(settings.sequence_tokens - taken, 0)
    return session.tokenizer.decode(ids[max(len(ids) - room, 0) :])


def _fit_words(text: str, tokenizer: Tokenizer, max_tokens: int) -> Insert | None:
    """An information block with as many words from the beginning of `text` as fit."""
    # What a model has read may hold tags, which must not be read as actions of the agent.
    words = text.replace("<", "&lt;").split()

    def overflows(count: int) -> bool:
        return fit_text(" ".join(words[:count]), tokenizer, max_tokens) is None

    kept = bisect_left(range(1, len(words) + 1), True, key=overflows)
    return fit_text(" ".join(words[:kept]), tokenizer, max_tokens)


_NOTATION = Notation(
    stop=STOP_STRINGS,
    parse=_parse,
    show=_show,
    invalid_message=INVALID_ACTION_MESSAGE,
    answer_now_message=ANSWER_NOW_MESSAGE,
)
