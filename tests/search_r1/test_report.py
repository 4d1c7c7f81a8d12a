from rich.console import Console

from search_r1.check import Note, Problem, Report
from search_r1.memory.table import GIB, MemoryRow, MemoryTable, Phase
from search_r1.report import render_report


def shown(report: Report) -> str:
    console = Console(width=80)
    with console.capture() as capture:
        console.print(render_report(report))
    return capture.get()


def table(*, critic: bool, limit: float = 80.0) -> MemoryTable:
    phases = [phase for phase in Phase if critic or phase is not Phase.CRITIC]
    gathered = MemoryRow("gathered weights", {p: 3 * GIB for p in phases if p != Phase.ROLLOUT})
    return MemoryTable("GPU", limit, (MemoryRow("weights", {Phase.ROLLOUT: 40 * GIB}), gathered))


def test_a_problem_has_its_field_and_its_fix() -> None:
    text = shown(Report((Problem("data.train_files", "there is no file [x]", "write it"),)))
    assert "1 problem" in text
    assert "data.train_files" in text
    assert "there is no file [x]" in text
    assert "fix: write it" in text


def test_a_long_field_stays_on_one_line() -> None:
    field = "actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu"
    assert field in shown(Report((), (Note(field, "text " * 40),)))


def test_a_warning_says_so() -> None:
    text = shown(Report((), (Note("a.b", "mind this", warning=True), Note("c.d", "by the way"))))
    assert "warning: mind this" in text
    assert "warning: by the way" not in text
    assert "no problems" in text


def test_the_memory_of_each_phase_and_its_total() -> None:
    text = shown(Report((), memory=table(critic=True)))
    assert "estimated memory per GPU" in text
    for part in ("rollout", "log-probs", "critic update", "40.0", "3.0", "total, of 80"):
        assert part in text


def test_a_phase_that_does_not_happen_has_no_column() -> None:
    assert "critic" not in shown(Report((), memory=table(critic=False)))
