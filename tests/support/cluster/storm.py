"""One storm: a cluster, everybody who uses it, and faults one after the other; then the judgement.

Usage: python -m tests.support.cluster.storm SEED FIRST COUNT OUTCOME [--prompt SECONDS]

In a network of its own (see `machines.alone`). The faults are those of the seed from number FIRST
on. OUTCOME is a file that gets what came of it, as JSON; the machines' disks are beside it. So many
seconds after a fault something must be answered again.
"""

import argparse
import asyncio
import json
import shutil
import ssl
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from random import Random

from rpcqm.base import log
from rpcqm.client.queue_manager import QueueManagerClient
from rpcqm.replica.nats import NatsSettings, open_log
from tests.support.cluster import checker, programs
from tests.support.cluster.clients import (
    Client,
    Lately,
    Reader,
    RpcSender,
    StreamSender,
    Transactor,
    local,
    name_in,
    of_bank,
)
from tests.support.cluster.cluster import QUEUES, SERVERS, Cluster, running_cluster, tail
from tests.support.cluster.evidence import brought_up_to_date, from_nothing, records_of, written
from tests.support.cluster.faults import Kind, chosen, happen, name_of
from tests.support.cluster.history import Fault, Name, Outcome
from tests.support.cluster.log_servers import CLIENTS
from tests.support.cluster.machines import LAN
from tests.support.waiting import PATIENCE

POLL = 0.05


@dataclass(slots=True)
class Came:
    """What came of a storm; `silences` are the seconds without an answer at each fault."""

    faults: int = 0
    acknowledged: int = 0
    taken: int = 0
    lost: int = 0
    twice: int = 0
    epochs: int = 0
    problems: list[str] = field(default_factory=list)
    silences: dict[str, float] = field(default_factory=dict)
    ends: dict[str, int] = field(default_factory=dict)
    unanswered: dict[str, int] = field(default_factory=dict)


def everybody(cluster: Cluster, shared: Lately) -> list[Client]:
    """One of each kind, and of what writes most two."""
    context = cluster.keys.context()

    return [
        RpcSender("rpc-a", "orders", shared),
        RpcSender("rpc-b", "orders", shared),
        Reader("reader", "orders", shared),
        RpcSender("rpc-stock", "stock", shared, pause=0.1),
        programs.Looker("looker", "stock", shared, context, pause=0.2),
        programs.Looker("watcher", "stream", shared, context, pause=0.3),
        Transactor("unit", "pairs", shared),
        programs.KeyedSender("keyed", "keys", shared, context),
        RpcSender("rpc-tasks", "tasks", shared),
        programs.Leaseholder("holder", "tasks", shared, context),
        programs.Poster("post", "letters", shared),
        StreamSender("carol", of_bank("stream"), "stream", shared, cluster.carol),
    ]


