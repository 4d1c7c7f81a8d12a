from collections.abc import Callable, Iterator
from typing import Any

import pytest
from rich.console import Console

from search_r1 import doctor
from search_r1.doctor import check_retriever, examine, print_diagnoses, query
from search_r1.installation import Diagnosis

HIT = {"document": {"id": "1", "contents": '"Moon"\ntext'}, "score": 0.5}


@pytest.fixture(autouse=True)
def sound_installation(monkeypatch: pytest.MonkeyPatch) -> None:
    def check_installation(_: str) -> Iterator[Diagnosis]:
        yield Diagnosis("packages", "fine")

    monkeypatch.setattr(doctor, "check_installation", check_installation)
    monkeypatch.setattr(doctor, "has_gpu", lambda: False)


def test_a_server_that_answers(serve: Callable[..., Any]) -> None:
    server = serve({"body": {"result": [[HIT]]}})
    found = query(server.url)
    assert found.ok
    [(path, request)] = server.requests
    assert path == "/retrieve"
    assert (len(request["queries"]), request["topk"], request["return_scores"]) == (1, 1, True)


@pytest.mark.parametrize(
    ("reply", "status", "detail", "fix"),
    [
        ({"result": [[]]}, 200, "found nothing", "build its index again"),
        ({"result": []}, 200, "0 lists for 1 queries", "/retrieve URL"),
        (b"<html>", 200, "the reply is not JSON", "/retrieve URL"),
        (b"[" * 100_000, 200, "the reply is nested too deeply", "/retrieve URL"),
        ({}, 302, "302", "http://HOST:PORT/retrieve"),
        ({}, 404, "404", "http://HOST:PORT/retrieve"),
        ({}, 500, "500", "the server's own messages"),
        ({"detail": "loading"}, 503, "503", "search-r1 serve"),
    ],
)
def test_a_server_that_does_not(
    serve: Callable[..., Any], reply: Any, status: int, detail: str, fix: str
) -> None:
    found = query(serve({"body": reply, "status": status}).url)
    assert not found.ok
    assert detail in found.detail
    assert fix in found.fix


def test_every_rule_of_the_api_is_tried_on_a_server_that_answers(
    serve: Callable[..., Any],
) -> None:
    reached, *found = check_retriever(serve({"body": {"result": [[HIT]]}}).url)
    assert reached.ok
    told = {one.name: one for one in found}
    assert told["documents"].ok
    # It gives the same to whatever is asked.
    assert not told["several queries"].ok
    assert not told["several queries"].warning
    assert told["bad requests"].warning
    assert "4xx" in told["bad requests"].fix


def test_no_rule_is_tried_on_a_server_that_does_not_answer(serve: Callable[..., Any]) -> None:
    server = serve({"body": {}, "status": 500})
    assert [one.ok for one in check_retriever(server.url)] == [False]
    assert len(server.requests) == 1


def test_no_server() -> None:
    assert "search-r1 serve" in query("http://127.0.0.1:9/retrieve").fix


@pytest.mark.parametrize(
    "url", ["no url", "", "http://", "http:///retrieve", "http://[/", "ftp://a/", "127.0.0.1:8000"]
)
def test_no_address_of_a_server(url: str) -> None:
    found = query(url)
    assert not found.ok
    assert "http://HOST:PORT/retrieve" in found.fix


def test_every_finding_is_printed_with_its_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        doctor,
        "examine",
        lambda _: iter([Diagnosis("a", "1 [x]"), Diagnosis("b", "gone", "bash [y].sh")]),
    )
    console = Console(width=40)
    with console.capture() as capture:
        assert not print_diagnoses(None, console)
    assert "ok   a               1 [x]" in capture.get()
    assert "FAIL b               gone" in capture.get()
    assert "fix: bash [y].sh" in capture.get()


def test_what_can_wait_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Diagnosis("a", "1", "do it", warning=True)
    monkeypatch.setattr(doctor, "examine", lambda _: iter([found]))
    console = Console(width=40)
    with console.capture() as capture:
        assert print_diagnoses(None, console)
    assert "warn a" in capture.get()
    assert "fix: do it" in capture.get()


def test_a_machine_without_a_gpu_is_described() -> None:
    names = [found.name for found in examine()]
    assert names == ["device", "shared memory", "packages"]


def test_too_little_memory_has_a_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor.os, "sysconf", {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 2**20}.get)
    [device] = doctor.check_cpu()
    assert "4 GiB" in device.detail
    assert "larger machine" in device.fix


def test_a_gpu_without_flash_attention_has_a_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    class Done:
        stdout = "NVIDIA H100 80GB HBM3, 81559 MiB\n" * 2

    monkeypatch.setattr(doctor, "has_gpu", lambda: True)
    monkeypatch.setattr(doctor, "find_spec", lambda _: None)
    monkeypatch.setattr(doctor.subprocess, "run", lambda *_, **__: Done)
    found = {one.name: one for one in examine()}
    assert found["device 1"].detail == "NVIDIA H100 80GB HBM3, 81559 MiB"
    assert "setup.sh gpu" in found["flash-attn"].fix
