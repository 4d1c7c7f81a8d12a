"""Checks the installation and the machine; each failure comes with its fix.

Command: ``search-r1 doctor [--retriever URL]``.
"""

import os
import shutil
import subprocess
from importlib.util import find_spec
from urllib.parse import urlsplit

import httpx
from rich.console import Console

from search_r1.contract.examine import examine_server
from search_r1.installation import Diagnoses, Diagnosis, check_installation
from search_r1.merge import has_gpu
from search_r1.passages import read_reply
from search_r1.retriever import TOKEN_VARIABLE, token_header

GIB = 2**30
_MIN_MEMORY_GIB = 20
_MIN_SHM_GIB = 2
_SERVE = "search-r1 serve --index FOLDER"
_URL_FIX = "give the /retrieve URL of a server: http://HOST:PORT/retrieve"


def print_diagnoses(retriever: str | None, console: Console) -> bool:
    """Examine everything and print it as it is found; return whether all needs are met."""
    well = True
    for found in examine(retriever):
        console.print(f"{_mark(found)} {found.name:15}", end=" ")
        console.print(found.detail, markup=False, soft_wrap=True)
        if not found.ok:
            console.print(f"     fix: {found.fix}", markup=False, style="yellow", soft_wrap=True)
        well = well and (found.ok or found.warning)
    return well


def _mark(found: Diagnosis) -> str:
    if found.ok:
        return "[green]ok  [/]"
    return "[yellow]warn[/]" if found.warning else "[red]FAIL[/]"


def examine(retriever: str | None = None) -> Diagnoses:
    """Look at the machine, a retrieval server if one is named, and the installation."""
    setup = f"bash scripts/setup.sh {'gpu' if has_gpu() else 'cpu'}"
    yield from _check_gpus(setup) if has_gpu() else check_cpu()
    shm = shutil.disk_usage("/dev/shm").total / GIB  # noqa: S108 - Ray's shared memory
    fix = "docker run --shm-size=16g" if shm < _MIN_SHM_GIB else ""
    yield Diagnosis("shared memory", f"{shm:.1f} GiB in /dev/shm", fix)
    if retriever:
        yield from check_retriever(retriever)
    yield from check_installation(setup)


def check_cpu() -> Diagnoses:
    """Cores and memory of a machine without a GPU."""
    gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / GIB
    small = f"the quickstart takes about {_MIN_MEMORY_GIB} GiB: use a larger machine"
    detail = f"CPU, {os.cpu_count()} cores, {gib:.0f} GiB"
    yield Diagnosis("device", detail, small if gib < _MIN_MEMORY_GIB else "")


def _check_gpus(setup: str) -> Diagnoses:
    command = ["nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    except (OSError, subprocess.CalledProcessError) as error:
        yield Diagnosis("device", f"nvidia-smi fails: {error}", "install the NVIDIA driver")
        return
    for index, line in enumerate(done.stdout.splitlines()):
        yield Diagnosis(f"device {index}", line)
    if find_spec("flash_attn") is None:
        yield Diagnosis("flash-attn", "not installed; verl needs it on a GPU", setup)


def check_retriever(url: str) -> Diagnoses:
    """One real query, then every rule of the retrieval API."""
    reached = query(url)
    yield reached
    if reached.usable:
        for verdict in examine_server(url):
            rule = verdict.rule
            fix = "" if verdict.kept else rule.fix
            yield Diagnosis(rule.name, verdict.detail, fix, warning=not rule.needed)


def query(url: str) -> Diagnosis:
    """One real query; the server must answer it with passages."""
    request = {"queries": ["Who was the first to walk on the Moon?"], "topk": 1}
    try:
        _check_url(url)
        reply = httpx.post(
            url,
            json=request | {"return_scores": True},
            headers=token_header(),
            timeout=30,
            trust_env=False,
        )
        reply.raise_for_status()
        [passages] = read_reply(reply.content, query_count=1)
    except httpx.HTTPStatusError as error:
        return Diagnosis("retriever", f"{url}: {error}", _status_fix(error.response.status_code))
    except httpx.HTTPError as error:
        return Diagnosis("retriever", f"{url}: {error}", f"start it: {_SERVE}")
    except (httpx.InvalidURL, ValueError) as error:
        return Diagnosis("retriever", f"{url}: {error}", _URL_FIX)
    if not passages:
        # An engine of words finds no passage that shares none with the question.
        fix = "ask it for something in its corpus; if it finds nothing then, build its index again"
        return Diagnosis("retriever", f"{url} found nothing", fix, warning=True)
    seconds = reply.elapsed.total_seconds()
    return Diagnosis("retriever", f"{url} answered in {seconds * 1000:.0f} ms")


def _check_url(url: str) -> None:
    address = urlsplit(url)
    if address.scheme not in {"http", "https"} or not address.hostname:
        raise ValueError("it does not begin with http:// and a host")


def _status_fix(status: int) -> str:
    if status == httpx.codes.UNAUTHORIZED:
        return f"set the server's token in the environment: export {TOKEN_VARIABLE}=..."
    if status == httpx.codes.SERVICE_UNAVAILABLE:
        return f"wait until it has loaded, or start it anew: {_SERVE}"
    if status >= httpx.codes.INTERNAL_SERVER_ERROR:
        return "read the server's own messages: it fails at a query"
    return _URL_FIX
