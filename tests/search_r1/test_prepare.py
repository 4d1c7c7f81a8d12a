"""Every command of `search-r1 prepare` refuses an output that cannot be made before any work."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from data_prep import cli, corpus_command, index, qa_command, rejection_command, sft_command
from data_prep import demonstrations_command as demonstrations
from search_r1 import prepare

RUNNER = CliRunner()
FOLDERS = ("world", "qa", "index", "model")
WORK = {
    (cli, "write_world"),
    (cli, "read_questions"),
    (qa_command, "open_source"),
    (corpus_command, "clean_corpus"),
    (index, "build_index"),
    (prepare, "write_smollm2"),
    (demonstrations, "load_tokenizer"),
    (sft_command, "read_files"),
    (rejection_command, "Selection"),
}


@pytest.fixture
def words(tmp_path: Path) -> dict[str, list[object]]:
    """What each command needs besides its output."""
    (tmp_path / "in.jsonl").write_text("{}")
    some, model = tmp_path / "in.jsonl", ["--model", tmp_path]
    return {
        "world": [],
        "qa": [],
        "model": [],
        "index": ["--corpus", some],
        "corpus": [some],
        "questions": [some],
        "demonstrations": ["--world", tmp_path, *model],
        "sft": [some, *model],
        "rejection-samples": [tmp_path, "--data", some],
    }


@pytest.fixture(autouse=True)
def no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise AssertionError("work was begun")

    for module, name in WORK:
        monkeypatch.setattr(module, name, fail)


def output_name(command: str) -> str:
    return {"corpus": "x.jsonl"}.get(command, "x" if command in FOLDERS else "x.parquet")


def test_no_command_is_left_out(words: dict[str, list[object]]) -> None:
    app: Any = prepare.gather_commands()
    named = {one.name or one.callback.__name__ for one in app.registered_commands}
    assert named == set(words)


@pytest.mark.parametrize("below", ["", "new"])
def test_below_a_file_nothing_is_made(
    tmp_path: Path, words: dict[str, list[object]], below: str
) -> None:
    file = tmp_path / "file"
    file.touch()
    for command, needed in words.items():
        output = file / below / output_name(command)
        told = refuse(command, *needed, "--output", output)
        assert told.startswith(f"error: output: {file} is a file, not a folder"), command


def test_a_file_is_no_folder_and_a_folder_no_file(
    tmp_path: Path, words: dict[str, list[object]]
) -> None:
    for command, needed in words.items():
        output = tmp_path / command / output_name(command)
        output.parent.mkdir()
        make: Callable[[], object] = output.touch if command in FOLDERS else output.mkdir
        make()
        kind = "file" if command in FOLDERS else "folder"
        told = refuse(command, *needed, "--output", output)
        assert told.startswith(f"error: output: {output} is a {kind}"), command


def refuse(*arguments: object) -> str:
    """The one line with which a command ends."""
    result = RUNNER.invoke(prepare.gather_commands(), list(map(str, arguments)))
    assert result.exit_code == 2, (arguments, result.output, result.exception)
    return result.output.splitlines()[-1]
