"""Index building: every form of corpus, resumption, and what is refused."""

import gzip
import json
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer import Typer
from typer.testing import CliRunner

from data_prep.index import build_index, index_command
from data_prep.index_corpus import CorpusError, store_corpus
from data_prep.index_plan_file import UnfinishedBuildError
from data_prep.index_stages import IndexRequest
from retrieval_server.corpus import Corpus
from retrieval_server.encoder import EncoderSettings, FloatArray
from retrieval_server.index import FaissIndex
from retrieval_server.manifest import Manifest, sha256_of

ROWS = 25
SETTINGS = EncoderSettings(model="hashing", query_prefix="", passage_prefix="", pooling="mean")

REPLACE = IndexRequest(overwrite=True)


class Killed(BaseException):
    """Ends a build as a signal would."""


class RandomEncoder:
    """A vector drawn with the text's hash as the seed; dies at a given call."""

    dimension = 16

    def __init__(self, dies_at_call: int | None = None) -> None:
        self.calls: list[int] = []
        self.dies_at_call = dies_at_call

    def encode_passages(self, passages: Sequence[str]) -> FloatArray:
        if len(self.calls) == self.dies_at_call:
            raise Killed
        self.calls.append(len(passages))
        seeds = [zlib.crc32(passage.encode()) for passage in passages]
        drawn = [np.random.default_rng(seed).standard_normal(16) for seed in seeds]
        return np.array(drawn, dtype=np.float32)

    encode_queries = encode_passages


Build = Callable[..., Manifest]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "passages.jsonl"
    rows = [json.dumps({"id": str(n), "contents": f"passage {n} é"}) for n in range(ROWS)]
    path.write_text("\n".join(rows) + "\n")
    return path


@pytest.fixture
def build(corpus: Path, tmp_path: Path) -> Build:
    def run(
        encoder: RandomEncoder | None = None,
        output: str = "index",
        settings: EncoderSettings = SETTINGS,
        **request: object,
    ) -> Manifest:
        made = encoder or RandomEncoder()
        return build_index(
            corpus,
            tmp_path / output,
            settings,
            IndexRequest(**({"chunk_rows": 4} | request)),
            load=lambda _: made,
        )

    return run


def contents_of(folder: Path) -> dict[str, bytes]:
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    files.pop("manifest.json")
    return files


def test_the_folder_holds_corpus_vectors_and_manifest(
    build: Build, corpus: Path, tmp_path: Path
) -> None:
    manifest = build()
    folder = tmp_path / "index"
    names = {"corpus.jsonl", "offsets.npy", "index.faiss", "manifest.json"}
    assert {path.name for path in folder.iterdir()} == names
    assert not (tmp_path / "index.partial").exists()
    assert Manifest.load(folder) == manifest
    assert (manifest.rows, manifest.dimension, manifest.encoder) == (ROWS, 16, SETTINGS)
    assert manifest.corpus.sha256 == sha256_of(corpus)
    index = FaissIndex.load(folder / "index.faiss")
    rows = Corpus(folder / "corpus.jsonl", folder / "offsets.npy")
    expected = RandomEncoder().encode_passages([f"passage {n} é" for n in range(ROWS)])
    assert all(np.array_equal(index.vector(n), expected[n]) for n in range(ROWS))
    assert [rows[n].id for n in range(ROWS)] == [str(n) for n in range(ROWS)]


@pytest.mark.parametrize("dies_at_call", [0, 1, 5, 6])
def test_a_killed_build_goes_on_and_gives_the_same_bytes(
    build: Build, tmp_path: Path, dies_at_call: int
) -> None:
    build(output="whole")
    with pytest.raises(Killed):
        build(RandomEncoder(dies_at_call))
    assert not (tmp_path / "index").exists()
    rest = RandomEncoder()
    build(rest)
    assert sum(rest.calls) == ROWS - 4 * dies_at_call
    assert contents_of(tmp_path / "index") == contents_of(tmp_path / "whole")


def test_a_half_written_chunk_is_not_taken_for_a_whole_one(build: Build, tmp_path: Path) -> None:
    build(output="whole")
    with pytest.raises(Killed):
        build(RandomEncoder(2))
    # The kill came between the vectors and the mark that they are there.
    stored = np.load(tmp_path / "index.partial" / "vectors.npy", mmap_mode="r+")
    stored[8:10] = 7
    stored.flush()
    build()
    assert contents_of(tmp_path / "index") == contents_of(tmp_path / "whole")


