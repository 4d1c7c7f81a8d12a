"""How many entities of each kind a world has, and which article is about which entity."""

from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate

from data_prep.world.config import WorldConfig
from data_prep.world.draws import Draws
from data_prep.world.schema import Entity, Kind

FAMILY_SIZE = 5

_SHARES = {
    Kind.PERSON: (0.50, 20),
    Kind.CITY: (0.10, 4),
    Kind.COUNTRY: (0.04, 4),
    Kind.LAKE: (0.04, 4),
    Kind.COMPANY: (0.08, 4),
    Kind.UNIVERSITY: (0.04, 2),
    Kind.SOCIETY: (0.04, 2),
    Kind.FILM: (0.05, 2),
    Kind.OPERA: (0.04, 2),
}
"""Share and least number of each kind; books take what is left. A small world has four countries
(each with a city and a lake) so that a guess does not pay."""


@dataclass(frozen=True, slots=True)
class Census:
    """Counts and article numbers. Articles about distractors follow all others."""

    main: dict[Kind, int]
    distractors: dict[Kind, int]

    @property
    def main_articles(self) -> int:
        """Number of articles that are not distractors."""
        return sum(self.main.values())

    @property
    def families(self) -> int:
        """Number of families; each has `FAMILY_SIZE` members and a family name of its own."""
        return self.main[Kind.PERSON] // FAMILY_SIZE

    def bases(self, kind: Kind) -> int:
        """How many names distractors of this kind can imitate."""
        return self.families if kind is Kind.PERSON else self.main[kind]

    def entity(self, article: int) -> Entity:
        """The entity that article number `article` is about."""
        if article < self.main_articles:
            kind, number = _locate(self.main, article)
            return Entity(kind, number)
        kind, number = _locate(self.distractors, article - self.main_articles)
        bases = self.bases(kind)
        return Entity(kind, number % bases, 1 + number // bases)

    def article(self, entity: Entity) -> int:
        """The number of the article about an entity."""
        if entity.variant == 0:
            return _start(self.main, entity.kind) + entity.number
        number = (entity.variant - 1) * self.bases(entity.kind) + entity.number
        return self.main_articles + _start(self.distractors, entity.kind) + number

    def any(self, kind: Kind, draws: Draws, stream: str, *keys: int) -> Entity:
        """A drawn entity of a kind, never a distractor."""
        return Entity(kind, draws.below(self.main[kind], stream, *keys))


def take_census(config: WorldConfig) -> Census:
    """Divide the articles of a world among the kinds."""
    imitations = int(config.articles * config.distractors)
    total = config.articles - imitations
    main = {kind: max(int(total * share), least) for kind, (share, least) in _SHARES.items()}
    main[Kind.PERSON] -= main[Kind.PERSON] % FAMILY_SIZE
    main[Kind.BOOK] = total - sum(main.values())
    distractors = {kind: int(imitations * share) for kind, (share, _) in _SHARES.items()}
    distractors[Kind.BOOK] = imitations - sum(distractors.values())
    return Census(main, distractors)


def _locate(counts: dict[Kind, int], index: int) -> tuple[Kind, int]:
    ends = list(accumulate(counts.values()))
    position = bisect_right(ends, index)
    kind = list(counts)[position]
    return kind, index - (ends[position] - counts[kind])


def _start(counts: dict[Kind, int], kind: Kind) -> int:
    start = 0
    for other, count in counts.items():
        if other is kind:
            return start
        start += count
    raise KeyError(kind)
