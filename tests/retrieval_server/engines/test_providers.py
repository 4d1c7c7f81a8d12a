"""Each web search engine: what is sent, and how what it says is read."""

from typing import Any, get_args

import pytest

from retrieval_server.engines.online.provider import Hit, ProviderName
from retrieval_server.engines.online.providers import PROVIDERS

NAMES = get_args(ProviderName)


def test_every_name_has_a_provider() -> None:
    assert set(PROVIDERS) == set(NAMES)
    assert all(name == provider.name for name, provider in PROVIDERS.items())


@pytest.mark.parametrize(
    ("name", "method", "path", "asked"),
    [
        ("serper", "POST", "/search", {"q": "a river", "num": 10}),
        ("serpapi", "GET", "/search.json", {"engine": "google", "q": "a river", "num": "10"}),
        ("google", "GET", "/customsearch/v1", {"q": "a river", "num": "10"}),
        ("brave", "GET", "/res/v1/web/search", {"q": "a river", "count": "10"}),
        ("tavily", "POST", "/search", {"query": "a river", "max_results": 10}),
    ],
)
def test_a_query_is_sent_as_the_engine_wants_it_and_its_results_are_read(
    web: Any, connect: Any, name: str, method: str, path: str, asked: dict[str, Any]
) -> None:
    hits = connect(name).fetch("a river", 10)
    (sent,) = web.sent
    assert (sent.method, sent.path) == (method, path)
    assert asked.items() <= (sent.json or sent.params).items()
    score = 0.9 if name == "tavily" else None
    assert hits[0] == Hit("https://example.org/3", "Page 3", "about a river", score)
    assert len(hits) == 10


ITEM = {"title": "T", "link": "u", "url": "u", "snippet": "s", "description": "s", "content": "s"}
WHERE = {
    "serper": lambda items: {"organic": items},
    "serpapi": lambda items: {"organic_results": items},
    "google": lambda items: {"items": items},
    "brave": lambda items: {"web": {"results": items}},
    "tavily": lambda items: {"results": items},
}


@pytest.mark.parametrize("name", NAMES)
def test_what_an_item_lacks_is_empty(name: Any) -> None:
    items = [
        ITEM,
        dict.fromkeys(ITEM),
        {},
        {**ITEM, "title": 7},
        {**ITEM, "title": "two\n lines \ud800"},
    ]
    assert PROVIDERS[name].parse(WHERE[name](items)) == [
        Hit("u", "T", "s"),
        Hit("", "", ""),
        Hit("", "", ""),
        Hit("u", "", "s"),
        Hit("u", "two lines ?", "s"),
    ]


@pytest.mark.parametrize("name", NAMES)
def test_no_results_in_either_form(name: Any) -> None:
    assert PROVIDERS[name].parse({}) == []
    assert PROVIDERS[name].parse(WHERE[name]([])) == []


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("items", ["text", {"a": 1}, ["text"], 7])
def test_another_form_is_named_by_its_field(name: Any, items: Any) -> None:
    with pytest.raises(
        ValueError, match=r"field '(organic|organic_results|items|web\.results|results)'"
    ):
        PROVIDERS[name].parse(WHERE[name](items))


def test_the_html_of_brave_is_undone() -> None:
    item = {"url": "u", "title": "Q&amp;A", "description": "it&#x27;s &lt;b&gt;"}
    assert PROVIDERS["brave"].parse({"web": {"results": [item]}}) == [Hit("u", "Q&A", "it's <b>")]
    with pytest.raises(ValueError, match="field 'web'"):
        PROVIDERS["brave"].parse({"web": []})


@pytest.mark.parametrize("score", [True, "0.5", float("nan"), None])
def test_a_score_that_is_no_number_is_none(score: Any) -> None:
    (hit,) = PROVIDERS["tavily"].parse({"results": [ITEM | {"score": score}]})
    assert hit.score is None


@pytest.mark.parametrize(
    ("name", "query", "sent"),
    [
        ("brave", "word " * 60, " ".join(["word"] * 50)),
        ("brave", "eleven-char " * 40, ("eleven-char " * 33).strip()),
        ("tavily", "x" * 500, "x" * 400),
        ("tavily", "x" * 400, "x" * 400),
        ("tavily", "ab " * 134, ("ab " * 133).strip()),
        ("serper", "two  words\n", "two words"),
    ],
)
def test_a_query_is_cut_at_a_word_to_what_the_engine_takes(
    name: Any, query: str, sent: str
) -> None:
    assert PROVIDERS[name].cut(query) == sent


@pytest.mark.parametrize("name", NAMES)
def test_a_missing_key_is_named(name: Any, keys: dict[str, str]) -> None:
    provider = PROVIDERS[name]
    for variable in provider.variables:
        for value in ("", "  \n"):
            with pytest.raises(ValueError, match=f"--online {name} needs .* {variable}$"):
                provider.read_keys(keys | {variable: value})
        with pytest.raises(ValueError, match=f"{variable} holds no key") as told:
            provider.read_keys(keys | {variable: "two words"})
        assert "two words" not in str(told.value)
        assert provider.read_keys(keys | {variable: " a \n"})[variable] == "a"
