"""Settings -> the engine that is served: indexes and a web search engine, fused, re-ranked."""

import os
from collections.abc import Callable, Iterator

from retrieval_server.engines.cross_encoder import RerankerSettings, load_cross_encoder
from retrieval_server.engines.fit import own_settings
from retrieval_server.engines.hybrid import HybridService
from retrieval_server.engines.online.client import OnlineClient, OnlineSettings
from retrieval_server.engines.online.provider import ProviderName
from retrieval_server.engines.online.providers import PROVIDERS
from retrieval_server.engines.online.service import OnlineService
from retrieval_server.engines.rerank import RerankService, Scorer
from retrieval_server.manifest import Manifest
from retrieval_server.sentence_encoder import load_encoder
from retrieval_server.service import LoadEncoder, Report, Service, load_index
from retrieval_server.settings import Settings

LoadScorer = Callable[[RerankerSettings], Scorer]


def load_service(
    settings: Settings,
    report: Report,
    load: LoadEncoder = load_encoder,
    load_scorer: LoadScorer = load_cross_encoder,
) -> Service:
    """Load every part that the settings name, and put them together.

    Args:
        settings: Checked when they were made.
        report: Takes each stage, before it begins.
        load: Loads an encoder.
        load_scorer: Loads a re-ranker.

    Raises:
        ManifestError: A part of an index does not belong to the others, or two indexes do not.
        ValueError: The model does not fit its settings.
        OnlineError: The web search engine does not answer.
    """
    engines = [*_load_indexes(settings, report, load), *_connect(settings, report)]
    engine = engines[0]
    if len(engines) > 1:
        engine = HybridService(engines, settings.hybrid_depth, strict=settings.hybrid_strict)
    if settings.rerank is None:
        return engine
    report("re-ranker")
    return RerankService(engine, load_scorer(_reranker(settings)), settings.rerank_depth)


def _load_indexes(settings: Settings, report: Report, load: LoadEncoder) -> Iterator[Service]:
    if len(settings.index) == 1:
        yield load_index(settings.index[0], settings, report, load)
        return
    manifests = [Manifest.load(folder) for folder in settings.index]
    for folder, manifest in zip(settings.index, manifests, strict=True):
        own = own_settings(manifest, manifests, settings)
        yield load_index(folder, own, _report_of(folder.name, report), load)


def _report_of(name: str, report: Report) -> Report:
    return lambda stage, reads=0: report(f"{name}: {stage}", reads)


def _connect(settings: Settings, report: Report) -> Iterator[Service]:
    if settings.online:
        report(settings.online)
        yield _connect_to(settings.online, settings)


def _connect_to(name: ProviderName, settings: Settings) -> OnlineService:
    """One query is asked, so that a refused key is found now and not by the first user."""
    provider = PROVIDERS[name]
    limits = OnlineSettings(
        base_url=settings.online_url,
        timeout_seconds=settings.online_timeout,
        concurrency=settings.online_concurrency,
    )
    client = OnlineClient(provider, provider.read_keys(os.environ), limits)
    client.fetch("search engine", 1)
    return OnlineService(client, settings.online_results, settings.online_concurrency)


def _reranker(settings: Settings) -> RerankerSettings:
    assert settings.rerank is not None
    return RerankerSettings(
        model=settings.rerank,
        batch_size=settings.rerank_batch_size,
        max_length=settings.rerank_max_length,
        device=settings.device,
        dtype=settings.dtype,
    )
