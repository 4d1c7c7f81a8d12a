"""How an alarm ends a run: raised in the trainer's process, read by `search_r1.launch`."""

from collections.abc import Sequence

from search_r1.stability.alarms import Change
from search_r1.stability.catalogue import DETECTORS


class AlarmStopError(RuntimeError):
    """An alarm stopped the run; the message is a report for people."""


class RollBackError(AlarmStopError):
    """The run must start again; its newest checkpoint is already the best stable one."""


def report(step: int, causes: Sequence[Change], then: str) -> str:
    """Which alarms began at which step, the numbers, what happens now, and what to try.

    Args:
        step: The training step.
        causes: The alarms that led to it.
        then: What happens now.
    """
    lines = [f"step {step}: {', '.join(f'alarm {one.name}' for one in causes)}; {then}"]
    for one in causes:
        detector = DETECTORS[one.name]
        lines += [f"  {one.name}: {one}", f"    why: {detector.reason}"]
        lines += [f"    try: {detector.remedy}; or alarms.{one.name}.action=log to go on"]
    return "\n".join(lines)
