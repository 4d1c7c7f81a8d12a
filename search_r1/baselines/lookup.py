"""A search and what the model is shown of it, within the budgets of a session."""

from collections.abc import Awaitable, Callable, Sequence

from search_r1.actions import Search
from search_r1.baselines.session import Session
from search_r1.observation import Insert, Tokenizer, fit_passages, fit_text
from search_r1.passages import Passage
from search_r1.prompts import SEARCH_FAILED_TEXT
from search_r1.rollout import WORTHWHILE_SHARE

Found = list[Passage] | None
"""The passages of a search, best first; None if it failed for good."""

Show = Callable[[Session, Found, int], Awaitable[Insert | None]]
"""What the system says of the last turn's search in so many tokens; None if that is too few."""


async def look_up(session: Session, query: str, ids: Sequence[int], show: Show) -> Insert | None:
    """Search for the last turn and say what came back.

    Args:
        session: The last turn is the one that asks.
        query: What to search for.
        ids: What the words of the system will follow, this turn included.
        show: Turns passages into those words.

    Returns:
        None if there is no room, or too little of it to be worth a search.
    """
    wanted = session.tools.settings.observation_tokens
    budget = min(session.room_for_insert(ids), wanted)
    if budget * WORTHWHILE_SHARE < wanted:
        return None
    insert = await show(session, await session.find(query), budget)
    if insert:
        session.insert(insert)
    return insert


async def look_up_first(session: Session, question: str, ids: Sequence[int]) -> None:
    """Search for the question itself, before the model has written anything.

    Nothing is searched where no search is allowed.

    Args:
        session: Without turns.
        question: The query.
        ids: A prompt without passages, which those found will join.
    """
    if session.tools.settings.max_searches:
        session.note("", Search(question), 0)
        await look_up(session, question, ids, show_passages)


async def show_passages(session: Session, found: Found, max_tokens: int) -> Insert | None:
    """The passages as the rollout shows them."""
    return observation(found, session.tokenizer, max_tokens)


def observation(found: Found, tokenizer: Tokenizer, max_tokens: int) -> Insert | None:
    """The information block of a search, one that says so if the search failed."""
    if found is None:
        return fit_text(SEARCH_FAILED_TEXT, tokenizer, max_tokens)
    return fit_passages(found, tokenizer, max_tokens)


def observations(session: Session) -> str:
    """Everything that the searches so far have shown."""
    return "".join(turn.observation for turn in session.turns)
