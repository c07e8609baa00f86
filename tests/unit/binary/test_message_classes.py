"""Each class of message that a queue manager sends, as a client reads it ([MS-MQMQ] 2.2.18.1.6).

The numbers are those of the specification, as octets of the packet or as pClass of a reader.
"""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from rpcqm.codec.packet.user_message import class_of
from rpcqm.codec.properties import QueueProperty
from rpcqm.codec.security.sddl import parse_sddl
from rpcqm.rpc.interface_registry import NCALRPC
from tests.support.binary.binary_network import Node, Simulation
from tests.support.binary.binary_pair import ADMIN, ORDERS, STREAM, Exchanging, exchanging
from tests.support.queue_manager import MEMORY
from tests.support.rpc.callers import ADMINISTRATOR
from tests.support.rpc.dependent_client import (
    RECEIVE_ACCESS,
    Client,
    object_of,
    receiving_buffer,
    served_clients,
)
from tests.support.rpc.remote_reader import ACK, Reader, served_remote_read
from tests.unit.binary.test_three_machines import REPORTS, directory, one_site, private_name

BOBS = r"DIRECT=OS:.\private$\{}"
ADMINISTER = 0x80
ARRIVED = 0x0002
MACHINES = ("alice", "router", "bob")
QUOTA, AUTHENTICATE, PRIVACY_LEVEL = 105, 111, 112


def client_of(node: Node) -> Client:
    """An administrator at that machine."""
    return Client(served_clients(node).connect(ADMINISTRATOR, transport=NCALRPC))


def classes(node: Node, name: str) -> list[int]:
    """The classes of all messages of a queue, which are received over RPC."""
    client = client_of(node)
    _, context = client.open(name)
    found: list[int] = []
    while True:
        status, buffer = client.receive(context, receiving_buffer(None, pClass=0))
        if status != "MQ_OK":
            assert status == "MQ_ERROR_IO_TIMEOUT"
            return found
        found.append(buffer.old.pClass)


def purge(node: Node, name: str, access: int = RECEIVE_ACCESS) -> None:
    client = client_of(node)
    handle, _ = client.open(name, access)
    assert client.status("rpc_ACPurgeQueue", hQueue=handle) == "MQ_OK"


def set_property(node: Node, number: int, value: int) -> None:
    changed = client_of(node).set_properties(BOBS.format("orders"), {QueueProperty(number): value})
    assert changed == "MQ_OK"


@pytest.fixture
def pair() -> Iterator[Exchanging]:
    with exchanging() as pair:
        yield pair


# What may happen to a message that asks for every acknowledgement


def arrive(pair: Exchanging) -> None:
    pair.send()


def be_received(pair: Exchanging) -> None:
    pair.send()
    pair.settle()
    classes(pair.bob, BOBS.format("orders"))


def find_no_queue(pair: Exchanging) -> None:
    pair.send(r"DIRECT=OS:bob\private$\nowhere")


def be_purged_on_its_way(pair: Exchanging) -> None:
    pair.simulation.unreachable.update(pair.bob.addresses)
    pair.send()
    pair.settle()
    purge(pair.alice, ORDERS, RECEIVE_ACCESS | ADMINISTER)


def be_too_late(pair: Exchanging) -> None:
    pair.simulation.unreachable.update(pair.bob.addresses)
    pair.send(time_to_reach_queue=5)


def find_no_room(pair: Exchanging) -> None:
    set_property(pair.bob, QUOTA, 1)
    pair.send(body=b"x" * 2048)


def go_where_nobody_may(pair: Exchanging) -> None:
    pair.send(r"DIRECT=OS:bob\private$\order_queue$")


def lack_a_signature(pair: Exchanging) -> None:
    set_property(pair.bob, AUTHENTICATE, 1)
    pair.send()


def travel_in_clear(pair: Exchanging) -> None:
    set_property(pair.bob, PRIVACY_LEVEL, 2)
    pair.send()


