"""`search-r1 prepare rejection-samples`, with vLLM and the tokenizer replaced."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import Result
from typer.testing import CliRunner

from data_prep.demonstration_file import SCHEMA
from search_r1.prepare import gather_commands

FOUND = {"body": {"result": [[{"document": {"id": "1", "contents": '"Ada"\nnotes'}}]]}}
Sample = Callable[..., Result]


@dataclass
class Seeded:
    """An engine whose second sample is wrong; after `limit` calls it dies."""

    engine: Any
    limit: int = 1_000
    seeds: list[int] = field(default_factory=list)

    @asynccontextmanager
    async def start(self, _: Any) -> AsyncIterator["Seeded"]:
        self.seeds.clear()
        yield self

    def with_seed(self, seed: int) -> Any:
        self.seeds.append(seed)
        return replace(self.engine, reply=self._wrong if len(self.seeds) == 2 else self._right)

    def _right(self, word: str) -> str:
        self.limit -= 1
        if not self.limit:
            raise RuntimeError("the engine died")
        return word.upper()

    def _wrong(self, word: str) -> str:
        return f"{self._right(word)} not"


@pytest.fixture
def engine(fake_engine: Any) -> Seeded:
    return Seeded(fake_engine)


@pytest.fixture
def sample(
    monkeypatch: pytest.MonkeyPatch,
    hub_tokenizer: Any,
    engine: Seeded,
    serve: Callable[..., Any],
    model: Path,
    tmp_path: Path,
    questions_of: Callable[..., Any],
    write_set: Callable[..., Path],
) -> Sample:
    """Samples four questions, of which the engine knows the second and the fourth."""
    monkeypatch.setattr("search_r1.evaluation.vllm_engine.start_vllm", engine.start)
    monkeypatch.setattr("search_r1.model_tokenizer.load_tokenizer", lambda _: hub_tokenizer)
    data = write_set(tmp_path / "nq" / "train.jsonl", questions_of(4))
    words = ["rejection-samples", model, "--data", data, "--retriever", serve(FOUND).url]

    def run(name: str, *more: object) -> Result:
        given = [*words, "--output", tmp_path / name, *more]
        return CliRunner().invoke(gather_commands(), [str(word) for word in given])

    return run


def rows(path: Path) -> list[dict[str, Any]]:
    table = pq.read_table(path)
    assert table.schema.equals(SCHEMA)
    return list(table.to_pylist())


def text(row: dict[str, Any], mask: int) -> str:
    pairs = zip(row["input_ids"], row["mask"], strict=True)
    return "".join(chr(id_) for id_, wanted in pairs if wanted == mask)


def test_the_right_trajectories_become_demonstrations(sample: Sample, tmp_path: Path) -> None:
    result = sample("rs.parquet", "--samples", 3)
    assert result.exit_code == 0, result.output
    made = rows(tmp_path / "rs.parquet")
    assert [row["id"] for row in made] == ["nq/1", "nq/1", "nq/3", "nq/3"]
    # Only what the model wrote is learnt: neither the prompt nor a retrieved word.
    assert text(made[0], 1) == "<search>w1</search><answer>W1</answer>"
    given = text(made[0], 0)
    assert given.startswith("Answer the question at the end.")
    assert given.endswith('\n\n<information>Doc 1(Title: "Ada") notes</information>\n\n')
    tally = "12 trajectories of 4 questions, 4 right, 4 kept; 2 questions have none"
    assert tally in result.output
    chosen = json.loads((tmp_path / "rs.samples" / "selection.json").read_text())
    assert (chosen["samples"], chosen["keep"], chosen["prefer"]) == (3, None, "first")
    assert (chosen["sampled"], chosen["right"], chosen["questions_without"]) == (12, 4, 2)


def test_each_sample_has_a_seed_of_its_own_that_its_manifest_names(
    sample: Sample, engine: Seeded, tmp_path: Path
) -> None:
    sample("rs.parquet", "--samples", 3)
    manifests = [tmp_path / "rs.samples" / str(n) / "manifest.json" for n in (1, 2, 3)]
    sampling = [json.loads(path.read_text())["settings"]["sampling"] for path in manifests]
    assert [one["seed"] for one in sampling] == engine.seeds
    assert len(set(engine.seeds)) == 3
    assert {one["temperature"] for one in sampling} == {1.0}


def test_at_most_so_many_of_a_question(sample: Sample, tmp_path: Path) -> None:
    sample("rs.parquet", "--samples", 3, "--keep", 1)
    assert [row["id"] for row in rows(tmp_path / "rs.parquet")] == ["nq/1", "nq/3"]


def test_a_run_that_was_stopped_goes_on_and_ends_the_same(
    sample: Sample, engine: Seeded, tmp_path: Path
) -> None:
    assert sample("whole.parquet", "--samples", 3).exit_code == 0
    engine.limit = 7
    assert isinstance(sample("rs.parquet", "--samples", 3).exception, RuntimeError)
    assert not (tmp_path / "rs.parquet").exists()
    logs = (tmp_path / "rs.samples").glob("*/answers.jsonl")
    stored = sum(len(log.read_text().splitlines()) for log in logs)
    assert 6 <= stored < 12
    engine.limit = 1_000
    assert sample("rs.parquet", "--samples", 3).exit_code == 0
    assert engine.limit == 1_000 - (12 - stored)
    assert rows(tmp_path / "rs.parquet") == rows(tmp_path / "whole.parquet")


def test_more_samples_add_to_those_there_are(sample: Sample, engine: Seeded) -> None:
    sample("rs.parquet", "--samples", 2)
    before = engine.limit
    assert sample("rs.parquet", "--samples", 3).exit_code == 0
    assert before - engine.limit == 4


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--samples", 0], "samples: 0 must be at least 1"),
        (["--keep", 0], "keep: 0 must be at least 1"),
        (["--temperature", 0], "temperature: at 0 all 5 samples of a question are the same"),
        (["--questions", 9], "sample: 9 is out of range"),
        (["--top-k", 0], "search.top_k must be above 0"),
        (["--output", "rs.jsonl"], "must end in .parquet"),
    ],
)
def test_bad_input_is_one_message(sample: Sample, words: list[object], message: str) -> None:
    result = sample("rs.parquet", *words)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.output


def test_nothing_right_is_told_and_leaves_no_file(
    sample: Sample, tmp_path: Path, engine: Seeded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Seeded, "_right", lambda *_: "something else")
    result = sample("rs.parquet")
    assert result.exit_code == 2
    assert "no trajectory is right (20 trajectories of 4 questions, 0 right" in result.stderr
    assert not (tmp_path / "rs.parquet").exists()


def test_a_trajectory_without_its_tokens_is_named(sample: Sample, tmp_path: Path) -> None:
    sample("rs.parquet", "--samples", 1)
    answers = tmp_path / "rs.samples" / "1" / "answers.jsonl"
    lines = [json.loads(line) for line in answers.read_text().splitlines()]
    del lines[1]["mask"]
    answers.write_text("".join(json.dumps(line) + "\n" for line in lines))
    result = sample("rs.parquet", "--samples", 1)
    assert result.exit_code == 2
    assert "answers.jsonl:2" in result.stderr
    assert "input_ids and mask" in result.stderr
