"""Memory of messages that wait for a queue manager which cannot be reached.

Recoverable messages are sent by RPC to a peer whose port refuses connections. What RocksDB keeps
for itself is there before, because as many messages as it has room for have been stored.
"""

from collections.abc import Iterator
from dataclasses import replace

from durable_calls import HERE_NAME, QUEUE, sending
from figures import Figure, attempt, figure
from harness import BUILD, Script, few, load, resident
from served import EVERYONE
from sessions import queue_manager
from transfer import ELSEWHERE

from rpcqm.codec.names.format_name import FormatName
from rpcqm.testing import PrivateQueueManager
from tests.support.ports import reserved_port

MESSAGES = 1_000_000
WARM_UP = 1_000_000
"""Messages for which RocksDB has taken what it keeps."""
SIZE = 100
NAME = f"memory of a message that waits for an unreachable peer, {MESSAGES:,} of them"
CONNECTIONS = OUTSTANDING = 16
"""Calls outstanding on each connection."""


def many(to: str) -> Script:
    """Calls that send to a queue, many at once."""
    return replace(sending(SIZE, to).ours, window=OUTSTANDING)


def fill(sender: PrivateQueueManager, messages: int) -> int:
    """Send so many; how many wait."""
    load(sender.endpoint("rpc")[1], CONNECTIONS, many(ELSEWHERE), 0, 0, messages)
    with sender.client() as client:
        found = client.run(client.management.outgoing_queue(FormatName.parse(ELSEWHERE)))
    if found is None or found.message_count < messages:
        raise RuntimeError(f"fewer than {messages:,} messages wait: {found}")
    return found.message_count


def measure(messages: int) -> Figure:
    BUILD.mkdir(parents=True, exist_ok=True)
    peers = f'[binary]\npeers = "receiver=127.0.0.1:{reserved_port()}"\n'
    with queue_manager("sender", peers) as sender:
        assert sender.process is not None
        process = sender.process.pid
        sender.run("queue", "create", QUEUE, "--sddl", EVERYONE)
        load(sender.endpoint("rpc")[1], CONNECTIONS, many(HERE_NAME), 0, 0, few(WARM_UP))
        sender.run("purge", QUEUE)
        before = resident(process)
        waiting = fill(sender, messages)
        after = resident(process)
    note = f"{before / 2**20:.0f} MiB before, {after / 2**20:.0f} MiB with {waiting:,}"
    return figure(NAME, (after - before) / waiting, note)


def run() -> Iterator[Figure]:
    yield from attempt(NAME, lambda: measure(few(MESSAGES)))
