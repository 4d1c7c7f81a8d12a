"""A rule of the retrieval API, and how one is broken."""

from collections.abc import Callable
from dataclasses import dataclass

from search_r1.contract.server import Server


class RuleBrokenError(Exception):
    """What the server did, and what it should have done."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One thing that a server should do."""

    name: str
    fix: str
    """What its author has to change."""
    needed: bool
    """Whether a run goes wrong without it."""
    check: Callable[[Server], str]
    """Returns what was seen, or raises RuleBrokenError."""


Check = Callable[[Server], str]


def rule(
    rules: list[Rule], name: str, *, fix: str, needed: bool = True
) -> Callable[[Check], Check]:
    """Append the decorated function to `rules`."""

    def add(check: Check) -> Check:
        rules.append(Rule(name, fix, needed, check))
        return check

    return add


def expect(holds: object, detail: str) -> None:
    """Say that a rule is broken unless something holds.

    Raises:
        RuleBrokenError: It does not.
    """
    if not holds:
        raise RuleBrokenError(detail)
