"""Curves of the experiments, from the metrics that their runs logged, as one PNG."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from search_r1.run_report.metrics_log import read_metrics

PANELS: Final = {
    "val/reward/em": "held-out exact match",
    "reward/em": "exact match in training",
    "search/searches_per_question": "searches a question",
    "tokens/sampled": "sampled tokens a trajectory",
    "actor/entropy": "entropy, nats a token",
}
"""Metric -> title of its panel."""
_TABLED: Final = ("val/reward/em", "val/search/searches_per_question")
_BAND: Final = 0.2

Curve = list[tuple[int, float]]


def curves(runs: Sequence[Path], metric: str) -> list[Curve]:
    """A metric of each run, by step."""
    return [read_metrics(run).curve([metric]) for run in runs]


def mean_curve(curves: Sequence[Curve]) -> tuple[list[int], list[float], list[float], list[float]]:
    """Steps that all curves have, and there their mean, least and greatest values."""
    tables = [dict(curve) for curve in curves if curve]
    steps = sorted(set.intersection(*map(set, tables))) if tables else []
    values = [[table[step] for table in tables] for step in steps]
    means = [sum(row) / len(row) for row in values]
    return steps, means, [min(row) for row in values], [max(row) for row in values]


def draw(experiments: Mapping[str, Sequence[Path]], output: Path) -> None:
    """One panel a metric, one line an experiment: the mean of its seeds, and their range."""
    figure = Figure(figsize=(4 * len(PANELS), 3.6), layout="constrained")
    for axes, (metric, title) in zip(figure.subplots(1, len(PANELS)), PANELS.items(), strict=True):
        for name, runs in experiments.items():
            _line(axes, name, curves(runs, metric))
        axes.set(title=title, xlabel="step")
        axes.grid(alpha=_BAND)
    figure.axes[0].legend(fontsize="small")
    figure.savefig(output, dpi=110)


def _line(axes: Axes, name: str, curves: Sequence[Curve]) -> None:
    steps, means, least, greatest = mean_curve(curves)
    if not steps:
        return
    [line] = axes.plot(steps, means, label=f"{name} (n={len(curves)})", linewidth=1.4)
    axes.fill_between(steps, least, greatest, color=line.get_color(), alpha=_BAND)


def table(experiments: Mapping[str, Sequence[Path]]) -> str:
    """Markdown: the first and the last validation of each experiment, over its seeds."""
    head = "| experiment | seeds | EM before | EM after | searches before | after | steps |"
    lines = [head, "|---|---|---|---|---|---|---|"]
    for name, runs in experiments.items():
        em, searches = (
            [curve for curve in curves(runs, metric) if len(curve) > 1] for metric in _TABLED
        )
        if not em:
            continue
        cells = [spread(values) for both in (em, searches) for values in _first_and_last(both)]
        steps = max(step for curve in em for step, _ in curve)
        lines.append(f"| {name} | {len(em)} | {' | '.join(cells)} | {steps} |")
    return "\n".join(lines)


def spread(values: Sequence[float]) -> str:
    """Mean, and sample standard deviation of several."""
    deviation = f" ± {stdev(values):.3f}" if len(values) > 1 else ""
    return f"{fmean(values):.3f}{deviation}"


def _first_and_last(curves: Sequence[Curve]) -> tuple[list[float], list[float]]:
    return [curve[0][1] for curve in curves], [curve[-1][1] for curve in curves]
