"""What administrators are told while messages travel: the figures of real transfers.

Two queue managers on a simulated network; [MS-MQMR] 3.1.4.1, [MS-MQMQ] 2.3.12.
"""

import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rpcqm.base.completion import start
from rpcqm.codec.automation.values import Variant
from rpcqm.codec.properties import NULL_VARIANT, ManagementQueueProperty
from rpcqm.codec.propvariant import propvariant_of, variant_of
from rpcqm.codec.types.mqvalues import VARENUM
from rpcqm.codec.types.qmmgmt import MGMT_OBJECT, MGMT_OBJECT_u
from rpcqm.interfaces import qmmgmt
from rpcqm.mqac.collection import MSMQCollection
from rpcqm.mqac.management import MSMQManagement
from rpcqm.service import interfaces
from tests.support.binary.binary_network import Node, Simulation
from tests.support.dcom.fake_com import call_of
from tests.support.queue_manager import MEMORY
from tests.support.rpc.callers import ADMINISTRATOR, CallServer, Served
from tests.support.rpc.remote_reader import format_of

STREAM = r"DIRECT=OS:bob\private$\stream"
SECOND = 1_000
NOTHING = (0, 0, 0)
IN_PROCESS, ESTABLISH_RECEIVED, ESTABLISHED, CONNECT_FAILED = 0, 1, 2, 0x80000004
SEND_FAILED = 0x80000006


def claims(*names: str) -> pytest.MarkDecorator:
    return pytest.mark.conformance(*(f"MQMR-prop-PROPID_MGMT_QUEUE_{name}" for name in names))


@pytest.fixture
def simulation() -> Iterator[Simulation]:
    with tempfile.TemporaryDirectory(dir=MEMORY) as directory:
        simulation = Simulation(Path(directory))
        simulation.node("alice")
        simulation.node("bob").create("stream", transactional=True)
        yield simulation
        simulation.stop()


