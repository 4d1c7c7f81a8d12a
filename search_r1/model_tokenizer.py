"""The tokenizer of a model's folder."""

from pathlib import Path
from typing import Final

from search_r1.tokens import HubTokenizer, PlainTokenizer

_WORD: Final = "question"
_FIX: Final = "copy there the tokenizer's files of the model that it was made of"


def load_tokenizer(model: Path) -> HubTokenizer:
    """The tokenizer of a Hugging Face folder.

    Raises:
        ValueError: it holds none that can be read.
    """
    from transformers import AutoTokenizer

    try:
        tokenizer: HubTokenizer = AutoTokenizer.from_pretrained(model)
    # The library of the tokenizers has no class of error of its own.
    except Exception as error:
        reason = str(error).strip().partition("\n")[0]
        message = f"model: {model} holds no tokenizer that can be read: {reason}; {_FIX}"
        raise ValueError(message) from error
    # Without files some classes make a tokenizer that knows no word, and say nothing.
    plain = PlainTokenizer(tokenizer)
    if _WORD not in plain.decode(plain.encode(_WORD)):
        raise ValueError(f"model: {model} holds no tokenizer; {_FIX}")
    return tokenizer
