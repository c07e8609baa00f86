"""The primary's machine dies in the middle of a transfer from another queue manager.

Usage: python -m tests.support.cluster.transfer COUNT OUTCOME

In a network of its own (see `machines.alone`). Carol has COUNT transactional messages for the bank.
When a third of them has arrived, the primary's machine is taken off the network and its process is
killed; nobody does anything about that. Once all have arrived, the machine comes back. OUTCOME is a
file that gets what came of it, as JSON.
"""

import argparse
import asyncio
import json
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

import aiohttp

from rpcqm.base import log
from rpcqm.client.outgoing import OutgoingMessage
from rpcqm.client.queue_manager import QueueManagerClient
from tests.support.cluster.clients import local, name_in, of_bank
from tests.support.cluster.cluster import Cluster, running_cluster
from tests.support.cluster.history import Name
from tests.support.cluster.nodes import CONSOLE, LOGON, QueueManager
from tests.support.queue_manager import MEMORY
from tests.support.waiting import PATIENCE

TOGETHER = 50
"""Messages of a transaction."""
POLL = 0.05
PACE = 0.005
"""Seconds for 4 KiB on the way to the bank, so that the transfer lasts."""


@dataclass(slots=True)
class Came:
    """What came of it: the numbers of what arrived, in their order, and who did what."""

    arrived: list[int] = field(default_factory=list)
    at_death: int = 0
    """Messages that had arrived when the machine died."""
    seconds: float = 0.0
    """From then until all had arrived."""
    died: str = ""
    took_over: str = ""
    role: str = ""
    """What the machine is that has come back."""


async def play(cluster: Cluster, count: int) -> Came:
    came = Came()
    await fill(cluster, count)
    cluster.gate.pace = PACE
    await cluster.gate.open()
    primary = await served(cluster)
    while (there := await arrived(primary)) < count // 3:
        await asyncio.sleep(POLL)
    came.at_death, came.died = there, primary.name
    primary.machine.unplug()
    primary.kill()
    began = time.monotonic()
    async with asyncio.timeout(PATIENCE + count / 50):
        while await waiting(cluster):
            await asyncio.sleep(POLL)
    came.seconds = time.monotonic() - began
    successor = await served(cluster, but=primary)
    came.took_over = successor.name
    came.arrived = await numbers(successor)
    said = primary.output.stat().st_size
    primary.machine.plug()
    primary.start()
    came.role = await role_of(primary, said)
    await cluster.gate.close()
    return came


async def fill(cluster: Cluster, count: int) -> None:
    """Let carol have the messages, which she cannot send yet."""
    async with (
        QueueManagerClient(cluster.carol.target) as client,
        client.open_sender(of_bank("stream")) as sender,
    ):
        for first in range(1, count + 1, TOGETHER):
            async with client.begin_transaction() as unit:
                for number in range(first, min(first + TOGETHER, count + 1)):
                    await sender.send(OutgoingMessage(Name("carol", number).body), unit)


async def served(cluster: Cluster, but: QueueManager | None = None) -> QueueManager:
    """The node that serves, once one does; another one than `but`."""
    async with asyncio.timeout(PATIENCE):
        while (node := cluster.primary()) is None or node is but:
            await asyncio.sleep(POLL)
    return node


async def waiting(cluster: Cluster) -> int:
    """Messages that carol still has."""
    async with QueueManagerClient(cluster.carol.target) as client:
        queues = await client.management.outgoing_queues()
        return sum(queue.message_count for queue in queues)


async def arrived(node: QueueManager) -> int:
    """Messages that the bank has."""
    url = f"https://{node.machine.address}:{CONSOLE}/api/v1/queues/stream"
    async with aiohttp.ClientSession(headers=LOGON) as session, session.get(url, ssl=False) as told:
        return int((await told.json())["messages"])


async def numbers(node: QueueManager) -> list[int]:
    """What the bank has, in its order."""
    async with (
        QueueManagerClient(node.target) as client,
        client.open_reader(local("stream"), peek_only=True) as reader,
    ):
        return [name_in(message.body).number async for message in reader.browse()]


async def role_of(node: QueueManager, said: int) -> str:
    """What a node is by what it has said since then, and by its readiness."""
    give_up = time.monotonic() + PATIENCE
    while time.monotonic() < give_up:
        if b'"following the log"' in node.output.read_bytes()[said:]:
            return "standby" if await is_not_ready(node) else "ready"
        await asyncio.sleep(POLL)
    return "nothing"


async def is_not_ready(node: QueueManager) -> bool:
    url = f"https://{node.machine.address}:{CONSOLE}/readyz"
    async with aiohttp.ClientSession() as session, session.get(url, ssl=False) as answer:
        return answer.status == 503


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("outcome", type=Path)
    given = parser.parse_args()
    log.configure("critical")
    with (
        tempfile.TemporaryDirectory(prefix="rpcqm-transfer-", dir=MEMORY) as name,
        running_cluster(Path(name)) as cluster,
    ):
        came = asyncio.run(play(cluster, given.count))
        cluster.kill()
    given.outcome.write_text(json.dumps(asdict(came)), "utf-8")


if __name__ == "__main__":
    main()
