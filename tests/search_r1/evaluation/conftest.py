"""A model folder, question files, and an engine and a tokenizer in memory."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from data_prep.questions import Question
from search_r1.evaluation.config import EvalConfig
from search_r1.evaluation.method import Tools
from search_r1.passages import Passage
from search_r1.rollout import Generate, Generation
from search_r1.settings import SearchSettings

PASSAGE = Passage("1", "Ada", "Ada wrote notes", 0.5)


class FakeHubTokenizer:
    """One id a character, with the interface of a Hugging Face tokenizer without a template."""

    chat_template = None

    def encode(self, text: str, *, add_special_tokens: bool = True) -> list[int]:
        return list(map(ord, text))

    def decode(self, token_ids: list[int], *, clean_up_tokenization_spaces: bool) -> str:
        return "".join(map(chr, token_ids))

    def apply_chat_template(self, conversation: list[dict[str, str]], **options: Any) -> Any:
        raise NotImplementedError


@dataclass
class FakeEngine:
    """Searches once, then answers with what `reply` makes of the prompt's last word."""

    reply: Callable[[str], str] = str.upper
    stops: list[list[str]] = field(default_factory=list)
    calls: int = 0
    running: int = 0
    most_running: int = 0

    def until(self, stop: Sequence[str]) -> Generate:
        self.stops.append(list(stop))
        return self._generate

    async def _generate(self, ids: list[int], max_tokens: int) -> Generation:
        self.calls += 1
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        await asyncio.sleep(0)
        self.running -= 1
        text = "".join(map(chr, ids))
        # A reading of passages is asked without a question in this form.
        word = (text.partition("Question: ")[2].partition("?")[0].split() or ["none"])[-1]
        searched = "</information>" in text.partition("Question: ")[2]
        turn = f"<answer>{self.reply(word)}</answer>" if searched else f"<search>{word}</search>"
        return Generation(list(map(ord, turn))[:max_tokens])

    @asynccontextmanager
    async def start(self, _: EvalConfig) -> AsyncIterator["FakeEngine"]:
        yield self


class FakeLibrary:
    async def search(self, queries: Sequence[str], top_k: int) -> list[list[Passage]]:
        return [[PASSAGE] for _ in queries]

    async def aclose(self) -> None:
        pass


def make_questions(count: int, source: str = "nq") -> list[Question]:
    """Of which `FakeEngine` has every second right."""
    return [
        Question(f"{source}/{i}", f"Who is w{i}", (f"w{i}" if i % 2 else "x",), source)
        for i in range(count)
    ]


def write_jsonl(path: Path, questions: Iterable[Question]) -> Path:
    rows = (
        {"id": q.id, "question": q.question, "golden_answers": q.golden_answers} for q in questions
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def tools() -> Tools:
    return Tools(FakeEngine(), FakeLibrary(), FakeHubTokenizer(), SearchSettings())


@pytest.fixture(scope="session")
def hub_tokenizer() -> FakeHubTokenizer:
    return FakeHubTokenizer()


@pytest.fixture
def fake_engine() -> FakeEngine:
    return FakeEngine()


@pytest.fixture(scope="session")
def questions_of() -> Callable[..., list[Question]]:
    return make_questions


@pytest.fixture(scope="session")
def write_set() -> Callable[[Path, Iterable[Question]], Path]:
    return write_jsonl


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"weights")
    return folder


@pytest.fixture
def config(tmp_path: Path, model: Path) -> Callable[..., EvalConfig]:
    """An evaluation of ten questions of nq without a server, with any field changed."""
    data = write_jsonl(tmp_path / "nq" / "test.jsonl", make_questions(10))

    def make(**changes: Any) -> EvalConfig:
        fields = {
            "model": model,
            "data": (data,),
            "output": tmp_path / "out",
            "searchable": False,
            "concurrency": 3,
        }
        return EvalConfig(**(fields | changes))

    return make
