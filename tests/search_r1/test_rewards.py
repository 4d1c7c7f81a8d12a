import json
from typing import Any

import pytest

from search_r1.rewards import (
    RewardWeights,
    breakdown,
    compute_score,
    format_score,
    retrieval_hit,
)


def test_retrieval_hit_wants_whole_words_in_the_passages() -> None:
    assert retrieval_hit(["Doc 1 Ada Lovelace wrote."], ["ada lovelace"]) == 1.0
    assert retrieval_hit(["Doc 1 Canada wrote."], ["Ada"]) == 0.0
    assert retrieval_hit(["anything"], ["The"]) == 0.0
    assert retrieval_hit([], ["Ada"]) == 0.0


def rollout(answer: str | None = "Ada", **changes: Any) -> dict[str, Any]:
    search = {"observation": "\n\n<information>Ada</information>\n\n", "passages": [{"id": "1"}]}
    record = {
        "answer": answer,
        "stop_reason": "answered",
        "searches": 2,
        "invalid_actions": 0,
        "transcript": [search, {"observation": "", "passages": []}],
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
        "retrieval_hit": 1.0,
        "searches": 2.0,
    }
    assert RewardWeights().score(parts) == 0.0
    weights = RewardWeights(
        em=1, f1=0.3, sub_em=0.1, format=0.2, retrieval_hit=0.1, search_cost=0.05
    )
    assert weights.score(parts) == pytest.approx(0.2 + 0.1 + 0.2 + 0.1 - 0.1)


def test_an_error_text_in_place_of_passages_is_no_hit() -> None:
    turn = {"observation": "<information>Ada is not available</information>", "passages": []}
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
