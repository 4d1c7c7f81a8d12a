"""The world of one seed: its entities, their names and the facts about them.

Everything is derived on demand from the settings; nothing is stored.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from data_prep.world.census import Census, take_census
from data_prep.world.config import WorldConfig
from data_prep.world.draws import Draws
from data_prep.world.names import name_of
from data_prep.world.organisations import founded_facts, university_facts
from data_prep.world.people import People
from data_prep.world.places import city_facts, country_facts, lake_facts
from data_prep.world.schema import Entity, Fact, Kind
from data_prep.world.works import book_facts, film_facts, opera_facts

_FACTS: Mapping[Kind, Callable[[People, Entity], Iterator[Fact]]] = {
    Kind.PERSON: People.facts,
    Kind.CITY: city_facts,
    Kind.COUNTRY: country_facts,
    Kind.LAKE: lake_facts,
    Kind.COMPANY: founded_facts,
    Kind.UNIVERSITY: university_facts,
    Kind.SOCIETY: founded_facts,
    Kind.BOOK: book_facts,
    Kind.FILM: film_facts,
    Kind.OPERA: opera_facts,
}


@dataclass(frozen=True, slots=True)
class World:
    """A consistent set of facts about invented things.

    Facts agree with each other: relations are functional, a capital lies in its country, parents
    and teachers are older, founders and authors are grown up, a film is later than its book.
    """

    config: WorldConfig
    draws: Draws = field(init=False)
    census: Census = field(init=False)
    people: People = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "draws", Draws(self.config.seed))
        object.__setattr__(self, "census", take_census(self.config))
        object.__setattr__(self, "people", People(self.draws, self.census))

    def entities(self) -> Iterator[Entity]:
        """All entities in the order of their articles, distractors last."""
        return (self.census.entity(article) for article in range(self.config.articles))

    def article_id(self, entity: Entity) -> str:
        """The id of the article about an entity: its row number in the corpus."""
        return str(self.census.article(entity))

    def name(self, entity: Entity) -> str:
        """The entity's name, which is its article's title and which no other entity has."""
        return name_of(self.draws, self.census, entity, female=self.is_female(entity))

    def is_female(self, entity: Entity) -> bool:
        """Whether the entity is a woman."""
        return entity.kind is Kind.PERSON and self.people.is_female(entity)

    def facts(self, entity: Entity) -> tuple[Fact, ...]:
        """What the entity's article states."""
        return tuple(_FACTS[entity.kind](self.people, entity))

    def value_text(self, fact: Fact) -> str:
        """A fact's value as an answer: a name or a year."""
        return str(fact.value) if isinstance(fact.value, int) else self.name(fact.value)
