"""OpenMP's threads: for a process that shares its cores, and for batches that share a process."""

import os
import threading


def share_cores(threads: int = 0, workers: int = 1) -> None:
    """Make idle OpenMP threads sleep, and limit their number when asked to.

    OpenMP reads its environment once, when the library that uses it is loaded. By default its
    threads spin between two parallel regions; faiss and torch each have their own, and beside
    a trainer on the same cores encoding a query took 10 times as long. What the user has set
    for the wait policy stays.

    Args:
        threads: Threads of each library; 0: all cores, or their share.
        workers: How many processes share the cores.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    if workers > 1 and not threads:
        threads = max(1, len(os.sched_getaffinity(0)) // workers)
    if threads:
        os.environ["OMP_NUM_THREADS"] = str(threads)


class Cores:
    """The cores of this process, for batches that are encoded and searched side by side.

    Threads of their own keep cores busier than one product of small matrices spread over all of
    them does. Importing faiss and torch, and counting their threads, is left to the first use.

    Args:
        lanes: Most batches at the same time.
    """

    def __init__(self, lanes: int) -> None:
        self._lanes = lanes
        self._of_thread = threading.local()

    def use(self, alone: bool) -> None:
        """Let the calling thread compute with all cores, or with its share of them."""
        import faiss
        import torch

        of_thread = self._of_thread
        if not hasattr(of_thread, "all"):
            of_thread.all = of_thread.used = faiss.omp_get_max_threads()
        wanted = of_thread.all if alone else max(1, of_thread.all // self._lanes)
        if wanted != of_thread.used:
            # Each of the two libraries brings an OpenMP, and each of these counts for each thread.
            faiss.omp_set_num_threads(wanted)
            torch.set_num_threads(wanted)
            of_thread.used = wanted