def go_transactional_to_a_plain_queue(pair: Exchanging) -> None:
    pair.send(ORDERS, transactional=True)


def go_plain_to_a_transactional_queue(pair: Exchanging) -> None:
    pair.send(STREAM)


def lose_its_queue(pair: Exchanging) -> None:
    pair.send()
    pair.settle()
    orders = object_of(BOBS.format("orders"))
    assert client_of(pair.bob).status("R_QMDeleteObject", pObjectFormat=orders) == "MQ_OK"


def be_purged(pair: Exchanging) -> None:
    pair.send()
    pair.settle()
    purge(pair.bob, BOBS.format("orders"))


def be_read_by_nobody(pair: Exchanging) -> None:
    pair.send(time_to_be_received=20)


def be_rejected(pair: Exchanging) -> None:
    """By a reader in a transaction, over RemoteRead."""
    pair.send(STREAM, transactional=True)
    pair.settle()
    (key,) = pair.stream.message_position_list.page(None, 2)
    client, identifier = client_of(pair.bob), bytes(range(16))
    transaction = client.enlist(identifier)
    reader = Reader(served_remote_read(pair.bob).connect(ADMINISTRATOR))
    handle = reader.open(BOBS.format("stream"))
    reader.body(handle, transaction=identifier, request_id=7)
    ended: dict[str, Any] = {"phContext": handle, "dwAck": ACK, "dwRequestId": 7}
    assert reader.status("R_EndTransactionalReceive", **ended) == "MQ_OK"
    rejected: dict[str, Any] = {"phContext": handle, "LookupId": key, "usClass": 0xC004}
    assert reader.status("R_SetUserAcknowledgementClass", **rejected) == "MQ_OK"
    assert client.status("R_QMCommitTransaction", phIntXact=transaction) == "MQ_OK"


Happen = Callable[[Exchanging], None]
ENDS: list[tuple[str, Happen, list[int]]] = [
    ("ACK_REACH_QUEUE", arrive, [0x0002]),
    ("ACK_RECEIVE", be_received, [ARRIVED, 0x4000]),
    ("NACK_BAD_DST_Q", find_no_queue, [0x8000]),
    ("NACK_DELETED", be_purged_on_its_way, [0x8001]),
    ("NACK_REACH_QUEUE_TIMEOUT", be_too_late, [0x8002]),
    ("NACK_Q_EXCEED_QUOTA", find_no_room, [0x8003]),
    ("NACK_ACCESS_DENIED", go_where_nobody_may, [0x8004]),
    ("NACK_BAD_SIGNATURE", lack_a_signature, [0x8006]),
    ("NACK_BAD_ENCRYPTION", travel_in_clear, [0x8007]),
    ("NACK_NOT_TRANSACTIONAL_Q", go_transactional_to_a_plain_queue, [0x8009]),
    ("NACK_NOT_TRANSACTIONAL_MSG", go_plain_to_a_transactional_queue, [0x800A]),
    ("NACK_Q_DELETED", lose_its_queue, [ARRIVED, 0xC000]),
    ("NACK_Q_PURGED", be_purged, [ARRIVED, 0xC001]),
    ("NACK_RECEIVE_TIMEOUT", be_read_by_nobody, [ARRIVED, 0xC002]),
    ("NACK_RECEIVE_REJECTED", be_rejected, [ARRIVED, 0xC004]),
]


@pytest.mark.parametrize(
    ("happen", "told"),
    [
        pytest.param(happen, told, id=name, marks=pytest.mark.conformance(f"MQMQ-class-{name}"))
        for name, happen, told in ENDS
    ],
)
def test_the_sender_receives_the_class_of_what_became_of_its_message(
    pair: Exchanging, happen: Happen, told: list[int]
) -> None:
    for node in (pair.alice, pair.bob):
        node.engine.settings.send_insecure_nacks = True
    happen(pair)
    pair.settle(60)
    assert classes(pair.alice, ADMIN) == told


