from pathlib import Path
from typing import Any

import pytest

from search_r1.baselines.published import SETS
from search_r1.evaluation.scores import Scores, score
from search_r1.evaluation.suite.result import RowResult, SuiteResult
from search_r1.evaluation.suite.rows import PAPER
from search_r1.evaluation.suite.table import suite_tables

ROW = {row.name: row for row in PAPER}
MODEL = Path("model")


def answer(source: str, em: float) -> dict[str, Any]:
    counts = ("hops", "turns", "searches", "valid_actions", "sampled_tokens", "inserted_tokens")
    parts = {"em": em, "f1": em, "sub_em": 1.0, "retrieval_hit": 0.5, "score": em}
    seconds = {"generate_seconds": 0.5, "search_seconds": 0.25}
    row = {"data_source": source, "failed_searches": 0, "stop_reason": "answered"}
    return row | dict.fromkeys(counts, 1) | seconds | {"reward_parts": parts}


def right(**sets: float) -> Scores:
    """Two questions a set, with this exact match each."""
    return score([answer(name, em) for name, em in sets.items() for _ in range(2)], 0)


def result(*rows: RowResult, **sets: int) -> SuiteResult:
    return SuiteResult("Qwen2.5-7B", sets, rows)


def test_the_table_is_the_papers_with_our_rows_above_its_own() -> None:
    shown = result(
        RowResult(ROW["rag"], MODEL, right(nq=1.0, popqa=0.0)),
        RowResult(ROW["react"], MODEL, None),
        RowResult(ROW["sft"], None, None),
        nq=2,
        popqa=14_267,
    )
    assert suite_tables(shown) == (
        "Exact match with 95 % bootstrap intervals; the average is the mean over the sets. Below "
        "each row what the paper reports (Search-R1 paper, arXiv 2503.09516: EM, average of seven "
        "sets).\n"
        "\n"
        "| method | nq (n=2) | popqa (n=14,267) | average |\n"
        "| --- | ---: | ---: | ---: |\n"
        "| RAG | 1.000 [1.000, 1.000] | 0.000 [0.000, 0.000] | 0.500 [0.500, 0.500] |\n"
        "| *paper, Qwen2.5-7B* | 0.349 | 0.392 | 0.370 |\n"
        "| ReAct (not finished) | - | - | - |\n"
        "| SFT (missing: give `--policy sft=MODEL`) | - | - | - |\n"
        "| *paper, Qwen2.5-7B* | 0.318 | 0.121 | 0.220 |\n"
        "\n"
        "* Samples, where the paper answers whole sets: nq 2 of 3,610.\n"
        "* Not the seven sets of the paper: its average is the one over the sets shown.\n"
        "\n"
        "| averages | EM | F1 | sub-EM | hit rate | searches | failed searches | valid actions | "
        "tokens sampled | tokens inserted | s generating | s searching |\n"
        f"| --- | {' | '.join(['---:'] * 11)} |\n"
        "| RAG | 0.500 [0.500, 0.500] | 0.500 [0.500, 0.500] | 1.000 [1.000, 1.000] | 0.500 | "
        "1.000 | 0.000 | 1.000 | 1.000 | 1.000 | 0.500 | 0.250 |"
    )


def test_the_whole_sets_need_no_notes() -> None:
    from data_prep.qa_sets import EVALUATION

    whole = {one.name: one.rows for one in EVALUATION}
    text = suite_tables(result(RowResult(ROW["ircot"], None, None), **whole))
    assert "*" not in text.replace("*paper", "").replace("7B*", "")
    assert "| *paper, Qwen2.5-7B* | - | - | - | - | - | - | - | 0.239 |" in text
    assert text.count("\n\n") == 1


def test_sets_of_ones_own_have_no_published_number() -> None:
    text = suite_tables(result(RowResult(ROW["rag"], MODEL, right(world=1.0)), world=2))
    assert "| *paper, Qwen2.5-7B* | - | - |" in text
    assert "Samples" not in text


@pytest.mark.parametrize("name", ROW)
def test_every_row_is_stored_with_the_papers(name: str) -> None:
    stored = RowResult(ROW[name], None, None).to_json("Qwen2.5-3B")
    assert (stored["status"], stored["model"], stored["scores"]) == ("missing", None, None)
    assert stored["option"].endswith("MODEL")
    assert (stored["published"] is None) == (name == "react")
    if stored["published"]:
        assert tuple(stored["published"]["em"]) == SETS
