"""A fictional encyclopedia: a seeded, consistent world of things that exist nowhere.

No model can know its facts, so searching its articles is the only way to answer its questions.
Reading order: config -> draws -> schema -> census -> names -> people, places, organisations,
works -> world -> sentences, remarks -> articles -> chains -> wordings -> questions -> write.

Run it as `search-r1 prepare world --output DIR`.
"""

from data_prep.world.chains import Split
from data_prep.world.config import WorldConfig
from data_prep.world.questions import Hop, WorldQuestion, questions, stated_facts
from data_prep.world.world import World
from data_prep.world.write import Manifest, write_world

__all__ = [
    "Hop",
    "Manifest",
    "Split",
    "World",
    "WorldConfig",
    "WorldQuestion",
    "questions",
    "stated_facts",
    "write_world",
]
