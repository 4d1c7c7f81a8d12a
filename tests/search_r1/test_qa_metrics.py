import pytest
from hypothesis import given
from hypothesis import strategies as st

from search_r1.qa_metrics import em, f1, normalise_answer, sub_em


@pytest.mark.parametrize(
    ("text", "normalised"),
    [
        ("A$AP Rocky", "aap rocky"),
        ("1,000", "1000"),
        ("co-founder", "cofounder"),
        ("The U.S.A.", "usa"),
        ("“The Who”", "“ who”"),
        ("Beyoncé", "beyoncé"),
        ("twenty-one Pilots", "twentyone pilots"),
        ("  a  band\tof\nbrothers ", "band of brothers"),
        ("The", ""),
        ("another", "another"),
        ("", ""),
    ],
)
def test_normalisation(text: str, normalised: str) -> None:
    assert normalise_answer(text) == normalised


@given(st.text())
def test_normalising_twice_changes_nothing_more(text: str) -> None:
    once = normalise_answer(text)
    assert normalise_answer(once) == once


def test_em_takes_any_gold() -> None:
    assert em("the Beatles!", ["Rolling Stones", "Beatles"]) == 1.0
    assert em("Beatles band", ["Beatles"]) == 0.0
    assert em(None, ["Beatles"]) == 0.0
    assert em("", ["Beatles"]) == 0.0


def test_sub_em_takes_a_gold_inside_the_prediction() -> None:
    assert sub_em("It was Ada Lovelace in 1843", ["ada lovelace"]) == 1.0
    assert sub_em("Ada", ["Ada Lovelace"]) == 0.0
    assert sub_em(None, ["Ada"]) == 0.0


def test_a_gold_of_nothing_is_not_inside_everything() -> None:
    assert sub_em("anything", ["The"]) == 0.0
    assert sub_em("anything", ["The", "thing"]) == 1.0
    assert sub_em("the", ["The"]) == em("the", ["The"]) == 1.0


@pytest.mark.parametrize(
    ("prediction", "golds", "value"),
    [
        ("Ada Lovelace", ["Ada Lovelace"], 1.0),
        ("Ada", ["Ada Lovelace"], 2 / 3),
        ("Ada King of Lovelace", ["Ada Lovelace"], 2 / 3),
        ("ada ada", ["Ada"], 2 / 3),
        ("Ada", ["Bob", "Ada Lovelace"], 2 / 3),
        ("Eve", ["Ada"], 0.0),
        ("the", ["The"], 0.0),
        # HotpotQA: a closed answer earns nothing by its words.
        ("yes", ["yes"], 1.0),
        ("yes it is", ["yes"], 0.0),
        ("no", ["no way"], 0.0),
        ("noanswer", ["noanswer found"], 0.0),
    ],
)
def test_f1(prediction: str, golds: list[str], value: float) -> None:
    assert f1(prediction, golds) == pytest.approx(value)


def test_no_prediction_earns_no_f1() -> None:
    assert f1(None, ["Ada"]) == 0.0


@given(st.text(), st.lists(st.text(), min_size=1, max_size=3))
def test_em_implies_sub_em_and_every_score_is_a_share(said: str, golds: list[str]) -> None:
    assert em(said, golds) <= sub_em(said, golds)
    assert 0.0 <= f1(said, golds) <= 1.0
    assert em(golds[0], golds) == 1.0
