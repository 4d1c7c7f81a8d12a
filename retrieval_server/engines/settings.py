"""Which engine is served: the flags that choose it, and the combinations that make no sense."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator
from pydantic_settings import BaseSettings, NoDecode
from typing_extensions import TypeAliasType

from retrieval_server.engines.online.provider import ProviderName
from retrieval_server.engines.online.providers import PROVIDERS

# --help shows these names in place of types.
FOLDER = TypeAliasType("FOLDER", tuple[Path, ...])
MODEL = TypeAliasType("MODEL", str)
URL = TypeAliasType("URL", str)


def _split(given: object) -> object:
    """A flag's values come joined by commas; one folder may stand alone."""
    if isinstance(given, str):
        return [given] if Path(given).is_dir() else given.split(",")
    return [given] if isinstance(given, Path) else given


def _check_folders(folders: tuple[Path, ...]) -> tuple[Path, ...]:
    for folder in folders:
        if not folder.is_dir():
            raise ValueError(f"Path does not point to a directory: {folder}")
    resolved = [folder.resolve() for folder in folders]
    for folder in folders:
        if resolved.count(folder.resolve()) > 1:
            raise ValueError(f"{folder} is given twice")
    return folders


class EngineSettings(BaseSettings):
    """One or several engines, and what is done with their answers."""

    index: Annotated[FOLDER, NoDecode, BeforeValidator(_split), AfterValidator(_check_folders)] = (
        Field(
            default=(),
            description="Index folder, dense or BM25; given again, the indexes (of one corpus) are "
            "fused by reciprocal rank.",
        )
    )
    hybrid_depth: int = Field(
        default=100, ge=1, description="Passages of each engine that are fused, with several."
    )
    hybrid_strict: bool = Field(
        default=False,
        description="Answer 500 when one of several engines fails; else those left answer.",
    )
    rerank: MODEL | None = Field(
        default=None,
        description="Cross-encoder that re-ranks the best passages: name, folder or "
        "package:MODULE.",
    )
    rerank_depth: int = Field(
        default=20, ge=1, description="Passages a query that are re-ranked, and returned at most."
    )
    rerank_batch_size: int = Field(
        default=128, ge=1, description="Pairs of query and passage in one pass of the re-ranker."
    )
    rerank_max_length: int = Field(
        default=512, ge=8, description="Tokens of such a pair; the rest is cut."
    )
    online: ProviderName | None = Field(
        default=None,
        description="Web search engine, alone or fused with the indexes. Its key is "
        + ", ".join(" + ".join(one.variables) for one in PROVIDERS.values())
        + ".",
    )
    online_url: URL | None = Field(
        default=None, description="Base URL in place of the web search engine's own."
    )
    online_results: int = Field(
        default=10,
        ge=1,
        description="Results it is asked for, and returned at most; above 10 some charge more.",
    )
    online_timeout: float = Field(
        default=8.0,
        gt=0,
        description="Seconds for a query to it, with retries; below the 10 s that a client waits.",
    )
    online_concurrency: int = Field(
        default=16, ge=1, description="Queries that it is asked at the same time."
    )

    @property
    def engines(self) -> str:
        """What is served, in words, for a log."""
        return " + ".join([*map(str, self.index), *([self.online] if self.online else [])])

    @model_validator(mode="after")
    def _engines_agree(self) -> Self:
        if problem := next(self._problems(), None):
            raise ValueError(problem)
        if self.online:
            PROVIDERS[self.online].read_keys(os.environ)
        return self

    def _problems(self) -> Iterator[str]:
        engines = len(self.index) + bool(self.online)
        if not engines:
            yield "nothing to serve: give --index FOLDER, or --online PROVIDER"
        given = self.model_fields_set
        for flag in sorted(f for f in given if f.startswith("hybrid_") and engines < 2):
            name = flag.replace("_", "-")
            yield f"--{name} needs two engines: give --index twice, or --index and --online"
        for name, value in (("rerank", self.rerank), ("online", self.online)):
            for flag in sorted(f for f in given if f.startswith(f"{name}_") and not value):
                yield f"--{flag.replace('_', '-')} does nothing without --{name}"
        most = PROVIDERS[self.online].most if self.online else self.online_results
        if self.online_results > most:
            yield f"online_results ({self.online_results}) is above the {most} of {self.online}"
        if self.online_url and not self.online_url.startswith(("http://", "https://")):
            yield f"--online-url must begin with http:// or https://, not {self.online_url!r}"
        if self.rerank and engines > 1 and self.rerank_depth > self.hybrid_depth:
            yield (
                f"rerank_depth ({self.rerank_depth}) is above hybrid_depth ({self.hybrid_depth})"
            )
