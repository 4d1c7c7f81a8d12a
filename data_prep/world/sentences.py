"""The wording of the articles: how a fact, an opening and a remark are written.

`{S}` is the subject at the start of a sentence, `{P}` and `{p}` its possessive, `{o}` the value
of the fact. An article never uses the wording of a question (see `wordings.py`).
"""

from collections.abc import Mapping

from data_prep.world.schema import Kind, Relation

FACT_SENTENCES: Mapping[Relation, tuple[str, ...]] = {
    Relation.BORN_IN: (
        "{S} came into the world in {o}.",
        "{P} first home was in {o}, where {p} life began.",
        "{S} was a native of {o}.",
    ),
    Relation.BIRTH_YEAR: (
        "{P} birth is recorded in the year {o}.",
        "{S} was born on a winter day in {o}.",
        "{P} life began in {o}.",
    ),
    Relation.FATHER: (
        "{P} father was {o}.",
        "{S} grew up in the house of {p} father, {o}.",
        "On the father's side, {p} parent was {o}.",
    ),
    Relation.MOTHER: (
        "{P} mother was {o}.",
        "{S} learned to read from {p} mother, {o}.",
        "On the mother's side, {p} parent was {o}.",
    ),
    Relation.SPOUSE: (
        "{S} was married to {o}.",
        "{S} shared a long marriage with {o}.",
        "{P} wedding to {o} was a quiet one.",
    ),
    Relation.EDUCATED_AT: (
        "{S} was educated at {o}.",
        "{S} took a degree from {o}.",
        "{P} student years were spent at {o}.",
    ),
    Relation.TAUGHT_BY: (
        "{S} was a pupil of {o}.",
        "{P} skill came from long lessons with {o}.",
        "As a student {p} guide was {o}.",
    ),
    Relation.EMPLOYER: (
        "{S} worked for {o} over many years.",
        "{S} earned a living at {o}.",
        "{P} job was at {o}.",
    ),
    Relation.MEMBER_OF: (
        "{S} belonged to {o}.",
        "{S} paid yearly dues to {o}.",
        "{P} evenings were spent at meetings of {o}.",
    ),
    Relation.LOCATED_IN: (
        "{S} is a city of {o}.",
        "{S} belongs to {o}.",
        "{P} people are citizens of {o}.",
    ),
    Relation.ON_LAKE: (
        "{S} stands on the shore of {o}.",
        "{P} harbour opens onto {o}.",
        "Boats leave {p} quays to cross {o}.",
    ),
    Relation.MAYOR: (
        "{P} town hall is led by {o}, the mayor.",
        "{P} elected mayor is {o}.",
        "The office of mayor is held by {o}.",
    ),
    Relation.CAPITAL: (
        "{P} government sits in the capital, {o}.",
        "{P} capital city is {o}.",
        "The parliament meets in the capital, {o}.",
    ),
    Relation.PRESIDENT: (
        "{P} head of state is President {o}.",
        "The presidency is held by {o}.",
        "{P} people elected {o} as president.",
    ),
    Relation.LAKE_COUNTRY: (
        "{S} lies within the borders of {o}.",
        "{P} waters belong wholly to {o}.",
        "{S} is one of the best known lakes of {o}.",
    ),
    Relation.MAPPED_BY: (
        "{P} shores were first surveyed by {o}.",
        "The first chart of its waters was drawn by {o}.",
        "{P} depth was first measured and mapped by {o}.",
    ),
    Relation.FOUNDER: (
        "{S} was established by {o}.",
        "{S} was the creation of {o}.",
        "{P} founder was {o}.",
    ),
    Relation.HEADQUARTERS: (
        "{S} is based in {o}.",
        "{P} main office is in {o}.",
        "{P} head office stands on a square in {o}.",
    ),
    Relation.FOUNDED_YEAR: (
        "{S} dates from {o}.",
        "{P} history goes back to {o}.",
        "{S} was set up in {o}.",
    ),
    Relation.CAMPUS_CITY: (
        "{P} campus is in {o}.",
        "{P} lecture halls stand in the centre of {o}.",
        "Students come to {o} for {p} lectures.",
    ),
    Relation.RECTOR: (
        "{P} rector was {o}.",
        "For a generation {p} rector was {o}.",
        "{S} was led by its rector, {o}.",
    ),
    Relation.AUTHOR: (
        "{S} was written by {o}.",
        "{S} came from the pen of {o}.",
        "{P} author was {o}.",
    ),
    Relation.PUBLISHER: (
        "{S} was brought out by {o}.",
        "{P} publisher was {o}.",
        "The first edition was printed and sold by {o}.",
    ),
    Relation.PUBLISHED_YEAR: (
        "{S} reached the bookshops in {o}.",
        "{P} first edition is from {o}.",
        "{S} first appeared in {o}.",
    ),
    Relation.DIRECTOR: (
        "{S} was directed by {o}.",
        "{P} director was {o}.",
        "The work behind the camera was led by the director, {o}.",
    ),
    Relation.LEAD_ACTOR: (
        "The leading part was played by {o}.",
        "{S} starred {o}.",
        "{P} main character was played by {o}.",
    ),
    Relation.BASED_ON: (
        "{P} story was taken from the book {o}.",
        "{S} was adapted from the book {o}.",
        "The script follows the book {o} closely.",
    ),
    Relation.RELEASE_YEAR: (
        "{S} came to cinemas in {o}.",
        "{S} was first shown in {o}.",
        "{P} release was in {o}.",
    ),
    Relation.COMPOSER: (
        "{P} music was written by {o}.",
        "{S} was composed by {o}.",
        "The score is the work of the composer {o}.",
    ),
    Relation.PREMIERE_CITY: (
        "{S} was first performed in {o}.",
        "{P} first night was in {o}.",
        "The first audience heard it in {o}.",
    ),
}

OPENINGS: Mapping[Kind, tuple[str, ...]] = {
    Kind.PERSON: ("{n} was {d}.", "{n} was known as {d}.", "{n} spent a working life as {d}."),
    Kind.CITY: ("{n} is {d}.", "The place called {n} is {d}."),
    Kind.COUNTRY: ("{n} is {d}.", "The country of {n} is {d}."),
    Kind.LAKE: ("{n} is {d}.", "The water called {n} is {d}."),
    Kind.COMPANY: ("{n} is {d}.", "The company {n} is {d}."),
    Kind.UNIVERSITY: ("{n} is {d}.", "The school called {n} is {d}."),
    Kind.SOCIETY: ("{n} is {d}.", "The association called {n} is {d}."),
    Kind.BOOK: ("{n} is {d}.", "The book {n} is {d}."),
    Kind.FILM: ("{n} is {d}.", "The film {n} is {d}."),
    Kind.OPERA: ("{n} is {d}.", "The opera {n} is {d}."),
}
"""`{n}` is the name, `{d}` one of the kind's descriptions."""
