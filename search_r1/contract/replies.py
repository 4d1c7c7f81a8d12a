"""Rules about what a reply holds: documents and scores."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from search_r1.contract.rule import Rule, expect, rule
from search_r1.contract.server import Found, Server

RULES: Final[list[Rule]] = []


@rule(
    RULES,
    "content type",
    fix="send the header Content-Type: application/json",
    needed=False,
)
def content_type(server: Server) -> str:
    """Clients that choose a parser by the type find JSON."""
    told = server.post({"queries": server.probes[:1], "topk": 1, "return_scores": True})
    kind = str(told.headers.get("Content-Type", "none"))
    expect(kind.partition(";")[0].strip() == "application/json", f"the content type is {kind}")
    return kind


@rule(
    RULES,
    "documents",
    fix='give every document an "id" and its text as "contents" (first line "Title" in quotes)',
)
def documents(server: Server) -> str:
    """The policy reads contents; metrics and pages tell passages apart by id."""
    seen = list(_seen(server))
    for found in seen:
        name, contents = found.document.get("id"), found.document.get("contents")
        shown = str(dict(found.document))[:120]
        expect(_is_name(name), f"a document has no id: {shown}")
        expect(isinstance(contents, str) and contents.strip(), f"one has no contents: {shown}")
    return f"{len(seen)} have id and contents"


@rule(
    RULES,
    "title and text",
    fix='make "contents" the title in quotes, a line break and the text; or leave title and '
    "text out",
    needed=False,
)
def title_and_text(server: Server) -> str:
    """Where they are known, the two forms of a passage say the same."""
    known = [found for found in _seen(server) if _parts(found.document)]
    for found in known:
        contents = str(found.document.get("contents", "")).strip()
        title, text = (part.strip() for part in _parts(found.document) or ("", ""))
        agree = contents in {f'"{title}"\n{text}'.strip(), f"{title}\n{text}".strip()}
        expect(agree, f"document {found.key}: contents are not its title and text")
    return f"{len(known)} agree with contents"


@rule(
    RULES,
    "no repeats",
    fix="return each passage once a query: a second time it only takes room",
    needed=False,
)
def no_repeats(server: Server) -> str:
    """What the policy reads is short: three passages are three different ones."""
    for query, ranking in server.alone.items():
        keys = [found.key for found in ranking]
        twice = [key for key in set(keys) if keys.count(key) > 1]
        expect(not twice, f"{query!r} found {', '.join(twice)} more than once")
    return f"{len(server.alone)} answers"


@rule(
    RULES,
    "scores",
    fix='with "return_scores": true make each item {"document": {...}, "score": 0.83}, the score '
    "a finite number",
)
def scores(server: Server) -> str:
    """Results carry scores when they are asked for."""
    seen = list(_seen(server))
    for found in seen:
        expect(found.number is not None, f"document {found.key} has the score {found.score!r}")
    return f"{len(seen)} numbers"


@rule(RULES, "best first", fix="sort by score, the highest first: the last are cut first")
def best_first(server: Server) -> str:
    """The order of the list is the order of the scores."""
    for query, ranking in server.alone.items():
        told = [number for found in ranking if (number := found.number) is not None]
        expect(told == sorted(told, reverse=True), f"{query!r} has the scores {told}")
    return "scores do not rise"


@rule(
    RULES,
    "without scores",
    fix='with "return_scores": false make the items the documents themselves',
    needed=False,
)
def without_scores(server: Server) -> str:
    """Peers' clients that ask for no scores expect bare documents."""
    query = server.probes[0]
    told = server.post({"queries": [query], "topk": 3, "return_scores": False}).json()
    items = told["result"][0]
    expect(not any("document" in item for item in items), "the items have a field document")
    return "the items are the documents"


def _seen(server: Server) -> Iterator[Found]:
    return (found for ranking in server.alone.values() for found in ranking)


def _is_name(value: object) -> bool:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return is_number or (isinstance(value, str) and value != "")


def _parts(document: Mapping[str, Any]) -> tuple[str, str] | None:
    title, text = document.get("title"), document.get("text")
    return (title, text) if isinstance(title, str) and isinstance(text, str) else None
