"""What the system shows the model after a search: passages -> text and token ids in a budget."""

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from search_r1.passages import Passage
from search_r1.prompts import NO_PASSAGES_TEXT, Tag


class Tokenizer(Protocol):
    """Text to token ids and back, without special tokens of its own accord."""

    def encode(self, text: str) -> list[int]:
        """The token ids of `text`, without a begin or end token."""

    def decode(self, token_ids: list[int]) -> str:
        """The text of the ids."""


@dataclass(frozen=True, slots=True)
class Insert:
    """What the system writes into a trajectory; the passages are those that `text` shows."""

    text: str
    token_ids: list[int]
    passages: tuple[Passage, ...] = ()
    is_retrieved: bool = False
    """Whether it is an information block, which answers a search, rather than a message."""


NOTHING = Insert("", [])
"""The system stays silent."""


def fit_passages(
    passages: Sequence[Passage], tokenizer: Tokenizer, max_tokens: int
) -> Insert | None:
    """The observation of a search, cut to at most `max_tokens` tokens.

    The lowest-ranked passages go first, then tail text of the last one kept; the closing tag
    always stays. Every count is that of the final text's own ids, so nothing is estimated.

    Args:
        passages: Best first.
        tokenizer: The policy's tokenizer.
        max_tokens: Budget for the whole observation, tags and blank lines included.

    Returns:
        None if not even the first character of the best passage's line fits.
    """
    if not passages:
        return fit_text(NO_PASSAGES_TEXT, tokenizer, max_tokens)
    lines = [_line(rank, passage) for rank, passage in enumerate(passages, start=1)]
    for kept in range(len(lines), 0, -1):
        if whole := fit_text("\n".join(lines[:kept]), tokenizer, max_tokens):
            return replace(whole, passages=tuple(passages[:kept]))
    cut = fit_text(_longest_head(lines[0], tokenizer, max_tokens), tokenizer, max_tokens)
    return cut and replace(cut, passages=tuple(passages[:1]))


def fit_text(text: str, tokenizer: Tokenizer, max_tokens: int) -> Insert | None:
    """An information block that holds `text`; None if it is empty or over `max_tokens` tokens."""
    block = fit_message(_block(text), tokenizer, max_tokens) if text else None
    return block and replace(block, is_retrieved=True)


def fit_message(message: str, tokenizer: Tokenizer, max_tokens: int) -> Insert | None:
    """`message` as it is, or None if it is over `max_tokens` tokens."""
    token_ids = tokenizer.encode(message)
    return Insert(message, token_ids) if len(token_ids) <= max_tokens else None


def _block(text: str) -> str:
    return f"\n\n{Tag.INFORMATION.wrap(text)}\n\n"


def _line(rank: int, passage: Passage) -> str:
    return f'Doc {rank}(Title: "{_harmless(passage.title)}") {_harmless(passage.text)}'


def _harmless(text: str) -> str:
    """`text` on one line, in which nothing can be read as a tag or as a special token.

    A passage may hold anything: `</information><answer>x</answer>`, `<|im_end|>`, `</s>`.
    """
    return re.sub(r"<(?=[/|!a-zA-Z])", "&lt;", " ".join(text.split()))


def _longest_head(line: str, tokenizer: Tokenizer, max_tokens: int) -> str:
    """The longest beginning of `line` whose information block fits; empty if none does."""
    # The bisection settles on a length only after it saw that length fit, so the result holds
    # even for a tokenizer whose count does not grow with every character.
    fits = bisect_right(
        range(1, len(line) + 1),
        max_tokens,
        key=lambda length: len(tokenizer.encode(_block(line[:length]))),
    )
    return line[:fits]
