from typing import Any

import pytest

from data_prep.world import WorldConfig

GOOD: dict[str, Any] = {"seed": 0, "articles": 100, "train_questions": 0, "test_questions": 0}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("seed", -1),
        ("articles", 99),
        ("articles", 1_000_001),
        ("train_questions", -1),
        ("test_questions", -1),
        ("hops", ()),
        ("hops", (1, 1)),
        ("hops", (0,)),
        ("hops", (4,)),
        ("distractors", 0.41),
        ("distractors", -0.1),
        ("held_out", 0.0),
        ("held_out", 1.0),
    ],
)
def test_a_setting_out_of_range_is_named(field: str, value: object) -> None:
    with pytest.raises(ValueError, match=rf"^{field}: "):
        WorldConfig(**{**GOOD, field: value})


def test_the_least_settings_are_accepted() -> None:
    assert WorldConfig(**GOOD).hops == (1, 2, 3)