@pytest.fixture
def alice(simulation: Simulation) -> Node:
    """She has sent three transactional messages to bob, which have arrived."""
    alice = simulation.nodes["alice"]
    for number in range(3):
        alice.send(STREAM, b"%d" % number, transactional=True)
    simulation.advance(SECOND // 4)
    return alice


def told(node: Node, *names: str) -> list[Any]:
    """What an administrator is told who asks by R_QMMgmtGetInfo."""
    server = CallServer(node, Served("qmmgmt", interfaces.qmmgmt(node.engine), qmmgmt.POLICY))
    response = server.connect(ADMINISTRATOR).call(
        "R_QMMgmtGetInfo",
        pObjectFormat=MGMT_OBJECT(type=2, u=MGMT_OBJECT_u(2, format_of(STREAM))),
        cp=len(names),
        aProp=[getattr(ManagementQueueProperty, f"PROPID_MGMT_QUEUE_{name}") for name in names],
        apVar=[propvariant_of(NULL_VARIANT) for _ in names],
    )
    assert response.result == 0
    return [variant_of(value).value for value in response.apVar]


def sequence(blob: bytes) -> tuple[int, int, int]:
    """Identifier, number and previous number of a SEQUENCE_INFO ([MS-MQMQ] 2.2.5)."""
    identifier, number, previous = struct.unpack("<qII", blob)
    return identifier, number, previous


@claims("STATE", "NEXTHOPS", "MESSAGE_COUNT", "BYTES_IN_QUEUE")
def test_messages_that_wait_for_their_acknowledgement_are_counted(alice: Node) -> None:
    state, hops, count, octets = told(alice, "STATE", "NEXTHOPS", "MESSAGE_COUNT", "BYTES_IN_QUEUE")
    assert (state, hops, count) == ("CONNECTED", ("IP=192.0.2.2",), 3)
    assert octets == alice.outgoing(STREAM).total_bytes > 0


@claims(
    "EOD_NO_ACK_COUNT",
    "EOD_FIRST_NON_ACK",
    "EOD_LAST_NON_ACK",
    "EOD_NEXT_SEQ",
    "EOD_RESEND_TIME",
    "EOD_RESEND_INTERVAL",
    "EOD_LAST_ACK",
)
def test_what_is_not_acknowledged_is_told_by_its_place_in_the_sequence(
    simulation: Simulation, alice: Node
) -> None:
    blobs = told(alice, "EOD_FIRST_NON_ACK", "EOD_LAST_NON_ACK", "EOD_NEXT_SEQ")
    first, last, following = map(sequence, blobs)
    identifier = first[0]
    assert identifier > 0
    assert first == (identifier, 1, 0)
    assert last == (identifier, 3, 2)
    assert following == (identifier, 4, 3)
    count, last_ack = told(alice, "EOD_NO_ACK_COUNT", "EOD_LAST_ACK")
    assert (count, sequence(last_ack)) == (3, NOTHING)
    interval, moment = told(alice, "EOD_RESEND_INTERVAL", "EOD_RESEND_TIME")
    assert (interval, moment) == (30, simulation.clock.now() // SECOND + 30)


@pytest.mark.conformance("MQAC-packet-SequenceInfoCollection")
def test_an_object_tells_of_a_place_in_the_sequence_the_same(alice: Node) -> None:
    call, machine = call_of(ADMINISTRATOR), interfaces.machine(alice.engine)
    made = MSMQManagement(machine)
    start(made.Init(call, None, None, Variant(VARENUM.VT_BSTR, STREAM))).result()
    collection = start(made.EodGetSendInfo(call)).result()
    for name, property_name in (("EodNextSeq", "NEXT_SEQ"), ("EodLastNonAck", "LAST_NON_ACK")):
        (blob,) = told(alice, f"EOD_{property_name}")
        inner = collection.Item(call, Variant(VARENUM.VT_BSTR, name)).value
        assert isinstance(inner, MSMQCollection)
        elements = {key: element.value for key, element in inner.elements.items()}
        identifier, number, previous = sequence(blob)
        assert elements == {"SeqID": identifier, "SeqNo": number, "PrevNo": previous}
        assert number == previous + 1


@claims("EOD_LAST_ACK_TIME", "EOD_LAST_ACK_COUNT", "EOD_LAST_ACK")
def test_an_acknowledgement_is_told(simulation: Simulation, alice: Node) -> None:
    before = simulation.clock.now() // SECOND
    assert told(alice, "EOD_LAST_ACK_TIME", "EOD_LAST_ACK_COUNT") == [None, 0]
    simulation.advance(SECOND)
    moment, count, unacknowledged = told(
        alice, "EOD_LAST_ACK_TIME", "EOD_LAST_ACK_COUNT", "EOD_NO_ACK_COUNT"
    )
    assert before <= moment <= before + 1
    assert (count, unacknowledged) == (1, 0)
    assert told(alice, "MESSAGE_COUNT", "EOD_RESEND_TIME") == [0, None]
    alice.send(STREAM, b"more", transactional=True)
    simulation.advance(SECOND // 4)
    (last_ack,) = told(alice, "EOD_LAST_ACK")
    assert sequence(last_ack)[1:] in ((3, 2), NOTHING[1:])  # the next sequence may have begun


@claims("EOD_NO_READ_COUNT")
def test_messages_that_nobody_has_read_yet_are_counted(simulation: Simulation, alice: Node) -> None:
    alice.send(STREAM, b"kept", transactional=True, negative_journaling_requested=True)
    simulation.advance(2 * SECOND)
    assert told(alice, "EOD_NO_READ_COUNT", "EOD_NO_ACK_COUNT") == [1, 0]
    alice.restart()
    assert told(alice, "EOD_NO_READ_COUNT") == [1]
    for _ in range(4):
        simulation.nodes["bob"].receive("stream")
    simulation.advance(60 * SECOND)
    assert told(alice, "EOD_NO_READ_COUNT", "MESSAGE_COUNT") == [0, 0]


@claims("CONNECTION_HISTORY", "STATE", "NEXTHOPS")
def test_a_peer_that_is_gone_shows_in_the_history(simulation: Simulation, alice: Node) -> None:
    simulation.nodes["bob"].kill()
    simulation.advance(40 * SECOND)
    state, hops, resent = told(alice, "STATE", "NEXTHOPS", "EOD_RESEND_COUNT")
    assert (state, hops, resent) == ("DISCONNECTED", None, 0), "nothing is resent meanwhile"
    (history,) = told(alice, "CONNECTION_HISTORY")
    status, times, errors, addresses = (column.value for column in history)
    assert status[:3] == (IN_PROCESS, ESTABLISH_RECEIVED, ESTABLISHED)
    assert status[3] == SEND_FAILED
    assert set(status[4:]) == {CONNECT_FAILED}
    assert [bool(error) for error in errors] == [False] * 3 + [True] * (len(errors) - 3)
    assert list(times) == sorted(times)
    assert len(status) == len(times) == len(errors) == len(addresses)
    assert addresses[0].value == ("192.0.2.2",)


def sources(node: Node) -> list[tuple[Any, ...]]:
    """What the receiver tells of those who send to its queue: six columns."""
    (value,) = told(node, "EOD_SOURCE_INFO")
    return [column.value for column in value]


@claims("EOD_SOURCE_INFO")
def test_the_receiver_tells_who_sends_and_how_far_that_has_come(
    simulation: Simulation, alice: Node
) -> None:
    bob = simulation.nodes["bob"]
    names, senders, identifiers, numbers, times, rejects = sources(bob)
    assert names == (STREAM,)
    assert senders == (alice.engine.queue_manager.identifier,)
    (next_sequence,) = told(alice, "EOD_NEXT_SEQ")
    assert identifiers == (sequence(next_sequence)[0],)
    assert (numbers, rejects) == ((3,), (0,))
    assert times == (simulation.clock.now() // SECOND,)


@claims("EOD_SOURCE_INFO")
@pytest.mark.conformance(
    "MQQB-element-ProtocolState",
    "MQQB-rule-3.1.5.8.6",
    "MQDMPR-element-IncomingTransactionalTransferInfo",
)
def test_the_receiver_tells_the_same_after_it_has_died(simulation: Simulation, alice: Node) -> None:
    bob = simulation.nodes["bob"]
    alice.engine.outgoing.resend(alice.outgoing(STREAM))
    simulation.advance(SECOND // 4)
    assert sources(bob)[5] == (3,), "each of the three came twice"
    before = sources(bob)
    bob.kill()
    simulation.advance(60 * SECOND)
    bob.start()
    assert sources(bob) == before
    alice.send(STREAM, b"next", transactional=True)
    simulation.advance(20 * SECOND)
    after = sources(bob)
    assert (after[3], after[5]) == ((4,), (0,))
    bob.kill()
    bob.start()
    assert sources(bob) == after