INSECURE = ("NACK_BAD_DST_Q", "NACK_ACCESS_DENIED", "NACK_BAD_SIGNATURE", "NACK_BAD_ENCRYPTION")
ALWAYS_TOLD = "NACK_Q_EXCEED_QUOTA"
REFUSALS = [pytest.param(*end, id=end[0]) for end in ENDS if end[0] in (*INSECURE, ALWAYS_TOLD)]


@pytest.mark.conformance("MQQB-event-send_administration_acknowledgment")
@pytest.mark.parametrize(("name", "happen", "told"), REFUSALS)
def test_insecure_refusals_are_told_only_where_that_is_allowed(
    pair: Exchanging, name: str, happen: Happen, told: list[int]
) -> None:
    """SendInsecureNacks is off by default."""
    happen(pair)
    pair.settle(60)
    assert classes(pair.alice, ADMIN) == ([] if name in INSECURE else told)


@pytest.mark.conformance("MQMQ-class-NORMAL", "MQMQ-class-ORDER_ACK")
def test_a_message_is_normal_and_its_order_acknowledgement_is_not(pair: Exchanging) -> None:
    travelled: list[bytes] = []
    pair.simulation.record = travelled
    pair.send(STREAM, transactional=True, acknowledgements_requested=0)
    pair.settle(20)
    sent = [data for data in travelled if data[4:8] == b"LIOR" and not data[2] & 0x08]
    assert [class_of(data) for data in sent] == [0x0000, 0x00FF]
    assert classes(pair.bob, BOBS.format("stream")) == [0x0000]


@pytest.fixture
def simulation() -> Iterator[Simulation]:
    with tempfile.TemporaryDirectory(dir=MEMORY) as name:
        simulation = Simulation(Path(name))
        yield simulation
        simulation.stop()


@pytest.mark.conformance("MQMQ-class-REPORT")
def test_whoever_traces_a_message_receives_reports(simulation: Simulation) -> None:
    alice, _, bob = (simulation.node(each, directory=directory()) for each in MACHINES)
    bob.create()
    traced: dict[str, Any] = {"tracing_requested": True, "tracing_queue_identifier": REPORTS}
    alice.send(private_name(bob, "orders"), b"hello", **traced)
    simulation.advance(20_000)
    assert classes(alice, f"PUBLIC={REPORTS}") == [0x0001] * 4


def test_reports_go_where_the_sender_of_the_message_may_send(simulation: Simulation) -> None:
    """Each hop's, that of the sender's own queue manager too."""
    alice, _, bob = (simulation.node(each, directory=directory()) for each in MACHINES)
    bob.create()
    reports = alice.engine.registry.find_by_path(".\\reports")
    assert reports is not None
    descriptor = parse_sddl("O:BAD:(A;;GA;;;BA)").encode()
    alice.engine.queues.set_security(reports, 4, descriptor)
    traced: dict[str, Any] = {"tracing_requested": True, "tracing_queue_identifier": REPORTS}
    alice.send(private_name(bob, "orders"), b"hello", **traced)
    simulation.advance(20_000)
    assert classes(bob, private_name(bob, "orders")) == [0x0000]
    assert classes(alice, f"PUBLIC={REPORTS}") == []


@pytest.mark.conformance("MQMQ-class-NACK_HOP_COUNT_EXCEEDED")
def test_the_sender_receives_the_class_of_a_message_that_went_in_circles(
    simulation: Simulation,
) -> None:
    ways = dict(zip(MACHINES, (UUID(int=12), UUID(int=11), UUID(int=12)), strict=True))
    alice, _, bob = (simulation.node(each, directory=one_site(way)) for each, way in ways.items())
    bob.create()
    alice.create("admin")
    told = private_name(alice, "admin")
    wishes: dict[str, Any] = {
        "administration_queue_format_name": told,
        "acknowledgements_requested": 0x0F,
    }
    alice.send(private_name(bob, "orders"), b"round", **wishes)
    simulation.advance(120_000)
    assert classes(alice, told) == [0x8005]
