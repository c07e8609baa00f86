"""A served queue manager sends for the queue of higher base priority first.

Source: [MS-MQDMPR] 3.1.7.1.28, 3.1.7.3.9. What leaves is read from its own recording.
"""

import time
from contextlib import AbstractContextManager
from pathlib import Path
from uuid import UUID

import pytest

from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.integration.binary.test_router import received
from tests.support.ports import ports_of
from tests.support.qm.directories import network_directory
from tests.support.waiting import PATIENCE

NAMES = ("alice", "bob")
LATER, SOONER = UUID(int=0x1A7E), UUID(int=0x5003E)

DIRECTORY = network_directory(
    {"alice": ["Berlin"], "bob": ["Berlin"]},
    {r"bob\later": LATER, r"bob\sooner": SOONER},
    {r"bob\sooner": "base_priority = 3\n"},
)


def send_to_both(queue_manager: PrivateQueueManager, body: str) -> None:
    """Two copies, the one for the queue of lower base priority first."""
    queue_manager.run("send", f"PUBLIC={LATER},PUBLIC={SOONER}", "--body", body)


def left(recording: Path, body: str) -> list[UUID]:
    """The public queues to which messages with that body have left, in order."""
    rests = recording.read_bytes().split(b"LIOR")[1:]
    packets = [rest[: int.from_bytes(rest[:4], "little")] for rest in rests]
    heads = [packet[:200] for packet in packets if body.encode("utf-16-le") in packet]
    return [queue for head in heads for queue in (LATER, SOONER) if queue.bytes_le in head]


@pytest.mark.conformance(
    "MQDMPR-event-dispatch_send_message", "MQDMPR-event-add_message_to_dispatch_collection"
)
def test_copies_that_are_written_at_once_leave_by_base_priority(tmp_path: Path) -> None:
    directory, recording = tmp_path / "directory.toml", tmp_path / "alice.pcapng"
    directory.write_text(DIRECTORY)
    ports = ports_of(NAMES)
    peers = ", ".join(f"{name}=127.0.0.1:{port}" for name, port in ports.items())

    def machine(name: str, *options: str) -> AbstractContextManager[PrivateQueueManager]:
        configuration = (
            f'name = "{name}"\ndirectory_file = "{directory}"\n[storage]\nreserve = 1\n'
            f'[binary]\npeers = "{peers}"\nretry_milliseconds = 100\n'
        )
        doors = ("--binary-port", str(ports[name]), *options)
        return private_queue_manager(doors, configuration, data_dir=tmp_path / name)

    with machine("bob") as bob, machine("alice", "--capture", str(recording)) as alice:
        send_to_both(alice, "opens both sessions")
        for queue in (LATER, SOONER):
            assert len(received(bob, queue, 1)) == 1
        send_to_both(alice, "goes in order")
        give_up = time.monotonic() + PATIENCE
        while len(left(recording, "goes in order")) < 2 and time.monotonic() < give_up:
            time.sleep(0.05)
        assert left(recording, "goes in order") == [SOONER, LATER]
