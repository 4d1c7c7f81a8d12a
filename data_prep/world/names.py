"""Invented names, different for every entity by construction.

A stem is onset + vowel + medial + vowel + coda, for example `Velmor`. Because the parts alternate
between consonants and vowels and the coda is one letter, a name tells its parts, so different
numbers give different names without a table of the names that were used.
"""

from data_prep.world.census import FAMILY_SIZE, Census
from data_prep.world.draws import Draws
from data_prep.world.schema import Entity, Kind


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_ONSETS = _words(
    "b br d dr f fl g gl gr h j k kl kr l m n p pl pr r s sk sl sn sp st t th tr v vr w z zh bl "
    "dw kv zl"
)
_MEDIALS = _words(
    "lb ld lf lg lk lm ln lp lt lth lv lz mb md mp mr nd ndr nf ng nk nst nt nth nv nz rb rd rf "
    "rg rk rl rm rn rp rs rst rt rth rv rz sk skr sm sp st str sv thr vr zd zm zn zv dr br"
)
_VOWELS = _words("a e i o u")
_CODAS = _words("d f g k l m n p r s t v x z")
_STEM_PARTS = (_ONSETS, _VOWELS, _MEDIALS, _VOWELS, _CODAS)

_MALE_ENDINGS = _words(
    "lmo rvik ndor skel nthar rmund lgar zdan mbek rzo lthor sdin nkar vrin dmir ltan"
)
_FEMALE_ENDINGS = _words(
    "lva ndra lmira rvessa zhia thena lnis rdelle skia mbri nzia lthe rnava dwen stra vka"
)

_FORMS = {
    Kind.CITY: ("{}a", "{}en", "{}burg", "{}holm", "{}ford", "{}wick", "Port {}"),
    Kind.COUNTRY: ("{}ia", "{}ara", "{}land", "{}une", "{}esh"),
    Kind.LAKE: ("Lake {}", "Lake {}a", "Lake {}en", "Lake {}is"),
    Kind.COMPANY: ("{} Works", "{} Group", "{} Brothers", "{} Industries", "{} Partners"),
    Kind.UNIVERSITY: ("{} University", "{} College", "{} Academy", "{} Institute"),
    Kind.SOCIETY: ("{} Society", "{} Guild", "{} Circle", "{} League", "{} Order"),
    Kind.BOOK: ("The Lantern of {}", "Letters to {}", "A House in {}", "The Gardens of {}"),
    Kind.FILM: ("Return to {}", "Escape from {}", "The Road to {}", "Midnight in {}"),
    Kind.OPERA: ("The Queen of {}", "The Bells of {}", "The Widow of {}", "The Thief of {}"),
}
"""A distractor has the stem of the entity it imitates and another form."""


def name_of(draws: Draws, census: Census, entity: Entity, *, female: bool = False) -> str:
    """The name of an entity, which no other entity of the world has.

    Args:
        draws: the draws of the world.
        census: the counts of the world.
        entity: what to name.
        female: for a person, whether she is a woman.
    """
    if entity.kind is Kind.PERSON:
        return _person_name(draws, *family_and_member(entity), female=female)
    # Families come first among the stems, then all entities that are not people.
    others = census.article(Entity(entity.kind, entity.number)) - census.main[Kind.PERSON]
    number = census.families + others
    forms = _FORMS[entity.kind]
    first = draws.below(len(forms), "form", number)
    return forms[(first + entity.variant) % len(forms)].format(_stem(draws, number))


def family_and_member(person: Entity) -> tuple[int, int]:
    """The family's number and the person's place in it; distractors follow the relatives."""
    if person.variant:
        return person.number, FAMILY_SIZE - 1 + person.variant
    return divmod(person.number, FAMILY_SIZE)


def _person_name(draws: Draws, family: int, member: int, *, female: bool) -> str:
    endings = _FEMALE_ENDINGS if female else _MALE_ENDINGS
    parts = (_ONSETS, _VOWELS, endings)
    size = _size(parts)
    # The factor shares no divisor with the number of given names: no two members get the same.
    number = draws.below(size, "given name", family) + member * 1_009
    return f"{_spell(number % size, parts)} {_stem(draws, family)}"


def _stem(draws: Draws, number: int) -> str:
    return _spell(draws.permuted(number, _size(_STEM_PARTS), "stem"), _STEM_PARTS)


def _size(parts: tuple[tuple[str, ...], ...]) -> int:
    size = 1
    for options in parts:
        size *= len(options)
    return size


def _spell(number: int, parts: tuple[tuple[str, ...], ...]) -> str:
    letters = ""
    for options in parts:
        number, choice = divmod(number, len(options))
        letters += options[choice]
    return letters.capitalize()
