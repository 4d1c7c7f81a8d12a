from pathlib import Path

import pytest

from search_r1.stability.detector import DetectorState
from search_r1.stability.events import Event, append_events, read_events
from search_r1.stability.state import RunState, read_state, write_state


def test_a_state_is_read_as_it_was_written(tmp_path: Path) -> None:
    memory = {"repetition": DetectorState((0.1, 0.2), 0.5, 2, True, 0.4)}
    state = RunState(0.25, 2, 1, 0.003, memory)
    write_state(tmp_path, state)
    assert read_state(tmp_path) == state


def test_a_checkpoint_older_than_the_alarms_begins_anew(tmp_path: Path) -> None:
    assert read_state(tmp_path) == RunState()


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"detectors": {"x": {}}}', '{"detectors": 1}']
)
def test_a_broken_state_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / "alarms.json").write_text(content)
    with pytest.raises(ValueError, match=r"alarms\.json: not a state of alarms: .*; remove it"):
        read_state(tmp_path)


def test_events_are_added_line_by_line(tmp_path: Path) -> None:
    first = Event(3, "repetition", begins=True, measured=0.4, limit=0.3, action="log")
    second = Event(9, "repetition", begins=False, measured=0.1, limit=0.24, action="log")
    run = tmp_path / "run"
    append_events(run, [])
    assert not run.exists()
    append_events(run, [first])
    append_events(run, [second])
    assert read_events(run) == [first, second]


def test_a_line_that_is_being_written_is_left_out_and_a_broken_one_named(tmp_path: Path) -> None:
    assert read_events(tmp_path) == []
    path = tmp_path / "alarm_events.jsonl"
    path.write_text('{"step": 1')
    assert read_events(tmp_path) == []
    path.write_text('{"step": 1}\n')
    with pytest.raises(ValueError, match=r"alarm_events\.jsonl:1: not an alarm"):
        read_events(tmp_path)
