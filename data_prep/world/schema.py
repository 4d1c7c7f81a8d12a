"""What a world is made of: the kinds of its entities, its relations and its facts."""

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What an article is about."""

    PERSON = "person"
    CITY = "city"
    COUNTRY = "country"
    LAKE = "lake"
    COMPANY = "company"
    UNIVERSITY = "university"
    SOCIETY = "society"
    BOOK = "book"
    FILM = "film"
    OPERA = "opera"


class Relation(StrEnum):
    """Functional relations: a subject has at most one value for each."""

    BORN_IN = "born in"
    BIRTH_YEAR = "birth year"
    FATHER = "father"
    MOTHER = "mother"
    SPOUSE = "spouse"
    EDUCATED_AT = "educated at"
    TAUGHT_BY = "taught by"
    EMPLOYER = "employer"
    MEMBER_OF = "member of"
    LOCATED_IN = "located in"
    ON_LAKE = "on lake"
    MAYOR = "mayor"
    CAPITAL = "capital"
    PRESIDENT = "president"
    LAKE_COUNTRY = "lake country"
    MAPPED_BY = "mapped by"
    FOUNDER = "founder"
    HEADQUARTERS = "headquarters"
    FOUNDED_YEAR = "founded year"
    CAMPUS_CITY = "campus city"
    RECTOR = "rector"
    AUTHOR = "author"
    PUBLISHER = "publisher"
    PUBLISHED_YEAR = "published year"
    DIRECTOR = "director"
    LEAD_ACTOR = "lead actor"
    BASED_ON = "based on"
    RELEASE_YEAR = "release year"
    COMPOSER = "composer"
    PREMIERE_CITY = "premiere city"


@dataclass(frozen=True, slots=True)
class Entity:
    """One thing of the world.

    `variant` is 0 for entities that facts refer to. A distractor has a variant of 1 or more and
    the number of the entity whose name it imitates (for a person: of the family).
    """

    kind: Kind
    number: int
    variant: int = 0


@dataclass(frozen=True, slots=True)
class Fact:
    """A value, an entity or a year, that the subject's article states and no other does."""

    subject: Entity
    relation: Relation
    value: Entity | int
