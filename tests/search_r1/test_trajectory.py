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


SPANS = st.lists(st.tuples(st.booleans(), st.lists(st.integers(0, 9), max_size=4)))


@given(SPANS)
def test_lengths_stay_equal_and_the_mask_is_one_exactly_on_sampled_ids(
    spans: list[tuple[bool, list[int]]],
) -> None:
    trajectory = Trajectory([0])
    expected: list[int] = []
    for sampled, ids in spans:
        if sampled:
            trajectory.append_sampled(ids, [-1.0] * len(ids))
        else:
            trajectory.append_inserted(ids)
        expected += [int(sampled)] * len(ids)
    assert trajectory.response_mask == expected
    assert trajectory.logprobs == [-1.0 * mask for mask in expected]
    assert len(trajectory.response_ids) == len(expected)
    trajectory.drop_trailing_inserted()
    assert trajectory.response_mask[-1:] in ([], [1])
    assert trajectory.sampled_tokens == sum(expected)
