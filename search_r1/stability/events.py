"""What alarms did in a run, a line each: unlike metrics, it outlives a rollback."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

EVENTS_FILE: Final = "alarm_events.jsonl"
"""In a run's folder."""


@dataclass(frozen=True, slots=True)
class Event:
    """An alarm began or ended at a step."""

    step: int
    alarm: str
    begins: bool
    measured: float
    limit: float
    action: str


def append_events(run: Path, events: list[Event]) -> None:
    """Add lines to the run's file."""
    if not events:
        return
    run.mkdir(parents=True, exist_ok=True)
    with (run / EVENTS_FILE).open("a", encoding="utf-8") as file:
        file.writelines(f"{json.dumps(asdict(event))}\n" for event in events)


def read_events(run: Path) -> list[Event]:
    """The events of a run in the order they happened; none if no alarm ever began.

    Raises:
        ValueError: a line is broken; the message names it and the fix.
    """
    path = run / EVENTS_FILE
    return list(_read(path)) if path.is_file() else []


def _read(path: Path) -> Iterator[Event]:
    # Without its last piece: nothing, or a line that the run is writing.
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n")[:-1]
    for number, line in enumerate(lines, start=1):
        try:
            yield Event(**json.loads(line))
        except (ValueError, TypeError) as error:
            raise ValueError(
                f"{path}:{number}: not an alarm: {error}; take out this line"
            ) from error
