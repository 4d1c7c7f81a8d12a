"""The web search engines: for each, how a query is asked and where its results stand."""

from collections.abc import Mapping
from html import unescape
from typing import Final

from retrieval_server.engines.online.provider import (
    Ask,
    Hit,
    Keys,
    Provider,
    ProviderName,
    Reply,
    read_hits,
)


def ask_serper(query: str, count: int, keys: Keys) -> Ask:
    """Serper, Google's results: https://serper.dev."""
    return Ask(headers={"X-API-KEY": keys["SERPER_API_KEY"]}, json={"q": query, "num": count})


def parse_serper(reply: Reply) -> list[Hit]:
    """Organic results only: no answer box, no questions that people also ask."""
    return read_hits(reply.get("organic"), field="organic", url="link", text="snippet")


def ask_serpapi(query: str, count: int, keys: Keys) -> Ask:
    """SerpAPI, Google's results: https://serpapi.com/search-api."""
    key = keys["SERPAPI_API_KEY"]
    return Ask(params={"engine": "google", "q": query, "num": count, "api_key": key})


def parse_serpapi(reply: Reply) -> list[Hit]:
    """Organic results only; where Google has none, there is a message in their place."""
    results = reply.get("organic_results")
    return read_hits(results, field="organic_results", url="link", text="snippet")


def ask_google(query: str, count: int, keys: Keys) -> Ask:
    """Google's Custom Search JSON API: https://developers.google.com/custom-search/v1."""
    key, engine = keys["GOOGLE_API_KEY"], keys["GOOGLE_CSE_ID"]
    return Ask(params={"q": query, "num": count, "key": key, "cx": engine})


def parse_google(reply: Reply) -> list[Hit]:
    """The field `items` is absent where there are no results."""
    return read_hits(reply.get("items"), field="items", url="link", text="snippet")


def ask_brave(query: str, count: int, keys: Keys) -> Ask:
    """Brave Search: https://api-dashboard.search.brave.com."""
    return Ask(
        params={"q": query, "count": count, "text_decorations": "false"},
        headers={"X-Subscription-Token": keys["BRAVE_API_KEY"], "Accept": "application/json"},
    )


def parse_brave(reply: Reply) -> list[Hit]:
    """Its texts are HTML: without mark-up, which the request turns off, but escaped."""
    web = reply.get("web")
    if web is not None and not isinstance(web, Mapping):
        raise ValueError("field 'web' is not an object")
    results = (web or {}).get("results")
    hits = read_hits(results, field="web.results", url="url", text="description")
    return [Hit(hit.url, unescape(hit.title), unescape(hit.text)) for hit in hits]


def ask_tavily(query: str, count: int, keys: Keys) -> Ask:
    """Tavily: https://docs.tavily.com."""
    return Ask(
        headers={"Authorization": f"Bearer {keys['TAVILY_API_KEY']}"},
        json={"query": query, "max_results": count, "search_depth": "basic"},
    )


def parse_tavily(reply: Reply) -> list[Hit]:
    """The only one of these that scores its results."""
    return read_hits(reply.get("results"), field="results", url="url", text="content")


PROVIDERS: Final[Mapping[ProviderName, Provider]] = {
    provider.name: provider
    for provider in (
        Provider(
            name="serper",
            base_url="https://google.serper.dev",
            path="/search",
            variables=("SERPER_API_KEY",),
            most=100,
            query_chars=2048,
            request=ask_serper,
            parse=parse_serper,
        ),
        Provider(
            name="serpapi",
            base_url="https://serpapi.com",
            path="/search.json",
            variables=("SERPAPI_API_KEY",),
            most=100,
            query_chars=2048,
            request=ask_serpapi,
            parse=parse_serpapi,
        ),
        Provider(
            name="google",
            base_url="https://www.googleapis.com",
            path="/customsearch/v1",
            variables=("GOOGLE_API_KEY", "GOOGLE_CSE_ID"),
            most=10,
            query_chars=2048,
            request=ask_google,
            parse=parse_google,
        ),
        Provider(
            name="brave",
            base_url="https://api.search.brave.com",
            path="/res/v1/web/search",
            variables=("BRAVE_API_KEY",),
            most=20,
            query_chars=400,
            query_words=50,
            request=ask_brave,
            parse=parse_brave,
        ),
        Provider(
            name="tavily",
            base_url="https://api.tavily.com",
            path="/search",
            variables=("TAVILY_API_KEY",),
            most=20,
            query_chars=400,
            request=ask_tavily,
            parse=parse_tavily,
        ),
    )
}
