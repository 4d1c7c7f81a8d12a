"""Companies, universities and societies, and the facts of their articles.

Founders are of the first generation, so that everyone of a later one can work there.
"""

from collections.abc import Iterator

from data_prep.world.people import People
from data_prep.world.schema import Entity, Fact, Kind, Relation

_FOUNDER_AGE = (25, 20)
_UNIVERSITY_FOUNDED = (1740, 120)
"""First value, number of values."""


def founded_facts(people: People, organisation: Entity) -> Iterator[Fact]:
    """Founder, year and headquarters of a company or a society."""
    draws, census = people.draws, people.census
    key = census.article(organisation)
    founder = people.any(0, "founder", key)
    first, span = _FOUNDER_AGE
    year = people.birth_year(founder) + first + draws.below(span, "founder's age", key)
    yield Fact(organisation, Relation.FOUNDER, founder)
    yield Fact(organisation, Relation.FOUNDED_YEAR, year)
    seat = census.any(Kind.CITY, draws, "headquarters", key)
    yield Fact(organisation, Relation.HEADQUARTERS, seat)


def university_facts(people: People, university: Entity) -> Iterator[Fact]:
    """City, year and, unless it is a distractor, rector."""
    draws, census = people.draws, people.census
    key = census.article(university)
    yield Fact(university, Relation.CAMPUS_CITY, census.any(Kind.CITY, draws, "campus", key))
    first, span = _UNIVERSITY_FOUNDED
    year = first + draws.below(span, "university's year", key)
    yield Fact(university, Relation.FOUNDED_YEAR, year)
    if university.variant == 0:
        yield Fact(university, Relation.RECTOR, people.officer(1, university.number, "rector"))
