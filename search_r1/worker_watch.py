"""Ends a run one of whose processes died, whatever the others are waiting for.

verl 0.9.1 asks its replay buffer again and again for trajectories (v1/replay_buffer.py, `sample`);
those that a dead agent-loop worker had begun never come, and the run would wait for ever. So the
process of the command looks at Ray's table of actors itself.
"""

import logging
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from ray.core.generated.common_pb2 import ActorDeathCause

# Below verl's logger, which verl shields from what other libraries do to the root logger.
logger = logging.getLogger("verl.search_r1.worker_watch")

POLL_SECONDS: Final = 5.0
GRACE_SECONDS: Final = 30.0
"""After a death, for the run to end by itself with the error of what it was doing."""
SETTLE_SECONDS: Final = 6.0
"""After an error of Ray, for its cause to be in the table: an engine's server follows its engine
within two polls of `search_r1.engine_watch`."""

_BY_ITSELF: Final = ("WORKER_DIED", "NODE_DIED")
"""Ray's reasons for deaths that nobody asked for; ``ray.core.generated.common_pb2``."""

FindDeath = Callable[[], str | None]


class WorkerDiedError(RuntimeError):
    """A process of the run died; the message says which one, and what to do."""


def find_death() -> str | None:
    """The actor of this run that died first without being asked to; None while all is well."""
    import ray
    from ray._private.state import actors

    if not ray.is_initialized():
        return None
    dead = [
        (one["EndTime"], one["ActorClassName"], one["Pid"], one["Address"]["IPAddress"])
        for one in actors(actor_state_name="DEAD").values()
        if died_by_itself(one["DeathCause"])
    ]
    if not dead:
        return None
    _, name, pid, address = min(dead)
    return f"{name}, process {pid} on {address}"


def died_by_itself(cause: "ActorDeathCause") -> bool:
    """Whether nobody asked for the death of an actor, by Ray's ``ActorDeathCause`` of it.

    Ray's own monitor of memory counts as nobody: it kills whom it chooses.
    """
    from ray.core.generated.common_pb2 import ActorDiedErrorContext

    if cause.WhichOneof("context") == "oom_context":
        return True
    reasons = [ActorDiedErrorContext.Reason.Value(name) for name in _BY_ITSELF]
    return cause.actor_died_error_context.reason in reasons


class _Watch(threading.Thread):
    """Looks for a death every few seconds; once there is one, interrupts the main thread."""

    def __init__(self, find: FindDeath, poll_s: float, grace_s: float) -> None:
        super().__init__(name="worker-watch", daemon=True)
        self.over = threading.Event()
        self.death: str | None = None
        self._find, self._poll_s, self._grace_s = find, poll_s, grace_s

    def run(self) -> None:
        while not self.over.wait(self._poll_s):
            self.death = self._find()
            if self.death:
                logger.warning("%s died; the run ends", self.death)
                if not self.over.wait(self._grace_s):
                    # Not SIGINT, which is ignored where a shell script started the command in the
                    # background; a wait for Ray ends at whatever raises KeyboardInterrupt.
                    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)
                return


@contextmanager
def ended_by_dead_workers(
    find: FindDeath = find_death, poll_s: float = POLL_SECONDS, grace_s: float = GRACE_SECONDS
) -> Iterator[None]:
    """Run the block, in the main thread, until it ends or a worker of the run has died.

    Args:
        find: Says who died.
        poll_s: Seconds between two looks.
        grace_s: Seconds for the block to end by itself once somebody died.

    Raises:
        WorkerDiedError: a worker died, and the block waited on or ended with an error, which is
            the cause of this one.
    """
    watch, interrupted = _Watch(find, poll_s, grace_s), threading.Event()

    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        interrupted.set()
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGUSR1, interrupt)
    watch.start()
    try:
        yield
    except KeyboardInterrupt:
        if not interrupted.is_set():
            raise
        raise WorkerDiedError(_report(watch.death)) from None
    except Exception as error:
        death = watch.death or _death_behind(error, find)
        if not death and not _says_that_one_died(error):
            raise
        raise WorkerDiedError(_report(death)) from error
    finally:
        watch.over.set()
        signal.signal(signal.SIGUSR1, before)


def _death_behind(error: Exception, find: FindDeath) -> str | None:
    deadline = time.monotonic() + (SETTLE_SECONDS if _is_of_ray(error, "RayError") else 0)
    while not (death := find()) and time.monotonic() < deadline:
        time.sleep(0.5)
    return death


def _says_that_one_died(error: Exception) -> bool:
    causes = (error, getattr(error, "cause", None))
    return any(_is_of_ray(one, "RayActorError") for one in causes)


def _is_of_ray(error: object, kind: str) -> bool:
    ray: Any = sys.modules.get("ray")
    # Without Ray, nothing of its own can have been raised.
    return ray is not None and isinstance(error, getattr(ray.exceptions, kind))


def _report(death: str | None) -> str:
    return (
        f"a process of the run died: {death or 'its log is above'}\n"
        "  it was killed, perhaps for want of memory (the log above or dmesg tells), or crashed\n"
        "  resume with the same command, from the newest checkpoint"
    )
