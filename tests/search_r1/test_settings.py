from typing import Any

import pytest

from search_r1.settings import SearchSettings


def test_a_mapping_sets_what_it_names_and_leaves_the_defaults() -> None:
    settings = SearchSettings.from_mapping({"urls": ["http://a/x", "https://b/x"], "top_k": 5})
    assert settings.urls == ("http://a/x", "https://b/x")
    assert settings.top_k == 5
    assert settings == SearchSettings(urls=("http://a/x", "https://b/x"), top_k=5)


def test_the_defaults_are_those_of_the_protocol() -> None:
    settings = SearchSettings.from_mapping({})
    assert (settings.max_searches, settings.turn_tokens, settings.observation_tokens) == (
        4,
        500,
        500,
    )
    assert (settings.sequence_tokens, settings.top_k) == (4096, 3)


def test_unknown_keys_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"unknown settings search.topk, search.url; known are"):
        SearchSettings.from_mapping({"url": "http://a", "topk": 3, "max_searches": 2})


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"max_searches": "4"}, "search.max_searches must be a whole number, not '4'"),
        ({"max_searches": 2.0}, "search.max_searches must be a whole number"),
        ({"top_k": True}, "search.top_k must be a whole number"),
        ({"mask_retrieved": 0}, "search.mask_retrieved must be true or false, not 0"),
        ({"timeout_seconds": None}, "search.timeout_seconds must be a number, not None"),
        ({"urls": "http://a"}, "search.urls must be a list of strings"),
        ({"urls": []}, "search.urls must be a list of strings"),
        ({"urls": [1]}, "search.urls must be a list of strings"),
    ],
)
def test_values_of_the_wrong_type_are_refused(section: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        SearchSettings.from_mapping(section)


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"urls": ["localhost:8000"]}, "search.urls must begin with http://"),
        ({"top_k": 0}, "search.top_k must be above 0, not 0"),
        ({"max_searches": -1}, "search.max_searches must be at least 0, not -1"),
        ({"timeout_seconds": 0.0}, "search.timeout_seconds must be above 0"),
        ({"max_failure_rate": 1.5}, "search.max_failure_rate is a share"),
        ({"failure_min_calls": 9, "failure_window": 8}, "search.failure_min_calls"),
    ],
)
def test_values_out_of_range_are_refused(section: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SearchSettings.from_mapping(section)


def test_no_search_at_all_is_a_setting() -> None:
    assert SearchSettings(max_searches=0).max_searches == 0
