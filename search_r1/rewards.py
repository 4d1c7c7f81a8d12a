"""How good a finished trajectory is: pure functions of its record, and the score verl asks for.

In a config: `reward.custom_reward_function.path: pkg://search_r1.rewards`, `name: compute_score`,
and weights other than those of the paper (EM alone, section 3.4) under `reward_kwargs`. Whole sets
of weights are in configs/rubrics: ``search-r1 train grpo +rubrics=format``. Whatever the weights,
a validation is judged by `acc`, which is EM alone.
"""

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

from search_r1.prompts import Tag
from search_r1.qa_metrics import em, f1, normalise_answer, sub_em

ROLLOUT = "rollout"
"""Where `extra_info` holds the record of the rollout (`search_r1.result.RolloutResult.record`)."""

_TAGS = "|".join(Tag)
# Possessive, so that a long turn that does not fit is left after one reading.
_BODY = rf"\s*+(?:(?!</?(?:{_TAGS})>).)++"
_STRUCTURED_TURN = re.compile(
    rf"\s*{Tag.THINK.wrap(_BODY)}\s*<(?P<tag>{Tag.SEARCH}|{Tag.ANSWER})>{_BODY}</(?P=tag)>\s*",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class RewardWeights:
    """What each part of a trajectory's reward is worth: EM alone, unless a rubric says otherwise.

    The first five are earned by every trajectory, each times its part. The next three are the
    format reward of arXiv 2505.15117, which depends on whether the answer is right. The costs are
    taken off.
    """

    em: float = 1.0
    f1: float = 0.0
    sub_em: float = 0.0
    format: float = 0.0
    retrieval_hit: float = 0.0
    structure: float = 0.0
    """Earned by a right structure around a wrong answer; a wrong one costs a right answer it."""
    structured_hit: float = 0.0
    """Earned beside `structure` if a search showed a gold answer, too."""
    answer_block: float = 0.0
    """Earned by a wrong answer in a wrong structure: there was an answer at least."""
    search_cost: float = 0.0
    """Taken off for each search."""
    length_cost: float = 0.0
    """Taken off for every 1,000 tokens that the model wrote."""

    @classmethod
    def from_mapping(cls, weights: Mapping[str, Any]) -> Self:
        """Weights from the `reward_kwargs` of a config; what is left out keeps its default.

        Raises:
            TypeError: a weight is unknown or not a number.
            ValueError: a weight is not finite, a cost is below 0, or nothing is worth anything.
        """
        known = [field.name for field in fields(cls)]
        for name, value in weights.items():
            if name not in known:
                raise TypeError(f"unknown reward weight {name}; known are {', '.join(known)}")
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise TypeError(f"reward weight {name} must be a number, not {value!r}")
            if not math.isfinite(value) or (name.endswith("_cost") and value < 0):
                raise ValueError(f"reward weight {name} must be finite, a cost at least 0: {value}")
        made = cls(**weights)
        if not any(getattr(made, name) for name in known):
            raise ValueError("every reward weight is 0, so nothing could be learned")
        return made

    def score(self, parts: Mapping[str, float]) -> float:
        """The reward of a trajectory with this breakdown."""
        gains = ("em", "f1", "sub_em", "format", "retrieval_hit")
        earned = sum(getattr(self, part) * parts[part] for part in gains)
        costs = self.search_cost * parts["searches"]
        costs += self.length_cost * parts["sampled_tokens"] / 1000
        return float(earned + self.structure_reward(parts) - costs)

    def structure_reward(self, parts: Mapping[str, float]) -> float:
        """The format reward of arXiv 2505.15117: of a wrong answer, or off a right one."""
        if parts["em"]:
            return 0.0 if parts["structure"] else -self.structure
        if parts["structure"]:
            return self.structure + self.structured_hit * parts["retrieval_hit"]
        return self.answer_block * parts["answered"]


def format_score(rollout: Mapping[str, Any]) -> float:
    """1.0 if every action was valid and the last one was an answer."""
    return float(rollout["answer"] is not None and rollout["invalid_actions"] == 0)


def structure_score(model_texts: Sequence[str]) -> float:
    """1.0 if the turns are think, search, think, search, ..., think, answer, and nothing else.

    The structure that arXiv 2505.15117 rewards. Every block must be complete and hold something,
    and between them stands white space alone. What the system wrote does not count, so neither
    the chat template nor a failing search engine changes the score.

    Args:
        model_texts: What the model wrote, one text a turn.
    """
    turns = [_STRUCTURED_TURN.fullmatch(text) for text in model_texts]
    wanted = [Tag.SEARCH] * (len(turns) - 1) + [Tag.ANSWER]
    found = [turn["tag"] if turn else None for turn in turns]
    return float(found == wanted)


def retrieval_hit(shown: Iterable[str], golds: Iterable[str]) -> float:
    """1.0 if a gold answer stands, as whole words, in a text that the searches showed."""
    texts = [f" {normalise_answer(text)} " for text in shown]
    wanted = [f" {gold} " for gold in map(normalise_answer, golds) if gold]
    return float(any(gold in text for gold in wanted for text in texts))


def breakdown(rollout: Mapping[str, Any], golds: Sequence[str]) -> dict[str, float]:
    """Every part of the reward of one trajectory, weighted or not.

    Args:
        rollout: The record of the rollout. Its answer is the model's own last one, or None.
        golds: The answers that count as right.
    """
    answer, turns = rollout["answer"], rollout["transcript"]
    shown = [Tag.INFORMATION.unwrap(turn["observation"]) for turn in turns if turn["passages"]]
    return {
        "em": em(answer, golds),
        "f1": f1(answer, golds),
        "sub_em": sub_em(answer, golds),
        "format": format_score(rollout),
        "structure": structure_score([turn["text"] for turn in turns]),
        "answered": float(answer is not None),
        "retrieval_hit": retrieval_hit(shown, golds),
        "searches": float(rollout["searches"]),
        "sampled_tokens": float(rollout["sampled_tokens"]),
    }


def compute_score(
    data_source: str,
    solution_str: str,  # noqa: ARG001 - verl's decoded response, passages and all: never graded
    ground_truth: object,
    extra_info: Mapping[str, Any],
    *,
    reward_router_address: str | None = None,  # noqa: ARG001 - verl's, for a reward model
    reward_model_tokenizer: object = None,  # noqa: ARG001 - verl's, for a reward model
    **weights: float,
) -> dict[str, float | str]:
    """The reward of one row, called by verl by name.

    Args:
        data_source: The name of the row's question set.
        solution_str: Not used.
        ground_truth: The gold answers: a string, a sequence of them, or either under `target`.
        extra_info: The row's own, with the record of the rollout under `rollout`.
        reward_router_address: Not used.
        reward_model_tokenizer: Not used.
        **weights: Fields of `RewardWeights`, checked by ``search-r1 train --check``.

    Returns:
        Always the same keys: `score`, the parts, `acc`, and `record`, the whole trajectory as JSON.

    Raises:
        KeyError: there is no record of the rollout.
        ValueError: there is no gold answer.
    """
    if ROLLOUT not in extra_info:
        raise KeyError(
            f"extra_info has no '{ROLLOUT}', so the model's own answer is not known; set "
            "actor_rollout_ref.rollout.agent.default_agent_loop=search_r1"
        )
    golds = _gold_answers(ground_truth, data_source)
    parts = breakdown(extra_info[ROLLOUT], golds)
    parts = {"score": RewardWeights(**weights).score(parts), **parts}
    record = _record(data_source, golds, extra_info, parts)
    # Of a source that has `acc`, verl counts a trajectory that ended in an error as a wrong one.
    return {**parts, "acc": parts["em"], "record": record}


def _gold_answers(ground_truth: object, data_source: str) -> list[str]:
    if isinstance(ground_truth, Mapping):
        ground_truth = ground_truth.get("target")
    if isinstance(ground_truth, str):
        ground_truth = [ground_truth]
    golds = [str(gold) for gold in ground_truth] if isinstance(ground_truth, Iterable) else []
    if not golds:
        raise ValueError(
            f"a row of {data_source!r} has no gold answer in reward_model.ground_truth; "
            "give it at least one or drop the row"
        )
    return golds


def _record(
    data_source: str,
    golds: list[str],
    extra_info: Mapping[str, Any],
    parts: Mapping[str, float],
) -> str:
    return json.dumps(
        {
            "id": str(extra_info.get("id", "")),
            "data_source": data_source,
            "question": extra_info.get("question", ""),
            "golden_answers": golds,
            "hops": int(extra_info.get("hops") or 0),
            **extra_info[ROLLOUT],
            "reward_parts": parts,
        },
        ensure_ascii=False,
    )
