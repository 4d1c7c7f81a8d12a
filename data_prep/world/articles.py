"""Entity -> article: the text in which a world's facts are found."""

import json

from data_prep.world.remarks import DESCRIPTIONS, REMARKS
from data_prep.world.schema import Entity, Fact, Kind
from data_prep.world.sentences import FACT_SENTENCES, OPENINGS
from data_prep.world.world import World

MIN_WORDS = 30
MAX_WORDS = 120

_PRONOUN_SHARE = 0.6


def article_line(world: World, entity: Entity) -> str:
    """One line of the corpus: JSON with `id` and `contents` (title in quotes, line break, text)."""
    contents = f'"{world.name(entity)}"\n{article_text(world, entity)}'
    row = {"id": world.article_id(entity), "contents": contents}
    return json.dumps(row, ensure_ascii=False) + "\n"


def article_text(world: World, entity: Entity) -> str:
    """The text of 30 to 120 words: an opening, then facts and remarks in a drawn order.

    It states all facts of the entity and mentions no entity other than their values.
    """
    key = world.census.article(entity)
    facts = world.facts(entity)
    sentences = [_fact_sentence(world, fact, key) for fact in facts]
    opening = _opening(world, entity, key)
    words = len(opening.split()) + sum(len(sentence.split()) for sentence in sentences)
    for remark in _remarks(world, entity, key):
        sentences.append(remark)
        words += len(remark.split())
        if words >= MIN_WORDS:
            break
    return " ".join([opening, *world.draws.shuffled(sentences, "sentence order", key)])


def mention(world: World, entity: Entity) -> str:
    """The entity's name as it stands inside a sentence."""
    name = world.name(entity)
    return f"the {name}" if entity.kind is Kind.SOCIETY else name


def _opening(world: World, entity: Entity, key: int) -> str:
    template = world.draws.pick(OPENINGS[entity.kind], "opening", key)
    description = world.draws.pick(DESCRIPTIONS[entity.kind], "description", key)
    name = mention(world, entity) if template.startswith("{n}") else world.name(entity)
    return _capital(template.format(n=name, d=description))


def _fact_sentence(world: World, fact: Fact, key: int) -> str:
    number = list(FACT_SENTENCES).index(fact.relation)
    template = world.draws.pick(FACT_SENTENCES[fact.relation], "fact wording", key, number)
    value = str(fact.value) if isinstance(fact.value, int) else mention(world, fact.value)
    named = not world.draws.chance(_PRONOUN_SHARE, "pronoun", key, number)
    return _fill(world, fact.subject, template, named=named, o=value)


def _remarks(world: World, entity: Entity, key: int) -> list[str]:
    remarks = world.draws.shuffled(REMARKS[entity.kind], "remarks", key)
    numbers = [2 + world.draws.below(98, "remark number", key, i) for i in range(len(remarks))]
    return [
        _fill(world, entity, remark, named=False, k=str(number))
        for remark, number in zip(remarks, numbers, strict=True)
    ]


def _fill(world: World, subject: Entity, template: str, *, named: bool, **values: str) -> str:
    if subject.kind is not Kind.PERSON:
        pronoun, possessive = "it", "its"
    elif world.is_female(subject):
        pronoun, possessive = "she", "her"
    else:
        pronoun, possessive = "he", "his"
    name = mention(world, subject) if named else pronoun
    owner = name + ("'" if name.endswith("s") else "'s") if named else possessive
    filled = template.format(S=_capital(name), P=_capital(owner), p=possessive, **values)
    return _capital(filled)


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]
