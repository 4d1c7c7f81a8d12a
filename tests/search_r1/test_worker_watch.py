"""A run ends when one of its processes dies: by itself, or because it is interrupted."""

import os
import signal
import time

import pytest

from search_r1.worker_watch import (
    WorkerDiedError,
    died_by_itself,
    ended_by_dead_workers,
    find_death,
)

DEATH = "AgentLoopWorkerTQ, process 17 on 192.0.2.1"
SOON = {"poll_s": 0.01, "grace_s": 0.05}


def test_a_run_that_waits_for_the_dead_is_interrupted() -> None:
    before = signal.getsignal(signal.SIGUSR1)
    with (
        pytest.raises(WorkerDiedError, match=f"died: {DEATH}\n.*\n  resume with the same command"),
        ended_by_dead_workers(lambda: DEATH, **SOON),
    ):
        time.sleep(60)
    assert signal.getsignal(signal.SIGUSR1) is before


def test_an_error_of_a_run_with_a_dead_worker_is_laid_to_the_death() -> None:
    with (
        pytest.raises(WorkerDiedError, match=f"died: {DEATH}") as caught,
        ended_by_dead_workers(lambda: DEATH, poll_s=60, grace_s=60),
    ):
        raise RuntimeError("what came of it")
    assert str(caught.value.__cause__) == "what came of it"


def test_an_error_of_a_run_whose_workers_live_is_its_own() -> None:
    with pytest.raises(RuntimeError, match="its own"), ended_by_dead_workers(lambda: None, **SOON):
        raise RuntimeError("its own")


def test_a_healthy_run_is_left_alone() -> None:
    with ended_by_dead_workers(lambda: None, **SOON):
        time.sleep(0.1)


def test_an_interrupt_by_a_person_stays_one() -> None:
    with pytest.raises(KeyboardInterrupt), ended_by_dead_workers(lambda: None, **SOON):
        raise KeyboardInterrupt


@pytest.mark.slow
def test_after_an_error_of_ray_the_dead_are_looked_for_a_while() -> None:
    import ray

    looks = iter([None, None, DEATH])
    with (
        pytest.raises(WorkerDiedError, match=f"died: {DEATH}"),
        ended_by_dead_workers(lambda: next(looks), poll_s=60, grace_s=60),
    ):
        raise ray.exceptions.RayError("an engine is away")


@pytest.mark.slow
def test_a_death_counts_if_nobody_asked_for_it() -> None:
    from ray.core.generated.common_pb2 import ActorDeathCause, ActorDiedErrorContext, OomContext

    def ended(reason: str) -> ActorDeathCause:
        number = ActorDiedErrorContext.Reason.Value(reason)
        return ActorDeathCause(actor_died_error_context=ActorDiedErrorContext(reason=number))

    assert died_by_itself(ActorDeathCause(oom_context=OomContext(error_message="memory")))
    assert died_by_itself(ended("WORKER_DIED"))
    assert died_by_itself(ended("NODE_DIED"))
    assert not died_by_itself(ended("RAY_KILL"))
    assert not died_by_itself(ended("OUT_OF_SCOPE"))


@pytest.mark.slow
def test_rays_table_names_the_dead_and_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    import ray

    @ray.remote(num_cpus=0)
    class Worker:
        def pid(self) -> int:
            return os.getpid()

        def wait(self) -> None:
            time.sleep(600)

    assert find_death() is None
    ray.init(num_cpus=1, include_dashboard=False, object_store_memory=100_000_000)
    try:
        victim, killed, waits = (Worker.remote() for _ in range(3))
        pid, _, _ = ray.get([one.pid.remote() for one in (victim, killed, waits)])
        ray.kill(killed)
        assert find_death() is None
        os.kill(pid, signal.SIGKILL)
        died = rf"died: .*Worker, process {pid} on"
        with (
            pytest.raises(WorkerDiedError, match=died),
            ended_by_dead_workers(poll_s=0.2, grace_s=0.5),
        ):
            ray.get(waits.wait.remote())
        with pytest.raises(WorkerDiedError, match=died), ended_by_dead_workers():
            ray.get(victim.pid.remote())
    finally:
        ray.shutdown()
