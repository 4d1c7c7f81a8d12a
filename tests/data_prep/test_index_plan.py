"""What a plan says before any work."""

import json
from pathlib import Path

import pytest
from typer import Typer
from typer.testing import CliRunner

from data_prep.index import index_command
from data_prep.index_sizes import index_size
from retrieval_server.index_types import BuildParameters, IndexType, build_parameters

WIKIPEDIA = 21_015_324
GIB = 1 << 30


@pytest.fixture
def command() -> Typer:
    app = Typer()
    app.command()(index_command)
    return app


def plan(command: Typer, *arguments: str) -> str:
    result = CliRunner().invoke(command, ["--plan", *arguments], env={"COLUMNS": "160"})
    assert result.exit_code == 0, result.output
    return result.output


def line_of(text: str, type_: str) -> list[str]:
    (line,) = [line for line in text.splitlines() if line.split("│")[1:2] and type_ in line.split()]
    return [cell.strip() for cell in line.strip("│").split("│")]


def test_wikipedia_with_e5(command: Typer) -> None:
    text = plan(command, "--rows", str(WIKIPEDIA), "--dimension", "768")
    # 21,015,324 * 768 * 4 bytes are 60.1 GiB, half of it in half precision, and on GPUs.
    assert line_of(text, "flat")[1] == "60.1"
    # (96 + 8 + 8) bytes a row are 2.2 GiB; its exact vectors, 30.1 GiB, stay on disk.
    assert line_of(text, "ivf-rabitq")[1:4] == ["32.3", "2.2", "30.1"]
    assert {line.split("│")[1].strip() for line in text.splitlines() if "│" in line} >= set(
        IndexType
    )
    assert "recall@3" in text


def test_rows_of_a_corpus_and_dimension_of_an_encoder(command: Typer, tmp_path: Path) -> None:
    (tmp_path / "c.jsonl").write_text('{"id": "1", "text": "a"}\n\n{"id": "2", "text": "b"}\n')
    assert "2 passages, dimension 384" in plan(command, "--corpus", str(tmp_path / "c.jsonl"))
    (tmp_path / "config.json").write_text(json.dumps({"hidden_size": 12}))
    text = plan(command, "--rows", "9", "--encoder", str(tmp_path))
    assert "9 passages, dimension 12" in text


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--plan"], "--plan: give --rows, or --corpus to count them"),
        (["--plan", "--rows", "9", "--encoder", "x/y"], "give --dimension"),
        (["--rows", "9"], "--output: give the folder to make"),
        (["--output", "x"], "--corpus: give it, or --from with a finished index"),
        (["--output", "x", "--from", "nowhere"], "nowhere has no manifest.json"),
    ],
)
def test_what_is_missing_is_named(command: Typer, arguments: list[str], reason: str) -> None:
    result = CliRunner().invoke(command, arguments)
    assert result.exit_code == 2
    assert reason in " ".join(result.stderr.split())


@pytest.mark.parametrize("type_", [IndexType.IVF_PQ, IndexType.IVF_RABITQ])
def test_wikipedia_fits_in_24_gib_by_a_compressed_index(type_: IndexType) -> None:
    made = build_parameters(type_, WIKIPEDIA, 768, BuildParameters())
    size = index_size(type_, WIKIPEDIA, 768, made)
    assert size.resident < 2.5 * GIB
    assert size.build < 24 * GIB
