"""The published number of a variant, by what its config deviates in from the paper's method."""

from collections.abc import Mapping
from typing import Final

from search_r1.baselines.published import Published, published

_ALGORITHMS: Final = {"gae": "search_r1_ppo", "grpo": "search_r1_grpo"}
_MODEL: Final = "Qwen2.5-7B"
"""Whose number stands beside that of a model that was not published: another model, as it says."""
_TOP_K: Final = "3"
_GROUP: Final = "5"


def published_number(settings: Mapping[str, str]) -> Published | None:
    """The published number of a run's settings; None if the paper has none.

    Args:
        settings: The run's fields as text, see `search_r1.run_report.settings`.
    """
    method = published_method(settings)
    if method is None:
        return None
    model = settings.get("actor_rollout_ref.model.path", "").rstrip("/").rpartition("/")[2]
    return published(method, model) or published(method, _MODEL)


def published_method(settings: Mapping[str, str]) -> str | None:
    """The name of the method in `search_r1.baselines.published`; None if it cannot be there."""
    base = _ALGORITHMS.get(settings.get("algorithm.adv_estimator", ""))
    if base is None:
        return None
    top_k = settings.get("search.top_k", _TOP_K)
    group = settings.get("actor_rollout_ref.rollout.n", _GROUP)
    deviations = []
    if settings.get("search.mask_retrieved", "True") == "False":
        deviations.append("without_mask")
    if top_k != _TOP_K:
        deviations.append(f"top_{top_k}")
    if base == _ALGORITHMS["grpo"] and group != _GROUP:
        deviations.append(f"group_{group}")
    return "_".join([base, *deviations])
