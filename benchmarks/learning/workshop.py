"""What all experiments share: two worlds, an index, the policy after its warm start.

Everything is made by the commands that a user would type, once; what is there is left as it is.
"""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

COMMAND: Final = str(Path(sys.executable).with_name("search-r1"))
ROOT: Final = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Workshop:
    """A folder of made parts, and how long its policy is taught."""

    folder: Path
    reading_steps: int = 1_500
    """Of pretraining."""
    demonstrated: int = 5_000
    """Demonstrations of the warm start."""

    @property
    def world(self) -> Path:
        """The world to train and test in."""
        return self.folder / "world"

    @property
    def index(self) -> Path:
        """A BM25 index of its articles."""
        return self.world / "index"

    @property
    def school(self) -> Path:
        """Another world, of which the demonstrations of the warm start are."""
        return self.folder / "school"

    @property
    def reader(self) -> Path:
        """The policy after pretraining."""
        return self.folder / "reader"

    @property
    def policy(self) -> Path:
        """The policy after the warm start, where every experiment begins."""
        return self.folder / "policy"

    @property
    def lessons(self) -> Path:
        """Demonstrations, and as many reading texts so that reading is not unlearnt."""
        return self.folder / "lessons.parquet"

    @property
    def demonstrations(self) -> Path:
        """Searches and answers by chance."""
        return self.folder / "demonstrations.parquet"

    def prepare(self) -> None:
        """Make what is not there yet."""
        self.folder.mkdir(parents=True, exist_ok=True)
        _make_world(self.world, articles=1_000, seed=1, train=1_500, test=128)
        _make_world(self.school, articles=2_000, seed=2, train=3_000, test=64)
        _search_r1(
            *("prepare", "index", "--corpus", self.world / "corpus.jsonl"),
            *("--output", self.index, "--type", "bm25"),
        )
        _run(
            *(sys.executable, "-m", "benchmarks.learning.pretrain", "--output", self.reader),
            *("--steps", self.reading_steps),
        )
        if not self.demonstrations.exists():
            self._demonstrate()
        if not self.lessons.exists():
            _run(
                *(sys.executable, "-m", "benchmarks.learning.lessons", self.demonstrations),
                *(self.reader, self.lessons),
            )
        if not self.policy.exists():
            self._warm_start()

    def _demonstrate(self) -> None:
        """One in five guesses at once; the others search, and answer with any name they read."""
        _search_r1(
            *("prepare", "demonstrations", "--world", self.school, "--model", self.reader),
            *("--output", self.demonstrations, "--count", self.demonstrated),
            *("--gold-share", 0, "--guess-share", 0.2),
            *("--top-k", 1, "--max-searches", 3, "--observation-tokens", 256),
        )

    def _warm_start(self) -> None:
        _search_r1(
            *("warm-start", "--model", self.reader, "--data", self.lessons),
            *("--output", self.policy, "--batch-size", 32, "--micro-batch-size", 32),
            *("--learning-rate", 1e-3, "--epochs", 1),
        )


def _make_world(folder: Path, *, articles: int, seed: int, train: int, test: int) -> None:
    if (folder / "manifest.json").exists():
        return
    _search_r1(
        *("prepare", "world", "--output", folder, "--articles", articles, "--seed", seed),
        *("--hops", 1, "--train-questions", train, "--test-questions", test),
    )


def _search_r1(*words: object) -> None:
    _run(COMMAND, *words)


def _run(*words: object) -> None:
    subprocess.run([str(word) for word in words], cwd=ROOT, check=True)  # noqa: S603 - no shell
