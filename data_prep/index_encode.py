"""Passages to vectors, in this process, in several, or on the machines of a Ray cluster.

A chunk is encoded whole by one encoder in batches of its own, and chunks come back in their
order, so who encoded them does not show in the vectors.
"""

import multiprocessing
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count, islice
from multiprocessing.queues import Queue
from typing import Any, Final

from retrieval_server.encoder import Encoder, EncoderSettings, FloatArray
from retrieval_server.openmp import share_cores

LoadEncoder = Callable[[EncoderSettings], Encoder]
Texts = list[str]
Encode = Callable[[Iterable[Texts]], Iterator[FloatArray]]
"""Takes chunks of passages and gives their vectors, `[passages, dimension]`, in order."""

_WAITING_CHUNKS: Final = 2
"""Chunks handed out for each worker: one that it encodes, and the next."""


@dataclass(frozen=True, slots=True)
class Workers:
    """Who encodes."""

    count: int = 1
    ray_address: str | None = None
    """Of a Ray cluster ("auto", "local" or ray://HOST:PORT); without it, processes of here."""


@contextmanager
def encoding(load: LoadEncoder, settings: EncoderSettings, workers: Workers) -> Iterator[Encode]:
    """Start the workers, each with an encoder, and end them after the block."""
    if workers.ray_address is not None:
        with _on_ray(load, settings, workers) as encode:
            yield encode
    elif workers.count > 1:
        with _in_processes(load, settings, workers.count) as encode:
            yield encode
    else:
        encoder = load(settings)
        yield lambda chunks: (encoder.encode_passages(texts) for texts in chunks)


class _Worker:
    """An encoder in a process of its own."""

    def __init__(self, load: LoadEncoder, settings: EncoderSettings, number: int) -> None:
        self._encoder = load(_on_own_device(settings, number))

    def encode(self, texts: Texts) -> FloatArray:
        return self._encoder.encode_passages(texts)


def _on_own_device(settings: EncoderSettings, number: int) -> EncoderSettings:
    """Give each worker a GPU, in turn, unless the device is set."""
    if settings.device is not None:
        return settings
    import torch

    gpus = torch.cuda.device_count()
    return settings.model_copy(update={"device": f"cuda:{number % gpus}" if gpus else "cpu"})


_worker: _Worker


def _start_worker(load: LoadEncoder, settings: EncoderSettings, numbers: "Queue[int]") -> None:
    global _worker
    _worker = _Worker(load, settings, numbers.get())


def _encode_in_worker(texts: Texts) -> FloatArray:
    return _worker.encode(texts)


@contextmanager
def _in_processes(load: LoadEncoder, settings: EncoderSettings, workers: int) -> Iterator[Encode]:
    context = multiprocessing.get_context("spawn")
    numbers: Queue[int] = context.Queue()
    for number in range(workers):
        numbers.put(number)
    # Read by the processes when they load their libraries.
    share_cores(max(1, (os.cpu_count() or 1) // workers))
    with ProcessPoolExecutor(workers, context, _start_worker, (load, settings, numbers)) as pool:
        yield lambda chunks: _in_order(
            chunks, lambda texts: pool.submit(_encode_in_worker, texts), workers
        )
        pool.shutdown(cancel_futures=True)


@contextmanager
def _on_ray(load: LoadEncoder, settings: EncoderSettings, workers: Workers) -> Iterator[Encode]:
    import ray

    ray.init(address=workers.ray_address, log_to_driver=False)
    gpus = 1 if ray.cluster_resources().get("GPU") else 0
    actor: Any = ray.remote(num_cpus=1, num_gpus=gpus)(_Worker)
    # Ray shows an actor only its own GPU, which is the first it sees.
    actors = [actor.remote(load, settings, 0) for _ in range(workers.count)]
    turns = count()

    def submit(texts: Texts) -> "Future[FloatArray]":
        future: Future[FloatArray] = actors[next(turns) % len(actors)].encode.remote(texts).future()
        return future

    try:
        yield lambda chunks: _in_order(chunks, submit, workers.count)
    finally:
        ray.shutdown()


def _in_order(
    chunks: Iterable[Texts], submit: Callable[[Texts], "Future[FloatArray]"], workers: int
) -> Iterator[FloatArray]:
    """Keep every worker busy without reading far ahead, and give results in order."""
    rest = iter(chunks)
    waiting = deque(submit(texts) for texts in islice(rest, _WAITING_CHUNKS * workers))
    while waiting:
        yield waiting.popleft().result()
        waiting.extend(submit(texts) for texts in islice(rest, 1))
