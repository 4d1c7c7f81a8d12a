"""Our scores against implementations by others that are installed here, pair by pair."""

import importlib.util
import itertools
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from search_r1.qa_metrics import em, f1, normalise_answer, sub_em

HARD = (
    *("A$AP Rocky", "aap rocky", "1,000", "1000", "co-founder", "cofounder", "The U.S.A.", "usa"),
    *("“The Who”", "the who", "Who", "Beyoncé", "beyonce", "twenty-one pilots", "21 Pilots"),
    *("yes", "Yes.", "no", "no way", "yes it is", "noanswer", "The", "a", "an the", "", "!?"),
    *("a-b", "Ana", "theatre", "the theatre", "New York, New York", "new york", "York"),
    *("St. John's", "st johns", "1 000", "1.000", "½", "\u00a0Paris\u00a0", "Paris", "PARIS"),
    *("\u0130stanbul", "istanbul", "stra\u00dfe", "STRASSE", "\ufb01n", "fin", "3\u20134", "3-4"),
    *("It was Ada Lovelace in 1843", "ada lovelace", "Ada", "ada ada", "lovelace ada"),
)
PAIRS = list(itertools.product(HARD, HARD))


@pytest.fixture(scope="module")
def search_r1_like() -> ModuleType:
    """verl's copy of the paper's own scorer, without importing verl."""
    package = importlib.util.find_spec("verl")
    assert package is not None
    assert package.origin is not None
    path = Path(package.origin).parent / "utils" / "reward_score" / "search_r1_like_qa_em.py"
    spec = importlib.util.spec_from_file_location("search_r1_like_qa_em", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_exact_match_is_that_of_the_papers_code(search_r1_like: Any) -> None:
    for said, gold in PAIRS:
        assert em(said, [gold]) == search_r1_like.em_check(said, [gold]), (said, gold)
    for said in HARD:
        assert em(said, HARD) == search_r1_like.em_check(said, list(HARD))


def test_containment_is_that_of_the_papers_code_where_the_gold_has_words(
    search_r1_like: Any,
) -> None:
    wordless = set()
    for said, gold in PAIRS:
        theirs = search_r1_like.subem_check(said, [gold])
        if normalise_answer(gold):
            assert sub_em(said, [gold]) == theirs, (said, gold)
        else:
            # Theirs finds a gold of nothing in every prediction.
            assert theirs == 1
            assert sub_em(said, [gold]) == em(said, [gold])
            wordless.add(gold)
    assert wordless == {"The", "a", "an the", "", "!?"}


@pytest.mark.slow
def test_token_f1_is_that_of_the_squad_script_but_for_closed_answers() -> None:
    from transformers.data.metrics.squad_metrics import compute_exact, compute_f1

    closed = {"yes", "no", "noanswer"}
    for said, gold in PAIRS:
        both = {normalise_answer(said), normalise_answer(gold)}
        assert em(said, [gold]) == compute_exact(gold, said)
        if both == {""}:
            # SQuAD 2.0 counts two empty answers as right; SQuAD 1.1 and HotpotQA do not.
            assert (f1(said, [gold]), compute_f1(gold, said)) == (0.0, 1)
        elif both & closed and len(both) > 1:
            assert f1(said, [gold]) == 0.0
        else:
            assert f1(said, [gold]) == pytest.approx(compute_f1(gold, said)), (said, gold)


@pytest.mark.parametrize(
    ("said", "gold", "value"),
    [
        # By hand, as the official script of HotpotQA counts: precision, recall, F1.
        ("the Chief of Protocol", "Chief of Protocol", 1.0),
        ("Chief of Protocol of the US", "Chief of Protocol", 2 * (3 / 5) * 1 / (3 / 5 + 1)),
        ("New York City, New York", "New York", 2 * (2 / 5) * 1 / (2 / 5 + 1)),
        ("York New", "New York", 1.0),
        ("from 1986 to 2013", "1986 to 2013", 2 * (3 / 4) * 1 / (3 / 4 + 1)),
        ("Animorphs series", "Animorphs", 2 * (1 / 2) * 1 / (1 / 2 + 1)),
        ("yes", "no", 0.0),
        ("yes, they are", "yes", 0.0),
        ("Yes!", "yes", 1.0),
        ("", "Animorphs", 0.0),
    ],
)
def test_f1_by_hand(said: str, gold: str, value: float) -> None:
    assert f1(said, [gold]) == pytest.approx(value)
