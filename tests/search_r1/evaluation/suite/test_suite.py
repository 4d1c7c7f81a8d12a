"""Whole suites with an engine in memory and a search server on this machine."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from data_prep.questions import Question
from search_r1.evaluation.comparison import compare, read_answers
from search_r1.evaluation.config import EvalConfig
from search_r1.evaluation.suite.result import SuiteResult
from search_r1.evaluation.suite.rows import PAPER, assign
from search_r1.evaluation.suite.run import SuiteRun
from search_r1.evaluation.suite.suite import Logs, Suite
from search_r1.settings import SearchSettings

Config = Callable[..., EvalConfig]
FOUND = {"body": {"result": [[{"document": {"id": "1", "contents": '"Ada"\nnotes'}}]]}}
METHODS = {row.name: row.method for row in PAPER}
PROMPTED = [row.name for row in PAPER if not row.trained]
PROGRAM = Path(__file__).parents[1] / "killed_suite.py"


@dataclass
class Workshop:
    """Runs suites in one folder, and notes the models that were loaded."""

    config: Config
    engine: Any
    tokenizer: Any
    output: Path
    search: SearchSettings = field(default_factory=lambda: SearchSettings(max_searches=0))
    loaded: list[str] = field(default_factory=list)
    read: list[str] = field(default_factory=list)
    seen: list[tuple[str, int]] = field(default_factory=list)

    def prepare(self, model: Path | None, *policies: str, **changes: Any) -> Suite:
        configs = {
            name: self.config(
                model=path,
                method=METHODS[name],
                output=self.output / name,
                **({"search": self.search} | changes),
            )
            for name, path in assign(model, policies).items()
        }
        return Suite.prepare(self.output, "Qwen2.5-7B", configs, self.load_tokenizer)

    def run(self, model: Path | None, *policies: str, **changes: Any) -> SuiteResult:
        suite = self.prepare(model, *policies, **changes)
        with ExitStack() as stack:
            return self.run_prepared(suite, suite.open_logs(stack))

    def run_prepared(self, suite: Suite, logs: Logs) -> SuiteResult:
        return SuiteRun(suite, logs, lambda *seen: self.seen.append(seen)).run(self.start)

    def load_tokenizer(self, folder: Path) -> Any:
        self.read.append(folder.name)
        return self.tokenizer

    @asynccontextmanager
    async def start(self, config: EvalConfig) -> AsyncIterator[Any]:
        self.loaded.append(config.model.name)
        yield self.engine

    def stored(self) -> dict[str, Any]:
        suite = json.loads((self.output / "suite.json").read_text())
        return {row["name"]: row for row in suite["rows"]}


@pytest.fixture
def workshop(config: Config, fake_engine: Any, hub_tokenizer: Any, tmp_path: Path) -> Workshop:
    return Workshop(config, fake_engine, hub_tokenizer, tmp_path / "paper")


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    folder = tmp_path / "policy"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    return folder


def test_every_row_with_a_model_is_an_evaluation_and_the_others_are_missing(
    workshop: Workshop, model: Path, policy: Path
) -> None:
    workshop.run(model, f"sft={policy}", f"search_r1_ppo_base={policy}")
    rows = workshop.stored()
    done = [*PROMPTED, "sft", "search_r1_ppo_base"]
    assert [name for name in rows if rows[name]["status"] == "done"] == done
    assert {path.name for path in workshop.output.iterdir()} == {*done, "suite.json", "suite.md"}
    for name in done:
        folder = workshop.output / name
        assert json.loads((folder / "metrics.json").read_text()) == rows[name]["scores"]
        manifest = json.loads((folder / "manifest.json").read_text())["settings"]
        assert (manifest["method"], manifest["questions"]["count"]) == (METHODS[name], 10)
        assert manifest["model"] == rows[name]["model"]
    assert rows["sft"]["model"] == str(policy)
    missing = rows["search_r1_grpo_instruct"]
    assert (missing["model"], missing["scores"]) == (None, None)
    assert missing["option"] == "--policy search_r1_grpo_instruct=MODEL"


def test_each_model_is_loaded_once(workshop: Workshop, model: Path, policy: Path) -> None:
    policies = (f"sft={policy}", f"rejection_sampling={policy}", f"r1_base={model}")
    workshop.run(model, *policies)
    assert workshop.loaded == workshop.read == ["model", "policy"]


def test_a_finished_suite_loads_no_model(workshop: Workshop, model: Path) -> None:
    first = workshop.run(model)
    files = {path: path.read_bytes() for path in workshop.output.rglob("*") if path.is_file()}
    workshop.loaded.clear()
    assert workshop.run(model) == first
    assert workshop.loaded == []
    assert {path: path.read_bytes() for path in files} == files


def test_a_policy_that_is_added_is_all_that_is_answered(
    workshop: Workshop, model: Path, policy: Path
) -> None:
    workshop.run(model)
    workshop.loaded.clear()
    result = workshop.run(model, f"sft={policy}")
    assert workshop.loaded == ["policy"]
    assert sum(row.scores is not None for row in result.rows) == len(PROMPTED) + 1


def test_the_search_engine_is_tried_once_and_the_questions_are_read_once(
    workshop: Workshop, model: Path, serve: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from search_r1.evaluation import inputs

    reads: list[object] = []
    read_files = inputs.read_files
    monkeypatch.setattr(inputs, "read_files", lambda data: reads.append(data) or read_files(data))
    server = serve(FOUND)
    workshop.prepare(model, searchable=True, search=SearchSettings(urls=(server.url,)))
    assert len(server.requests) == len(reads) == 1


def test_every_method_runs_with_a_search_engine_and_two_rows_are_compared(
    workshop: Workshop, model: Path, serve: Callable[..., Any]
) -> None:
    search = SearchSettings(urls=(serve(FOUND).url,))
    workshop.run(model, f"search_r1_ppo_base={model}", searchable=True, search=search)
    a, b = (read_answers(workshop.output / name) for name in ("direct", "search_r1_ppo_base"))
    assert compare(a, b).overall.questions == 10
    assert workshop.stored()["search_r1_ppo_base"]["scores"]["macro"]["em"]["mean"] == 0.5


def test_a_method_that_searches_needs_a_search_engine(workshop: Workshop, model: Path) -> None:
    with pytest.raises(ValueError, match="retriever: the method ircot searches"):
        workshop.prepare(model, search=SearchSettings())
    assert not workshop.output.exists()


def test_another_setting_is_an_error_that_names_the_row(workshop: Workshop, model: Path) -> None:
    workshop.run(model)
    with pytest.raises(ValueError, match=r"paper/direct/manifest\.json: .*temperature is 0\.0"):
        workshop.prepare(model, temperature=1.0)


def test_a_run_is_a_policy_that_is_merged_into_its_row(
    workshop: Workshop, checkpoint: Callable[..., Path], tmp_path: Path, merger: list[list[str]]
) -> None:
    checkpoint(tmp_path / "run", 20)
    for _ in range(2):
        workshop.run(None, f"search_r1_grpo_base={tmp_path / 'run'}")
    assert len(merger) == 1
    row = workshop.output / "search_r1_grpo_base"
    assert workshop.stored()["search_r1_grpo_base"]["model"] == str(row / "model")
    settings = json.loads((row / "manifest.json").read_text())["settings"]
    assert settings["merged_from"]["step"] == 20


def test_the_tables_grow_with_each_row_and_an_error_keeps_them(
    workshop: Workshop, model: Path
) -> None:
    async def fail(question: str, tools: Any) -> Any:
        raise ConnectionError("the engine died")

    suite = workshop.prepare(model)
    last = replace(suite.evaluations["react"], method=fail)
    broken = replace(suite, evaluations={**suite.evaluations, "react": last})
    with ExitStack() as stack, pytest.raises(ConnectionError, match="the engine died"):
        workshop.run_prepared(broken, broken.open_logs(stack))
    status = {name: row["status"] for name, row in workshop.stored().items()}
    assert [name for name in PROMPTED if status[name] == "done"] == PROMPTED[:-1]
    assert status["react"] == "not finished"
    assert "ReAct (not finished)" in (workshop.output / "suite.md").read_text()


def test_progress_covers_every_row(workshop: Workshop, model: Path) -> None:
    workshop.run(model)
    assert workshop.seen[: len(PROMPTED)] == [(name, 0) for name in PROMPTED]
    assert [seen for seen in workshop.seen if seen[1] == 10] == [(name, 10) for name in PROMPTED]


def program(output: Path, model: Path, data: Path) -> list[str]:
    return [sys.executable, str(PROGRAM), str(output), str(model), str(data)]


@pytest.mark.slow
def test_a_killed_suite_ends_as_one_that_was_not(
    tmp_path: Path,
    model: Path,
    questions_of: Callable[[int], list[Question]],
    write_set: Callable[..., Path],
) -> None:
    data = write_set(tmp_path / "nq" / "test.jsonl", questions_of(20))
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    answers = killed / "ircot" / "answers.jsonl"
    with subprocess.Popen(program(killed, model, data)) as running:
        while not (answers.is_file() and answers.read_bytes().count(b"\n") > 5):
            assert running.poll() is None
            time.sleep(0.01)
        running.send_signal(signal.SIGKILL)
    assert not (killed / "ircot" / "trajectories.jsonl").exists()
    assert not (killed / "rag" / "trajectories.jsonl").exists()
    done = sum(path.read_bytes().count(b"\n") for path in killed.glob("*/answers.jsonl"))
    resumed, once = (
        json.loads(subprocess.run(program(to, model, data), check=True, capture_output=True).stdout)
        for to in (killed, whole)
    )
    assert once == {"answered": 20 * len(PROMPTED), "loaded": 1}
    assert resumed == {"answered": 20 * len(PROMPTED) - done, "loaded": 1}
    for name in PROMPTED:
        both = [(to / name / "trajectories.jsonl").read_bytes() for to in (killed, whole)]
        assert both[0] == both[1]
    again = subprocess.run(program(killed, model, data), check=True, capture_output=True)
    assert json.loads(again.stdout) == {"answered": 0, "loaded": 0}
