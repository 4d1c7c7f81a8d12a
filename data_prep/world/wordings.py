"""The wording of the questions: for each relation, whole questions and noun phrases.

A question of several hops nests phrases: "Who founded" + "the employer of" + the name. The words
are simple and differ from those of the articles (see `sentences.py`).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from data_prep.world.schema import Relation


@dataclass(frozen=True, slots=True)
class Wording:
    """How a relation is asked for; `{}` is the subject. Years have no phrases."""

    questions: tuple[str, ...]
    phrases: tuple[str, ...] = ()


WORDINGS: Mapping[Relation, Wording] = {
    Relation.BORN_IN: Wording(
        ("In which city was {} born?", "What is the birthplace of {}?"),
        ("the birthplace of {}", "the city where {} was born"),
    ),
    Relation.BIRTH_YEAR: Wording(
        ("In which year was {} born?", "What is the birth year of {}?"),
    ),
    Relation.FATHER: Wording(
        ("Who is the father of {}?", "What is the name of the father of {}?"),
        ("the father of {}",),
    ),
    Relation.MOTHER: Wording(
        ("Who is the mother of {}?", "What is the name of the mother of {}?"),
        ("the mother of {}",),
    ),
    Relation.SPOUSE: Wording(
        ("Who is the spouse of {}?", "Who did {} marry?"),
        ("the spouse of {}",),
    ),
    Relation.EDUCATED_AT: Wording(
        ("Which school did {} attend?", "At which school did {} study?"),
        ("the school that {} attended",),
    ),
    Relation.TAUGHT_BY: Wording(
        ("Who taught {}?", "Who was the teacher of {}?"),
        ("the teacher of {}",),
    ),
    Relation.EMPLOYER: Wording(
        ("Which company employed {}?", "What is the employer of {}?"),
        ("the employer of {}",),
    ),
    Relation.MEMBER_OF: Wording(
        ("Which group did {} join?", "Of which group was {} a member?"),
        ("the group that {} joined",),
    ),
    Relation.LOCATED_IN: Wording(
        ("In which country is {}?", "In which country does {} lie?"),
        ("the country of {}",),
    ),
    Relation.ON_LAKE: Wording(
        ("On which lake is {}?", "Which lake is next to {}?"),
        ("the lake next to {}",),
    ),
    Relation.MAYOR: Wording(
        ("Who is the mayor of {}?", "Who governs {}?"),
        ("the mayor of {}",),
    ),
    Relation.CAPITAL: Wording(
        ("What is the capital of {}?", "Which city is the capital of {}?"),
        ("the capital of {}",),
    ),
    Relation.PRESIDENT: Wording(
        ("Who is the president of {}?", "Who is the leader of {}?"),
        ("the president of {}",),
    ),
    Relation.LAKE_COUNTRY: Wording(
        ("In which country is {}?", "In which country does {} lie?"),
        ("the country of {}",),
    ),
    Relation.MAPPED_BY: Wording(
        ("Who first mapped {}?", "Who made the first map of {}?"),
        ("the first person to map {}",),
    ),
    Relation.FOUNDER: Wording(
        ("Who founded {}?", "Who is the founder of {}?"),
        ("the founder of {}",),
    ),
    Relation.HEADQUARTERS: Wording(
        ("In which city is {} headquartered?", "In which city is the headquarters of {}?"),
        ("the headquarters city of {}",),
    ),
    Relation.FOUNDED_YEAR: Wording(
        ("In which year was {} founded?", "What is the founding year of {}?"),
    ),
    Relation.CAMPUS_CITY: Wording(
        ("In which city is {}?", "Which city is the home of {}?"),
        ("the home city of {}",),
    ),
    Relation.RECTOR: Wording(
        ("Who was the head of {}?", "Who was in charge of {}?"),
        ("the head of {}",),
    ),
    Relation.AUTHOR: Wording(
        ("Who wrote {}?", "Who is the writer of {}?"),
        ("the writer of {}",),
    ),
    Relation.PUBLISHER: Wording(
        ("Which company published {}?", "What is the publisher of {}?"),
        ("the publisher of {}",),
    ),
    Relation.PUBLISHED_YEAR: Wording(
        ("In which year was {} published?", "What is the publication year of {}?"),
    ),
    Relation.DIRECTOR: Wording(
        ("Who directed {}?", "Who is the director of {}?"),
        ("the director of {}",),
    ),
    Relation.LEAD_ACTOR: Wording(
        ("Who played the lead in {}?", "Who is the star of {}?"),
        ("the star of {}",),
    ),
    Relation.BASED_ON: Wording(
        ("Which book is {} based on?", "What book was made into {}?"),
        ("the book behind {}",),
    ),
    Relation.RELEASE_YEAR: Wording(
        ("In which year was {} released?", "What is the release year of {}?"),
    ),
    Relation.COMPOSER: Wording(
        ("Who composed {}?", "Who is the composer of {}?"),
        ("the composer of {}",),
    ),
    Relation.PREMIERE_CITY: Wording(
        ("In which city did {} premiere?", "Where was the premiere of {}?"),
        ("the premiere city of {}",),
    ),
}
