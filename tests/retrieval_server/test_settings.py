"""Settings: flags, environment, and limits that agree."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from retrieval_server.settings import Settings


def test_environment_fills_what_is_not_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RETRIEVER_TOPK", "5")
    monkeypatch.setenv("RETRIEVER_INDEX", str(tmp_path))
    settings = Settings.model_validate({"port": 9000})
    assert (settings.index, settings.topk, settings.port) == ((tmp_path,), 5, 9000)
    assert settings.host == "127.0.0.1"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"topk": 200}, r"topk \(200\) is above max_topk \(100\)"),
        ({"max_queue": 10}, r"max_queries \(512\) is above max_queue \(10\)"),
        ({"port": 70000}, "port"),
        ({"token": ""}, "without spaces"),
        ({"token": "two words"}, "without spaces"),
        ({"workers": 0}, "workers"),
        ({"lanes": 2, "rerank": "model"}, "--lanes is for one index on CPUs"),
        ({"lanes": 2, "faiss_gpu": True}, "--lanes is for one index on CPUs"),
        ({"max_body_mib": "inf"}, "finite"),
        ({"max_body_mib": 1e308}, "1048576"),
        ({"deadline_seconds": "inf"}, "finite"),
        ({"online_timeout": "inf"}, "finite"),
        ({"index": "/nowhere/at/all"}, "directory"),
    ],
)
def test_settings_that_cannot_work_are_refused(
    tmp_path: Path, changes: dict[str, object], reason: str
) -> None:
    with pytest.raises(ValidationError, match=reason):
        Settings.model_validate({"index": tmp_path} | changes)


def test_the_token_comes_from_the_environment_and_is_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RETRIEVER_TOKEN", "sesame")
    settings = Settings(index=tmp_path)
    assert settings.token is not None
    assert settings.token.get_secret_value() == "sesame"
    assert "sesame" not in repr(settings)
