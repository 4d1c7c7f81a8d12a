"""How right an answer is, best over the gold answers: exact match, token F1, containment."""

import re
import string
from collections import Counter
from collections.abc import Callable, Iterable

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_CLOSED_ANSWERS = {"yes", "no", "noanswer"}


def normalise_answer(text: str) -> str:
    """Lower-case, without ASCII punctuation, without a, an and the, with single spaces (SQuAD)."""
    bare = text.lower().translate(_NO_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", bare).split())


def em(prediction: str | None, golds: Iterable[str]) -> float:
    """1.0 if the prediction equals a gold answer once both are normalised."""
    return _best(prediction, golds, lambda said, gold: float(said == gold))


def sub_em(prediction: str | None, golds: Iterable[str]) -> float:
    """1.0 if the prediction contains a gold answer once both are normalised.

    A gold that normalises to nothing is in no prediction but the one that does so too.
    """
    return _best(prediction, golds, lambda said, gold: float(gold in said if gold else not said))


def f1(prediction: str | None, golds: Iterable[str]) -> float:
    """Token F1 with the best gold (SQuAD); yes, no and noanswer must match whole (HotpotQA)."""
    return _best(prediction, golds, _token_f1)


def _best(
    prediction: str | None, golds: Iterable[str], compare: Callable[[str, str], float]
) -> float:
    if prediction is None:
        return 0.0
    said = normalise_answer(prediction)
    return max((compare(said, normalise_answer(gold)) for gold in golds), default=0.0)


def _token_f1(said: str, gold: str) -> float:
    if said != gold and not _CLOSED_ANSWERS.isdisjoint((said, gold)):
        return 0.0
    said_tokens, gold_tokens = said.split(), gold.split()
    common = sum((Counter(said_tokens) & Counter(gold_tokens)).values())
    return 2 * common / (len(said_tokens) + len(gold_tokens)) if common else 0.0
