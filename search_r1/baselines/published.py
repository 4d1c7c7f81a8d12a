"""What the paper reports (arXiv 2503.09516): exact match on the seven question sets, and its mean.

The numbers were recalled, not copied from the paper. Those of the single sets are checked by their
average only: they are kept where their mean is the printed one, and left out where it is not (one
row: IRCoT with 7B).
"""

from collections.abc import Collection
from dataclasses import dataclass
from statistics import fmean
from typing import Final

from data_prep.qa_sets import EVALUATION

SOURCE: Final = "Search-R1 paper, arXiv 2503.09516: EM, average of seven sets"
SETS: Final = tuple(one.name for one in EVALUATION)
"""The columns of the paper's tables, in their order."""
BASES: Final = ("Qwen2.5-7B", "Qwen2.5-3B")
"""The models whose whole table is here."""

_7B, _3B = BASES
_7B_INSTRUCT: Final = f"{_7B}-Instruct"
_3B_INSTRUCT: Final = f"{_3B}-Instruct"


@dataclass(frozen=True, slots=True)
class Published:
    """One row of a published table."""

    method: str
    """The key in `search_r1.evaluation.methods.METHODS` where the method is one of them."""
    model: str
    average_em: float
    """As printed."""
    set_em: tuple[float, ...] | None = None
    """In the order of `SETS`; None if it is not known for certain."""
    source: str = SOURCE

    def em(self, name: str) -> float | None:
        """The exact match on a set, if it is known."""
        return self.set_em[SETS.index(name)] if self.set_em and name in SETS else None

    def average(self, names: Collection[str]) -> float | None:
        """The mean over these sets, if it is known: the printed one for all seven."""
        if set(names) == set(SETS):
            return self.average_em
        values = [value for name in names if (value := self.em(name)) is not None]
        return fmean(values) if values and len(values) == len(names) else None


PUBLISHED: Final = (
    # nq, triviaqa, popqa; hotpotqa, 2wikimultihopqa, musique, bamboogle
    Published("direct", _7B, 0.181, (0.134, 0.408, 0.140, 0.183, 0.250, 0.031, 0.120)),
    Published("cot", _7B, 0.106, (0.048, 0.185, 0.054, 0.092, 0.111, 0.022, 0.232)),
    Published("ircot", _7B, 0.239),
    Published("search_o1", _7B, 0.206, (0.151, 0.443, 0.131, 0.187, 0.176, 0.058, 0.296)),
    Published("rag", _7B, 0.304, (0.349, 0.585, 0.392, 0.299, 0.235, 0.058, 0.208)),
    Published("sft", _7B, 0.207, (0.318, 0.354, 0.121, 0.217, 0.259, 0.066, 0.112)),
    Published("r1", _7B, 0.276, (0.297, 0.539, 0.202, 0.242, 0.273, 0.083, 0.296)),
    Published("r1", _7B_INSTRUCT, 0.271, (0.270, 0.537, 0.199, 0.237, 0.292, 0.072, 0.293)),
    Published("rejection_sampling", _7B, 0.348, (0.360, 0.592, 0.380, 0.331, 0.296, 0.123, 0.355)),
    Published("search_r1_ppo", _7B, 0.431, (0.480, 0.638, 0.457, 0.433, 0.382, 0.196, 0.432)),
    Published(
        *("search_r1_ppo", _7B_INSTRUCT, 0.385),
        (0.393, 0.610, 0.397, 0.370, 0.414, 0.146, 0.368),
    ),
    Published("search_r1_grpo", _7B, 0.350, (0.395, 0.560, 0.388, 0.326, 0.297, 0.125, 0.360)),
    Published(
        *("search_r1_grpo", _7B_INSTRUCT, 0.396),
        (0.429, 0.623, 0.427, 0.386, 0.346, 0.162, 0.400),
    ),
    Published("search_r1_ppo_without_mask", _7B, 0.343),
    Published("search_r1_ppo_top_1", _7B, 0.375),
    Published("search_r1_ppo_top_5", _7B, 0.400),
    Published("search_r1_grpo_group_1", _7B, 0.410),
    Published("search_r1_grpo_group_3", _7B, 0.363),
    Published("direct", _3B, 0.134, (0.106, 0.288, 0.108, 0.149, 0.244, 0.020, 0.024)),
    Published("cot", _3B, 0.015, (0.023, 0.032, 0.005, 0.021, 0.021, 0.002, 0.000)),
    Published("ircot", _3B, 0.181, (0.111, 0.312, 0.200, 0.164, 0.171, 0.067, 0.240)),
    Published("search_o1", _3B, 0.255, (0.238, 0.472, 0.262, 0.221, 0.218, 0.054, 0.320)),
    Published("rag", _3B, 0.270, (0.348, 0.544, 0.387, 0.255, 0.226, 0.047, 0.080)),
    Published("sft", _3B, 0.176, (0.249, 0.292, 0.104, 0.186, 0.248, 0.044, 0.112)),
    Published("r1", _3B, 0.229, (0.226, 0.455, 0.173, 0.201, 0.268, 0.055, 0.224)),
    Published("r1", _3B_INSTRUCT, 0.224, (0.210, 0.449, 0.171, 0.208, 0.275, 0.060, 0.192)),
    Published("rejection_sampling", _3B, 0.265, (0.294, 0.488, 0.332, 0.240, 0.233, 0.059, 0.210)),
    Published("search_r1_ppo", _3B, 0.303, (0.406, 0.587, 0.435, 0.284, 0.273, 0.049, 0.088)),
    Published(
        *("search_r1_ppo", _3B_INSTRUCT, 0.325),
        (0.341, 0.545, 0.378, 0.324, 0.319, 0.103, 0.264),
    ),
    Published("search_r1_grpo", _3B, 0.312, (0.421, 0.583, 0.413, 0.297, 0.274, 0.066, 0.128)),
    Published(
        *("search_r1_grpo", _3B_INSTRUCT, 0.336),
        (0.397, 0.565, 0.391, 0.331, 0.310, 0.124, 0.232),
    ),
    Published("search_r1_ppo_without_mask", _3B, 0.262),
    Published("search_r1_ppo", "Qwen2.5-14B", 0.479),
)
"""The settings are top 3 and a group of 5 where the name does not say otherwise.

The rows without training name the size only, as the paper does: it prompts the instruct model.
ReAct is not among them: the paper does not report it.
"""


def published(method: str, model: str) -> Published | None:
    """The published numbers of a method and a model, if there are any."""
    return next((p for p in PUBLISHED if (p.method, p.model) == (method, model)), None)
