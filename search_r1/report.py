"""Shows a check's report as tables."""

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from search_r1.check import Report
from search_r1.memory.table import GIB, MemoryTable, Phase

_NOTHING = "-"


def render_report(report: Report) -> RenderableType:
    """The problems with their fixes, what is worth knowing, and the memory of each phase."""
    parts: list[RenderableType] = []
    if report.memory:
        parts.append(_memory(report.memory))
    if report.notes:
        parts.append(_notes(report))
    parts.append(_problems(report) if report.problems else Text("no problems", style="bold green"))
    return Group(*parts)


def _problems(report: Report) -> Table:
    count = len(report.problems)
    table = _list(f"{count} problem{'s' * (count > 1)}", title_style="bold red")
    for problem in report.problems:
        fix = ("\nfix: ", "bold green"), (problem.fix, "green")
        table.add_row(Text.assemble((problem.field, "bold"), "\n", (problem.message, "red"), *fix))
    return table


def _notes(report: Report) -> Table:
    table = _list("notes")
    for note in report.notes:
        text = (f"warning: {note.text}", "yellow") if note.warning else note.text
        table.add_row(Text.assemble((note.field, "bold"), "\n", text))
    return table


def _list(title: str, title_style: str = "bold") -> Table:
    """One column: the names of fields are too long to stand beside anything."""
    table = Table(title=title, title_style=title_style, show_header=False, show_lines=True)
    table.add_column(overflow="fold")
    return table


def _memory(memory: MemoryTable) -> Table:
    place = "GPU" if memory.device == "GPU" else "machine"
    table = Table(title=f"estimated memory per {place}, GiB at the greatest lengths")
    table.add_column("")
    used = [phase for phase in Phase if _has_own_rows(memory, phase)]
    for phase in used:
        table.add_column(phase, justify="right")
    for row in memory.rows:
        table.add_row(row.name, *(_gib(row.bytes.get(phase, 0.0)) for phase in used))
    table.add_section()
    totals = [memory.total_gib(phase) for phase in used]
    cells = [Text(f"{gib:.1f}", style=_judge(gib, memory.limit_gib)) for gib in totals]
    table.add_row(Text(f"total, of {memory.limit_gib:.0f}", style="bold"), *cells)
    return table


def _has_own_rows(memory: MemoryTable, phase: Phase) -> bool:
    """Whether a phase happens: without a critic, nothing is gathered for its update."""
    return phase is Phase.ROLLOUT or any(
        phase in row.bytes for row in memory.rows if row.name == "gathered weights"
    )


def _gib(count: float) -> str:
    return f"{count / GIB:.1f}" if count else _NOTHING


def _judge(gib: float, limit: float) -> str:
    return "bold red" if gib > limit else "bold green"
