"""Models that are named: a hub that does not answer is told at once."""

import time
from pathlib import Path

import pytest
from huggingface_hub import constants

from retrieval_server.model_hub import check_reachable


def test_a_folder_needs_no_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    check_reachable(str(tmp_path))


@pytest.mark.parametrize(
    ("offline", "reason"),
    [(True, "HF_HUB_OFFLINE is set"), (False, "http://127.0.0.1:9 cannot be reached")],
)
def test_without_the_hub_the_message_asks_for_a_folder(
    monkeypatch: pytest.MonkeyPatch, offline: bool, reason: str
) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", offline)
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    begin = time.monotonic()
    with pytest.raises(ValueError, match=f"'some/ranker'.*{reason}.*give the folder"):
        check_reachable("some/ranker")
    assert time.monotonic() - begin < 5


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is no folder here, and no name of a model"):
        check_reachable(str(tmp_path / "nowhere"))
