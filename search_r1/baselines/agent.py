"""One growing conversation in which the model acts and the system replies, in any notation.

It keeps the rules of `search_r1.rollout`: when a budget ends a conversation, and with what reason.
"""

from collections.abc import Callable
from dataclasses import dataclass

from search_r1.actions import Action, Answer, Search
from search_r1.baselines.lookup import Show, look_up
from search_r1.baselines.outcome import BaselineOutcome
from search_r1.baselines.session import Session
from search_r1.observation import Insert, fit_message
from search_r1.trajectory import StopReason


@dataclass(frozen=True, slots=True, kw_only=True)
class Notation:
    """How the model writes its actions, and how the system replies to them."""

    stop: tuple[str, ...]
    """A turn ends behind the first of them."""
    parse: Callable[[str], tuple[str, Action]]
    """The text of a turn -> the part of it that counts, and its action."""
    show: Show
    invalid_message: str
    """Follows a turn without an action."""
    answer_now_message: str
    """Follows a search whose results would leave no room for an answer."""


async def converse(session: Session, prompt: list[int], notation: Notation) -> BaselineOutcome:
    """Let the model act until it answers or a budget is spent."""
    conversation = _Conversation(session, list(prompt), notation)
    stop = None
    while stop is None:
        stop = await conversation.play_turn()
    return session.finish(stop)


@dataclass(slots=True)
class _Conversation:
    session: Session
    ids: list[int]
    notation: Notation
    must_answer: bool = False

    async def play_turn(self) -> StopReason | None:
        """The model writes, the system replies; a reason if this was the last turn."""
        written = await self.session.write(self.ids, self.notation.stop)
        if written.stop:
            return written.stop
        self.ids += written.token_ids
        text, action = self.notation.parse(written.text)
        self.session.note(text, action, len(written.token_ids))
        return self._end(action) or await self._reply_to(action)

    def _end(self, action: Action) -> StopReason | None:
        if isinstance(action, Answer):
            return StopReason.ANSWERED
        if self.must_answer:
            return StopReason.TOKEN_BUDGET
        if len(self.session.turns) <= self.session.tools.settings.max_searches:
            return None
        searching = isinstance(action, Search)
        return StopReason.SEARCH_BUDGET if searching else StopReason.TURN_BUDGET

    async def _reply_to(self, action: Action) -> StopReason | None:
        if not isinstance(action, Search):
            return self._say(self._message(self.notation.invalid_message))
        insert = await look_up(self.session, action.query, self.ids, self.notation.show)
        if insert is None:
            self.must_answer = True
            insert = self._message(self.notation.answer_now_message)
        return self._say(insert)

    def _message(self, message: str) -> Insert | None:
        room = self.session.room_for_insert(self.ids)
        return fit_message(message, self.session.tokenizer, room)

    def _say(self, insert: Insert | None) -> StopReason | None:
        if insert is None:
            return StopReason.TOKEN_BUDGET
        self.session.insert(insert)
        self.ids += insert.token_ids
        return None
