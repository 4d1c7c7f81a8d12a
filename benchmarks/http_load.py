"""A load of many concurrent clients from one cheap process: one query a request, kept alive.

Each client sends its next request when its answer is there. It looks for the end of an answer and
at its status, and parses nothing, so that a core shared with the server is the server's.
"""

import asyncio
import itertools
import json
import random
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

_BACK_OFF_SECONDS = 0.1
_HEADERS_END = b"\r\n\r\n"
_KINDS = ("film", "novel", "river", "battle", "painting", "opera", "bridge", "village", "album")
_ASKED = ("director", "author", "mayor", "founder", "composer", "architect", "owner", "sister")
_FORMS = (
    "who was the {asked} of the {kind} {name} in {year}",
    "in which country is the {kind} called {name} that {other} wrote about",
    "what is the birthplace of {other}, the {asked} of {name}",
    "when did the {asked} {other} first visit the {kind} {name}",
    "which {kind} came first, {name} or {other}?",
)
_SYLLABLES = re.findall("..", "kalomirevutasuldorenshibaquozelhupidrafenosewygoltrix")


def questions(seed: int) -> Iterator[str]:
    """Questions of 8 to 16 words as a policy would ask them, no two the same."""
    chance = random.Random(seed)
    for number in itertools.count(1000):
        name, other = (
            " ".join(
                "".join(chance.choices(_SYLLABLES, k=chance.randint(2, 3))).title()
                for _ in range(chance.randint(1, 2))
            )
            for _ in range(2)
        )
        form = chance.choice(_FORMS)
        kind, asked = chance.choice(_KINDS), chance.choice(_ASKED)
        text = form.format(kind=kind, asked=asked, name=name, other=other, year=number)
        yield text if str(number) in text else f"{text} {number}"


@dataclass
class Tally:
    """What the clients saw."""

    seconds: list[float] = field(default_factory=list)
    errors: dict[int, int] = field(default_factory=dict)
    lost: list[float] = field(default_factory=list)
    """When each request was sent whose connection ended before its answer."""

    def note(self, status: int, seconds: float) -> None:
        """Count an answer."""
        if status == 200:
            self.seconds.append(seconds)
        else:
            self.errors[status] = self.errors.get(status, 0) + 1


class _Client(asyncio.Protocol):
    """One connection with at most one request on its way."""

    def __init__(self, load: "Load") -> None:
        self.load = load
        self.sent_at = 0.0
        self.received = bytearray()
        self.wanted = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.port = int(transport.get_extra_info("sockname")[1])
        self.load.clients.add(self)
        self.send()

    def send(self) -> None:
        self.received.clear()
        self.wanted = 0
        self.sent_at = time.perf_counter()
        self.transport.write(self.load.next_request())

    def data_received(self, data: bytes) -> None:
        self.received += data
        if not self.wanted and (end := self.received.find(_HEADERS_END)) > 0:
            head = bytes(self.received[:end]).lower()
            length = head.partition(b"content-length:")[2].partition(b"\r\n")[0]
            self.wanted = end + len(_HEADERS_END) + int(length)
        if self.wanted and len(self.received) >= self.wanted:
            self.load.tally.note(int(self.received[9:12]), time.perf_counter() - self.sent_at)
            self.sent_at = 0.0
            if self.load.running:
                self.send()
            else:
                self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the protocol's
        self.load.clients.discard(self)
        if self.sent_at:
            self.load.tally.lost.append(self.sent_at)
        if self.load.running:
            self.load.connect_later()


class Load:
    """A number of clients that ask until they are stopped.

    Args:
        port: Of a server on this machine.
        seed: Of the questions.
    """

    def __init__(self, port: int, seed: int) -> None:
        self.port = port
        self.running = True
        self.tally = Tally()
        self.clients: set[_Client] = set()
        self._questions = questions(seed)
        self._connecting: set[asyncio.Task[None]] = set()

    def next_request(self) -> bytes:
        """The bytes of a request with a new question."""
        body = json.dumps(
            {"queries": [next(self._questions)], "topk": 3, "return_scores": True}
        ).encode()
        head = f"POST /retrieve HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n"
        return f"{head}Content-Type: application/json\r\n\r\n".encode() + body

    def connect_later(self) -> None:
        """Open a connection in place of one that was lost."""
        task = asyncio.get_running_loop().create_task(self._reconnect())
        self._connecting.add(task)
        task.add_done_callback(self._connecting.discard)

    async def _reconnect(self) -> None:
        # As a real client's back-off: a process that is being killed still takes connections.
        await asyncio.sleep(_BACK_OFF_SECONDS)
        await self._connect()

    async def _connect(self) -> None:
        loop = asyncio.get_running_loop()
        while self.running:
            try:
                await loop.create_connection(lambda: _Client(self), "127.0.0.1", self.port)
            except OSError:
                await asyncio.sleep(0.05)
            else:
                return

    async def start(self, clients: int) -> None:
        """Open the connections; each begins to ask."""
        await asyncio.gather(*(self._connect() for _ in range(clients)))

    async def stop(self) -> None:
        """Wait for the answers under way."""
        self.running = False
        while any(client.sent_at for client in self.clients):  # noqa: ASYNC110 - no event for it
            await asyncio.sleep(0.01)
