"""How batches that are searched side by side share the cores: the real libraries count."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from retrieval_server.openmp import Cores


@pytest.mark.slow
def test_each_lane_computes_with_its_share_or_alone_with_all() -> None:
    import faiss
    import torch

    def counts(alone: bool) -> tuple[int, int]:
        cores.use(alone)
        return faiss.omp_get_max_threads(), torch.get_num_threads()

    def start() -> None:
        faiss.omp_set_num_threads(5)
        torch.set_num_threads(5)

    before, cores = torch.get_num_threads(), Cores(lanes=2)
    try:
        with ThreadPoolExecutor(1, initializer=start) as one, ThreadPoolExecutor(1) as other:
            assert one.submit(counts, True).result() == (5, 5)
            assert one.submit(counts, False).result() == (2, 2)
            assert other.submit(counts, False).result()[0] == max(1, before // 2)
            assert one.submit(counts, True).result() == (5, 5)
    finally:
        torch.set_num_threads(before)
