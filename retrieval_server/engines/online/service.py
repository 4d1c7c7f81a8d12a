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

_PAGE: Final = 10
"""Results to ask for at least: they cost what one does, and a short answer is the beginning of a
longer one."""
_KEPT_QUERIES: Final = 4096
_KEPT_SECONDS: Final = 60.0

_Question = tuple[str, int]


class OnlineService:
    """Asks a web search engine, many queries at the same time.

    The score of a passage is the engine's own where it gives one, else 1 / rank.

    Args:
        client: Asks one query.
        concurrency: Queries asked at the same time.
    """

    def __init__(self, client: OnlineClient, concurrency: int) -> None:
        self._client = client
        self._threads = ThreadPoolExecutor(concurrency, thread_name_prefix="online")
        # Each query costs money: when one of a batch fails and the others are asked for again,
        # or a client gave up too early, they are not paid for twice.
        self._kept: TTLCache[_Question, Passages] = TTLCache(_KEPT_QUERIES, _KEPT_SECONDS)

    def search(self, queries: Sequence[str], topk: int) -> list[Passages]:
        """Return the best `topk` passages of each query, at most what the engine gives at once.

        A blank query finds nothing, and is not sent.

        Raises:
            OnlineError: A query failed for good.
        """
        count = min(max(topk, _PAGE), self._client.provider.most)
        questions = [(query, count) for query in queries]
        answers = {one: self._kept[one] for one in set(questions) if one in self._kept}
        asked = [one for one in dict.fromkeys(questions) if one not in answers and one[0].strip()]
        answers |= self._ask(asked)
        return [answers.get(one, [])[:topk] for one in questions]

    def info(self) -> dict[str, object]:
        """Say which engine is asked; how often stands in /metrics."""
        return {"engine": "online", "provider": self._client.provider.name, "rows": None}

    def close(self) -> None:
        """Close the connections."""
        self._threads.shutdown(cancel_futures=True)
        self._client.close()

    def _ask(self, asked: Sequence[_Question]) -> dict[_Question, Passages]:
        running = {one: self._threads.submit(self._client.fetch, *one) for one in asked}
        # After the first error the batch is lost: what has not begun is not paid for.
        _, rest = wait(running.values(), return_when=FIRST_EXCEPTION)
        for future in rest:
            future.cancel()
        wait(rest)
        found = {one: future for one, future in running.items() if _found(future)}
        answers = {one: passages_of(future.result()) for one, future in found.items()}
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
