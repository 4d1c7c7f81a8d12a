"""People: three generations in families of five, and the facts of each person's article.

Member 0 of a family is its first generation; members 1 (a man) and 2 (a woman) are the children of
member 0; members 3 (a man) and 4 (a woman) are the children of member 1. Men of one family marry
women of a neighbouring one. Ages agree: a parent or teacher is at least 20 years older.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from data_prep.world.census import FAMILY_SIZE, Census
from data_prep.world.draws import Draws
from data_prep.world.names import family_and_member
from data_prep.world.schema import Entity, Fact, Kind, Relation

_FIRST_BIRTH_YEAR = (1880, 1922, 1956)
_BIRTH_YEARS = 12
_MEMBERS = ((0,), (1, 2), (3, 4))
_WIFE = {1: (1, 2), 3: (2, 4)}
"""Husband's member number -> how many families further his wife is, and her member number."""
_KEPT = 0.75
"""Share of people whose school, teacher or group is told."""


@dataclass(frozen=True, slots=True)
class People:
    """The people of a world. A main person's `number` is family x 5 + member."""

    draws: Draws
    census: Census

    def generation(self, person: Entity) -> int:
        """0, 1 or 2."""
        family, member = family_and_member(person)
        if person.variant:
            return self.draws.below(3, "generation", family, member)
        return (member + 1) // 2

    def is_female(self, person: Entity) -> bool:
        """Whether the person is a woman."""
        family, member = family_and_member(person)
        if person.variant or member == 0:
            return self.draws.chance(0.5, "female", family, member)
        return member % 2 == 0

    def birth_year(self, person: Entity) -> int:
        """The year of birth, the same for every question about the person."""
        spread = self.draws.below(_BIRTH_YEARS, "birth year", *family_and_member(person))
        return _FIRST_BIRTH_YEAR[self.generation(person)] + spread

    def any(self, generation: int, stream: str, *keys: int) -> Entity:
        """A drawn person of a generation."""
        family = self.draws.below(self.census.families, stream, *keys)
        return _person(family, self.draws.pick(_MEMBERS[generation], f"{stream}'s place", *keys))

    def officer(self, generation: int, office: int, stream: str) -> Entity:
        """A person of generation 1 or 2 who holds no other office of the stream."""
        size = 2 * self.census.families
        family, which = divmod(self.draws.permuted(office % size, size, stream), 2)
        return _person(family, _MEMBERS[generation][which])

    def facts(self, person: Entity) -> Iterator[Fact]:
        """The facts of a person's article."""
        key = self.census.article(person)
        birthplace = self.census.any(Kind.CITY, self.draws, "birthplace", key)
        yield Fact(person, Relation.BORN_IN, birthplace)
        yield Fact(person, Relation.BIRTH_YEAR, self.birth_year(person))
        if person.variant == 0:
            yield from self._relatives(person)
        yield from self._career(person, key)

    def _relatives(self, person: Entity) -> Iterator[Fact]:
        family, member = family_and_member(person)
        if member in (1, 2):
            founder = _person(family, 0)
            relation = Relation.MOTHER if self.is_female(founder) else Relation.FATHER
            yield Fact(person, relation, founder)
        if member in (3, 4):
            yield Fact(person, Relation.FATHER, _person(family, 1))
            yield Fact(person, Relation.MOTHER, self._wife(family, 1))
        if spouse := self._stated_spouse(family, member):
            yield Fact(person, Relation.SPOUSE, spouse)

    def _stated_spouse(self, family: int, member: int) -> Entity | None:
        """The spouse, when this person's article states the marriage.

        Only one article of the two does, so that a fact has one source.
        """
        if member in _WIFE:
            stated = self.draws.chance(0.5, "husband states", family, member)
            return self._wife(family, member) if stated else None
        for husband, (distance, wife) in _WIFE.items():
            if wife == member:
                other = (family - distance) % self.census.families
                stated = self.draws.chance(0.5, "husband states", other, husband)
                return None if stated else _person(other, husband)
        return None

    def _wife(self, family: int, husband: int) -> Entity:
        distance, wife = _WIFE[husband]
        return _person((family + distance) % self.census.families, wife)

    def _career(self, person: Entity, key: int) -> Iterator[Fact]:
        draws, census = self.draws, self.census
        if draws.chance(_KEPT, "has school", key):
            school = census.any(Kind.UNIVERSITY, draws, "school", key)
            yield Fact(person, Relation.EDUCATED_AT, school)
        if draws.chance(_KEPT, "has group", key):
            group = census.any(Kind.SOCIETY, draws, "group", key)
            yield Fact(person, Relation.MEMBER_OF, group)
        generation = self.generation(person)
        if generation == 0:
            return
        employer = census.any(Kind.COMPANY, draws, "employer", key)
        yield Fact(person, Relation.EMPLOYER, employer)
        if draws.chance(_KEPT, "has teacher", key):
            yield Fact(person, Relation.TAUGHT_BY, self._teacher(person, generation, key))

    def _teacher(self, person: Entity, generation: int, key: int) -> Entity:
        own, _ = family_and_member(person)
        distance = 1 + self.draws.below(self.census.families - 1, "teacher", key)
        family = (own + distance) % self.census.families
        return _person(family, self.draws.pick(_MEMBERS[generation - 1], "teacher's place", key))


def _person(family: int, member: int) -> Entity:
    return Entity(Kind.PERSON, family * FAMILY_SIZE + member)
