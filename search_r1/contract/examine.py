"""Tries every rule of the retrieval API on a server, one after the other."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Final

from search_r1.contract import replies, requests
from search_r1.contract.rule import Rule, RuleBrokenError
from search_r1.contract.server import NoAnswerError, Server
from search_r1.retriever import RetrieverSettings

RULES: Final[Sequence[Rule]] = (*replies.RULES, *requests.RULES)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one rule found."""

    rule: Rule
    detail: str
    kept: bool


def examine_server(
    url: str, limit_s: float = RetrieverSettings.attempt_timeout_seconds
) -> Iterator[Verdict]:
    """Try the rules on a server that answers; yield each verdict as it is found.

    It is asked about 60 queries, some 15 of them distinct.

    Args:
        url: Where it takes POST requests: `http://HOST:PORT/retrieve`.
        limit_s: Seconds in which it should answer.
    """
    with closing(Server(url, limit_s)) as server:
        for rule in RULES:
            yield _judge(rule, server)


def _judge(rule: Rule, server: Server) -> Verdict:
    try:
        return Verdict(rule, rule.check(server), kept=True)
    # A reply of an unforeseen form breaks the rule that met it, and ends no examination.
    except (RuleBrokenError, NoAnswerError, ValueError, LookupError, TypeError) as error:
        return Verdict(rule, str(error) or type(error).__name__, kept=False)