def test_an_unfinished_build_of_other_settings_is_not_mixed_in(
    build: Build, tmp_path: Path
) -> None:
    other = SETTINGS.model_copy(update={"passage_prefix": "passage: "})
    with pytest.raises(Killed):
        build(RandomEncoder(2))
    with pytest.raises(UnfinishedBuildError, match=r"differs in encoder: .* --overwrite"):
        build(settings=other)
    with pytest.raises(UnfinishedBuildError, match="differs in chunk_rows"):
        build(chunk_rows=5)
    again = RandomEncoder()
    build(again, settings=other, overwrite=True)
    assert sum(again.calls) == ROWS
    assert Manifest.load(tmp_path / "index").encoder == other


def test_a_corpus_that_changed_meanwhile_is_not_mixed_in(build: Build, corpus: Path) -> None:
    with pytest.raises(Killed):
        build(RandomEncoder(2))
    corpus.write_text(corpus.read_text().replace("passage 1 ", "passage I "))
    with pytest.raises(UnfinishedBuildError, match="differs in corpus_sha256"):
        build()


def test_speed_settings_do_not_stop_a_build_from_going_on(build: Build) -> None:
    with pytest.raises(Killed):
        build(RandomEncoder(2))
    rest = RandomEncoder()
    build(rest, settings=SETTINGS.model_copy(update={"batch_size": 7, "device": "cpu"}))
    assert sum(rest.calls) == ROWS - 8


def test_a_finished_index_is_kept_replaced_or_refused(
    build: Build, corpus: Path, tmp_path: Path
) -> None:
    first = build()
    idle = RandomEncoder()
    assert build(idle) == first
    assert idle.calls == []
    corpus.unlink()
    corpus.write_text('{"id": "x", "text": "another"}')
    with pytest.raises(FileExistsError, match=r"another corpus: .* --overwrite"):
        build()
    assert Manifest.load(tmp_path / "index") == first
    assert not (tmp_path / "index.partial").exists()
    assert build(overwrite=True).rows == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["index", "passages.jsonl"]


def test_a_folder_of_something_else_is_left_alone(build: Build, tmp_path: Path) -> None:
    (tmp_path / "index").mkdir()
    (tmp_path / "index" / "thesis.tex").write_text("years of work")
    with pytest.raises(FileExistsError, match="not an index folder"):
        build(overwrite=True)
    assert (tmp_path / "index" / "thesis.tex").exists()


def test_a_vector_that_is_not_finite_is_refused_with_its_row(build: Build) -> None:
    class Overflowing(RandomEncoder):
        def encode_passages(self, passages: Sequence[str]) -> FloatArray:
            vectors = super().encode_passages(passages)
            vectors[[text.startswith("passage 6 ") for text in passages], 3] = np.inf
            return vectors

    with pytest.raises(ValueError, match="corpus row 7 has a vector that is not finite"):
        build(Overflowing())


WHOLE = b'{"id": "0", "contents": "a"}\n{"id": 1, "title": "T", "text": "b"}\n'


@pytest.mark.parametrize(
    "data",
    [
        WHOLE,
        WHOLE.rstrip(),
        WHOLE.replace(b"\n", b"\r\n"),
        b"\n \n" + WHOLE.replace(b"\n", b"\n\n") + b"\n  ",
    ],
    ids=["plain", "no last line end", "windows", "blank lines"],
)
@pytest.mark.parametrize("packed", [False, True])
def test_every_form_of_file_is_stored_byte_for_byte(
    tmp_path: Path, data: bytes, packed: bool
) -> None:
    source = tmp_path / ("c.jsonl.gz" if packed else "c.jsonl")
    source.write_bytes(gzip.compress(data) if packed else data)
    (tmp_path / "out").mkdir()
    read: list[int] = []
    info = store_corpus(source, tmp_path / "out", read.append)
    stored = tmp_path / "out" / "corpus.jsonl"
    assert stored.read_bytes() == data
    assert (info.rows, info.bytes, info.sha256) == (2, len(data), sha256_of(stored))
    assert read[-1] == source.stat().st_size
    rows = Corpus(stored, tmp_path / "out" / "offsets.npy")
    assert [row.contents for row in rows.fetch(range(2))] == ["a", '"T"\nb']


