"""Free text of a model that no tag delimits: without special tokens, and its first sentence."""

import re

_SPECIAL_TOKEN = re.compile(r"<[|｜][^<>]*[|｜]>|</?s>|<eos>|<end_of_turn>")  # noqa: RUF001 - DeepSeek's

# Neither an initial nor a short title ends a sentence.
_SENTENCE_END = re.compile(
    r"(?<!\b[A-Z])(?<!\bMr)(?<!\bMrs)(?<!\bMs)(?<!\bDr)(?<!\bSt)(?<!\bJr)(?<!\bSr)"
    r"[.!?][\"')\]]?(?=\s|\Z)"
)


def without_special_tokens(text: str) -> str:
    """`text` without an end-of-turn token and the like, which belong to no sentence."""
    return _SPECIAL_TOKEN.sub("", text).strip()


def first_sentence(text: str) -> str:
    """The first sentence on the first line; the whole line if no sentence ends there."""
    line = without_special_tokens(text).partition("\n")[0].strip()
    end = _SENTENCE_END.search(line)
    return line[: end.end()] if end else line
