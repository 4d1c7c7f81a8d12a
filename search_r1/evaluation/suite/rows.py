"""The rows of the paper's table, and which model answers each."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from search_r1.baselines.published import BASES, Published, published

SUITES: Final = ("paper",)


@dataclass(frozen=True, slots=True)
class SuiteRow:
    """One row: a method, and a policy of its own if the method trains one."""

    name: str
    """Of its folder, and in `--policy NAME=MODEL`."""
    label: str
    """What a reader calls it."""
    method: str
    """The key in `search_r1.evaluation.methods.METHODS`."""
    paper: str | None = None
    """What `search_r1.baselines.published` calls it; None if the paper does not report it."""
    trained: bool = False
    """Whether it needs a policy; the other rows prompt a model as it is."""
    instruct: bool = False
    """Whether the policy was trained from the instruct model."""

    @property
    def option(self) -> str:
        """What fills the row."""
        return f"--policy {self.name}=MODEL" if self.trained else "MODEL"

    def published(self, base: str) -> Published | None:
        """The paper's numbers for a policy of this size."""
        model = f"{base}-Instruct" if self.instruct else base
        return published(self.paper, model) if self.paper else None


PAPER: Final = (
    SuiteRow("direct", "Direct inference", "direct", "direct"),
    SuiteRow("cot", "CoT", "cot", "cot"),
    SuiteRow("ircot", "IRCoT", "ircot", "ircot"),
    SuiteRow("search_o1", "Search-o1", "search_o1", "search_o1"),
    SuiteRow("rag", "RAG", "rag", "rag"),
    SuiteRow("react", "ReAct", "react"),
    SuiteRow("sft", "SFT", "sft", "sft", trained=True),
    SuiteRow("r1_base", "R1, base", "r1", "r1", trained=True),
    SuiteRow("r1_instruct", "R1, instruct", "r1", "r1", trained=True, instruct=True),
    SuiteRow(
        *("rejection_sampling", "Rejection sampling", "search_r1", "rejection_sampling"),
        trained=True,
    ),
    *(
        SuiteRow(
            f"{name}_{start}",
            f"Search-R1 {algorithm}, {start}",
            *("search_r1", name),
            trained=True,
            instruct=start == "instruct",
        )
        for algorithm, name in (("PPO", "search_r1_ppo"), ("GRPO", "search_r1_grpo"))
        for start in ("base", "instruct")
    ),
)
"""In the order of the paper's tables 2 and 3, with ReAct besides."""


def assign(
    model: Path | None, policies: Sequence[str], rows: Sequence[SuiteRow] = PAPER
) -> dict[str, Path]:
    """The model of each row that has one, in the order of the rows.

    Args:
        model: Of every row without training.
        policies: NAME=MODEL, for a row with training each.
        rows: Of the suite.

    Raises:
        ValueError: a policy is given in another form, of another row or twice, or nothing is given.
    """
    given = _policies(policies, {row.name: row for row in rows})
    if model:
        given |= {row.name: model for row in rows if not row.trained}
    if not given:
        raise ValueError(
            "model: none is given; give a MODEL for the rows without training, or --policy "
            "NAME=MODEL for one with it"
        )
    return {row.name: given[row.name] for row in rows if row.name in given}


def paper_base(models: Iterable[Path]) -> str:
    """The size whose published numbers fit: the one that a model is called after, or 7B."""
    names = [str(path.resolve()).casefold() for path in models]
    called = (base for base in BASES if any(base.casefold() in name for name in names))
    return next(called, BASES[0])


def _policies(policies: Sequence[str], rows: Mapping[str, SuiteRow]) -> dict[str, Path]:
    given: dict[str, Path] = {}
    for text in policies:
        name, equals, folder = text.partition("=")
        row = rows.get(name)
        if not (equals and folder and row and row.trained):
            names = ", ".join(row.name for row in rows.values() if row.trained)
            raise ValueError(f"policy: {text!r} must be NAME=MODEL, and NAME one of {names}")
        if name in given:
            raise ValueError(f"policy: {name} is given twice; give each row one policy")
        given[name] = Path(folder)
    return given
