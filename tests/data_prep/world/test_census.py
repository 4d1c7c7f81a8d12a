import pytest
from hypothesis import given
from hypothesis import strategies as st

from data_prep.world import WorldConfig
from data_prep.world.census import take_census
from data_prep.world.schema import Kind


@given(st.integers(100, 3_000), st.floats(0, 0.4))
def test_articles_and_entities_correspond(articles: int, distractors: float) -> None:
    census = take_census(WorldConfig(0, articles, 0, 0, distractors=distractors))
    entities = [census.entity(article) for article in range(articles)]
    assert len(set(entities)) == articles
    assert [census.article(entity) for entity in entities] == list(range(articles))
    assert sum(entity.variant > 0 for entity in entities) == int(articles * distractors)


@given(st.integers(100, 100_000), st.floats(0, 0.4))
def test_there_are_enough_of_each_kind(articles: int, distractors: float) -> None:
    census = take_census(WorldConfig(0, articles, 0, 0, distractors=distractors))
    main = census.main
    assert set(main) == set(Kind)
    assert min(main.values()) >= 2
    assert main[Kind.COUNTRY] >= 4
    assert min(main[Kind.CITY], main[Kind.LAKE]) >= main[Kind.COUNTRY]
    # Every city and country, distractors too, has an officer of its own.
    countries = main[Kind.COUNTRY] + census.distractors[Kind.COUNTRY]
    assert 2 * census.families >= main[Kind.CITY] + countries


def test_the_share_of_people_is_half() -> None:
    census = take_census(WorldConfig(0, 1_000, 0, 0))
    assert census.main[Kind.PERSON] == 400
    assert census.main_articles == 800
    assert census.distractors[Kind.PERSON] == pytest.approx(100)
