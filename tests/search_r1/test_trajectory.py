import pytest
from hypothesis import given
from hypothesis import strategies as st

from search_r1.trajectory import Budgets, Trajectory


def test_ids_mask_and_logprobs_grow_together() -> None:
    trajectory = Trajectory([1, 2])
    trajectory.append_sampled([3, 4], [-0.5, -0.25])
    trajectory.append_inserted([5])
    trajectory.append_sampled([6], [-1.0])
    assert trajectory.ids == [1, 2, 3, 4, 5, 6]
    assert trajectory.response_ids == [3, 4, 5, 6]
    assert trajectory.response_mask == [1, 1, 0, 1]
    assert trajectory.loss_mask == [0, 0, 1, 1, 0, 1]
    assert trajectory.logprobs == [-0.5, -0.25, 0.0, -1.0]
    assert trajectory.has_logprobs
    assert (trajectory.sampled_tokens, trajectory.inserted_tokens) == (3, 1)


def test_an_insert_that_is_not_masked_is_trained_and_still_not_sampled() -> None:
    trajectory = Trajectory([1])
    trajectory.append_sampled([2], [-0.5])
    trajectory.append_inserted([3, 4], masked=False)
    trajectory.append_inserted([5])
    trajectory.append_sampled([6], [-1.0])
    trajectory.append_inserted([7, 8, 9], masked=False)
    assert trajectory.response_mask == [1, 1, 1, 0, 1, 1, 1, 1]
    assert trajectory.logprobs == [-0.5, 0.0, 0.0, 0.0, -1.0, 0.0, 0.0, 0.0]
    assert (trajectory.sampled_tokens, trajectory.inserted_tokens) == (2, 6)
    assert trajectory.masked_tokens == 1
    assert trajectory.drop_trailing_inserted() == 3
    assert trajectory.response_ids == [2, 3, 4, 5, 6]
    assert trajectory.is_sampled == [True, False, False, False, True]
    assert (trajectory.inserted_tokens, trajectory.masked_tokens) == (3, 1)


def test_an_engine_without_logprobs_is_remembered() -> None:
    trajectory = Trajectory([1])
    trajectory.append_sampled([2], [-0.5])
    trajectory.append_sampled([], None)
    assert trajectory.has_logprobs
    trajectory.append_sampled([3], None)
    assert not trajectory.has_logprobs
    assert trajectory.logprobs == [-0.5, 0.0]


def test_a_missing_logprob_is_an_error() -> None:
    trajectory = Trajectory([1])
    with pytest.raises(ValueError, match="1 logprobs for 2 tokens"):
        trajectory.append_sampled([2, 3], [-0.5])
    assert trajectory.response_ids == []


@pytest.mark.parametrize("logprob", [float("nan"), float("-inf")])
def test_a_logprob_that_is_not_finite_is_an_error(logprob: float) -> None:
    trajectory = Trajectory([1])
    with pytest.raises(ValueError, match="log-probability that is not finite"):
        trajectory.append_sampled([2, 3], [-0.5, logprob])
    assert trajectory.response_ids == []


def test_trailing_inserts_are_dropped_and_others_stay() -> None:
    trajectory = Trajectory([1])
    trajectory.append_sampled([2], [-0.5])
    trajectory.append_inserted([3])
    trajectory.append_sampled([4], [-0.5])
    trajectory.append_inserted([5, 6])
    trajectory.append_inserted([7])
    assert trajectory.drop_trailing_inserted() == 3
    assert trajectory.response_ids == [2, 3, 4]
    assert trajectory.response_mask == [1, 0, 1]
    assert trajectory.drop_trailing_inserted() == 0


def test_the_tighter_limit_gives_the_room() -> None:
    trajectory = Trajectory([1, 2, 3])
    trajectory.append_sampled([4], [0.0])
    assert Budgets(sequence_tokens=10, max_response_length=100).room(trajectory) == 6
    assert Budgets(sequence_tokens=100, max_response_length=10).room(trajectory) == 9
    tight = Budgets(sequence_tokens=3, answer_reserve_tokens=2)
    assert (tight.room(trajectory), tight.room_for_insert(trajectory)) == (-1, -3)


SPANS = st.lists(
    st.tuples(
        st.sampled_from(["sampled", "masked", "trained"]), st.lists(st.integers(0, 9), max_size=4)
    )
)


@given(SPANS)
def test_lengths_stay_equal_and_the_mask_is_zero_exactly_on_what_was_inserted_to_be_masked(
    spans: list[tuple[str, list[int]]],
) -> None:
    trajectory = Trajectory([0])
    kinds: list[str] = []
    for kind, ids in spans:
        if kind == "sampled":
            trajectory.append_sampled(ids, [-1.0] * len(ids))
        else:
            trajectory.append_inserted(ids, masked=kind == "masked")
        kinds += [kind] * len(ids)
    assert trajectory.response_mask == [int(kind != "masked") for kind in kinds]
    assert trajectory.is_sampled == [kind == "sampled" for kind in kinds]
    assert trajectory.logprobs == [-1.0 * (kind == "sampled") for kind in kinds]
    assert len(trajectory.response_ids) == len(kinds)
    assert trajectory.masked_tokens == kinds.count("masked")
    trajectory.drop_trailing_inserted()
    assert trajectory.is_sampled[-1:] in ([], [True])
    assert trajectory.response_mask[-1:] in ([], [1])
    assert trajectory.sampled_tokens == kinds.count("sampled")


def test_the_mean_logprob_is_of_sampled_tokens_alone() -> None:
    trajectory = Trajectory([0])
    assert trajectory.mean_logprob is None
    trajectory.append_sampled([1, 2], [-1.0, -2.0])
    trajectory.append_inserted([3, 4])
    assert trajectory.mean_logprob == -1.5
    trajectory.append_sampled([5], None)
    assert trajectory.mean_logprob is None
