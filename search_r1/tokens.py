"""A Hugging Face tokenizer as the rollout uses it: the prompt's ids, and plain text to ids."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol


class HubTokenizer(Protocol):
    """What is used of a tokenizer of `transformers`."""

    chat_template: Any

    def encode(self, text: str, *, add_special_tokens: bool = True) -> Sequence[int]:
        """Text to ids."""

    def decode(self, token_ids: list[int], *, clean_up_tokenization_spaces: bool) -> Any:
        """Ids to text."""

    def apply_chat_template(self, conversation: list[dict[str, str]], **options: Any) -> Any:
        """A chat to ids, with `tokenize=True` and `return_dict=False`."""


class PlainTokenizer:
    """A Hugging Face tokenizer that adds no special tokens and drops none."""

    def __init__(self, tokenizer: HubTokenizer) -> None:
        self._tokenizer = tokenizer

    def encode(self, text: str) -> list[int]:
        """The token ids of `text`, without a begin or end token."""
        return list(self._tokenizer.encode(text, add_special_tokens=False))

    def decode(self, token_ids: list[int]) -> str:
        """The text of the ids, special tokens included."""
        return str(self._tokenizer.decode(token_ids, clean_up_tokenization_spaces=False))


def prompt_ids(
    tokenizer: HubTokenizer,
    messages: Iterable[Mapping[str, str]],
    template_kwargs: Mapping[str, Any],
) -> list[int]:
    """The chat template where the tokenizer has one, the messages' text otherwise.

    Args:
        tokenizer: A Hugging Face tokenizer.
        messages: The chat, as `search_r1.prompts.build_messages` makes it.
        template_kwargs: Further arguments of the chat template.
    """
    chat = [dict(message) for message in messages]
    if tokenizer.chat_template is None:
        return list(tokenizer.encode("\n".join(message["content"] for message in chat)))
    return list(
        tokenizer.apply_chat_template(
            chat, add_generation_prompt=True, tokenize=True, return_dict=False, **template_kwargs
        )
    )
