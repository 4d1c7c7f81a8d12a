"""The flags that choose an engine, and the combinations that are refused."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from pydantic_settings import CliApp

from retrieval_server.__main__ import main
from retrieval_server.settings import Settings


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    pair = (tmp_path / "a", tmp_path / "b")
    for folder in pair:
        folder.mkdir()
    return pair


def test_the_flag_is_given_once_for_each_index(folders: tuple[Path, Path]) -> None:
    flags = [text for folder in folders for text in ("--index", str(folder))]
    assert CliApp.run(Settings, flags).index == folders
    assert CliApp.run(Settings, flags[:2]).index == folders[:1]
    assert CliApp.run(Settings, flags).engines == f"{folders[0]} + {folders[1]}"


def test_the_environment_joins_them_by_a_comma(
    folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RETRIEVER_INDEX", f"{folders[0]},{folders[1]}")
    assert Settings().index == folders


def test_a_folder_may_have_a_comma_in_its_name(tmp_path: Path) -> None:
    folder = tmp_path / "a,b"
    folder.mkdir()
    assert CliApp.run(Settings, ["--index", str(folder)]).index == (folder,)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({}, "nothing to serve: give --index FOLDER, or --online PROVIDER"),
        ({"index": "ab", "hybrid_depth": 50}, ""),
        ({"index": "a", "hybrid_depth": 50}, "--hybrid-depth needs two engines"),
        ({"index": "aa"}, "is given twice"),
        ({"index": "a", "rerank_depth": 5}, "--rerank-depth does nothing without --rerank"),
        ({"index": "a", "rerank_batch_size": 5}, "--rerank-batch-size does nothing without"),
        ({"index": "a", "rerank": "m", "rerank_depth": 2}, r"topk \(3\) is above rerank_depth"),
        (
            {"index": "ab", "rerank": "m", "rerank_depth": 20, "hybrid_depth": 10},
            r"rerank_depth \(20\) is above hybrid_depth \(10\)",
        ),
        ({"index": "a", "online_timeout": 5}, "--online-timeout does nothing without --online"),
        ({"online": "bing"}, "'serper', 'serpapi', 'google', 'brave' or 'tavily'"),
        ({"online": "serper"}, ""),
        ({"online": "serper", "online_results": 100, "topk": 50}, ""),
        ({"online": "google", "online_results": 11}, r"\(11\) is above the 10 of google"),
        ({"online": "google", "topk": 11}, r"topk \(11\) is above online_results \(10\)"),
        ({"online": "serper", "encoder": "e5"}, "--encoder does nothing without --index"),
        ({"online": "serper", "online_url": "ftp://x"}, "--online-url must begin with http"),
        ({"online": "serper", "index": "a", "hybrid_depth": 50}, ""),
    ],
)
def test_what_makes_no_sense_together_is_refused(
    folders: tuple[Path, Path], keys: Any, given: dict[str, Any], reason: str
) -> None:
    index = tuple(folders["ab".index(name)] for name in given.get("index", ""))
    values = {**given, "index": index}
    if not reason:
        assert Settings.model_validate(values).index == index
        return
    with pytest.raises(ValidationError, match=reason):
        Settings.model_validate(values)


def test_a_missing_key_ends_the_command_with_code_2_and_the_name_of_the_variable(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GOOGLE_API_KEY", "a-key")
    monkeypatch.delenv("GOOGLE_CSE_ID", raising=False)
    assert main(["--online", "google"]) == 2
    told = capsys.readouterr().err
    assert "--online google needs the environment variable GOOGLE_CSE_ID" in told
    assert "a-key" not in told


def test_help_teaches_the_engines_by_example(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    told = capsys.readouterr().out
    for flags in ("--index wiki-e5 --index wiki-bm25", "--rerank MODEL", "--online serper"):
        assert f"search-r1 serve --index wiki-e5 {flags}" in told or flags in told
    assert "GOOGLE_API_KEY + GOOGLE_CSE_ID" in told
