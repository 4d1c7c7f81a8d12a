"""A world on disk: `corpus.jsonl`, `train.jsonl`, `test.jsonl` and `manifest.json`.

Run it as `search-r1 prepare world --output DIR`.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from data_prep.world.articles import article_line
from data_prep.world.chains import Split
from data_prep.world.config import WorldConfig
from data_prep.world.questions import questions
from data_prep.world.world import World
from search_r1.files import atomic_files, atomic_path

CORPUS = "corpus.jsonl"
MANIFEST = "manifest.json"


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a world's folder holds. The same settings always give the same checksums."""

    settings: WorldConfig
    questions: dict[str, dict[int, int]]
    """Split -> number of hops -> number of questions."""
    sha256: dict[str, str]
    """File name -> checksum."""


def question_file(split: Split) -> str:
    """The name of a split's file of questions."""
    return f"{split}.jsonl"


def write_world(
    config: WorldConfig, folder: Path, advance: Callable[[int], None] = lambda _: None
) -> Manifest:
    """Write a world, a line at a time.

    The files come into the folder together, once all are made, and the manifest last: a folder with
    a manifest is complete, and a failure leaves an earlier world as it was.

    Args:
        config: what to make.
        folder: where to write; created when missing, files of an earlier world are replaced.
        advance: called with 1 after each article and each question.

    Raises:
        ValueError: the world has too few different questions.
        OSError: the folder cannot be written.
    """
    with atomic_files(folder, MANIFEST) as new:
        return _write_all(config, new, advance)


def _write_all(config: WorldConfig, folder: Path, advance: Callable[[int], None]) -> Manifest:
    world = World(config)
    counts: dict[str, dict[int, int]] = {}
    checksums: dict[str, str] = {}
    # Questions first: a world that is too small for them says so before the long part.
    for split in (Split.TEST, Split.TRAIN):
        hops: Counter[int] = Counter()
        name = question_file(split)
        checksums[name] = _write(folder / name, _question_lines(world, split, hops), advance)
        counts[split.value] = dict(sorted(hops.items()))
    articles = (article_line(world, entity) for entity in world.entities())
    checksums[CORPUS] = _write(folder / CORPUS, articles, advance)
    manifest = Manifest(config, counts, checksums)
    text = json.dumps(asdict(manifest), indent=2, sort_keys=True) + "\n"
    _write(folder / MANIFEST, [text])
    return manifest


def _question_lines(world: World, split: Split, hops: Counter[int]) -> Iterator[str]:
    for question in questions(world, split):
        hops[len(question.chain)] += 1
        yield question.line()


def _write(
    path: Path, lines: Iterable[str], advance: Callable[[int], None] = lambda _: None
) -> str:
    checksum = hashlib.sha256()
    with atomic_path(path) as temporary, temporary.open("wb") as file:
        for line in lines:
            data = line.encode()
            file.write(data)
            checksum.update(data)
            advance(1)
    return checksum.hexdigest()
