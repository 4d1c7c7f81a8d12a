import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from search_r1.run_report.metrics_log import MetricsLog
from search_r1.run_report.plots import (
    COLOURS,
    MANY_STEPS,
    PLOTS,
    draw_all,
    draw_lines,
    mean_curve,
    run_colour,
    run_dash,
    smoothed,
)
from search_r1.run_report.runs import ReportRun
from search_r1.run_report.samples import Samples


def run(steps: dict[int, dict[str, float]]) -> ReportRun:
    return ReportRun("r", Path("r"), MetricsLog(steps), {}, (), Samples())


def test_only_what_a_run_has_is_drawn() -> None:
    runs = [run({1: {"reward/em": 0.5}}), run({2: {"actor/entropy": 1.0}})]
    assert [one.title for one in draw_all(runs)] == ["Training reward (exact match)", "Entropy"]
    assert draw_all([run({1: {"other": 1.0}})]) == []


@pytest.mark.parametrize("name", ["actor/kl_loss", "actor/reward_kl_penalty"])
def test_kl_has_a_name_in_the_loss_and_one_in_the_reward(name: str) -> None:
    assert [one.title for one in draw_all([run({1: {name: 0.1}})])] == ["KL to the reference"]


def test_a_drawing_is_one_svg_in_the_colours_of_the_page() -> None:
    runs = [run({step: {"reward/em": step / 9} for step in range(9)}) for _ in range(7)]
    [drawing] = draw_all(runs)
    assert ET.fromstring(drawing.svg).tag.endswith("svg")
    assert all(f"var(--run-{number})" in drawing.svg for number in range(COLOURS))
    assert "currentColor" in drawing.svg
    assert "#0102" not in drawing.svg
    assert "<metadata" not in drawing.svg
    assert ' id="figure_1' not in drawing.svg


def test_a_long_curve_is_drawn_with_its_mean() -> None:
    def lines(length: int) -> int:
        [drawing] = draw_all([run({step: {"reward/em": 0.5} for step in range(length)})])
        return str(drawing.svg).count("stroke: var(--run-0)")

    assert (lines(MANY_STEPS), lines(MANY_STEPS + 1)) == (1, 2)


def test_a_mean_keeps_steps_and_straight_lines() -> None:
    line = [(step, float(step)) for step in range(0, 40, 2)]
    assert smoothed(line)[7:-7] == line[7:-7]
    assert smoothed([(1, 0.0), (2, 1.0)]) == [(1, 0.5), (2, 0.5)]
    assert smoothed([]) == []


def test_drawings_are_the_same_each_time() -> None:
    runs = [run({1: {"reward/em": 0.5}, 2: {"reward/em": 0.7}})]
    assert draw_all(runs) == draw_all(runs)


def test_runs_beyond_the_colours_have_another_line() -> None:
    looks = {(run_colour(number), run_dash(number)) for number in range(COLOURS * 3)}
    assert len(looks) == COLOURS * 3


def test_every_colour_is_defined_for_light_and_dark() -> None:
    css = Path("search_r1/run_report/templates/page.css")
    text = (Path(__file__).parents[3] / css).read_text()
    assert all(text.count(f"--run-{number}:") == 2 for number in range(COLOURS))


def test_titles_are_unique() -> None:
    assert len({plot.title for plot in PLOTS}) == len(PLOTS)


def test_several_runs_are_one_line_of_means_where_all_have_a_value() -> None:
    curves = [[(1, 0.0), (2, 1.0), (3, 5.0)], [(2, 0.5), (1, 1.0)]]
    assert mean_curve(curves) == [(1, 0.5), (2, 0.75)]
    assert mean_curve([]) == []


def test_a_line_of_several_runs_lies_on_a_band() -> None:
    one, other = (MetricsLog({s: {"reward/em": s / d} for s in (1, 2)}) for d in (4, 8))
    [alone] = draw_lines(PLOTS, [[one]])
    [both] = draw_lines(PLOTS, [[one, other], []])
    assert "fill: var(--run-0); fill-opacity: 0.15" in both.svg
    assert "fill-opacity: 0.15" not in alone.svg
    assert "var(--run-1)" not in both.svg
