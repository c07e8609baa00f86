"""Programs that use the bank by HTTP: the interface for programs, and messages over HTTP."""

import asyncio
import base64
import ssl
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import aiohttp

from tests.support.cluster.clients import ANSWER, OPENING, Client, Lately, name_in
from tests.support.cluster.history import Missed, Outcome, Seen, Taken
from tests.support.cluster.nodes import BANK, CONSOLE, HTTP, LOGON, QueueManager
from tests.support.srmp.srmp_text import Elements, durable
from tests.support.srmp.srmp_text import message as srmp_message

WRONG = (aiohttp.ClientError, OSError, TimeoutError, ValueError)
_TIMES = aiohttp.ClientTimeout(total=ANSWER, connect=OPENING)


class Program(Client):
    """One that logs on at /api/v1."""

    def __init__(
        self, name: str, queue: str, shared: Lately, context: ssl.SSLContext, pause: float = 0.05
    ) -> None:
        super().__init__(name, queue, shared, pause)
        self._context = context

    @asynccontextmanager
    async def session(self) -> AsyncIterator[aiohttp.ClientSession]:
        connector = aiohttp.TCPConnector(ssl=self._context)
        async with aiohttp.ClientSession(
            headers=LOGON, timeout=_TIMES, connector=connector
        ) as made:
            yield made

    async def use(self, node: QueueManager) -> None:
        with suppress(*WRONG):
            async with self.session() as session:
                while self.shared.is_open and await self.ask(session, node):
                    await asyncio.sleep(self.pause)

    async def ask(self, session: aiohttp.ClientSession, node: QueueManager) -> bool:
        """One request; whether the node is to be asked again."""
        raise NotImplementedError

    def url(self, node: QueueManager, path: str) -> str:
        return f"https://{node.machine.address}:{CONSOLE}/api/v1{path}"


class KeyedSender(Program):
    """Sends under a key, and sends again, to whichever node, until it is answered."""

    waiting: tuple[Any, str] | None = None

    async def ask(self, session: aiohttp.ClientSession, node: QueueManager) -> bool:
        if self.waiting is None:
            self.waiting = self.next(), str(uuid.UUID(int=self.random.getrandbits(128)))
        name, key = self.waiting
        began, outcome = time.monotonic(), Outcome.DOUBT
        headers = {"Idempotency-Key": key, "Content-Type": "application/octet-stream"}
        url = self.url(node, f"/queues/{self.queue}/messages")
        try:
            async with session.post(url, data=name.body, headers=headers) as answer:
                outcome = Outcome.DONE if answer.status == 201 else Outcome.REFUSED
                await answer.read()
        finally:
            self.note(name, began, outcome, key=key)
        if outcome is Outcome.DONE:
            self.waiting = None
        return outcome is Outcome.DONE


class Leaseholder(Program):
    """Receives under a lease, and completes it; gives one of ten back."""

    async def ask(self, session: aiohttp.ClientSession, node: QueueManager) -> bool:
        began = time.monotonic()
        url = self.url(node, f"/queues/{self.queue}/receive?wait=1&max=1&lease=20")
        try:
            async with session.post(url) as answer:
                told = await answer.json() if answer.status == 200 else None
        except WRONG:
            self.shared.history.missed.append(Missed(self.queue, began, time.monotonic()))
            raise
        for each in told["messages"] if told else ():
            await self._end(session, node, each, began)
        return told is not None

    async def _end(
        self, session: aiohttp.ClientSession, node: QueueManager, told: Any, began: float
    ) -> None:
        given, name = time.monotonic(), name_in(base64.b64decode(told["body_base64"]))
        back = self.random.random() < 0.1
        outcome = Outcome.REFUSED if back else Outcome.DOUBT
        end = "release" if back else "complete"
        lease = told["lease"]["id"] if isinstance(told["lease"], dict) else told["lease"]
        try:
            async with session.post(self.url(node, f"/leases/{lease}/{end}")) as answer:
                done = 200 <= answer.status < 300 and not back
                outcome = Outcome.DONE if done else Outcome.REFUSED
        finally:
            ended = time.monotonic()
            self.shared.taken(Taken(name, self.queue, node.name, began, given, ended, outcome))


class Looker(Program):
    """Looks at all messages of a queue from which nobody takes any."""

    async def ask(self, session: aiohttp.ClientSession, node: QueueManager) -> bool:
        began = time.monotonic()
        names = await listed(session, self.url(node, f"/queues/{self.queue}/messages"))
        if names is None:
            return False
        seen = Seen(self.queue, node.name, began, time.monotonic(), tuple(names))
        self.shared.history.seen.append(seen)
        return self.random.random() < 0.8


async def listed(session: aiohttp.ClientSession, url: str) -> list[Any] | None:
    """The names of all messages of a queue; None if anything is refused."""
    names: list[Any] = []
    after = ""
    while True:
        async with session.get(f"{url}?limit=1000&decode=false{after}") as answer:
            if answer.status != 200:
                return None
            told = await answer.json()
        names += [name_in(base64.b64decode(each["body_base64"])) for each in told["messages"]]
        if told.get("next") is None:
            return names
        after = f"&after={told['next']}"


class Poster(Client):
    """Sends messages over HTTP, as a machine that is no queue manager of ours does."""

    async def use(self, node: QueueManager) -> None:
        with suppress(*WRONG):
            async with aiohttp.ClientSession(timeout=_TIMES) as session:
                while self.shared.is_open and await self._post(session, node):
                    await asyncio.sleep(self.pause)

    async def _post(self, session: aiohttp.ClientSession, node: QueueManager) -> bool:
        name, began, outcome = self.next(), time.monotonic(), Outcome.DOUBT
        target = f"/msmq/private$/{self.queue}"
        elements = Elements(ordinal=name.number, services=durable())
        post = srmp_message(f"http://{BANK}{target}", name.body, elements)
        url = f"http://{node.machine.address}:{HTTP}{target}"
        try:
            async with session.post(
                url, data=post.body, headers={**post.headers, "Host": BANK}
            ) as answer:
                await answer.read()
                outcome = Outcome.DONE if answer.status < 300 else Outcome.REFUSED
        except aiohttp.ClientConnectorError:
            outcome = Outcome.REFUSED
        finally:
            self.note(name, began, outcome)
        return outcome is Outcome.DONE
