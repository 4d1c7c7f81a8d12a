from collections.abc import Iterator

import pytest

from data_prep.world import World, WorldConfig, stated_facts
from data_prep.world.schema import Entity, Fact, Kind, Relation


@pytest.fixture(params=[(0, 100, 0.4), (1, 100, 0.0), (2, 3_000, 0.2)], scope="module")
def world(request: pytest.FixtureRequest) -> World:
    seed, articles, distractors = request.param
    return World(WorldConfig(seed, articles, 0, 0, distractors=distractors))


def facts(world: World, *relations: Relation) -> Iterator[tuple[Fact, Entity]]:
    for entity in world.entities():
        for fact in world.facts(entity):
            if fact.relation in relations and isinstance(fact.value, Entity):
                yield fact, fact.value


def value(world: World, entity: Entity, relation: Relation) -> Entity | int:
    return next(fact.value for fact in world.facts(entity) if fact.relation is relation)


def birth(world: World, person: Entity) -> int:
    year = value(world, person, Relation.BIRTH_YEAR)
    assert isinstance(year, int)
    return year


def test_relations_are_functional_and_values_are_not_distractors(world: World) -> None:
    for entity in world.entities():
        stated = world.facts(entity)
        assert stated
        assert len({fact.relation for fact in stated}) == len(stated)
        for fact in stated:
            assert fact.subject == entity
            assert fact.value != entity
            if isinstance(fact.value, Entity):
                assert fact.value.variant == 0
                assert world.census.entity(world.census.article(fact.value)) == fact.value


def test_parents_and_teachers_are_older(world: World) -> None:
    relations = (Relation.FATHER, Relation.MOTHER, Relation.TAUGHT_BY)
    ages = [birth(world, f.subject) - birth(world, v) for f, v in facts(world, *relations)]
    assert min(ages) >= 20
    assert max(ages) <= 55


def test_parents_have_the_right_sex_and_fathers_the_family_name(world: World) -> None:
    for _, father in facts(world, Relation.FATHER):
        assert not world.is_female(father)
    for fact, mother in facts(world, Relation.MOTHER):
        assert world.is_female(mother)
        assert mother.number // 5 != fact.subject.number // 5 or mother.number % 5 == 0


def test_a_marriage_is_stated_once_between_a_man_and_a_woman(world: World) -> None:
    couples = [{fact.subject, spouse} for fact, spouse in facts(world, Relation.SPOUSE)]
    people = [person for couple in couples for person in couple]
    assert len(set(people)) == len(people) == 2 * len(couples)
    for couple in couples:
        assert {world.is_female(person) for person in couple} == {True, False}
    # Two marriages in a family of five: of member 1 and of member 3.
    assert len(couples) == 2 * world.census.families


def test_parents_of_a_child_are_married_to_each_other(world: World) -> None:
    couples = [{fact.subject, spouse} for fact, spouse in facts(world, Relation.SPOUSE)]
    mothers = {fact.subject: mother for fact, mother in facts(world, Relation.MOTHER)}
    checked = 0
    for fact, father in facts(world, Relation.FATHER):
        if fact.subject in mothers:
            assert {father, mothers[fact.subject]} in couples
            checked += 1
    assert checked == 2 * world.census.families


def test_capitals_and_lakes_lie_in_the_country(world: World) -> None:
    for fact, capital in facts(world, Relation.CAPITAL):
        assert value(world, capital, Relation.LOCATED_IN) == fact.subject
    for fact, lake in facts(world, Relation.ON_LAKE):
        country = value(world, fact.subject, Relation.LOCATED_IN)
        assert value(world, lake, Relation.LAKE_COUNTRY) == country


def test_nobody_holds_two_offices(world: World) -> None:
    offices = [v for _, v in facts(world, Relation.MAYOR, Relation.PRESIDENT)]
    assert len(set(offices)) == len(offices)
    rectors = [v for _, v in facts(world, Relation.RECTOR)]
    assert len(set(rectors)) == len(rectors)


def test_makers_and_founders_are_grown_up(world: World) -> None:
    for maker, year in (
        (Relation.FOUNDER, Relation.FOUNDED_YEAR),
        (Relation.AUTHOR, Relation.PUBLISHED_YEAR),
        (Relation.DIRECTOR, Relation.RELEASE_YEAR),
    ):
        for fact, person in facts(world, maker):
            made = value(world, fact.subject, year)
            assert isinstance(made, int)
            assert 25 <= made - birth(world, person) < 45


def test_a_film_is_later_than_its_book_and_stars_another_than_its_director(world: World) -> None:
    for fact, book in facts(world, Relation.BASED_ON):
        released = value(world, fact.subject, Relation.RELEASE_YEAR)
        published = value(world, book, Relation.PUBLISHED_YEAR)
        assert isinstance(released, int)
        assert isinstance(published, int)
        assert released > published
    for fact, star in facts(world, Relation.LEAD_ACTOR):
        assert star != value(world, fact.subject, Relation.DIRECTOR)


def test_nobody_works_for_a_company_that_is_not_founded_yet(world: World) -> None:
    for fact, company in facts(world, Relation.EMPLOYER):
        founded = value(world, company, Relation.FOUNDED_YEAR)
        assert isinstance(founded, int)
        assert founded <= birth(world, fact.subject) + 18


def test_every_relation_is_used() -> None:
    world = World(WorldConfig(0, 300, 0, 0))
    relations = {hop.relation for hop in stated_facts(world)}
    assert relations == {relation.value for relation in Relation}
    assert len(relations) >= 12


def test_every_kind_has_facts(world: World) -> None:
    assert {entity.kind for entity in world.entities() if world.facts(entity)} == set(Kind)
