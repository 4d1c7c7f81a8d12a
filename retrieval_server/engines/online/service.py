"""A web search engine as a search engine of this server: its results are the passages."""

from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from typing import Final

from cachetools import TTLCache

from retrieval_server.corpus import join_contents
from retrieval_server.engines.online.client import OnlineClient
from retrieval_server.engines.online.provider import Hit
from retrieval_server.jobs import Passages
from retrieval_server.schemas import Document, ScoredDocument

_KEPT_QUERIES: Final = 4096
_KEPT_SECONDS: Final = 60.0


class OnlineService:
    """Asks a web search engine, many queries at the same time.

    The score of a passage is the engine's own where it gives one, else 1 / rank.

    Args:
        client: Asks one query.
        results: Asked for a query, whatever the answer's length, which is no larger: the
            beginning of an answer must not depend on its length.
        concurrency: Queries asked at the same time.
    """

    def __init__(self, client: OnlineClient, results: int, concurrency: int) -> None:
        self._client = client
        self._results = results
        self._threads = ThreadPoolExecutor(concurrency, thread_name_prefix="online")
        # Each query costs money: when one of a batch fails and the others are asked for again,
        # or a client gave up too early, they are not paid for twice.
        self._kept: TTLCache[str, Passages] = TTLCache(_KEPT_QUERIES, _KEPT_SECONDS)

    def search(self, queries: Sequence[str], topk: int) -> list[Passages]:
        """Return the best `topk` passages of each query, at most `results`, best first.

        A blank query finds nothing, and is not sent.

        Raises:
            OnlineError: A query failed for good.
        """
        answers = {query: self._kept[query] for query in set(queries) if query in self._kept}
        asked = [one for one in dict.fromkeys(queries) if one not in answers and one.strip()]
        answers |= self._ask(asked)
        return [answers.get(query, [])[:topk] for query in queries]

    def info(self) -> dict[str, object]:
        """Say which engine is asked; how often stands in /metrics."""
        name = self._client.provider.name
        return {"engine": "online", "provider": name, "depth": self._results, "rows": None}

    def close(self) -> None:
        """Close the connections."""
        self._threads.shutdown(cancel_futures=True)
        self._client.close()

    def _ask(self, asked: Sequence[str]) -> dict[str, Passages]:
        ask = self._client.fetch
        running = {query: self._threads.submit(ask, query, self._results) for query in asked}
        # After the first error the batch is lost: what has not begun is not paid for.
        _, rest = wait(running.values(), return_when=FIRST_EXCEPTION)
        for future in rest:
            future.cancel()
        wait(rest)
        found = {query: future for query, future in running.items() if _found(future)}
        answers = {query: passages_of(future.result()) for query, future in found.items()}
        self._kept.update(answers)
        for future in running.values():
            if not future.cancelled():
                future.result()
        return answers


def passages_of(hits: Sequence[Hit]) -> Passages:
    """Results as passages, best first: the address is the id."""
    scored = all(hit.score is not None for hit in hits)
    if scored:
        hits = sorted(hits, key=lambda hit: hit.score or 0.0, reverse=True)
    return [
        ScoredDocument(document=_document(hit), score=(hit.score or 0.0) if scored else 1 / rank)
        for rank, hit in enumerate(hits, start=1)
    ]


def _document(hit: Hit) -> Document:
    title = hit.title or None
    contents = join_contents(title, hit.text)
    return Document(id=hit.url, contents=contents, title=title, text=hit.text, url=hit.url)


def _found(future: "Future[list[Hit]]") -> bool:
    return future.done() and not future.cancelled() and future.exception() is None
