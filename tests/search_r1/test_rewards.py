import json
from dataclasses import fields
from functools import cache
from typing import Any

import pytest
from omegaconf import OmegaConf

from search_r1.config import compose, config_folder
from search_r1.rewards import (
    RewardWeights,
    breakdown,
    compute_score,
    format_score,
    retrieval_hit,
    structure_score,
)

THINK_SEARCH = "<think>who?</think>\n<search>Ada</search>"
THINK_ANSWER = "<think>so</think> <answer>Ada</answer>"


def test_retrieval_hit_wants_whole_words_in_the_passages() -> None:
    assert retrieval_hit(["Doc 1 Ada Lovelace wrote."], ["ada lovelace"]) == 1.0
    assert retrieval_hit(["Doc 1 Canada wrote."], ["Ada"]) == 0.0
    assert retrieval_hit(["anything"], ["The"]) == 0.0
    assert retrieval_hit([], ["Ada"]) == 0.0


def rollout(answer: str | None = "Ada", **changes: Any) -> dict[str, Any]:
    shown = "\n\n<information>Ada</information>\n\n"
    search = {"text": THINK_SEARCH, "observation": shown, "passages": [{"id": "1"}]}
    record = {
        "answer": answer,
        "stop_reason": "answered",
        "searches": 2,
        "invalid_actions": 0,
        "sampled_tokens": 250,
        "transcript": [search, {"text": THINK_ANSWER, "observation": "", "passages": []}],
    }
    return record | changes


def test_the_format_is_right_when_every_action_was_valid_and_an_answer_came() -> None:
    assert format_score(rollout()) == 1.0
    assert format_score(rollout(invalid_actions=1)) == 0.0
    assert format_score(rollout(answer=None)) == 0.0


def test_the_score_is_em_alone_unless_weights_say_otherwise() -> None:
    parts = breakdown(rollout(answer="Ada Lovelace"), ["Ada"])
    assert parts == {
        "em": 0.0,
        "f1": pytest.approx(2 / 3),
        "sub_em": 1.0,
        "format": 1.0,
        "structure": 1.0,
        "answered": 1.0,
        "retrieval_hit": 1.0,
        "searches": 2.0,
        "sampled_tokens": 250.0,
    }
    assert RewardWeights().score(parts) == 0.0
    weights = RewardWeights(
        em=1, f1=0.3, sub_em=0.1, format=0.2, retrieval_hit=0.1, search_cost=0.05, length_cost=0.2
    )
    # Costs: 0.05 for each of two searches, and 0.2 for a quarter of 1,000 tokens.
    assert weights.score(parts) == pytest.approx(0.2 + 0.1 + 0.2 + 0.1 - 0.1 - 0.05)


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ([THINK_ANSWER], 1.0),
        ([THINK_SEARCH, THINK_ANSWER], 1.0),
        ([f" {THINK_SEARCH}", THINK_SEARCH, f"\n\n{THINK_ANSWER}"], 1.0),
        ([], 0.0),
        ([THINK_SEARCH], 0.0),
        ([THINK_ANSWER, THINK_ANSWER], 0.0),
        (["<answer>Ada</answer>"], 0.0),
        (["<search>Ada</search>", THINK_ANSWER], 0.0),
        ([f"well: {THINK_ANSWER}"], 0.0),
        (["<think>so</think> I say <answer>Ada</answer>"], 0.0),
        (["<think>so <answer>Ada</answer>"], 0.0),
        (["<think> </think><answer>Ada</answer>"], 0.0),
        (["<think>so</think><answer>\n</answer>"], 0.0),
        (["<think>a</think><think>b</think><answer>Ada</answer>"], 0.0),
        (["<think>a <search>b</search></think><answer>Ada</answer>"], 0.0),
        (["<think>a</think><information>x</information><answer>Ada</answer>"], 0.0),
        (["just words", THINK_ANSWER], 0.0),
    ],
)
def test_the_structure_is_think_search_and_think_answer(texts: list[str], expected: float) -> None:
    assert structure_score(texts) == expected


def test_a_long_turn_without_structure_is_judged_at_once() -> None:
    # A pattern that goes back and forth would take hours.
    assert structure_score([f"<think>{'a ' * 100_000}</think><search>{' b' * 100_000}"]) == 0.0


@cache
@cache
def rubric(name: str) -> RewardWeights:
    """The weights that a shipped rubric puts into a config."""
    given = ("output_dir=x", "actor_rollout_ref.model.path=x", "trainer.experiment_name=x")
    files = ("data.train_files=x", "data.val_files=x")
    config = compose("grpo", [*given, *files, f"+rubrics={name}"])
    return RewardWeights.from_mapping(config.reward.custom_reward_function.reward_kwargs)


RIGHT = {"em": 1.0, "answered": 1.0}
WRONG = {"em": 0.0, "answered": 1.0}
SILENT = {"em": 0.0, "answered": 0.0}


