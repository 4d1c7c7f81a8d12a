"""Shows trajectories in colour: what the model wrote, what the system inserted, how it ended.

Command: ``search-r1 view output_dir/validation/STEP.jsonl --best 1``. A record is a line that
`search_r1.rewards.compute_score` made. All of its text is untrusted: rich never reads it as
markup, and control characters are shown rather than sent to the terminal.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.panel import Panel
from rich.segment import Segment
from rich.text import Text

from search_r1.metrics import Row
from search_r1.prompts import Tag
from search_r1.summary import read_trajectories

_STYLES = {Tag.THINK: "dim", Tag.SEARCH: "cyan", Tag.ANSWER: "bold"}
_INSERTED = "green"
_GUTTER = "┃ "
# Control characters, and the marks that turn the direction of text around.
_UNSAFE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_BLOCKS = {tag: re.compile(rf"{tag.opening}.*?(?:{tag.closing}|\Z)", re.DOTALL) for tag in _STYLES}


def read_records(path: Path) -> list[Row]:
    """Every trajectory of a file.

    Raises:
        OSError: the file cannot be read.
        ValueError: a line is not a record, or there is none; the message names the line and the
            field.
    """
    return read_trajectories(path)


def select_records(
    records: Sequence[Row], *, best: int = 0, worst: int = 0, record_id: str | None = None
) -> list[Row]:
    """The record of an id, or the `best` and the `worst` by reward, in the order of the file.

    Raises:
        ValueError: no record has the id.
    """
    if record_id is not None:
        found = [record for record in records if record["id"] == record_id]
        if not found:
            raise ValueError(f"no trajectory has the id {record_id!r}; try --best 1")
        return found
    ranked = sorted(records, key=reward, reverse=True)
    return ranked[:best] + ranked[max(len(ranked) - worst, 0) :]


def reward(record: Row) -> float:
    """The reward of a trajectory: its weighted score."""
    return float(record["reward_parts"]["score"])


def render(record: Row) -> RenderableType:
    """One whole trajectory: a header, then its turns and what was inserted after each."""
    parts: list[RenderableType] = [_header(record)]
    for number, turn in enumerate(record["transcript"], start=1):
        parts.append(Text(f"turn {number}: {visible(turn['action'])}", style="bold blue"))
        parts.append(Padding(_sampled(turn["text"]), (0, 0, 0, 2)))
        if turn["observation"]:
            parts.append(_inserted(turn))
    parts.append(Text(f"stopped: {visible(record['stop_reason'])}", style="bold blue"))
    return Group(*parts)


def _header(record: Row) -> Panel:
    parts = record["reward_parts"]
    em = parts.get("em")
    verdict = Text("exact match", style="bold green") if em else Text("no match", style="bold red")
    facts = {name: record.get(name) for name in ("data_source", "hops", "searches")}
    tokens = (record.get("sampled_tokens"), record.get("inserted_tokens"))
    lines = [
        Text(visible(record["question"]), style="bold"),
        _line("gold", " | ".join(map(str, record["golden_answers"]))),
        Text.assemble(_line("answer", record["answer"]), "  ", verdict),
        _line("reward", ", ".join(f"{name} {value:g}" for name, value in parts.items())),
        _line("facts", ", ".join(f"{name} {value}" for name, value in facts.items())),
        Text.assemble(
            ("tokens  ", "dim"),
            f"{tokens[0]} sampled (trained on), ",
            (f"{_GUTTER}{tokens[1]} inserted (masked)", _INSERTED),
        ),
    ]
    return Panel(Group(*lines), title=Text(visible(record["id"])), title_align="left")


def _line(name: str, value: object) -> Text:
    return Text.assemble((f"{name:8}", "dim"), visible("none" if value is None else value))


def _sampled(text: str) -> Text:
    shown = Text(visible(text).strip("\n"))
    for tag, block in _BLOCKS.items():
        for match in block.finditer(shown.plain):
            shown.stylize(_STYLES[tag], *match.span())
    return shown


def _inserted(turn: Mapping[str, Any]) -> "_Inserted":
    shown = Text(visible(turn["observation"]).strip("\n"), style=_INSERTED)
    if hits := turn.get("passages"):
        sources = ", ".join(f"{visible(hit['id'])}{_score(hit.get('score'))}" for hit in hits)
        shown.append(f"\npassages: {sources}", style="dim")
    return _Inserted(shown)


def _score(score: float | None) -> str:
    return "" if score is None else f" ({score:.3f})"


@dataclass(frozen=True, slots=True)
class _Inserted:
    """Text behind a line at its left, also where it is wrapped and where there are no colours."""

    text: Text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        inner = options.update_width(options.max_width - len(_GUTTER))
        for line in console.render_lines(self.text, inner, pad=False):
            yield Segment(_GUTTER, console.get_style(_INSERTED))
            yield from line
            yield Segment.line()


def visible(value: object) -> str:
    """The text of a value, its control characters as escapes: a terminal must not obey them."""
    text = str(value).encode(errors="backslashreplace").decode()
    return _UNSAFE.sub(lambda match: f"\\x{ord(match.group()):02x}", text)
