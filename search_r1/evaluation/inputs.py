"""What an evaluation works on besides the model: read and asked once, for any number of methods."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Self

import httpx

from data_prep.questions import Question
from search_r1.doctor import query
from search_r1.evaluation.config import EvalConfig
from search_r1.evaluation.question_sets import join, read_files, sample

_HEALTH_SECONDS: Final = 10


@dataclass(frozen=True, slots=True)
class Inputs:
    """The questions to answer, and the search engine as it is now."""

    files: Mapping[Path, int]
    """How many questions each file holds."""
    questions: Sequence[Question]
    """Those to answer, in the data's order."""
    sha256: str
    """Of their ids, texts and gold answers."""
    health: Mapping[str, Mapping[str, Any] | None] = field(default_factory=dict)
    """What the search engine at each URL says of itself; None if it says nothing."""

    @classmethod
    def gather(cls, config: EvalConfig) -> Self:
        """Read the questions, and try a search if there is a search engine.

        Raises:
            OSError: a file cannot be read.
            ValueError: a question is wrong, or a search engine does not answer.
        """
        return cls.read(config).ask(config)

    @classmethod
    def read(cls, config: EvalConfig) -> Self:
        """Read the questions, and ask nobody.

        Raises:
            OSError: a file cannot be read.
            ValueError: a question is wrong.
        """
        files = read_files(config.data)
        questions = join(files.values())
        if config.sample is not None:
            questions = sample(questions, config.sample, config.seed)
        counts = {path: len(of) for path, of in files.items()}
        return cls(counts, questions, text_hash(map(_content, questions)))

    def ask(self, config: EvalConfig) -> Self:
        """Try a search if there is a search engine, and ask it about itself.

        Raises:
            ValueError: it does not answer.
        """
        if not config.searchable:
            return self
        _try_search(config)
        return replace(self, health={url: ask_health(url) for url in config.search.urls})


def ask_health(url: str) -> dict[str, Any] | None:
    """What the retrieval server at `url` says of itself at /health; None if it says nothing."""
    try:
        address = httpx.URL(url).join("health")
        reply = httpx.get(address, timeout=_HEALTH_SECONDS, trust_env=False).raise_for_status()
        body = reply.json()
    # Only our own server must have /health; whether searches work is asked elsewhere.
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, RecursionError):
        return None
    return body if isinstance(body, dict) else None


def text_hash(texts: Iterable[str]) -> str:
    """SHA-256 of some texts, each with a line break behind it."""
    digest = hashlib.sha256()
    for text in texts:
        digest.update(text.encode(errors="backslashreplace") + b"\n")
    return digest.hexdigest()


def _content(question: Question) -> str:
    return json.dumps([question.id, question.question, *question.golden_answers])


def _try_search(config: EvalConfig) -> None:
    for url in config.search.urls:
        found = query(url)
        if not found.usable:
            raise ValueError(f"retriever: {found.detail}; {found.fix}")
