"""What a check finds, and how it reads a config that may hold anything."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from omegaconf import DictConfig, ListConfig, OmegaConf


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a run would fail; `field` is its place in the config."""

    field: str
    message: str
    fix: str


@dataclass(frozen=True, slots=True)
class Note:
    """What is worth knowing about a run that can start; a warning asks for a decision."""

    field: str
    text: str
    warning: bool = False


Finding = Problem | Note
Findings = Iterator[Finding]


def select(config: DictConfig, field: str, default: object = None) -> Any:  # noqa: ANN401
    """The value of a dotted field, or `default` where it is absent or null."""
    value = OmegaConf.select(config, field)
    return default if value is None else value


def as_list(value: object) -> list[Any]:
    """A list setting that may also be written as one value."""
    if isinstance(value, list | tuple | ListConfig):
        return list(value)
    return [] if value is None else [value]
