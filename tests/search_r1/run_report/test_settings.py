from pathlib import Path

import pytest

from search_r1.run_report.settings import read_settings, shown_fields


def test_fields_have_dotted_names(tmp_path: Path) -> None:
    text = "# search-r1 train ppo\nsearch:\n  top_k: 3\n  urls: [a]\nseed: null\n"
    (tmp_path / "config.yaml").write_text(text)
    expected = {"search.top_k": "3", "search.urls": "['a']", "seed": "None"}
    assert read_settings(tmp_path) == expected


def test_a_run_that_stored_none_has_none(tmp_path: Path) -> None:
    assert read_settings(tmp_path) == {}


@pytest.mark.parametrize("text", ["a: [1", "- a"])
def test_a_broken_file_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.yaml").write_text(text)
    with pytest.raises(ValueError, match=r"config\.yaml: not .*move it away"):
        read_settings(tmp_path)


def test_chief_fields_and_differences_are_shown() -> None:
    one = {"x": "1", "search.top_k": "3", "y": "2"}
    assert shown_fields([one, one]) == ["search.top_k"]
    assert shown_fields([one, one | {"y": "5"}]) == ["search.top_k", "y"]
    assert shown_fields([one, {k: one[k] for k in ("search.top_k", "y")}]) == ["search.top_k", "x"]
    assert shown_fields([one, {}]) == ["search.top_k"]
    assert shown_fields([{}]) == []
