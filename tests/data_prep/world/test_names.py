from itertools import combinations

import pytest

from data_prep.world import World, WorldConfig
from data_prep.world import names as names_module
from data_prep.world.schema import Entity, Kind


def world(seed: int = 0, articles: int = 5_000, distractors: float = 0.4) -> World:
    return World(WorldConfig(seed, articles, 0, 0, distractors=distractors))


@pytest.mark.parametrize(("seed", "articles"), [(0, 100), (1, 317), (2, 20_000)])
def test_a_name_never_repeats(seed: int, articles: int) -> None:
    w = world(seed, articles)
    names = [w.name(entity) for entity in w.entities()]
    assert len(set(names)) == articles


def test_stems_of_the_largest_world_are_enough() -> None:
    size = 1
    for options in names_module._STEM_PARTS:
        assert len(set(options)) == len(options)
        size *= len(options)
    w = world(articles=1_000_000, distractors=0)
    people = w.census.main[Kind.PERSON]
    assert w.census.main_articles - people + w.census.families <= size


def test_a_distractor_shares_the_stem_of_what_it_imitates() -> None:
    w = world()
    company = Entity(Kind.COMPANY, 3)
    imitation = Entity(Kind.COMPANY, 3, variant=1)
    assert w.name(company).split()[0] == w.name(imitation).split()[0]
    assert w.name(company) != w.name(imitation)


def test_a_distractor_shares_the_family_name_of_a_family() -> None:
    w = world()
    relatives = [Entity(Kind.PERSON, 2 * 5 + member) for member in range(5)]
    people = [*relatives, Entity(Kind.PERSON, 2, variant=1)]
    assert len({w.name(person).split()[1] for person in people}) == 1
    assert len({w.name(person).split()[0] for person in people}) == 6


def test_worlds_of_different_seeds_share_hardly_a_name() -> None:
    worlds = [world(seed) for seed in range(3)]
    sets = [{w.name(entity) for entity in w.entities()} for w in worlds]
    for one, other in combinations(sets, 2):
        assert len(one & other) < 20
