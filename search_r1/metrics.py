"""Numbers about a batch of finished trajectories, for training steps and validations alike.

A row is what the agent loop and the reward leave behind for one trajectory (see
`search_r1.agent_loop.record` and `search_r1.rewards.compute_score`).
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from search_r1.stability.alarms import firing_text

Row = Mapping[str, Any]

_MARK = "search-r1 |"

# verl's timers, by what a person asks about.
_PHASES = {
    "rollout": ("gen",),
    "log-probs": ("old_log_prob", "ref"),
    "values": ("values",),
    "update": ("update_critic", "update_actor"),
    "weights": ("update_weights",),
    "step": ("step",),
}

_MEANS = {
    "search/searches_per_question": "searches",
    "tokens/sampled": "sampled_tokens",
    "tokens/inserted": "inserted_tokens",
    "time/generate_s": "generate_seconds",
    "time/search_s": "search_seconds",
}


def summarise(rows: Sequence[Row]) -> dict[str, float]:
    """The metrics of a batch; an empty batch has none.

    Returns:
        Means per trajectory: ``reward/*`` per part of the reward, ``em/N_hop``, ``search/*``,
        ``tokens/*``, ``time/*`` in seconds, and ``stop/*``, the share of each stop reason.
    """
    if not rows:
        return {}
    means = {name: fmean(row[field] for row in rows) for name, field in _MEANS.items()}
    means["tokens/masked"] = fmean(_masked_tokens(row) for row in rows)
    return (
        means
        | _rates(rows)
        | _retries(rows)
        | _reward_parts(rows)
        | _em_by_hops(rows)
        | _stop_reasons(rows)
    )


def failed_search_rate(rows: Sequence[Row]) -> float:
    """The share of searches that failed for good, in [0, 1]."""
    return _share(rows, "failed_searches", "searches")


def number_text(value: float | None) -> str:
    """A metric as every table shows it; "-" if there is none."""
    return "-" if value is None else f"{value:.3f}" if value < 10 else f"{value:.1f}"


def step_line(step: int, metrics: Mapping[str, Any]) -> str:
    """One line about a training step, for people: reward, search, length, seconds by phase."""
    seconds = {
        phase: sum(metrics.get(f"timing_s/{name}", 0.0) for name in names)
        for phase, names in _PHASES.items()
    }
    times = ", ".join(f"{phase} {value:.0f}" for phase, value in seconds.items() if value)
    alarms = firing_text(metrics)
    warning = f"; ALARM {alarms}" if alarms else ""
    return f"{_MARK} step {step}: {_about_search(metrics)}; seconds: {times}{warning}"


def validation_line(step: int, count: int, metrics: Mapping[str, Any]) -> str:
    """One line about a validation, for people."""
    hops = ", ".join(f"{name} {value:.3f}" for name, value in metrics.items() if "_hop" in name)
    return f"{_MARK} validation at step {step}, n={count}: {_about_search(metrics)} {hops}"


def _about_search(metrics: Mapping[str, Any]) -> str:
    return (
        f"EM {metrics['reward/em']:.3f}, "
        f"searches {metrics['search/searches_per_question']:.2f}, "
        f"valid actions {metrics['search/valid_action_rate']:.0%}, "
        f"tokens {metrics['tokens/sampled']:.0f} sampled, "
        f"{metrics['tokens/inserted']:.0f} inserted"
    )


def _rates(rows: Sequence[Row]) -> dict[str, float]:
    inserted, sampled = _total(rows, "inserted_tokens"), _total(rows, "sampled_tokens")
    return {
        "search/valid_action_rate": _share(rows, "valid_actions", "turns"),
        "search/failed_search_rate": failed_search_rate(rows),
        "tokens/response": (inserted + sampled) / len(rows),
        "tokens/masked_share": sum(map(_masked_tokens, rows)) / max(inserted + sampled, 1.0),
    }


def _masked_tokens(row: Row) -> int:
    # Rows stored before search.mask_retrieved existed have no count: all inserted was masked.
    return int(row.get("masked_tokens", row["inserted_tokens"]))


def _retries(rows: Sequence[Row]) -> dict[str, float]:
    # Counted while training only, where the search client is shared by many trajectories.
    if not all("search_retries" in row for row in rows):
        return {}
    return {"search/retries_per_search": _share(rows, "search_retries", "searches")}


def _total(rows: Sequence[Row], field: str) -> float:
    return float(sum(row[field] for row in rows))


def _share(rows: Sequence[Row], part: str, whole: str) -> float:
    return _total(rows, part) / max(_total(rows, whole), 1.0)


def _reward_parts(rows: Sequence[Row]) -> dict[str, float]:
    parts = rows[0]["reward_parts"]
    return {f"reward/{part}": fmean(row["reward_parts"][part] for row in rows) for part in parts}


def _em_by_hops(rows: Sequence[Row]) -> dict[str, float]:
    em: dict[int, list[float]] = defaultdict(list)
    for row in rows:
        if row["hops"]:
            em[row["hops"]].append(row["reward_parts"]["em"])
    return {f"em/{hops}_hop": fmean(values) for hops, values in sorted(em.items())}


def _stop_reasons(rows: Sequence[Row]) -> dict[str, float]:
    counts = Counter(row["stop_reason"] for row in rows)
    return {f"stop/{reason}": count / len(rows) for reason, count in sorted(counts.items())}
