import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from click.testing import Result
from typer.testing import CliRunner

from search_r1.run_report.command import REPORT_EXAMPLES, report_command

Run = Callable[..., Result]


@pytest.fixture
def run() -> Run:
    app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode="markdown")
    app.command(epilog=REPORT_EXAMPLES)(report_command)
    return lambda *words: CliRunner().invoke(app, [str(word) for word in words])


def test_runs_become_one_page(run: Run, made_run: Any, tmp_path: Path) -> None:
    output = tmp_path / "pages" / "report.html"
    result = run(made_run("ppo"), made_run("grpo"), "--output", output)
    assert (result.exit_code, result.stdout) == (0, f"{output}: ppo, grpo\n")
    assert "Search-R1: ppo, grpo" in output.read_text()
    assert list(output.parent.iterdir()) == [output]


def test_runs_of_one_name_keep_their_folders(run: Run, made_run: Any, tmp_path: Path) -> None:
    folders = made_run("a/ppo"), made_run("b/ppo")
    result = run(*folders, "--output", tmp_path / "x.html")
    assert f"{folders[0]}, {folders[1]}" in result.stdout


def test_a_run_that_is_still_going_works_and_is_said(
    run: Run, made_run: Any, tmp_path: Path
) -> None:
    folder, output = made_run(), tmp_path / "x.html"
    [path] = (folder / "metrics").iterdir()
    path.write_text(path.read_text() + '{"step": 3, "da')
    result = run(folder, "--output", output)
    assert result.exit_code == 0
    assert f"note: {path} ends in half a line" in result.stderr
    assert "ends in half a line" in output.read_text()


def test_samples_are_as_many_as_asked(run: Run, made_run: Any, tmp_path: Path) -> None:
    output = tmp_path / "x.html"
    run(made_run(), "--output", output, "--samples", 0)
    assert '<details class="trajectory">' not in output.read_text()


def break_metrics(folder: Path) -> None:
    [path] = (folder / "metrics").iterdir()
    path.write_text('{"step": 1, "da\n' + path.read_text())


def no_metrics(folder: Path) -> None:
    [path] = (folder / "metrics").iterdir()
    path.unlink()


def break_validation(folder: Path) -> None:
    (folder / "validation" / "2.jsonl").write_text('{"id": 1')


def misname_validation(folder: Path) -> None:
    (folder / "validation" / "2.jsonl").rename(folder / "validation" / "best.jsonl")


def no_text_in_validation(folder: Path) -> None:
    (folder / "validation" / "2.jsonl").write_bytes(b"\xff\xfe\n")


def no_text_in_config(folder: Path) -> None:
    (folder / "config.yaml").write_bytes(b"a: \xff\n")


def nested_metrics(folder: Path) -> None:
    [path] = (folder / "metrics").iterdir()
    path.write_text("[" * 100_000 + "\n")


def drop_a_field(folder: Path) -> None:
    path = folder / "validation" / "2.jsonl"
    row = json.loads(path.read_text().splitlines()[0])
    del row["hops"]
    path.write_text(json.dumps(row))


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (break_metrics, "000000.jsonl:1: not JSON"),
        (no_metrics, "metrics holds no step"),
        (break_validation, "2.jsonl:1: not JSON"),
        (misname_validation, "best.jsonl: the name is no step; call it STEP.jsonl"),
        (no_text_in_validation, "2.jsonl:1: not UTF-8"),
        (no_text_in_config, "config.yaml: not YAML"),
        (nested_metrics, "000000.jsonl:1: not JSON"),
        (drop_a_field, "2.jsonl:1: no field hops; "),
    ],
)
def test_bad_input_is_one_line_and_leaves_no_page(
    run: Run, made_run: Any, tmp_path: Path, spoil: Callable[[Path], None], message: str
) -> None:
    folder, output = made_run(), tmp_path / "x.html"
    spoil(folder)
    result = run(folder, "--output", output)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    assert message in result.stderr
    assert "Traceback" not in result.output
    assert not output.exists()


def test_a_run_that_is_not_there(run: Run, tmp_path: Path) -> None:
    result = run(tmp_path / "none", "--output", tmp_path / "x.html")
    assert result.exit_code == 2
    assert "none: no such folder; give a run's output_dir" in result.stderr


def test_help_teaches(run: Run) -> None:
    text = run("--help").output
    assert text.count("search-r1 report runs/") == 2
    assert "misread" in text


def test_the_command_loads_no_matplotlib_before_it_is_asked_to() -> None:
    code = (
        "import sys; import search_r1.run_report.command;"
        "print(sorted({'matplotlib', 'jinja2', 'omegaconf'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
