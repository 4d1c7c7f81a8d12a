import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from search_r1.ablation.plan import Plan
from search_r1.ablation.record import RECORD, read_record, write_record


def test_a_record_is_read_as_it_was_written(make_plan: Callable[..., Plan]) -> None:
    written = write_record(make_plan("on", "off"), "search-r1 ablate x")
    assert read_record(written.folder) == written
    assert [one.value for one in written.variants] == ["on", "off"]
    assert written.folder_of("on") == written.folder / "runs" / "on"


def test_variants_of_earlier_commands_stay(make_plan: Callable[..., Plan]) -> None:
    write_record(make_plan("on", "off"), "one")
    both = write_record(make_plan("off", "other"), "two")
    assert [one.value for one in both.variants] == ["off", "other", "on"]
    assert read_record(both.folder).command == "two"


def test_a_folder_without_an_ablation(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="give the --output of a search-r1 ablate"):
        read_record(tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({}, "field variants is no list"),
        ({"variants": [1]}, r"variants\[0\] is no object"),
        (
            {"variants": [{"axis": "a", "value": 1, "seed": None, "run": "r"}]},
            r"variants\[0\].value is 1",
        ),
    ],
)
def test_a_broken_record_names_its_field(tmp_path: Path, content: Any, message: str) -> None:
    (tmp_path / RECORD).write_text(json.dumps(content))
    with pytest.raises(ValueError, match=message):
        read_record(tmp_path)
