import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import Result
from typer import Typer
from typer.testing import CliRunner

from data_prep.demonstration_file import SCHEMA
from data_prep.demonstrations import (
    DemonstrationConfig,
    demonstrations,
    write_demonstrations,
)
from data_prep.demonstrations_command import demonstrations_command
from data_prep.questions import Question, read_questions
from data_prep.world import WorldConfig, write_world
from search_r1.actions import Answer, Search, parse_action
from search_r1.prompts import build_messages
from search_r1.settings import SearchSettings

Row = dict[str, Any]


@dataclass
class WordTokenizer:
    """One id a word or sign; as the tokenizers of transformers, with a chat template."""

    chat_template: str | None = "template"
    pieces: list[str] = field(default_factory=list)
    ids: dict[str, int] = field(default_factory=dict)

    def encode(self, text: str, *, add_special_tokens: bool = True) -> list[int]:
        assert not add_special_tokens
        return [self._id(piece) for piece in re.findall(r"</?\w+>|\w+|\s|[^\w\s]", text)]

    def decode(self, token_ids: list[int], *, clean_up_tokenization_spaces: bool) -> str:
        return "".join(self.pieces[token_id] for token_id in token_ids)

    def apply_chat_template(self, conversation: list[dict[str, str]], **options: Any) -> list[int]:
        assert options == {"add_generation_prompt": True, "tokenize": True, "return_dict": False}
        text = "".join(f"[{message['role']}]{message['content']}" for message in conversation)
        return self.encode(f"{text}[assistant]", add_special_tokens=False)

    def _id(self, piece: str) -> int:
        if piece not in self.ids:
            self.ids[piece] = len(self.pieces)
            self.pieces.append(piece)
        return self.ids[piece]


@dataclass(frozen=True)
class Run:
    """A run of tokens with one mask value, as text."""

    mask: int
    text: str


def runs(row: Row, tokenizer: WordTokenizer) -> list[Run]:
    pairs = zip(row["input_ids"], row["mask"], strict=True)
    return [
        Run(mask, tokenizer.decode([i for i, _ in group], clean_up_tokenization_spaces=False))
        for mask, group in groupby(pairs, key=lambda pair: pair[1])
    ]


def turns(row: Row, tokenizer: WordTokenizer) -> list[str]:
    return [run.text for run in runs(row, tokenizer) if run.mask]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("school")
    config = WorldConfig(seed=3, articles=200, train_questions=30, test_questions=3)
    write_world(config, folder)
    return folder


@pytest.fixture(scope="module")
def questions(world: Path) -> dict[str, Row]:
    lines = (world / "train.jsonl").read_text().splitlines()
    return {row["id"]: row for row in map(json.loads, lines)}


@pytest.fixture
def tokenizer() -> WordTokenizer:
    return WordTokenizer()


def make(world: Path, tokenizer: WordTokenizer, count: int = 40, **changes: Any) -> list[Row]:
    return list(demonstrations(world, tokenizer, DemonstrationConfig(count=count, **changes)))


def queries_and_answer(row: Row, tokenizer: WordTokenizer) -> tuple[list[str], str]:
    *searches, last = [parse_action(turn) for turn in turns(row, tokenizer)]
    assert isinstance(last, Answer)
    assert all(isinstance(search, Search) for search in searches)
    return [search.query for search in searches if isinstance(search, Search)], last.text


def test_every_hop_is_searched_by_its_title_and_the_answer_is_right(
    world: Path, tokenizer: WordTokenizer, questions: dict[str, Row]
) -> None:
    rows = make(world, tokenizer)
    assert {row["hops"] for row in rows} == {1, 2, 3}
    for row in rows:
        chain = questions[row["id"]]["chain"]
        queries, answer = queries_and_answer(row, tokenizer)
        assert queries == [hop["title"] for hop in chain]
        assert answer == chain[-1]["answer"]


def test_only_what_the_script_wrote_is_trained(
    world: Path, tokenizer: WordTokenizer, questions: dict[str, Row]
) -> None:
    for row in make(world, tokenizer):
        prompt, *rest = runs(row, tokenizer)
        [message] = build_messages(questions[row["id"]]["question"])
        assert prompt == Run(0, f"[user]{message['content']}[assistant]")
        assert [run.mask for run in rest] == [1, 0] * row["hops"] + [1]
        for written in rest[::2]:
            assert re.fullmatch(
                r"<think>[^<>]+</think><(search|answer)> [^<>]+ </\1>", written.text
            )
        for hop, observation in zip(questions[row["id"]]["chain"], rest[1::2], strict=True):
            assert observation.text.startswith("\n\n<information>Doc 1(Title: ")
            assert observation.text.endswith("</information>\n\n")
            assert f'(Title: "{hop["title"]}")' in observation.text
            assert hop["answer"] in observation.text


