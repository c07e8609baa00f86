"""What callers see while one, two or all servers of the log are gone, or one or both nodes.

Usage: python -m tests.support.cluster.promises OUTCOME

In a network of its own (see `machines.alone`). OUTCOME is a file that gets, as JSON, what was seen
in each case of the table in docs/failover.md.
"""

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path

import aiohttp

from rpcqm.base import log
from tests.support.cluster.cluster import Cluster, running_cluster
from tests.support.cluster.faults import Roles, roles_of
from tests.support.cluster.history import Name
from tests.support.cluster.machines import Program
from tests.support.cluster.nodes import CONSOLE, LOGON, QueueManager
from tests.support.cluster.programs import WRONG, listed
from tests.support.queue_manager import MEMORY
from tests.support.waiting import PATIENCE

QUEUE = "stock"
NO_ANSWER = 0
ANSWER = aiohttp.ClientTimeout(total=1.0)
PATIENT = aiohttp.ClientTimeout(total=10.0)
LONGER = 8.0
"""Seconds in which refusals come, and in which a standby would have taken over long since."""
POLL = 0.1


@dataclass(slots=True)
class Saw:
    """One case.

    `sends` are the statuses of requests that send, in their order and without repetitions, while it
    lasts: success if one node gives it, else the lower one, of which 0 is no answer. `looks` and
    `ready` are those of the last ones that look, and ask whether it is ready.
    """

    sends: list[int]
    looks: int
    ready: list[int]
    """Of both nodes."""
    retry_after: bool = False
    """Whether the last refusal says when to try again."""
    served_by: str = ""
    """The node that answers a sender afterwards."""


class Observer:
    """Breaks things, and asks both nodes."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.last = 0
        self.statuses: dict[Name, int] = {}
        """The status with which each message was answered."""
        self._retry_after = False

    async def run(self) -> dict[str, object]:
        """Every case, and what is there in the end."""
        await self.cluster.gate.open()
        async with aiohttp.ClientSession(headers=LOGON, timeout=ANSWER) as self.session:
            await self.served()
            cases = {name: asdict(await self._case(of)) for name, of in CASES.items()}
            there = await self._names(await self.served())
        await self.cluster.gate.close()
        answered = [name for name, status in self.statuses.items() if status == 201]
        refused = [name for name, status in self.statuses.items() if status == 503]
        return {
            "cases": cases,
            "answered": len(answered),
            "lost": [str(name) for name in answered if name not in there],
            "twice": len(there) - len(set(there)),
            "refused and there": [str(name) for name in refused if name in there],
        }

    async def _case(self, of: Callable[[Roles], Sequence[Program]]) -> Saw:
        """What is seen while these are gone, and who serves afterwards."""
        roles = roles_of(self.cluster)
        gone = of(roles)
        for program in gone:
            program.kill()
        nodes = (roles.primary, roles.standby)
        saw = await self._watch(nodes, len(gone) == 1)
        for program in gone:
            program.start()
        saw.served_by = "the same" if await self.served() is roles.primary else "the other"
        await self._until_all_follow()
        return saw

    async def _watch(self, nodes: Sequence[QueueManager], is_to_serve: bool) -> Saw:
        """Send until all is answered again; where nobody is to serve, until all is refused."""
        began, sends, self._retry_after = time.monotonic(), [], False
        while time.monotonic() - began < (PATIENCE if is_to_serve else LONGER):
            statuses = [await self.send(node) for node in nodes]
            sends.append(_of_both(statuses, 201))
            if sends[-3:] == [201 if is_to_serve else 503] * 3:
                break
            await asyncio.sleep(POLL)
        looks = _of_both([await self._look(node) for node in nodes], 200)
        ready = [await self._ready(node) for node in nodes]
        return Saw([status for status, _ in groupby(sends)], looks, ready, self._retry_after)

    async def send(self, node: QueueManager) -> int:
        """The status with which a message of its own is answered."""
        self.last += 1
        name = Name("promise", self.last)
        url = self._url(node, f"/api/v1/queues/{QUEUE}/messages")
        status = NO_ANSWER
        try:
            async with self.session.post(url, data=name.body, ssl=False) as answer:
                status = answer.status
                if status == 503:
                    self._retry_after = "Retry-After" in answer.headers
        except WRONG:
            pass
        self.statuses[name] = status
        return status

    async def _look(self, node: QueueManager) -> int:
        return await self._get(self._url(node, f"/api/v1/queues/{QUEUE}/messages?limit=1"))

    async def _ready(self, node: QueueManager) -> int:
        return await self._get(self._url(node, "/readyz"))

    async def _get(self, url: str) -> int:
        try:
            async with self.session.get(url, ssl=False, timeout=PATIENT) as answer:
                return answer.status
        except WRONG:
            return NO_ANSWER

    def _url(self, node: QueueManager, path: str) -> str:
        return f"https://{node.machine.address}:{CONSOLE}{path}"

    async def served(self) -> QueueManager:
        """The node that answers a sender, once one does."""
        async with asyncio.timeout(PATIENCE):
            while True:
                for node in self.cluster.nodes:
                    if await self.send(node) == 201:
                        return node
                await asyncio.sleep(POLL)

    async def _until_all_follow(self) -> None:
        """Wait until the next case finds a primary and a standby, and a log with all servers."""
        async with asyncio.timeout(PATIENCE):
            while sorted([await self._ready(node) for node in self.cluster.nodes]) != [200, 503]:
                await asyncio.sleep(POLL)
            while not all(server.leader() for server in self.cluster.servers):
                await asyncio.sleep(POLL)

    async def _names(self, node: QueueManager) -> list[Name]:
        url = self._url(node, f"/api/v1/queues/{QUEUE}/messages")
        connector = aiohttp.TCPConnector(ssl=self.cluster.keys.context())
        async with aiohttp.ClientSession(headers=LOGON, connector=connector) as session:
            return await listed(session, url) or []


def _of_both(statuses: Sequence[int], well: int) -> int:
    """What one who asks both nodes has: success if one succeeds, else what says least."""
    return well if well in statuses else min(statuses)


CASES: dict[str, Callable[[Roles], Sequence[Program]]] = {
    "a follower": lambda roles: roles.followers[:1],
    "the leader": lambda roles: [roles.leader],
    "two servers": lambda roles: roles.followers,
    "all servers": lambda roles: roles.servers,
    "the standby": lambda roles: [roles.standby],
    "the primary": lambda roles: [roles.primary],
    "both nodes": lambda roles: [roles.primary, roles.standby],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("outcome", type=Path)
    given = parser.parse_args()
    log.configure("critical")
    with (
        tempfile.TemporaryDirectory(prefix="rpcqm-promises-", dir=MEMORY) as name,
        running_cluster(Path(name)) as cluster,
    ):
        told = asyncio.run(Observer(cluster).run())
        cluster.kill()
    given.outcome.write_text(json.dumps(told, indent=1), "utf-8")


if __name__ == "__main__":
    main()
