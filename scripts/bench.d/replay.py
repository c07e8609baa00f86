"""`rpcqm capture replay` as fast as possible, of traffic that a queue manager has recorded.

The messages are express ones: a replay sends a request only when the answers have come that its
client had seen, so that durable ones would measure the disk's syncs one by one.
"""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from figures import Figure, attempt, figure
from harness import few
from sampling import sampled_command
from served import EVERYONE

from rpcqm.client.names import format_name
from rpcqm.client.outgoing import OutgoingMessage
from rpcqm.client.queue_manager import QueueManagerClient
from rpcqm.client.target import RemoteServer
from rpcqm.codec.names.format_name import FormatName
from rpcqm.testing.private import PrivateQueueManager, private_queue_manager

CONFIGURATION = """\
[security]
allow_nonauthenticated_rpc = true
allow_unprotected_rpc = true
supporting_server = true
"""
MESSAGES, READERS, BODY = 1500, 4, 1024
NAME = "calls played and answered alike"
ROUNDS = 3


def _record(path: Path) -> None:
    """Sending, peeking and receiving over TCP: four calls a message."""
    with private_queue_manager(
        configuration=CONFIGURATION, options=["--capture", str(path)]
    ) as queue_manager:
        queue_manager.run("queue", "create", "bench", "--sddl", EVERYONE)
        asyncio.run(_traffic(queue_manager))


async def _traffic(queue_manager: PrivateQueueManager) -> None:
    host, port = queue_manager.endpoint("epm")
    name = FormatName.parse("DIRECT=TCP:127.0.0.1\\private$\\bench")
    async with QueueManagerClient(RemoteServer(host, port, None)) as client:
        async with client.open_sender(format_name("bench")) as sender:
            for _ in range(few(MESSAGES)):
                await sender.send(OutgoingMessage(os.urandom(BODY), recoverable=False))
        for _ in range(READERS):
            async with client.open_reader(name) as reader:
                for _ in range(few(MESSAGES) // READERS):
                    await reader.peek(0)
                    async with await reader.receive(0):
                        pass


def _command(path: Path, report: Path) -> list[str]:
    command = [sys.executable, "-m", "rpcqm", "capture", "replay", str(path), "--in-process"]
    return [*command, "--json", str(report)]


def _replay(path: Path, report: Path) -> float:
    """Calls a second, from the first request to the last answer."""
    done = subprocess.run(_command(path, report), capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"the replay: {done.stdout.strip()[:200]} {done.stderr.strip()[-100:]}")
    told = json.loads(report.read_text("utf-8"))
    return float(told["calls"]) / float(told["seconds"])


def measure() -> Figure:
    """The best of some rounds: a waiting game with two processes hates company."""
    with TemporaryDirectory() as name:
        path, report = Path(name) / "served.pcapng", Path(name) / "result.json"
        _record(path)
        rates = [_replay(path, report) for _ in range(ROUNDS)]
        note = f"one call at a time; rounds {min(rates):,.0f} to {max(rates):,.0f}"
        made = figure(NAME, max(rates), note)
        return made if made.met else replace(made, profile=sampled_command(_command(path, report)))


def run() -> Iterator[Figure]:
    yield from attempt(NAME, measure)
