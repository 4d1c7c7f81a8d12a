"""An ablation of the mask on real verl, Ray, FSDP2 and vLLM: two runs of two steps each."""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from search_r1.ablation.report import DATA, PAGE
from search_r1.ablation.results import EM

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Swept:
    """A finished ablation."""

    folder: Path
    said: str

    def metrics(self, run: str) -> dict[str, Any]:
        """What a run logged last."""
        [file] = (self.folder / "runs" / run / "metrics").glob("*.jsonl")
        return {k: v for line in file.open() for k, v in json.loads(line)["data"].items()}

    def trajectories(self, run: str) -> list[dict[str, Any]]:
        lines = (self.folder / "runs" / run / "rollouts" / "1.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def swept(ablation: Path) -> Swept:
    return Swept(ablation, ablation.with_suffix(".log").read_text())


def test_both_runs_end_in_one_report(swept: Swept) -> None:
    assert "| off | 1 finished |" in swept.said
    assert "| on | 1 finished |" in swept.said
    data = json.loads((swept.folder / DATA).read_text())
    for variant in data["axes"]["mask"]:
        logged = swept.metrics(f"mask-{variant['value']}")
        assert variant["final"]["EM"]["values"] == [logged[EM]]
        assert [run["questions"] for run in variant["runs"]] == [8]
    assert (swept.folder / PAGE).read_text().count("<figure") == 6


def test_without_the_mask_passages_are_trained_and_messages_are_not(swept: Swept) -> None:
    for row in swept.trajectories("mask-off"):
        messages = [turn for turn in row["transcript"] if not turn["searched"]]
        assert row["masked_tokens"] == sum(turn["inserted_tokens"] for turn in messages)
    assert all(
        row["masked_tokens"] == row["inserted_tokens"] for row in swept.trajectories("mask-on")
    )
    on, off = (swept.metrics(f"mask-{value}") for value in ("on", "off"))
    assert on["search/searches_per_question"] > 0
    assert off["tokens/inserted"] > off["tokens/masked"]
    assert off["tokens/masked_share"] < on["tokens/masked_share"]


def test_every_run_learns_and_only_the_masked_one_compares_engine_and_trainer(
    swept: Swept,
) -> None:
    for value, compares in (("on", True), ("off", False)):
        metrics = swept.metrics(f"mask-{value}")
        assert math.isfinite(metrics["actor/grad_norm"])
        assert metrics["actor/grad_norm"] > 0
        assert ("training/rollout_probs_diff_mean" in metrics) is compares


def test_the_report_can_be_written_again(swept: Swept, do: Callable[..., str]) -> None:
    (swept.folder / PAGE).unlink()
    said = do("ablate", "--report-only", swept.folder)
    assert "| off | 1 finished |" in said
    assert (swept.folder / PAGE).is_file()
