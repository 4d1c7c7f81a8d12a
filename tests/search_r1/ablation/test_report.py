import json
import xml.etree.ElementTree as ET
from datetime import datetime

import pytest

from search_r1.ablation.record import Ablation, exit_code, forget_end
from search_r1.ablation.report import DATA, PAGE, TEXT, table_of, write_report
from search_r1.ablation.results import EM, read_results

MADE = datetime(2026, 1, 2, 3, 4)


def test_final_and_best_are_of_validations_after_training(made_ablation: Ablation) -> None:
    on, off = read_results(made_ablation)["mask"]
    final, best = on.final(EM), on.best_em
    assert final is not None
    assert best is not None
    assert final.values == (0.25, 0.75)  # at step 4
    assert best.values == (0.5, 0.75)
    assert final.mean == 0.5
    assert final.deviation == pytest.approx(0.125**0.5)  # 0.25 off on each side, one degree
    assert off.final(EM) is off.best_em is None


def test_numbers_are_of_finished_runs_while_there_is_one(made_ablation: Ablation) -> None:
    forget_end(made_ablation.folder_of("on-2"))
    [on, _] = read_results(made_ablation)["mask"]
    final = on.final(EM)
    assert final is not None
    assert final.values == (0.25,)
    forget_end(made_ablation.folder_of("on-1"))
    [on, _] = read_results(made_ablation)["mask"]
    assert [run.name for run in on.counted] == ["on-1", "on-2"]


def test_a_table_says_how_far_the_runs_are_and_what_the_paper_has(made_ablation: Ablation) -> None:
    results = read_results(made_ablation)
    on, off = table_of(results["mask"]).rows
    paper = "0.431 (Qwen2.5-7B)"
    assert on[:5] == ("on", "2 finished", "0.500 ± 0.354", "0.625 ± 0.177", paper)
    assert on[-2:] == ("4", "1,234")
    paper = "0.343 (Qwen2.5-7B)"
    assert off[:5] == ("off", "1 failed at step 1 of 4", "-", "-", paper)
    [shared] = table_of(results["top_k"]).rows
    assert shared[3] == "0.500"  # of one seed there is no spread


def test_a_run_without_an_end_is_unfinished_and_one_without_a_folder_not_started(
    made_ablation: Ablation,
) -> None:
    forget_end(made_ablation.folder_of("off-1"))
    assert exit_code(made_ablation.folder_of("off-1")) is None
    [_, off] = read_results(made_ablation)["mask"]
    assert off.runs[0].state == "unfinished at step 1 of 4"
    made_ablation.folder_of("off-1").rename(made_ablation.folder / "away")
    [_, off] = read_results(made_ablation)["mask"]
    assert off.runs[0].state == "not started"


def test_the_page_stands_alone_and_shows_every_axis(made_ablation: Ablation) -> None:
    write_report(made_ablation, MADE)
    page = (made_ablation.folder / PAGE).read_text()
    assert "search-r1 ablate ppo &lt;b&gt;" in page
    for part in ("<h2>mask</h2>", "<h2>top_k</h2>", "off-1: failed at step 1 of 4", "0.343"):
        assert part in page
    assert "<script" not in page
    assert "src=" not in page
    svgs = [f"<svg{part.partition('</svg>')[0]}</svg>" for part in page.split("<svg")[1:]]
    drawn = [ET.fromstring(svg) for svg in svgs if "matplotlib" in svg or len(svg) > 1000]
    assert len(drawn) >= 4


def test_markdown_and_json_say_the_same(made_ablation: Ablation) -> None:
    write_report(made_ablation, MADE)
    text = (made_ablation.folder / TEXT).read_text()
    assert "| on | 2 finished | 0.500 ± 0.354 | 0.625 ± 0.177 | 0.431 (Qwen2.5-7B) |" in text
    data = json.loads((made_ablation.folder / DATA).read_text())
    on, off = data["axes"]["mask"]
    assert on["final"]["EM"]["values"] == [0.25, 0.75]
    assert on["final"]["masked share"]["mean"] == 0.75
    assert on["runs"][0]["curves"][EM] == [[0, 0.9], [2, 0.5], [4, 0.25]]
    assert on["published"] == {"em": 0.431, "model": "Qwen2.5-7B"}
    assert off["final"]["EM"] is None
    assert off["runs"][0]["exit_code"] == 1