@pytest.mark.parametrize(
    ("answer", "structure", "expected"),
    [(RIGHT, 1, 1.0), (RIGHT, 0, 0.8), (WRONG, 1, 0.2), (WRONG, 0, 0.1), (SILENT, 0, 0.0)],
)
@pytest.mark.parametrize("hit", [0.0, 1.0])
def test_the_format_rubric_is_the_second_papers(
    answer: dict[str, float], structure: float, hit: float, expected: float
) -> None:
    none = dict.fromkeys(("f1", "sub_em", "format", "searches", "sampled_tokens"), 0.0)
    parts = none | answer | {"structure": structure, "retrieval_hit": hit}
    assert rubric("format").score(parts) == pytest.approx(expected)
    bonus = 0.1 * hit if answer is WRONG and structure else 0.0
    assert rubric("format_retrieval").score(parts) == pytest.approx(expected + bonus)


@pytest.mark.parametrize(
    ("name", "weights"),
    [
        ("em", RewardWeights()),
        ("f1", RewardWeights(em=0.0, f1=1.0)),
        ("thrift", RewardWeights(search_cost=0.02, length_cost=0.02)),
    ],
)
def test_a_rubric_is_a_set_of_weights(name: str, weights: RewardWeights) -> None:
    file = OmegaConf.load(config_folder() / "rubrics" / f"{name}.yaml")
    assert RewardWeights.from_mapping(file.reward.custom_reward_function.reward_kwargs) == weights


def test_the_rubric_of_the_paper_names_every_weight() -> None:
    file = OmegaConf.load(config_folder() / "rubrics" / "em.yaml")
    names = {field.name for field in fields(RewardWeights)}
    assert set(file.reward.custom_reward_function.reward_kwargs) == names


@pytest.mark.parametrize(
    ("weights", "error", "message"),
    [
        ({"recall": 1.0}, TypeError, "unknown reward weight recall; known are em, f1"),
        ({"em": "much"}, TypeError, "em must be a number, not 'much'"),
        ({"em": True}, TypeError, "em must be a number"),
        ({"em": None}, TypeError, "em must be a number"),
        ({"f1": float("nan")}, ValueError, "f1 must be finite"),
        ({"search_cost": -0.1}, ValueError, "search_cost must be finite, a cost at least 0"),
        ({"em": 0}, ValueError, "every reward weight is 0"),
    ],
)
def test_weights_that_cannot_be_meant_are_refused(
    weights: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        RewardWeights.from_mapping(weights)


def test_validation_is_judged_by_em_whatever_the_weights() -> None:
    for answer, right in (("Ada", 1.0), ("Eve", 0.0), (None, 0.0)):
        result = score(answer, em=0.0, f1=0.5, structure=0.2, answer_block=0.1, length_cost=9.0)
        assert result["acc"] == right != result["score"]


def test_an_error_text_in_place_of_passages_is_no_hit() -> None:
    shown = "<information>Ada is not available</information>"
    turn = {"text": THINK_SEARCH, "observation": shown, "passages": []}
    assert breakdown(rollout(transcript=[turn]), ["Ada"])["retrieval_hit"] == 0.0


SOLUTION = "<information><answer>Ada</answer></information> <answer>Ada</answer>"


def score(answer: str | None, ground_truth: Any = "Ada", **weights: float) -> dict[str, Any]:
    extra_info = {"id": "q1", "question": "who?", "hops": 2, "rollout": rollout(answer)}
    return compute_score("nq", SOLUTION, ground_truth, extra_info, **weights)


def test_the_answer_is_the_rollouts_and_never_read_from_the_decoded_text() -> None:
    assert score("Ada")["score"] == 1.0
    assert score("Eve")["score"] == 0.0
    assert score(None)["score"] == 0.0


@pytest.mark.parametrize("extra_info", [{}, {"answer": "Ada", "golden_answers": ["Ada"]}])
def test_without_the_rollouts_record_there_is_an_error(extra_info: dict[str, Any]) -> None:
    with pytest.raises(KeyError, match="default_agent_loop=search_r1"):
        compute_score("nq", SOLUTION, "Ada", extra_info)


def test_every_row_has_the_same_keys_and_numbers_but_for_the_record() -> None:
    right, missing = score("Ada"), score(None)
    assert list(right) == list(missing)
    assert {key for key, value in right.items() if not isinstance(value, float)} == {"record"}
    assert right["acc"] == right["em"] == 1.0


def test_the_record_holds_the_question_the_rollout_and_the_parts() -> None:
    result = score("Ada", f1=0.5)
    record = json.loads(result["record"])
    assert (record["id"], record["question"], record["data_source"]) == ("q1", "who?", "nq")
    assert (record["golden_answers"], record["hops"]) == (["Ada"], 2)
    assert (record["answer"], record["stop_reason"]) == ("Ada", "answered")
    assert record["reward_parts"]["score"] == result["score"] == 1.5


@pytest.mark.parametrize(
    "ground_truth", ["Ada", ["Ada"], ("Eve", "Ada"), {"target": ["Eve", "Ada"]}, {"target": "Ada"}]
)
def test_gold_answers_come_in_every_usual_form(ground_truth: object) -> None:
    assert score("Ada", ground_truth)["em"] == 1.0


@pytest.mark.parametrize("ground_truth", [None, [], {"target": []}, {}])
def test_a_row_without_a_gold_answer_is_refused(ground_truth: object) -> None:
    with pytest.raises(ValueError, match=r"'nq' has no gold answer in reward_model.ground_truth"):
        score("Ada", ground_truth)


def test_an_unknown_weight_is_refused() -> None:
    with pytest.raises(TypeError, match="recall"):
        score("Ada", recall=1.0)
