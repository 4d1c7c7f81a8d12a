"""Curves over the steps as SVG for a page: the page's own fonts and colours, light or dark."""

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Final

import matplotlib as mpl
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from search_r1.run_report.metrics_log import MetricsLog
from search_r1.run_report.runs import ReportRun

COLOURS: Final = 6
"""How many runs have a colour of their own; page.css defines them as --run-0, --run-1, ..."""
DASHES: Final = ("", "6 3", "2 2")
"""The lines of the first `COLOURS` runs, of the next, and so on, as SVG's stroke-dasharray."""

MANY_STEPS: Final = 100
"""A longer curve is drawn thinly, with its running mean over it."""
WINDOW: Final = 15
"""Values in a running mean."""

Curve = Sequence[tuple[int, float]]
"""Step and value."""

_MARKED_STEPS: Final = 30
_INK: Final = "#010203"
_NO_METADATA: Final = dict.fromkeys(("Creator", "Date", "Format", "Type"))
_STYLE: Final[dict[Any, Any]] = {
    "svg.fonttype": "none",
    "font.size": 9,
    "axes.edgecolor": _INK,
    "axes.labelcolor": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "grid.color": _INK,
    "grid.alpha": 0.12,
    "axes.grid": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


@dataclass(frozen=True, slots=True)
class Plot:
    """What one plot shows: a metric, under the first of these names that a step has."""

    title: str
    names: tuple[str, ...]
    rate: bool = False
    """The values are shares, so the axis shows 0 to 1."""


PLOTS: Final = (
    Plot("Training reward (exact match)", ("reward/em",), rate=True),
    Plot("Validation, exact match", ("val/reward/em",), rate=True),
    Plot("Valid searches per question", ("search/searches_per_question",)),
    Plot("Response length, sampled tokens", ("tokens/sampled",)),
    Plot("Response length, inserted tokens", ("tokens/inserted",)),
    Plot("Entropy", ("actor/entropy",)),
    Plot("KL to the reference", ("actor/kl_loss", "actor/reward_kl_penalty")),
    Plot("Gradient norm", ("actor/grad_norm",)),
    Plot("Seconds per step", ("timing_s/step", "perf/time_per_step")),
)


@dataclass(frozen=True, slots=True)
class Drawing:
    """A plot to put into a page."""

    title: str
    svg: Markup


def draw_all(runs: Sequence[ReportRun]) -> list[Drawing]:
    """Every plot of which a run has a value."""
    return draw_lines(PLOTS, [[run.log] for run in runs])


def draw_lines(plots: Sequence[Plot], lines: Sequence[Sequence[MetricsLog]]) -> list[Drawing]:
    """Every plot of which a line has a value.

    A line of several runs, such as seeds, is their mean wherever all have a value, on a band from
    the least to the greatest.
    """
    drawings = []
    for plot in plots:
        curves = [[log.curve(plot.names) for log in logs] for logs in lines]
        if any(any(several) for several in curves):
            drawings.append(Drawing(plot.title, _draw(plot, curves)))
    return drawings


def run_colour(number: int) -> str:
    """The colour of the run at this place, as CSS."""
    return f"var(--run-{number % COLOURS})"


def run_dash(number: int) -> str:
    """The line of the run at this place, as SVG's stroke-dasharray."""
    return DASHES[number // COLOURS % len(DASHES)]


def smoothed(curve: Curve) -> Curve:
    """The mean of each value and those around it, `WINDOW` in all; fewer at the two ends."""
    half = WINDOW // 2
    around = [curve[max(i - half, 0) : i + half + 1] for i in range(len(curve))]
    return [
        (step, fmean(value for _, value in near))
        for (step, _), near in zip(curve, around, strict=True)
    ]


def _draw(plot: Plot, lines: Sequence[Sequence[Curve]]) -> Markup:
    with mpl.rc_context(_STYLE | {"svg.hashsalt": plot.title}):
        figure = Figure(figsize=(4.6, 2.5), layout="constrained")
        axes = figure.add_subplot()
        for number, curves in enumerate(lines):
            if len(curves) > 1:
                _add_band(axes, number, curves)
            _add_curve(axes, number, mean_curve(curves))
        axes.set_xlabel("step")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        if plot.rate:
            axes.set_ylim(-0.03, 1.03)
        return _for_page(_to_svg(figure))


def mean_curve(curves: Sequence[Curve]) -> Curve:
    """The mean of curves at each step that all of them have."""
    return [(step, fmean(values)) for step, values in _together(curves)]


def _together(curves: Sequence[Curve]) -> list[tuple[int, list[float]]]:
    known = [dict(curve) for curve in curves]
    shared = set(known[0]).intersection(*known[1:]) if known else ()
    return [(step, [values[step] for values in known]) for step in sorted(shared)]


def _add_band(axes: Axes, number: int, curves: Sequence[Curve]) -> None:
    together = _together(curves)
    steps = [step for step, _ in together]
    least, greatest = ([edge(values) for _, values in together] for edge in (min, max))
    axes.fill_between(steps, least, greatest, color=_stand_in(number), alpha=0.15, linewidth=0)


def _add_curve(axes: Axes, number: int, curve: Curve) -> None:
    style: dict[str, Any] = {"color": _stand_in(number), "linewidth": 1.6}
    if dash := run_dash(number):
        style["dashes"] = [float(length) for length in dash.split()]
    if len(curve) > MANY_STEPS:
        axes.plot(*_columns(curve), color=_stand_in(number), linewidth=0.6, alpha=0.3)
        curve = smoothed(curve)
    elif len(curve) <= _MARKED_STEPS:
        style |= {"marker": "o", "markersize": 3}
    axes.plot(*_columns(curve), **style)


def _columns(curve: Curve) -> tuple[list[int], list[float]]:
    return [step for step, _ in curve], [value for _, value in curve]


def _stand_in(number: int) -> str:
    """A colour for matplotlib, which knows no variables; `_for_page` puts the page's there."""
    return f"#0102f{number % COLOURS}"


def _to_svg(figure: Figure) -> str:
    target = io.StringIO()
    figure.savefig(target, format="svg", metadata=_NO_METADATA, transparent=True)
    return target.getvalue()


def _for_page(svg: str) -> Markup:
    """The SVG element alone, without names that would be there twice in a page of many."""
    svg = svg[svg.index("<svg") :].replace(_INK, "currentColor")
    svg = re.sub(r"#0102f(\d)", r"var(--run-\1)", svg)
    svg = re.sub(r' id="[a-zA-Z0-9.]+_\d+"', "", svg)
    return Markup(svg)  # noqa: S704 - matplotlib made it of numbers