class Storm:
    """A cluster under load."""

    def __init__(self, cluster: Cluster, seed: int, prompt: float) -> None:
        self.cluster = cluster
        self._prompt = prompt
        self.shared = Lately(list(cluster.nodes), seed)
        self.random = Random(f"storm {seed}")
        self.came = Came()

    async def run(self, faults: Sequence[Sequence[Kind]]) -> Came:
        """Let everybody work while the faults happen; then look at what is left."""
        await self.cluster.gate.open()
        keeping = asyncio.create_task(self.cluster.keep_running())
        tasks = [asyncio.create_task(each.run()) for each in everybody(self.cluster, self.shared)]
        try:
            await self.served(time.monotonic())
            for kinds in faults:
                await self._have(kinds)
            self.shared.is_open = False
            await asyncio.wait(tasks, timeout=PATIENCE)
            await self._look()
        finally:
            for task in (keeping, *tasks):
                task.cancel()
            await self.cluster.gate.close()
        return self._judged()

    async def _have(self, kinds: Sequence[Kind]) -> None:
        """A fault, and the time until the bank answers again."""
        await asyncio.sleep(self.random.uniform(0.5, 1.5))
        began = time.monotonic()
        await happen(self.cluster, kinds, self.random)
        ended = time.monotonic()
        fault = Fault(name_of(kinds), began, ended)
        self.shared.history.faults.append(fault)
        await self.served(ended)
        self.came.faults += 1
        silence = self._silence(began)
        self.came.silences[f"{self.came.faults} {fault.what}"] = round(silence, 1)
        print(f"{fault.what}: {silence:.1f} s without an answer", flush=True)

    async def served(self, since: float) -> None:
        """Wait until something that was asked afterwards is answered."""
        give_up = time.monotonic() + PATIENCE
        while not self._is_served(since) and time.monotonic() < give_up:
            await asyncio.sleep(POLL)

    def _is_served(self, since: float) -> bool:
        recent = self.shared.history.sent[-50:]
        return any(s.node and s.outcome is Outcome.DONE and s.began >= since for s in recent)

    def _silence(self, since: float) -> float:
        """The longest time without an answer, from then on."""
        times = [since, *(end for _, end in self.shared.history.answers() if end > since)]
        return max((other - one for one, other in pairwise(times)), default=0.0)

    # When all is over

    async def _look(self) -> None:
        """Let carol's messages arrive, read what is held, and stop all."""
        await self._until_carol_has_none()
        history = self.shared.history
        for queue in QUEUES:
            history.held[queue] = await self._held(queue)
        for node in self.cluster.nodes:
            await asyncio.to_thread(node.stop)
        opened = await open_log(log_settings(self.cluster))
        records = await records_of(opened)
        await opened.close()
        history.records = written(records)
        self.came.epochs = max((each.epoch for each in history.records), default=0)
        history.copies["the log"] = from_nothing(self.cluster.lan.place, records)
        for node in self.cluster.nodes:
            history.copies[node.name] = brought_up_to_date(node.data, records)

    async def _until_carol_has_none(self) -> None:
        give_up = time.monotonic() + PATIENCE
        async with QueueManagerClient(self.cluster.carol.target) as client:
            while time.monotonic() < give_up:
                queues = await client.management.outgoing_queues()
                if not any(queue.message_count for queue in queues):
                    return
                await asyncio.sleep(0.2)
        self.came.problems.append("carol could not send all that she had")

    async def _held(self, queue: str) -> tuple[Name, ...]:
        """What the primary has in a queue."""
        give_up = time.monotonic() + PATIENCE
        while (node := self.cluster.primary()) is None and time.monotonic() < give_up:
            await asyncio.sleep(POLL)
        if node is None:
            self.came.problems.append("nobody serves in the end")
            return ()
        async with (
            QueueManagerClient(node.target) as client,
            client.open_reader(local(queue), peek_only=True) as reader,
        ):
            return tuple([name_in(message.body) async for message in reader.browse()])

    def _judged(self) -> Came:
        history = self.shared.history
        self.came.acknowledged = len(history.acknowledged)
        self.came.taken = sum(each.outcome is Outcome.DONE for each in history.taken)
        self.came.lost = len(checker.lost_names(history))
        self.came.twice = len(checker.doubled_names(history))
        self.came.problems += checker.problems(history, self._prompt)
        self.came.ends = dict(self.cluster.ends)
        doubts = Counter(s.outcome.value for s in history.sent if s.outcome is not Outcome.DONE)
        self.came.unanswered = dict(doubts)
        return self.came


def log_settings(cluster: Cluster) -> NatsSettings:
    """The log as a node opens it."""
    access = cluster.keys.log
    servers = tuple(f"tls://{LAN}.{number}:{CLIENTS}" for number in SERVERS.values())
    context = ssl.create_default_context(cafile=str(access.certificate))
    options = (("user", access.user), ("password", access.password), ("tls", context))
    return NatsSettings(servers, "rpcqm", 3, 67108864, options)


def play(seed: int, faults: Sequence[Sequence[Kind]], prompt: float, place: Path) -> Came:
    """A storm in a cluster of its own; if something went wrong, what was said is kept there."""
    machines = place / "machines"
    machines.mkdir()
    try:
        with running_cluster(machines) as cluster:
            came = asyncio.run(Storm(cluster, seed, prompt).run(faults))
            if came.problems:
                for program in cluster.programs:
                    (place / f"{program.name}.log").write_text(tail(program.output, 1 << 20))
        return came
    finally:
        shutil.rmtree(machines, ignore_errors=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seed", type=int)
    parser.add_argument("first", type=int)
    parser.add_argument("count", type=int)
    parser.add_argument("outcome", type=Path)
    parser.add_argument("--prompt", type=float, default=checker.PROMPT)
    given = parser.parse_args()
    log.configure("critical")
    faults = chosen(given.seed, given.first + given.count)[given.first :]
    seed = given.seed * 1_000_003 + given.first
    came = play(seed, faults, given.prompt, given.outcome.parent)
    given.outcome.write_text(json.dumps(asdict(came), indent=1), "utf-8")


if __name__ == "__main__":
    main()
