"""Bodies that strangers made: reading one is an error for that message only, and loses nothing."""

import json
import os
from collections.abc import Iterator

import pytest

from rpcqm.client import mq
from rpcqm.client.outgoing import OutgoingMessage
from rpcqm.codec.bodies.formatters import DOTNET_BINARY
from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.bounded import run_bounded
from tests.support.codec import dotnet

READ_ALL = """
import json
from rpcqm.client import bodies
from rpcqm.client import mq
with mq.open({queue!r}, peek_only=True) as queue:
    for message in queue.browse():
        try:
            read = message.value if message.body_type else bodies.value_of_xml(message.xml)
            print(json.dumps([message.label, "read", len(repr(read))]))
        except mq.DecodeError:
            print(json.dumps([message.label, "refused", len(message.body)]))
"""
RECEIVE_FIRST = """
from rpcqm.client import mq
try:
    with mq.open("kept") as queue:
        for message in queue.receive(timeout=0.2):
            message.value
except mq.DecodeError as error:
    print("refused")
"""

DOTNET = {
    "nulls in a cube": dotnet.rectangle(1, 1600, 1600, 1600) + dotnet.nulls(1 << 31 - 1),
    "nothing, for ever": dotnet.rectangle(1, *[3000] * 8, of=b"\0\x11"),
    "a run of nulls": dotnet.array(1, 12_000_000, dotnet.nulls(12_000_000)),
    "objects of nothing": dotnet.classes(2000, 20_000),
    "nested": dotnet.nested(60_000),
    "chained": dotnet.chained(60_000),
    "in a circle": dotnet.array(1, 2, dotnet.reference(1) * 2),
    "doubled": dotnet.doubled(40),
}
XML = {
    "nested XML": b"<ArrayOfInt>" * 50_000 + b"</ArrayOfInt>" * 50_000,
    "long names": b"<ArrayOfInt xmlns='"
    + b"x" * 100_000
    + b"'>"
    + b"".join(b"<int%d/>" % index for index in range(20_000))
    + b"</ArrayOfInt>",
    "entities": b'<!DOCTYPE x [<!ENTITY a "aaa"><!ENTITY b "&a;&a;">]><string>&b;</string>',
    "encoding": b'<?xml version="1.0" encoding="rot13"?><string>x</string>',
}
GOOD = dotnet.body(b"\x06" + dotnet.number(1) + dotnet.text("good"))


@pytest.fixture(scope="module")
def queue_manager() -> Iterator[PrivateQueueManager]:
    with private_queue_manager(configuration="[storage]\nreserve = 1\n") as queue_manager:
        yield queue_manager


def hostile() -> dict[str, tuple[bytes, int]]:
    binary = {label: (dotnet.body(records), DOTNET_BINARY) for label, records in DOTNET.items()}
    return binary | {label: (body, 0) for label, body in XML.items()}


@pytest.mark.parametrize("label", list(hostile()))
def test_a_hostile_body_is_refused_and_the_others_are_read(
    queue_manager: PrivateQueueManager, label: str
) -> None:
    """The reader has a GiB of memory and 20 seconds."""
    body, body_type = hostile()[label]
    queue = "hostile-" + label.replace(" ", "-").replace(",", "")
    queue_manager.run("queue", "create", queue)
    with mq.open(queue, queue_manager) as opened:
        for each, octets, kind in (
            ("before", GOOD, DOTNET_BINARY),
            (label, body, body_type),
            ("after", GOOD, DOTNET_BINARY),
        ):
            opened.send(OutgoingMessage(octets, label=each, body_type=kind))
    environment = os.environ | {"RPCQM_DATA_DIR": str(queue_manager.data_dir)}
    read = run_bounded(READ_ALL.format(queue=queue), environment=environment)
    assert read.returncode == 0, read.stderr[-2000:]
    assert [json.loads(line) for line in read.stdout.splitlines()] == [
        ["before", "read", 6],
        [label, "refused", len(body)],
        ["after", "read", 6],
    ]
    received = queue_manager.run("receive", queue, "--all", "--format", "json").stdout.splitlines()
    assert [json.loads(line)["label"] for line in received] == ["before", label, "after"]


def test_a_message_that_cannot_be_read_stays_in_its_queue(
    queue_manager: PrivateQueueManager,
) -> None:
    queue_manager.run("queue", "create", "kept")
    body = dotnet.body(DOTNET["nulls in a cube"])
    with mq.open("kept", queue_manager) as opened:
        opened.send(OutgoingMessage(body, label="kept", body_type=DOTNET_BINARY))
    environment = os.environ | {"RPCQM_DATA_DIR": str(queue_manager.data_dir)}
    outcome = run_bounded(RECEIVE_FIRST, environment=environment)
    assert outcome.stdout == "refused\n", outcome.stderr[-2000:]
    (left,) = queue_manager.run("peek", "kept", "--all", "--format", "json").stdout.splitlines()
    assert json.loads(left)["body_size"] == len(body)