def test_at_gold_share_0_only_the_tags_are_taught(
    world: Path, tokenizer: WordTokenizer, questions: dict[str, Row]
) -> None:
    rows = make(world, tokenizer, count=120, gold_share=0.0)
    right = 0
    for row in rows:
        question = questions[row["id"]]
        queries, answer = queries_and_answer(row, tokenizer)
        shown = "".join(run.text for run in runs(row, tokenizer)[1:] if not run.mask)
        assert queries[0] == question["chain"][0]["title"]
        assert all(query in shown for query in queries[1:])
        assert answer in shown
        assert not any(f"{question['chain'][0]['relation']}." in t for t in turns(row, tokenizer))
        right += answer == question["golden_answers"][0]
    assert right / len(rows) < 0.15
    # How often it searches says nothing about the number of hops.
    searches = {
        hops: [len(turns(row, tokenizer)) - 1 for row in rows if row["hops"] == hops]
        for hops in (1, 2, 3)
    }
    assert all(set(counts) == {1, 2, 3, 4} for counts in searches.values())


def test_guess_share_is_the_chance_to_answer_at_once_with_any_title(
    world: Path, tokenizer: WordTokenizer
) -> None:
    rows = make(world, tokenizer, count=300, gold_share=0.0, guess_share=0.2)
    titles = {
        json.loads(line)["contents"].split('"')[1]
        for line in (world / "corpus.jsonl").read_text().splitlines()
    }
    guesses = [row for row in rows if len(turns(row, tokenizer)) == 1]
    assert len(guesses) == pytest.approx(60, abs=20)
    for row in guesses:
        queries, answer = queries_and_answer(row, tokenizer)
        assert not queries
        assert answer in titles
    assert len({queries_and_answer(row, tokenizer)[1] for row in guesses}) > 40


def test_gold_share_is_the_chance_of_each_hop(
    world: Path, tokenizer: WordTokenizer, questions: dict[str, Row]
) -> None:
    rows = [row for row in make(world, tokenizer, 300, gold_share=0.5) if row["hops"] == 1]
    right = [
        queries_and_answer(row, tokenizer)[1] == questions[row["id"]]["golden_answers"][0]
        for row in rows
    ]
    assert sum(right) / len(right) == pytest.approx(0.5, abs=0.15)


def test_a_cut_passage_is_never_relied_on(
    world: Path, tokenizer: WordTokenizer, questions: dict[str, Row]
) -> None:
    search = SearchSettings(observation_tokens=120)
    rows = make(world, tokenizer, 20, search=search)
    for row in rows:
        chain = questions[row["id"]]["chain"]
        observations = [run.text for run in runs(row, tokenizer)[1:] if not run.mask]
        assert all(
            hop["title"] in text and hop["answer"] in text
            for hop, text in zip(chain, observations, strict=True)
        )


def test_questions_of_more_hops_than_searches_are_left_out(
    world: Path, tokenizer: WordTokenizer
) -> None:
    rows = make(world, tokenizer, search=SearchSettings(max_searches=1))
    assert {row["hops"] for row in rows} == {1}


def test_the_same_seed_gives_the_same_bytes(world: Path, tmp_path: Path) -> None:
    def write(name: str, seed: int) -> bytes:
        config = DemonstrationConfig(count=12, seed=seed)
        write_demonstrations(world, WordTokenizer(), tmp_path / name, config)
        return (tmp_path / name).read_bytes()

    assert write("a", 0) == write("b", 0) != write("c", 1)


def test_the_file_holds_the_rows_under_the_schema(
    world: Path, tokenizer: WordTokenizer, tmp_path: Path
) -> None:
    written: list[int] = []
    path = tmp_path / "new" / "demonstrations.parquet"
    config = DemonstrationConfig(count=45)
    size = write_demonstrations(world, tokenizer, path, config, written.append)
    table = pq.read_table(path)
    assert table.schema.equals(SCHEMA)
    assert table.to_pylist() == make(world, tokenizer, 45)
    assert size.tokens == sum(len(ids) for ids in table["input_ids"].to_pylist())
    assert written == [45]
    assert [file.name for file in path.parent.iterdir()] == ["demonstrations.parquet"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"count": 0}, "count: 0 must be at least 1"),
        ({"gold_share": 1.5}, "gold_share: 1.5 must be a share"),
        ({"guess_share": -0.1}, "guess_share: -0.1 must be a share"),
    ],
)
def test_a_setting_out_of_range_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DemonstrationConfig(**changes)


