"""OpenMP for a process that shares its cores: set before faiss and torch are imported."""

import os


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
