"""What the paper reports (arXiv 2503.09516): exact match, the mean of the seven question sets."""

from dataclasses import dataclass

SOURCE = "Search-R1 paper, arXiv 2503.09516: EM, average of seven sets"
_7B = "Qwen2.5-7B"
_7B_INSTRUCT = "Qwen2.5-7B-Instruct"


@dataclass(frozen=True, slots=True)
class Published:
    """One published number."""

    method: str
    """The key in `search_r1.baselines.METHODS` where the method is one of them."""
    model: str
    average_em: float
    source: str = SOURCE


PUBLISHED = (
    Published("direct", _7B, 0.181),
    Published("cot", _7B, 0.106),
    Published("rag", _7B, 0.304),
    Published("ircot", _7B, 0.239),
    Published("search_o1", _7B, 0.206),
    Published("sft", _7B, 0.207),
    Published("r1", _7B, 0.276),
    Published("rejection_sampling", _7B, 0.348),
    Published("search_r1_ppo", _7B, 0.431),
    Published("search_r1_ppo", _7B_INSTRUCT, 0.385),
    Published("search_r1_grpo", _7B, 0.350),
    Published("search_r1_grpo", _7B_INSTRUCT, 0.396),
    Published("search_r1_ppo_without_mask", _7B, 0.343),
    Published("search_r1_ppo_top_1", _7B, 0.375),
    Published("search_r1_ppo_top_5", _7B, 0.400),
    Published("search_r1_grpo_group_1", _7B, 0.410),
    Published("search_r1_grpo_group_3", _7B, 0.363),
    Published("search_r1_ppo", "Qwen2.5-3B", 0.303),
    Published("search_r1_ppo_without_mask", "Qwen2.5-3B", 0.262),
    Published("search_r1_ppo", "Qwen2.5-14B", 0.479),
)
"""The settings are top 3 and a group of 5 where the name does not say otherwise.

ReAct is not among them: the paper does not report it.
"""


def published(method: str, model: str) -> Published | None:
    """The published number of a method and a model, if there is one."""
    return next((p for p in PUBLISHED if (p.method, p.model) == (method, model)), None)
