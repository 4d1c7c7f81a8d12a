"""What the detectors look at, from a step's trajectories, its token tensors and its metrics.

Rows are those of `search_r1.metrics`; a signal that a step does not have is left out.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any, Final

from search_r1.prompts import Tag

Row = Mapping[str, Any]

SIGNAL: Final = "stability/"
"""Before the name of each signal among the metrics."""

NGRAM: Final = 4

_ENTROPIES: Final = ("actor/entropy", "actor/entropy_loss")
"""verl's mean entropy of the trained tokens, with and without a pass for old log-probabilities."""

_WATCHED: Final = ("actor/", "critic/")
"""verl's metrics of losses, gradients, KL and values; none of them is ever rightly NaN."""


def row_signals(rows: Sequence[Row], max_searches: int) -> dict[str, float]:
    """The signals of finished trajectories, named as metrics.

    Args:
        rows: One for each trajectory of the step.
        max_searches: The budget of a trajectory; below 2 there is no load to speak of.
    """
    if not rows:
        return {}
    searches = fmean(row["searches"] for row in rows)
    signals = {
        "searches": searches,
        "search_load": searches / max_searches if max_searches > 1 else None,
        "repetition": _mean(_repetition(row) for row in rows),
        "think_words": _mean(words for row in rows for words in _think_words(row)),
        "rewarded_logprob": _mean_logprob(row for row in rows if row["reward_parts"]["em"] > 0),
        "sampled_logprob": _mean_logprob(rows),
        "equal_groups": _equal_groups(rows),
    }
    return {f"{SIGNAL}{name}": value for name, value in signals.items() if value is not None}


def repetition(text: str) -> float | None:
    """The share of word 4-grams of `text` that stood in it before, in [0, 1].

    None for a text of fewer than two 4-grams.
    """
    words = text.lower().split()
    ngrams = list(zip(*(words[place:] for place in range(NGRAM)), strict=False))
    return 1 - len(set(ngrams)) / len(ngrams) if len(ngrams) > 1 else None


def token_signals(tokens: Mapping[str, Any]) -> dict[str, float]:
    """The signals of a batch's tensors, named as metrics.

    Args:
        tokens: Padded tensors of the shape (trajectories, tokens): ``response_mask``, and of
            ``old_log_probs``, ``ref_log_prob``, ``advantages`` and ``rollout_log_probs`` those
            that the batch has. Without ``rollout_log_probs`` there is no ``ratio_tail``.
    """
    mask = tokens["response_mask"].bool()
    known = {name: values[mask] for name, values in tokens.items() if name != "response_mask"}
    bad = sum(int((~values.isfinite()).sum().item()) for values in known.values())
    signals = {f"{SIGNAL}non_finite_tokens": float(bad)}
    if "rollout_log_probs" in known and known["rollout_log_probs"].numel():
        gap = (known["old_log_probs"] - known["rollout_log_probs"]).abs()
        signals[f"{SIGNAL}ratio_tail"] = (gap > math.log(2)).float().mean().item()
    return signals


def step_signals(metrics: Mapping[str, Any]) -> dict[str, float]:
    """Every signal that the metrics of a step hold so far, by its name in the catalogue."""
    signals = {
        name.removeprefix(SIGNAL): float(value)
        for name, value in metrics.items()
        if name.startswith(SIGNAL)
    }
    bad = sum(not math.isfinite(value) for value in _watched(metrics))
    signals["non_finite"] = signals.get("non_finite_tokens", 0.0) + bad
    entropy = next((metrics[name] for name in _ENTROPIES if name in metrics), None)
    if entropy is None and "sampled_logprob" in signals:
        # The mean surprise of what was sampled estimates the entropy at temperature 1.
        entropy = -signals["sampled_logprob"]
    if entropy is not None:
        signals["entropy"] = float(entropy)
    return signals


def _watched(metrics: Mapping[str, Any]) -> Iterable[float]:
    for name, value in metrics.items():
        if name.startswith(_WATCHED) and isinstance(value, int | float):
            yield value


def _repetition(row: Row) -> float | None:
    # Turn by turn: the same words in a later turn are a habit, in the same turn a loop.
    return _mean(repetition(turn["text"]) for turn in row["transcript"])


def _think_words(row: Row) -> Iterable[int]:
    return (len(Tag.THINK.unwrap(turn["text"]).split()) for turn in row["transcript"])


def _mean_logprob(rows: Iterable[Row]) -> float | None:
    return _mean(row.get("mean_logprob") for row in rows)


def _equal_groups(rows: Sequence[Row]) -> float | None:
    """The share of questions sampled more than once whose rewards are all the same."""
    groups: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        groups[row["id"]].append(row["reward_parts"]["score"])
    compared = [scores for scores in groups.values() if len(scores) > 1]
    return _mean(len(set(scores)) == 1 for scores in compared)


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None
