"""A retrieval server that answers every query with passages of its corpus drawn at random.

    python -m benchmarks.learning.random_retriever --index FOLDER --port 8001

The flags are those of `search-r1 serve`; the app, its limits and its batches, too.
"""

import random
import sys
from collections.abc import Sequence

from pydantic_settings import CliApp

from retrieval_server.corpus import Corpus
from retrieval_server.index_open import open_corpus
from retrieval_server.logs import configure_logs
from retrieval_server.manifest import Manifest
from retrieval_server.schemas import ScoredDocument
from retrieval_server.serve import serve
from retrieval_server.service import Report
from retrieval_server.settings import Settings


class RandomService:
    """A `retrieval_server.service.Service`; the same query always gets the same passages."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus

    def search(self, queries: Sequence[str], topk: int) -> list[list[ScoredDocument]]:
        """`topk` passages a query, drawn by the query's words."""
        return [self._draw(query, topk) for query in queries]

    def info(self) -> dict[str, object]:
        """What /health shows."""
        return {"engine": "random", "rows": len(self._corpus)}

    def close(self) -> None:
        """Release the corpus."""
        self._corpus.close()

    def _draw(self, query: str, topk: int) -> list[ScoredDocument]:
        rows = random.Random(query).sample(range(len(self._corpus)), topk)
        return [ScoredDocument(document=self._corpus[row], score=0.0) for row in rows]


def load(settings: Settings, report: Report) -> RandomService:
    """A `retrieval_server.app.ServiceFactory`."""
    [folder] = settings.index
    report("corpus")
    return RandomService(open_corpus(folder, Manifest.load(folder), verify_hash=False))


if __name__ == "__main__":
    configure_logs("text")
    sys.exit(serve(CliApp.run(Settings, sys.argv[1:]), load))
