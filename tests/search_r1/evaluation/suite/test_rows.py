from pathlib import Path

import pytest

from search_r1.baselines import METHODS as BASELINES
from search_r1.baselines.published import BASES
from search_r1.evaluation.methods import find_method
from search_r1.evaluation.suite.rows import PAPER, assign, paper_base

MODEL = Path("model")


def test_every_row_has_a_method_and_a_name_of_its_own() -> None:
    assert len({row.name for row in PAPER}) == len({row.label for row in PAPER}) == len(PAPER) == 14
    for row in PAPER:
        assert find_method(row.method)


def test_every_baseline_is_a_row_without_training() -> None:
    assert {row.method for row in PAPER if not row.trained} == set(BASELINES)


@pytest.mark.parametrize("base", BASES)
def test_every_row_but_react_is_published(base: str) -> None:
    assert [row.name for row in PAPER if row.published(base) is None] == ["react"]


@pytest.mark.parametrize(
    ("name", "average"),
    [
        ("rag", 0.304),
        ("r1_base", 0.276),
        ("r1_instruct", 0.271),
        ("search_r1_ppo_base", 0.431),
        ("search_r1_ppo_instruct", 0.385),
        ("search_r1_grpo_base", 0.350),
        ("search_r1_grpo_instruct", 0.396),
    ],
)
def test_a_row_stands_above_its_own_number(name: str, average: float) -> None:
    [row] = (row for row in PAPER if row.name == name)
    found = row.published("Qwen2.5-7B")
    assert found is not None
    assert found.average_em == average


def test_a_model_answers_the_rows_without_training_and_no_other() -> None:
    assert list(assign(MODEL, [])) == ["direct", "cot", "ircot", "search_o1", "rag", "react"]
    assert set(assign(MODEL, []).values()) == {MODEL}


def test_policies_answer_their_rows_in_the_order_of_the_table() -> None:
    given = assign(None, ["search_r1_ppo_base=runs/a=b", "sft=s"])
    assert list(given.items()) == [("sft", Path("s")), ("search_r1_ppo_base", Path("runs/a=b"))]


@pytest.mark.parametrize("text", ["sft", "sft=", "=x", "ppo=x", "rag=x"])
def test_a_wrong_policy_lists_the_right_names(text: str) -> None:
    with pytest.raises(ValueError, match=rf"policy: '{text}' must be NAME=MODEL.*sft, r1_base, r1"):
        assign(MODEL, [text])


def test_a_row_has_one_policy() -> None:
    with pytest.raises(ValueError, match="policy: sft is given twice"):
        assign(MODEL, ["sft=a", "sft=b"])


def test_without_any_model_there_is_no_suite() -> None:
    with pytest.raises(ValueError, match="model: none is given; give a MODEL"):
        assign(None, [])


@pytest.mark.parametrize(
    ("models", "base"),
    [
        (["models/Qwen2.5-3B-Instruct"], "Qwen2.5-3B"),
        (["runs/ppo-qwen2.5-3b/checkpoints/global_step_20"], "Qwen2.5-3B"),
        (["models/Qwen2.5-7B"], "Qwen2.5-7B"),
        (["smollm2"], "Qwen2.5-7B"),
    ],
)
def test_the_published_numbers_are_of_the_models_size(models: list[str], base: str) -> None:
    assert paper_base(map(Path, models)) == base
