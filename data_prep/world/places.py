"""Cities, countries and lakes, and the facts of their articles.

Number modulo the number of countries gives the country of a city or lake, so every country has
some of each, and a city's lake and a country's capital lie in the same country.
"""

from collections.abc import Iterator

from data_prep.world.census import Census
from data_prep.world.draws import Draws
from data_prep.world.people import People
from data_prep.world.schema import Entity, Fact, Kind, Relation


def city_facts(people: People, city: Entity) -> Iterator[Fact]:
    """Country, lake and, unless it is a distractor, mayor."""
    draws, census = people.draws, people.census
    country = _country_of(census, city)
    yield Fact(city, Relation.LOCATED_IN, country)
    lake = _any_in_country(draws, census, Kind.LAKE, country, "lake", census.article(city))
    yield Fact(city, Relation.ON_LAKE, lake)
    if city.variant == 0:
        yield Fact(city, Relation.MAYOR, people.officer(2, city.number, "office"))


def country_facts(people: People, country: Entity) -> Iterator[Fact]:
    """President and, unless it is a distractor (no city is in one), capital."""
    draws, census = people.draws, people.census
    if country.variant == 0:
        capital = _any_in_country(draws, census, Kind.CITY, country, "capital", country.number)
        yield Fact(country, Relation.CAPITAL, capital)
    rank = country.number + country.variant * census.main[Kind.COUNTRY]
    president = people.officer(2, census.main[Kind.CITY] + rank, "office")
    yield Fact(country, Relation.PRESIDENT, president)


def lake_facts(people: People, lake: Entity) -> Iterator[Fact]:
    """Country and the person who first mapped it."""
    yield Fact(lake, Relation.LAKE_COUNTRY, _country_of(people.census, lake))
    surveyor = people.any(0, "surveyor", people.census.article(lake))
    yield Fact(lake, Relation.MAPPED_BY, surveyor)


def _country_of(census: Census, place: Entity) -> Entity:
    return Entity(Kind.COUNTRY, (place.number + place.variant) % census.main[Kind.COUNTRY])


def _any_in_country(
    draws: Draws, census: Census, kind: Kind, country: Entity, stream: str, key: int
) -> Entity:
    countries = census.main[Kind.COUNTRY]
    places = (census.main[kind] - country.number - 1) // countries + 1
    return Entity(kind, country.number + countries * draws.below(places, stream, key))