@pytest.mark.parametrize(
    ("search", "gold_share", "message"),
    [
        ({"observation_tokens": 8}, 1.0, r"train.jsonl gave 0 demonstrations, 40 were asked for"),
        ({"observation_tokens": 5}, 0.0, "observation_tokens: no name fits"),
        ({"turn_tokens": 5}, 1.0, "turn_tokens: a demonstration needs"),
    ],
)
def test_budgets_too_small_are_named_and_leave_no_file(
    world: Path, tmp_path: Path, search: dict[str, int], gold_share: float, message: str
) -> None:
    config = DemonstrationConfig(40, gold_share, search=SearchSettings(**search))
    with pytest.raises(ValueError, match=message):
        write_demonstrations(world, WordTokenizer(), tmp_path / "d.parquet", config)
    assert list(tmp_path.iterdir()) == []


def test_a_round_that_gave_nothing_is_not_repeated(
    world: Path, tokenizer: WordTokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Path] = []

    def counted(path: Path) -> Iterator[Question]:
        read.append(path)
        return read_questions(path)

    monkeypatch.setattr("data_prep.demonstrations.read_questions", counted)
    with pytest.raises(ValueError, match="gave 0 demonstrations, 3 were asked for"):
        make(world, tokenizer, 3, search=SearchSettings(observation_tokens=8))
    assert len(read) == 1


@pytest.mark.parametrize("chain", [None, [], [{"title": "A", "answer": "B"}]])
def test_questions_without_a_chain_are_refused(
    world: Path, tmp_path: Path, chain: Sequence[Row] | None
) -> None:
    row = {"id": "x1", "question": "Who?", "golden_answers": ["B"], "data_source": "s"}
    (tmp_path / "train.jsonl").write_text(json.dumps(row | ({"chain": chain} if chain else {})))
    (tmp_path / "corpus.jsonl").symlink_to(world / "corpus.jsonl")
    with pytest.raises(ValueError, match=r"train.jsonl: question x1: chain: must list title"):
        make(tmp_path, WordTokenizer())


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A folder with a tokenizer of single bytes, and no chat template."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {letter: number for number, letter in enumerate(alphabet)}
    tokenizer = Tokenizer(models.BPE(vocabulary, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    PreTrainedTokenizerFast(tokenizer_object=tokenizer).save_pretrained(tmp_path / "model")
    return tmp_path / "model"


def command(*arguments: object) -> Result:
    app = Typer()
    app.command()(demonstrations_command)
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_outputs_that_no_demonstrations_may_have_are_refused(world: Path, tmp_path: Path) -> None:
    for output, message in [
        (tmp_path / "d.jsonl", "d.jsonl must end in .parquet"),
        (world / "train.jsonl", "train.jsonl must end in .parquet"),
        (world / "train.parquet", "train.parquet is also an input"),
    ]:
        result = command("--world", world, "--model", tmp_path, "--output", output)
        assert result.exit_code == 2
        assert message in result.output.splitlines()[-1]


@pytest.mark.slow
def test_a_folder_without_a_tokenizer_is_named(world: Path, tmp_path: Path) -> None:
    output = tmp_path / "d.parquet"
    result = command("--world", world, "--model", tmp_path, "--output", output)
    assert result.exit_code == 2
    last = result.output.splitlines()[-1]
    assert last.startswith(f"error: model: {tmp_path} holds no tokenizer")


@pytest.mark.slow
def test_the_command_writes_demonstrations_for_a_model(
    world: Path, model: Path, tmp_path: Path
) -> None:
    from transformers import AutoTokenizer

    def run(*arguments: object) -> Result:
        paths = ("--world", world, "--model", model, "--output", tmp_path / "d.parquet")
        return command(*paths, *arguments)

    result = run("--count", 7, "--observation-tokens", 1200)
    assert result.exit_code == 0, result.output
    assert "d.parquet: 7 demonstrations, " in result.output
    tokenizer = AutoTokenizer.from_pretrained(model)
    for row in pq.read_table(tmp_path / "d.parquet").to_pylist():
        written = [id_ for id_, mask in zip(row["input_ids"], row["mask"], strict=True) if mask]
        text = tokenizer.decode(written)
        assert (text.count("</search>"), text.count("</answer>")) == (row["hops"], 1)
    refused = run("--gold-share", 2)
    assert refused.exit_code == 2
    assert "error: gold_share: 2.0 must be a share" in refused.output
