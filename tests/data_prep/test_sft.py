"""`search-r1 prepare sft`: every prompt as evaluation asks it, every response the gold answer."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from typer import Typer
from typer.testing import CliRunner

from data_prep import sft_command
from data_prep.demonstration_file import SCHEMA
from data_prep.parquet import write_parquet
from data_prep.questions import Question
from data_prep.sft import direct_row
from search_r1.evaluation.methods import find_method
from search_r1.evaluation.prompt_probe import QUESTION, first_prompt
from search_r1.settings import SearchSettings

PROMPT = (
    "[user]Answer the question below at once, without any reasoning. Write the answer between "
    "<answer> and </answer>, without explanation, for example <answer> Beijing </answer>.\n"
    "Question: What is the capital of France?[assistant]"
)
PARIS = Question("nq/1", QUESTION, ("Paris", "the city of Paris"), "nq", {"hops": 2})


class LetterTokenizer:
    """One id a character; as the tokenizers of transformers, with a chat template."""

    chat_template = "template"

    def encode(self, text: str, *, add_special_tokens: bool = True) -> list[int]:
        assert not add_special_tokens
        return list(map(ord, text))

    def decode(self, token_ids: list[int], *, clean_up_tokenization_spaces: bool) -> str:
        return "".join(map(chr, token_ids))

    def apply_chat_template(self, conversation: list[dict[str, str]], **options: Any) -> list[int]:
        assert options == {"add_generation_prompt": True, "tokenize": True, "return_dict": False}
        [message] = conversation
        text = f"[{message['role']}]{message['content']}[assistant]"
        return self.encode(text, add_special_tokens=False)


def parts(row: dict[str, Any]) -> tuple[str, str]:
    """The text that is given and the text that is learnt."""
    learnt = row["mask"].index(1)
    assert row["mask"] == [0] * learnt + [1] * (len(row["input_ids"]) - learnt)
    text = "".join(map(chr, row["input_ids"]))
    return text[:learnt], text[learnt:]


def test_the_prompt_and_the_response_word_for_word() -> None:
    row = direct_row(PARIS, LetterTokenizer())
    assert parts(row) == (PROMPT, "<answer> Paris </answer>")
    assert (row["id"], row["hops"]) == ("nq/1", 2)


def test_evaluation_asks_the_very_same() -> None:
    prompt, _ = parts(direct_row(PARIS, LetterTokenizer()))
    for name in ("sft", "direct"):
        assert first_prompt(find_method(name), LetterTokenizer(), SearchSettings()) == prompt


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(sft_command, "load_tokenizer", lambda _: LetterTokenizer())
    app = Typer()
    app.command()(sft_command.sft_command)

    def invoke(*arguments: object) -> Any:
        given = (*arguments, "--model", tmp_path)
        return CliRunner().invoke(app, [str(argument) for argument in given])

    return invoke


def write_jsonl(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def line(number: int, **changes: Any) -> dict[str, Any]:
    row = {"id": str(number), "question": f"who is {number}", "golden_answers": [f"n{number}"]}
    return row | changes


def test_sets_of_both_kinds_become_one_file(run: Any, tmp_path: Path) -> None:
    lines = write_jsonl(tmp_path / "popqa.jsonl", [line(1), line(2)])
    write_parquet([PARIS], tmp_path / "nq.parquet", "train")
    output = tmp_path / "sft.parquet"
    result = run(lines, tmp_path / "nq.parquet", "--output", output)
    assert result.exit_code == 0, result.output
    table = pq.read_table(output)
    assert table.schema.equals(SCHEMA)
    assert table["id"].to_pylist() == ["popqa/1", "popqa/2", "nq/1"]
    learnt = [parts(row)[1] for row in table.to_pylist()]
    assert learnt == ["<answer> n1 </answer>", "<answer> n2 </answer>", "<answer> Paris </answer>"]
    tokens = sum(len(row["input_ids"]) for row in table.to_pylist())
    assert f"3 demonstrations, {tokens:,} tokens" in result.output


def test_a_sample_has_as_many_of_each_set(run: Any, tmp_path: Path) -> None:
    sets = [write_jsonl(tmp_path / f"{n}.jsonl", [line(i) for i in range(5)]) for n in ("a", "b")]
    output = tmp_path / "sft.parquet"
    assert run(*sets, "--output", output, "--sample", 4).exit_code == 0
    ids = pq.read_table(output)["id"].to_pylist()
    assert [id_[0] for id_ in ids] == ["a", "a", "b", "b"]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (line(2, golden_answers=[]), "nq.jsonl:2: golden_answers: must be a list of texts"),
        (line(2, golden_answers=["a</answer>b"]), "question nq/2: golden_answers: 'a</answer>b'"),
        (line(2, question="x" * 5000), "question nq/2: question and answer have 5,"),
    ],
)
def test_a_bad_row_is_named_and_nothing_is_written(
    run: Any, tmp_path: Path, row: dict[str, Any], message: str
) -> None:
    data = write_jsonl(tmp_path / "nq.jsonl", [line(1), row])
    result = run(data, "--output", tmp_path / "sft.parquet")
    assert result.exit_code == 2
    assert message in result.output
    assert not (tmp_path / "sft.parquet").exists()


def test_a_name_that_training_refuses_is_refused(run: Any, tmp_path: Path) -> None:
    data = write_jsonl(tmp_path / "nq.jsonl", [line(1)])
    result = run(data, "--output", tmp_path / "sft.jsonl")
    assert result.exit_code == 2
    assert "must end in .parquet" in result.output