def test_storing_again_does_not_write_through_a_link_to_the_source(tmp_path: Path) -> None:
    source, packed = tmp_path / "c.jsonl", tmp_path / "c.jsonl.gz"
    source.write_bytes(WHOLE)
    packed.write_bytes(gzip.compress(b'{"id": "9", "text": "other"}'))
    (tmp_path / "out").mkdir()
    store_corpus(source, tmp_path / "out", lambda *_: None)
    store_corpus(packed, tmp_path / "out", lambda *_: None)
    assert source.read_bytes() == WHOLE


@given(st.lists(st.text(), min_size=1, max_size=20))
def test_any_text_comes_back(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    folder = tmp_path_factory.mktemp("corpus")
    rows = [json.dumps({"id": "x", "text": text}, ensure_ascii=False) for text in texts]
    (folder / "c.jsonl").write_bytes("\n".join(rows).encode())
    (folder / "out").mkdir()
    store_corpus(folder / "c.jsonl", folder / "out", lambda *_: None)
    corpus = Corpus(folder / "out" / "corpus.jsonl", folder / "out" / "offsets.npy")
    assert [row.text for row in corpus.fetch(range(len(corpus)))] == texts


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (WHOLE + b"oops\n", r"c\.jsonl, line 3: Invalid JSON"),
        (b"\n\n" + WHOLE + b'{"id": "2"}\n', r"c\.jsonl, line 5: .*'contents', or 'text'"),
        (b'\xef\xbb\xbf{"id": "0", "text": "a"}', r"c\.jsonl, line 1: Invalid JSON"),
        (b"", r"c\.jsonl has no rows"),
        (b"\n\n", r"c\.jsonl has no rows"),
    ],
)
def test_a_bad_row_is_named_by_file_and_line(tmp_path: Path, data: bytes, reason: str) -> None:
    (tmp_path / "c.jsonl").write_bytes(data)
    with pytest.raises(CorpusError, match=reason):
        store_corpus(tmp_path / "c.jsonl", tmp_path, lambda *_: None)


@pytest.mark.parametrize("damage", [lambda data: data[:-9], lambda data: b"x" + data])
def test_a_damaged_gzip_file_is_named(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    (tmp_path / "c.jsonl.gz").write_bytes(damage(gzip.compress(WHOLE)))
    with pytest.raises(CorpusError, match=r"c\.jsonl\.gz is damaged after line"):
        store_corpus(tmp_path / "c.jsonl.gz", tmp_path, lambda *_: None)


@pytest.fixture
def command() -> Typer:
    app = Typer()
    app.command()(index_command)
    return app


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--encoder", "some/model"], "give --passage-prefix, --pooling, --query-prefix"),
        ([], "line 26: Invalid JSON"),
        (["--type", "bm25", "--k1", "nan"], "error: --k1: nan: Input should be"),
        (["--type", "ivf-flat", "--lists", "0"], "error: --lists: 0: Input should be"),
    ],
)
def test_the_command_says_what_is_wrong_and_fails(
    command: Typer, corpus: Path, arguments: list[str], reason: str
) -> None:
    with corpus.open("a") as file:
        file.write("oops")
    line = ["--corpus", str(corpus), "--output", str(corpus.parent / "index"), *arguments]
    result = CliRunner().invoke(command, line)
    assert result.exit_code == 2
    assert reason in " ".join(result.stderr.split())


@pytest.mark.parametrize("place", ["index.partial/corpus.jsonl", "index/passages.jsonl"])
def test_a_corpus_inside_a_folder_that_is_replaced_is_refused(
    corpus: Path, tmp_path: Path, place: str
) -> None:
    inside = tmp_path / place
    inside.parent.mkdir()
    corpus.rename(inside)
    with pytest.raises(ValueError, match=r"is inside .*, which is replaced; move it out"):
        build_index(inside, tmp_path / "index", SETTINGS, REPLACE)
    assert inside.exists()


def test_the_corpus_is_not_the_output(corpus: Path) -> None:
    with pytest.raises(ValueError, match="is also an input, and would be replaced"):
        build_index(corpus, corpus, SETTINGS)
    assert corpus.is_file()


def test_an_index_is_built_again_from_its_own_corpus(build: Build, tmp_path: Path) -> None:
    build()
    before = contents_of(tmp_path / "index")
    own = tmp_path / "index" / "corpus.jsonl"
    build_index(own, tmp_path / "index", SETTINGS, REPLACE, load=lambda _: RandomEncoder())
    assert contents_of(tmp_path / "index") == before
