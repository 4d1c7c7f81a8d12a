"""Settings of the server: flags of `python -m retrieval_server`, or RETRIEVER_* variables."""

from typing import Annotated, Final, Self

from pydantic import AfterValidator, Field, SecretStr, model_validator
from pydantic_settings import SettingsConfigDict

from retrieval_server.encoder import Dtype
from retrieval_server.engines.settings import EngineSettings
from retrieval_server.logs import LogFormat

_MOST: Final = 2**31 - 1
"""FAISS's integers."""


def _sendable(token: SecretStr) -> SecretStr:
    text = token.get_secret_value()
    if not text or not all("!" <= character <= "~" for character in text):
        raise ValueError("a token is made of ASCII letters, digits and signs, without spaces")
    return token


class Settings(EngineSettings):
    """Serve passages over HTTP: POST /retrieve, GET /health, GET /metrics.

    search-r1 serve --index wiki-e5                    one index (`search-r1 prepare index`)
    search-r1 serve --index wiki-e5 --index wiki-bm25  hybrid: both, fused by rank
    search-r1 serve --index wiki-e5 --rerank MODEL     its best 20, re-ranked by a cross-encoder
    search-r1 serve --online serper                    the web; the key is SERPER_API_KEY

    Every flag is an environment variable too: --max-topk is RETRIEVER_MAX_TOPK.
    """

    model_config = SettingsConfigDict(
        env_prefix="RETRIEVER_",
        frozen=True,
        allow_inf_nan=False,
        cli_kebab_case=True,
        cli_implicit_flags=True,
        cli_hide_none_type=True,
        cli_prog_name="search-r1 serve",
    )

    host: str = Field(default="127.0.0.1", description="Address to bind; 0.0.0.0 for all.")
    port: int = Field(default=8000, ge=0, le=65535, description="Port to bind; 0 picks one.")

    topk: int = Field(default=3, ge=1, description="Passages per query when not asked for.")
    max_topk: int = Field(default=100, ge=1, description="Largest topk a request may ask for.")
    max_queries: int = Field(default=512, ge=1, description="Most queries in one request.")
    max_query_chars: int = Field(default=8192, ge=1, description="Most characters in a query.")
    max_body_mib: float = Field(
        default=32.0, gt=0, le=1 << 20, description="Largest body of a request, MiB."
    )
    token: Annotated[SecretStr, AfterValidator(_sendable)] | None = Field(
        default=None,
        description="Answer only requests that carry it (Authorization: Bearer); /health is open. "
        "Better given as RETRIEVER_TOKEN, which the client reads, too.",
    )

    max_batch: int = Field(default=256, ge=1, description="Most queries searched together.")
    max_wait_ms: float = Field(
        default=10.0, ge=0, description="Longest wait for a batch to fill, under load only."
    )
    max_queue: int = Field(default=4096, ge=1, description="Queries that may wait before 429.")
    deadline_seconds: float = Field(
        default=60.0,
        gt=0,
        description="How long a request may wait that does not say so itself (Prefer: wait=N).",
    )
    cache_size: int = Field(
        default=10_000,
        ge=0,
        description="Queries whose answers are remembered, about 5 KB each; 0: none.",
    )

    nprobe: int | None = Field(
        default=None, ge=1, le=_MOST, description="Lists an ivf index probes; default: the index's."
    )
    ef_search: int | None = Field(
        default=None,
        ge=1,
        le=_MOST,
        description="Candidates an hnsw index keeps; default: the index's.",
    )
    candidates: int | None = Field(
        default=None,
        ge=1,
        le=_MOST,
        description="Rows re-ranked by exact vectors; default: the index's.",
    )
    memory_map: bool = Field(
        default=True,
        description="Leave the index on disk, in memory that processes share; else load it whole.",
    )
    faiss_gpu: bool = Field(
        default=False, description="Search a flat index on all GPUs, in half precision."
    )

    encoder: str | None = Field(
        default=None, description="Refuse an index that was built with another encoder than this."
    )
    device: str | None = Field(
        default=None, description="Device of the models; default: best found."
    )
    dtype: Dtype | None = Field(default=None, description="Encoder's dtype; default: the index's.")
    workers: int = Field(
        default=1,
        ge=1,
        le=64,
        description="Processes; each has an encoder of its own, all share one mapped index.",
    )
    threads: int = Field(
        default=0, ge=0, description="Threads of encoder and index in each worker; 0: its share."
    )
    lanes: int = Field(
        default=0,
        ge=0,
        le=64,
        description="Batches that one dense index searches at the same time, each with its share "
        "of the threads; 0: two on a CPU, one on a GPU.",
    )
    verify_corpus: bool = Field(
        default=True, description="Hash the corpus at start and compare with the manifest."
    )

    log_format: LogFormat = Field(default="text", description="Lines for people, or JSON.")
    access_log: bool = Field(default=False, description="Log each request, too.")
    drain_seconds: float = Field(
        default=30.0, gt=0, description="How long SIGTERM waits for requests in flight."
    )
    failed_seconds: float = Field(
        default=3.0, ge=0, description="How long /health tells a failed load before the exit."
    )

    @property
    def deepest(self) -> int:
        """Passages of a query that an index may be asked for at most."""
        if len(self.index) + bool(self.online) > 1:
            return self.hybrid_depth
        return self.rerank_depth if self.rerank else self.max_topk

    @property
    def _has_one_index_on_cpus(self) -> bool:
        return len(self.index) == 1 and not (self.online or self.rerank or self.faiss_gpu)

    @model_validator(mode="after")
    def _limits_agree(self) -> Self:
        if self.topk > self.max_topk:
            raise ValueError(f"topk ({self.topk}) is above max_topk ({self.max_topk})")
        if self.rerank and self.topk > self.rerank_depth:
            raise ValueError(f"topk ({self.topk}) is above rerank_depth ({self.rerank_depth})")
        if self.online and not self.index and self.topk > self.online_results:
            raise ValueError(f"topk ({self.topk}) is above online_results ({self.online_results})")
        if self.encoder and not self.index:
            raise ValueError("--encoder does nothing without --index")
        if self.lanes > 1 and not self._has_one_index_on_cpus:
            raise ValueError(
                "--lanes is for one index on CPUs: leave it out with another engine, --rerank or "
                "--faiss-gpu"
            )
        if self.max_queries > self.max_queue:
            raise ValueError(
                f"max_queries ({self.max_queries}) is above max_queue ({self.max_queue}): "
                "such a request could never be accepted"
            )
        return self
