"""A prompt that asks for an answer block, and the one call that answers it."""

from search_r1.actions import Answer, Invalid, last_answer
from search_r1.baselines.outcome import BaselineOutcome
from search_r1.baselines.session import Session
from search_r1.prompts import Tag
from search_r1.trajectory import StopReason

ANSWER_FORMAT = (
    f"Write the answer between {Tag.ANSWER.opening} and {Tag.ANSWER.closing}, without "
    f"explanation, for example {Tag.ANSWER.wrap(' Beijing ')}."
)
"""Ends the instruction of every method that reads its answer from the block."""


def compose(instruction: str, question: str, passages: str = "") -> str:
    """A prompt: what to do, information blocks if there are any, and the question."""
    between = passages or "\n"
    return f"{instruction}{between}Question: {question}"


async def ask(session: Session, content: str) -> BaselineOutcome:
    """Let the model answer a prompt; the last complete answer block is the answer.

    Without one it ends with `StopReason.NO_ANSWER`: there is no budget of turns to blame.
    """
    written = await session.write(session.prompt(content), (Tag.ANSWER.closing,))
    if written.stop:
        return session.finish(written.stop)
    # The last sampled token can carry characters beyond the tag.
    head, closing, _ = written.text.rpartition(Tag.ANSWER.closing)
    text = head + closing or written.text
    answer = last_answer([text])
    action = Invalid() if answer is None else Answer(answer)
    session.note(text, action, len(written.token_ids))
    return session.finish(StopReason.NO_ANSWER if answer is None else StopReason.ANSWERED)
