"""The command from its words to its report, with a stand-in for ``search-r1 train``."""

import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from search_r1.ablation import session, training
from search_r1.ablation.plan import Plan
from search_r1.check import Note, Problem, Report
from search_r1.cli import app

Run = Callable[..., Result]


@pytest.fixture
def ablate(
    monkeypatch: pytest.MonkeyPatch,
    fake_train: list[str],
    small_config: str,
    tmp_path: Path,
) -> Iterator[Run]:
    """Runs the command; of the checks only that of the number of passages is left."""
    monkeypatch.setattr(session, "check_plan", check_top_k)
    monkeypatch.setattr(training, "TRAIN", fake_train)

    def run(*words: str) -> Result:
        output = f"--output={tmp_path / 'ablation'}"
        return CliRunner().invoke(app, ["ablate", small_config, output, *words])

    handler = signal.getsignal(signal.SIGTERM)
    yield run
    signal.signal(signal.SIGTERM, handler)


def check_top_k(plan: Plan) -> dict[str, Report]:
    note = Note("search.top_k", "a warning of every run", warning=True)
    return {
        run.name: Report(
            () if run.config.search.top_k < 100 else (Problem("search.top_k", "is big", "3"),),
            (note,),
        )
        for run in plan.runs
    }


def test_a_dry_run_lists_variants_and_commands(ablate: Run, tmp_path: Path) -> None:
    done = ablate("--axis=mask", "--seeds=1,2", "--dry-run")
    assert done.exit_code == 0, done.output
    assert "# mask = off, seed 2: mask-off-seed-2" in done.stdout
    assert done.stdout.count("search-r1 train ") == 4
    assert "+ablations/mask=off" in done.stdout
    assert not (tmp_path / "ablation").exists()


def test_a_folder_under_a_file_is_refused_before_anything(ablate: Run, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = ablate("--axis=mask", f"--output={tmp_path / 'file' / 'ablation'}")
    assert done.exit_code == 2
    assert f"output: {tmp_path / 'file'} is a file" in done.output


def test_a_sweep_ends_in_a_report(ablate: Run, tmp_path: Path) -> None:
    done = ablate("--axis=mask")
    assert done.exit_code == 0, done.output
    assert "## mask" in done.stdout
    assert "| off | 1 finished |" in done.stdout
    assert "warning: search.top_k: a warning of every run (every run)" in done.stderr
    again = CliRunner().invoke(app, ["ablate", "--report-only", str(tmp_path / "ablation")])
    assert "| off | 1 finished |" in again.stdout
    for name in ("report.html", "report.md", "report.json", "ablation.json"):
        assert (tmp_path / "ablation" / name).is_file()


def test_a_run_that_fails_is_counted_and_the_report_is_there(ablate: Run, tmp_path: Path) -> None:
    done = ablate("--axis=mask", "+mode=fail")
    assert done.exit_code == 1
    assert "1 of 2 runs failed: mask-off" in done.stderr
    assert "| on | 1 finished |" in done.stdout
    assert "failed" in (tmp_path / "ablation" / "report.html").read_text()


def test_nothing_starts_if_one_variant_cannot_run(ablate: Run, tmp_path: Path) -> None:
    done = ablate("search.top_k=3,100")
    assert done.exit_code == 2
    assert "nothing was started" in done.stderr
    assert "is big" in done.stderr
    assert not (tmp_path / "ablation").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "nothing varies"),
        (["--axis=masks"], "no such axis"),
        (["--axis=mask", "--seeds=1,x"], "not whole numbers"),
        (["--axis=mask", "--seeds=1,1"], "a seed is there twice"),
    ],
)
def test_bad_words_are_one_message(ablate: Run, words: list[str], message: str) -> None:
    done = ablate(*words)
    assert done.exit_code == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
