"""Memory of messages that wait for a queue manager which cannot be reached.

Recoverable messages are sent by RPC to a peer whose port refuses connections. What RocksDB keeps
for itself is there before, because as many messages as it has room for have been stored.
"""

from dataclasses import replace

from broker import free_port
from durable import HERE_NAME, QUEUE, sending
from harness import BUILD, Figure, Script, load, resident
from served import EVERYONE
from sessions import queue_manager
from transfer import ELSEWHERE

from rpcqm.codec.names.format_name import FormatName
from rpcqm.testing import PrivateQueueManager

MESSAGES = 1_000_000
WARM_UP_SECONDS = 15.0
SIZE = 100
MOST_LOADS = 200
CONNECTIONS = OUTSTANDING = 16
"""Calls outstanding on each connection."""


def many(to: str) -> Script:
    """Calls that send to a queue, many at once."""
    return replace(sending(SIZE, to).ours, window=OUTSTANDING)


def fill(sender: PrivateQueueManager, messages: int) -> int:
    """Send until so many wait; how many they are."""
    port, script = sender.endpoint("rpc")[1], many(ELSEWHERE)
    name = FormatName.parse(ELSEWHERE)
    with sender.client() as client:
        for _ in range(MOST_LOADS):
            load(port, CONNECTIONS, script, 2.0, 0)
            found = client.run(client.management.outgoing_queue(name))
            if found is not None and found.message_count >= messages:
                return found.message_count
    raise RuntimeError(f"fewer than {messages:,} messages after {MOST_LOADS} loads")


def run(messages: int = MESSAGES) -> list[Figure]:
    BUILD.mkdir(parents=True, exist_ok=True)
    peers = f'[binary]\npeers = "receiver=127.0.0.1:{free_port()}"\n'
    with queue_manager("sender", peers) as sender:
        assert sender.process is not None
        process = sender.process.pid
        sender.run("queue", "create", QUEUE, "--sddl", EVERYONE)
        load(sender.endpoint("rpc")[1], CONNECTIONS, many(HERE_NAME), WARM_UP_SECONDS, 0)
        sender.run("purge", QUEUE)
        before = resident(process)
        waiting = fill(sender, messages)
        after = resident(process)
    return [
        Figure(
            f"memory of a message that waits for an unreachable peer, {messages:,} of them",
            (after - before) / waiting,
            100,
            "bytes",
            at_most=True,
            note=f"{before / 2**20:.0f} MiB before, {after / 2**20:.0f} MiB with {waiting:,}",
        )
    ]
