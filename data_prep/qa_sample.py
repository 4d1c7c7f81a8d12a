"""A fixed sample over several sets: as even as their sizes allow."""

from collections.abc import Sequence

from data_prep.questions import Question, merge


def stratified(
    sets: Sequence[Sequence[Question]], total: int, seed: int
) -> list[tuple[Question, ...]]:
    """Take `total` questions over all sets, the same number from each where it has as many.

    Equal shares, because results are averaged over sets, not over questions. Which questions are
    taken depends on the seed and their ids only, and a larger sample holds every smaller one.

    Raises:
        ValueError: a set would get none, or there are not as many questions.
    """
    shares = _shares([len(questions) for questions in sets], total)
    ordered = (merge([questions], seed) for questions in sets)
    return [tuple(some[:share]) for some, share in zip(ordered, shares, strict=True)]


def _shares(sizes: Sequence[int], total: int) -> list[int]:
    if not len(sizes) <= total <= sum(sizes):
        raise ValueError(
            f"sample: {total:,} is out of range; {len(sizes)} sets of {sum(sizes):,} rows together "
            f"allow {len(sizes):,} to {sum(sizes):,}"
        )
    shares = [0] * len(sizes)
    # Smallest first: what a small set cannot give is spread over the larger ones.
    smallest_first = sorted(range(len(sizes)), key=lambda place: sizes[place])
    for done, place in enumerate(smallest_first):
        shares[place] = min(sizes[place], total // (len(sizes) - done))
        total -= shares[place]
    return shares
