"""What administrators are told of a transfer in order, when they ask ([MS-MQMQ] 2.3.12.13-23)."""

from collections.abc import Iterator

import pytest

from rpcqm.codec.packet.types import SequenceInfo
from rpcqm.codec.properties import ManagementQueueProperty
from tests.support.binary.binary_network import Node
from tests.support.binary.binary_pair import STREAM, Exchanging, exchanging
from tests.support.rpc.administrator import queue_property

HOUR = 3_600_000


@pytest.fixture
def pair() -> Iterator[Exchanging]:
    with exchanging() as pair:
        yield pair


def shown(node: Node, name: str) -> object:
    """The value of a property of the queue to the stream."""
    identifier = ManagementQueueProperty[f"PROPID_MGMT_QUEUE_EOD_{name}"]
    value = queue_property(node.engine, node.outgoing(STREAM), identifier).value
    return SequenceInfo.decode(value) if isinstance(value, bytes) else value


def number(node: Node, name: str) -> int:
    info = shown(node, name)
    assert isinstance(info, SequenceInfo)
    return info.seq_no


def send(pair: Exchanging, *bodies: bytes, **more: object) -> None:
    for body in bodies:
        pair.alice.send(STREAM, body, transactional=True, **more)


@pytest.mark.conformance("MQQB-rule-3.1.3.2", "MQQB-timer-transactional_ack_wait")
def test_no_resending_is_announced_or_counted_while_there_is_no_session(pair: Exchanging) -> None:
    send(pair, b"before")
    pair.settle()
    send(pair, b"one")
    pair.simulation.advance(20)
    pair.bob.kill()
    pair.simulation.advance(6 * HOUR)
    assert shown(pair.alice, "RESEND_COUNT") == 0
    assert shown(pair.alice, "RESEND_TIME") is None
    assert shown(pair.alice, "NO_ACK_COUNT") == 1


@pytest.mark.conformance("MQQB-rule-3.1.3.2")
def test_after_a_break_what_is_lost_again_is_sent_again_soon(pair: Exchanging) -> None:
    send(pair, b"one")
    pair.simulation.advance(20)
    silence(pair)
    pair.simulation.advance(1_000_000)
    assert (shown(pair.alice, "RESEND_COUNT"), shown(pair.alice, "RESEND_INTERVAL")) == (6, 1800)
    (connection,) = pair.alice.protocol.connections
    connection.session.disconnected()
    pair.simulation.advance(6_000)
    assert shown(pair.alice, "RESEND_COUNT") == 0
    assert shown(pair.alice, "RESEND_INTERVAL") == 30
    assert shown(pair.alice, "LAST_ACK_COUNT") == 0
    now = pair.simulation.clock.now() // 1000
    assert shown(pair.alice, "LAST_ACK_TIME") == pytest.approx(now, abs=6)
    assert shown(pair.alice, "RESEND_TIME") == pytest.approx(now + 30, abs=6)


def silence(pair: Exchanging) -> None:
    """Bob acknowledges no order any more."""
    for stream in pair.bob.protocol.incoming_transfers:
        stream.schedule.stop()
        stream.schedule.message_received = lambda: None  # type: ignore[method-assign]


@pytest.mark.conformance("MQQB-rule-3.1.5.6", "MQQB-rule-3.1.1.5")
def test_an_idle_queue_shows_the_sequence_that_its_next_message_gets(pair: Exchanging) -> None:
    send(pair, b"one", b"two")
    pair.settle()
    following = shown(pair.alice, "NEXT_SEQ")
    assert isinstance(following, SequenceInfo)
    assert (following.seq_no, following.prev_no) == (1, 0)
    assert shown(pair.alice, "LAST_ACK") is None
    pair.settle()
    send(pair, b"three")
    pair.simulation.advance(20)
    assert shown(pair.alice, "FIRST_NON_ACK") == following
    last = shown(pair.alice, "LAST_ACK")
    assert isinstance(last, SequenceInfo)
    assert (last.seq_id + 1, last.seq_no) == (following.seq_id, 2)


@pytest.mark.conformance("MQDMPR-element-OutgoingTransferInfo")
def test_it_is_right_after_a_restart(pair: Exchanging) -> None:
    send(pair, b"before")
    pair.settle()
    pair.bob.kill()
    send(pair, b"one", b"two")
    pair.simulation.advance(100)
    pair.bob.start()
    pair.settle(10)
    send(pair, b"three", b"four")
    pair.simulation.advance(20)
    pair.bob.kill()
    pair.alice.restart()
    assert shown(pair.alice, "NO_ACK_COUNT") == 2
    assert (number(pair.alice, "FIRST_NON_ACK"), number(pair.alice, "LAST_NON_ACK")) == (1, 2)
    assert number(pair.alice, "NEXT_SEQ") == 3
    assert number(pair.alice, "LAST_ACK") == 2
    assert shown(pair.alice, "RESEND_INTERVAL") == 30


def test_what_expires_or_is_purged_is_not_counted(pair: Exchanging) -> None:
    send(pair, b"before")
    pair.settle()
    send(pair, b"one", time_to_reach_queue=60)
    send(pair, b"two")
    pair.simulation.advance(2)
    pair.bob.kill()
    pair.simulation.advance(2_000)
    assert shown(pair.alice, "NO_ACK_COUNT") == 2
    pair.simulation.advance(120_000)
    assert shown(pair.alice, "NO_ACK_COUNT") == 1
    queue = pair.alice.outgoing(STREAM)
    pair.alice.engine.queues.purge_queue(queue)
    pair.alice.settle()
    assert shown(pair.alice, "NO_ACK_COUNT") == 0
    assert number(pair.alice, "NEXT_SEQ") == 1
