"""Books, films and operas, and the facts of their articles.

Books and operas are by the second generation and films by the third, so a film is always later
than the book it is based on.
"""

from collections.abc import Iterator

from data_prep.world.people import People
from data_prep.world.schema import Entity, Fact, Kind, Relation

_MAKER_AGE = (25, 20)
"""First value, number of values."""


def book_facts(people: People, book: Entity) -> Iterator[Fact]:
    """Author, publisher and year."""
    draws, census = people.draws, people.census
    key = census.article(book)
    author = people.any(1, "author", key)
    yield Fact(book, Relation.AUTHOR, author)
    yield Fact(book, Relation.PUBLISHER, census.any(Kind.COMPANY, draws, "publisher", key))
    yield Fact(book, Relation.PUBLISHED_YEAR, _year_by(people, author, key))


def film_facts(people: People, film: Entity) -> Iterator[Fact]:
    """Director, lead actor (another person), book and year."""
    draws, census = people.draws, people.census
    key = census.article(film)
    director = people.any(2, "director", key)
    actor = people.any(2, "lead actor", key)
    yield Fact(film, Relation.DIRECTOR, director)
    if actor != director:
        yield Fact(film, Relation.LEAD_ACTOR, actor)
    yield Fact(film, Relation.BASED_ON, census.any(Kind.BOOK, draws, "book", key))
    yield Fact(film, Relation.RELEASE_YEAR, _year_by(people, director, key))


def opera_facts(people: People, opera: Entity) -> Iterator[Fact]:
    """Composer and the city of the first performance."""
    key = people.census.article(opera)
    yield Fact(opera, Relation.COMPOSER, people.any(1, "composer", key))
    premiere = people.census.any(Kind.CITY, people.draws, "premiere", key)
    yield Fact(opera, Relation.PREMIERE_CITY, premiere)


def _year_by(people: People, maker: Entity, key: int) -> int:
    first, span = _MAKER_AGE
    return people.birth_year(maker) + first + people.draws.below(span, "maker's age", key)
