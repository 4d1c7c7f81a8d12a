"""Words that carry no fact of the world: what a thing is described as, and remarks about it.

Remarks make articles long enough and differ between them; no question asks about them and they
name nothing that could contradict a fact. `{k}` is a drawn number from 2 to 99.
"""

from collections.abc import Mapping

from data_prep.world.schema import Kind

_OCCUPATIONS = (
    "an engineer",
    "a surveyor",
    "a translator",
    "a clerk",
    "an accountant",
    "a gardener",
    "a carpenter",
    "a baker",
    "an optician",
    "a printer",
    "a chemist",
    "a painter",
    "a tailor",
    "a geologist",
    "a botanist",
    "a nurse",
    "a pilot",
    "a sculptor",
    "a violinist",
    "a glassmaker",
    "a clockmaker",
    "a stonemason",
    "an archivist",
    "an illustrator",
    "a linguist",
    "an astronomer",
    "a draper",
    "a bookbinder",
    "a cartographer",
    "a weaver",
)

DESCRIPTIONS: Mapping[Kind, tuple[str, ...]] = {
    Kind.PERSON: _OCCUPATIONS,
    Kind.CITY: (
        "an old market town",
        "a port with steep streets",
        "a city of bridges and towers",
        "a quiet city with wide squares",
        "a busy town of weavers and traders",
    ),
    Kind.COUNTRY: (
        "a mountainous land",
        "a flat and green country",
        "a small republic with a long coast",
        "a dry country of hills and plains",
        "a wooded republic",
    ),
    Kind.LAKE: (
        "a long and narrow lake",
        "a cold mountain lake",
        "a shallow lake ringed by reeds",
        "a dark lake between steep cliffs",
    ),
    Kind.COMPANY: (
        "a family business",
        "a large trading house",
        "a maker of tools and paper",
        "a firm with several mills",
        "a company known for careful work",
    ),
    Kind.UNIVERSITY: (
        "a school of science and law",
        "a small school of the liberal arts",
        "a large place of learning",
        "a school known for medicine",
    ),
    Kind.SOCIETY: (
        "a club for lovers of old maps",
        "a learned association",
        "an association of walkers and climbers",
        "a club that collects songs and tales",
    ),
    Kind.BOOK: (
        "a long novel",
        "a novel about two sisters",
        "a book of linked stories",
        "a novel of life at sea",
        "a short and bitter novel",
    ),
    Kind.FILM: (
        "a slow drama",
        "a comedy of errors",
        "a film about a lost letter",
        "a thriller set on a night train",
    ),
    Kind.OPERA: (
        "an opera in three acts",
        "a comic opera",
        "an opera with a large chorus",
        "a short opera for six voices",
    ),
}

_PERSON = (
    "{S} kept a diary of {k} volumes.",
    "{S} collected shells, coins and old stamps.",
    "{S} liked long walks before breakfast.",
    "A box of {k} letters in {p} hand survives.",
    "Friends praised {p} patience and dry humour.",
    "{S} spoke softly and wrote in a small, neat hand.",
    "{S} played chess by post with {k} partners.",
    "{P} portrait shows a tall figure in a grey coat.",
)
_COUNTRY = (
    "The winters are long and the summers are mild.",
    "A spring fair with music is held in every village.",
    "The local dish is a soup of barley and smoked fish.",
    "The stone of the region is pale and easy to cut.",
    "{P} flag has a heron on a field of {k} stripes.",
    "{P} coins are square and show an ear of wheat.",
)
_CITY = (
    "About {k} thousand people live there.",
    "{P} old walls were taken down to build a road.",
    "Storks nest on the roofs in early summer.",
    "A narrow tramway with {k} stops crosses the centre.",
    "The market is known for honey, rope and painted plates.",
    "A clock tower with {k} steps can be climbed.",
    "Most of the houses are built of pale stone.",
)
_LAKE = (
    "It is about {k} kilometres long.",
    "In winter the ice is thick enough for sledges.",
    "Trout and pike are caught there by small boats.",
    "A footpath with {k} benches follows the shore.",
    "The water is clear and turns green in late summer.",
    "Two small islands near the middle are home to herons.",
)
_ORGANISATION = (
    "It is run by a board of {k} people.",
    "{P} emblem is a white heron on a blue field.",
    "A fire once destroyed {p} oldest records.",
    "{P} yearly report is printed on yellow paper.",
    "It opens its doors to visitors on the first day of spring.",
    "{P} library holds {k} thousand volumes.",
    "{P} motto praises patience and good order.",
)
_WORK = (
    "Critics praised its plain style.",
    "It was revised {k} times before it was finished.",
    "The ending surprised many people.",
    "It is remembered for a scene in a snowstorm.",
    "A shorter version was made later.",
    "It won a small prize and many admirers.",
    "The story is told in {k} short scenes.",
)

REMARKS: Mapping[Kind, tuple[str, ...]] = {
    Kind.PERSON: _PERSON,
    Kind.CITY: _CITY,
    Kind.COUNTRY: _COUNTRY,
    Kind.LAKE: _LAKE,
    Kind.COMPANY: _ORGANISATION,
    Kind.UNIVERSITY: _ORGANISATION,
    Kind.SOCIETY: _ORGANISATION,
    Kind.BOOK: _WORK,
    Kind.FILM: _WORK,
    Kind.OPERA: _WORK,
}
