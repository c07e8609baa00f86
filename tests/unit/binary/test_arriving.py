"""What becomes of messages that arrive ([MS-MQQB] 3.1.5.6 to 3.1.5.8)."""

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from rpcqm.adm.message import Message
from rpcqm.binary.connection.peer_connection import PeerConnection
from rpcqm.binary.connection.receiving import MOST_PENDING, Receiver
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.acknowledgement import PacketKind, identify_packet
from rpcqm.codec.packet.base import SessionHeader
from rpcqm.codec.packet.enums import MessageClass
from rpcqm.codec.packet.fields import QUEUE_MANAGER_ADDRESS
from rpcqm.codec.packet.internal import OrderAckBody
from rpcqm.codec.packet.message import MessageAttributes, PacketMessage, build_user_message
from rpcqm.codec.packet.patch import with_session_header
from tests.support.binary.binary_pair import ADMIN, ORDERS, STREAM, Exchanging, exchanging, packets
from tests.support.binary.binary_peer import ADDRESS, ScriptedPeer
from tests.support.fast import templates
from tests.unit.fast.test_arrival_batches import Sent

NOWHERE = "DIRECT=OS:bob\\private$\\nowhere"


@pytest.fixture
def pair() -> Iterator[Exchanging]:
    with exchanging() as pair:
        yield pair


@pytest.mark.conformance(
    "MQQB-rule-3.1.5.8.8", "MQQB-rule-3.1.5.8.10", "MQQB-rule-3.1.5.11", "MQQB-rule-3.1.7.2.1"
)
def test_arrival_and_receipt_are_acknowledged(pair: Exchanging) -> None:
    pair.send()
    pair.settle()
    assert pair.acknowledged == [MessageClass.MQMSG_CLASS_ACK_REACH_QUEUE]
    pair.bob.receive("orders")
    pair.settle()
    assert pair.acknowledged == [
        MessageClass.MQMSG_CLASS_ACK_REACH_QUEUE,
        MessageClass.MQMSG_CLASS_ACK_RECEIVE,
    ]


@pytest.mark.bound("binary.pending_messages")
def test_nothing_more_is_read_while_too_much_is_not_on_the_disk(
    pair: Exchanging, monkeypatch: pytest.MonkeyPatch
) -> None:
    settled: list[Callable[[], None]] = []

    def take(
        receiver: Receiver, connection: PeerConnection, message: Message, done: Callable[[], None]
    ) -> None:
        settled.append(done)

    monkeypatch.setattr(Receiver, "_take", take)
    paused: list[bool] = []
    connection = SimpleNamespace(pending=0, address="192.0.2.1", pause=paused.append)
    receiver = pair.bob.protocol.receiver
    attributes = PacketMessage(build_user_message(MessageAttributes(body=b"x")))

    def receive() -> None:
        receiver.message_received(
            cast(PeerConnection, connection), PacketKind.USER_MESSAGE, attributes, None
        )

    for _ in range(MOST_PENDING - 1):
        receive()
    assert paused == []
    receive()
    assert paused == [True]
    for _ in range(MOST_PENDING // 2 - 1):
        settled.pop()()
    assert paused == [True]
    settled.pop()()
    assert paused == [True, False]


REFUSALS: list[tuple[str, dict[str, Any], MessageClass, bool]] = [
    (NOWHERE, {}, MessageClass.MQMSG_CLASS_NACK_BAD_DST_Q, True),
    (STREAM, {}, MessageClass.MQMSG_CLASS_NACK_NOT_TRANSACTIONAL_MSG, False),
    (
        ORDERS,
        {"transactional": True},
        MessageClass.MQMSG_CLASS_NACK_NOT_TRANSACTIONAL_Q,
        False,
    ),
]


@pytest.mark.conformance(
    "MQQB-rule-3.1.5.8.2",
    "MQQB-event-send_administration_acknowledgment",
    "MQQB-event-send_transactional_acknowledgment",
)
@pytest.mark.parametrize(("to", "how", "reason", "insecure"), REFUSALS)
def test_a_message_that_is_not_taken_is_acknowledged_negatively(
    pair: Exchanging, to: str, how: dict[str, Any], reason: MessageClass, insecure: bool
) -> None:
    pair.send(to, **how)
    pair.settle()
    assert pair.acknowledged == ([] if insecure else [reason])
    assert pair.bob.bodies("orders") == pair.bob.bodies("stream") == []
    assert pair.alice.unsent == 0


@pytest.mark.conformance("MQQB-rule-3.1.5.8.2")
@pytest.mark.parametrize("to", [ORDERS, STREAM])
@pytest.mark.parametrize("limit", ["time_to_reach_queue", "time_to_be_received"])
def test_what_expires_on_its_way_is_refused_on_arrival(
    pair: Exchanging, to: str, limit: str
) -> None:
    transactional = to == STREAM
    pair.alice.send(to, b"before", transactional)
    pair.settle()
    for end in pair.simulation.ends:
        if end.node is pair.bob:
            end.arrival = pair.simulation.clock.monotonic() + 10_000
    short: dict[str, Any] = {limit: 5}
    pair.send(to, transactional=transactional, **short)
    pair.settle(40)
    assert pair.acknowledged == [MessageClass.MQMSG_CLASS_NACK_REACH_QUEUE_TIMEOUT]
    assert pair.bob.bodies("stream" if transactional else "orders") == [b"before"]
    assert pair.alice.unsent == 0


@pytest.mark.conformance("MQQB-rule-3.1.5.7", "MQQB-packet-FinalAck", "MQQB-header-FinalAckBody")
@pytest.mark.parametrize("to", [ORDERS, NOWHERE])
def test_a_rejected_transactional_message_becomes_a_dead_letter_of_its_sender(
    pair: Exchanging, to: str
) -> None:
    pair.send(to, transactional=True, negative_journaling_requested=True)
    pair.settle()
    assert pair.alice.bodies("system$;deadxact") == [b"content"]
    assert pair.alice.unsent == 0


@pytest.mark.conformance("MQQB-rule-3.1.5.7", "MQQB-rule-3.1.7.2.2", "MQQB-rule-3.1.5.6")
@pytest.mark.parametrize("wish", ["positive", "negative"])
def test_a_message_that_asks_for_it_waits_for_its_final_acknowledgement(
    pair: Exchanging, wish: str
) -> None:
    wishes: dict[str, Any] = {f"{wish}_journaling_requested": True}
    pair.send(STREAM, transactional=True, **wishes)
    pair.settle()
    assert pair.alice.unsent == 1
    info = pair.alice.engine.outgoing.transfer_info(pair.alice.outgoing(STREAM))
    assert (info.eod_no_ack_count, info.eod_no_read_count) == (0, 1)
    pair.bob.receive("stream")
    pair.settle()
    assert pair.alice.unsent == 0
    journal = [b"content"] if wish == "positive" else []
    assert pair.alice.bodies("system$;journal") == journal
    assert pair.alice.bodies("system$;deadxact") == []


@pytest.mark.parametrize(
    "to", [ORDERS, "DIRECT=OS:bob\\private$\\orders,DIRECT=OS:alice\\private$\\spare"]
)
def test_own_queues_are_named_as_others_call_them(pair: Exchanging, to: str) -> None:
    pair.alice.create("spare")
    here = FormatName.parse("DIRECT=OS:.\\private$\\admin")
    pair.send(to, administration_queue_format_name=here, response_queue_format_name=here)
    pair.settle()
    (arrived,) = packets(pair.bob, pair.bob.find("orders"))
    assert str(arrived.response_queue_format_name) == ADMIN
    assert str(arrived.administration_queue_format_name) == ADMIN
    assert MessageClass.MQMSG_CLASS_ACK_REACH_QUEUE in pair.acknowledged


@pytest.mark.parametrize("end", ["it arrives", "it is received", "it is purged"])
def test_an_acknowledgement_for_elsewhere_names_the_queue_that_it_is_about(
    pair: Exchanging, end: str
) -> None:
    """Its reader would open a queue of its own machine by the name `.` (G74)."""
    pair.alice.create("spare")
    pair.bob.create("answers")
    answers = FormatName.parse("DIRECT=OS:bob\\private$\\answers")
    pair.send("DIRECT=OS:.\\private$\\spare", administration_queue_format_name=answers)
    if end == "it is received":
        pair.alice.receive("spare")
    elif end == "it is purged":
        pair.alice.engine.queues.purge_queue(pair.alice.find("spare"))
    pair.settle()
    told = packets(pair.bob, pair.bob.find("answers"))
    assert len(told) == (1 if end == "it arrives" else 2)
    names = {str(each.response_queue_format_name) for each in told}
    assert names == {"DIRECT=OS:alice\\private$\\spare"}


def test_an_acknowledgement_that_stays_here_keeps_the_name_of_its_queue(pair: Exchanging) -> None:
    spare = pair.alice.create("spare")
    here = FormatName.parse("DIRECT=OS:.\\private$\\admin")
    pair.send("DIRECT=OS:.\\private$\\spare", administration_queue_format_name=here)
    pair.settle()
    (told,) = packets(pair.alice, pair.alice.find("admin"))
    assert str(told.response_queue_format_name) == "DIRECT=OS:.\\private$\\spare"
    assert spare.message_count == 1


@pytest.mark.conformance("MQQB-rule-3.1.5.7", "MQQB-event-message_position_deleted")
def test_a_purge_reaches_the_sender_even_after_restarts(pair: Exchanging) -> None:
    pair.send(STREAM, transactional=True, negative_journaling_requested=True)
    pair.settle()
    pair.alice.kill()
    pair.bob.kill()
    pair.settle()
    pair.alice.start()
    pair.bob.start()
    pair.settle()
    pair.bob.engine.queues.purge_queue(pair.bob.find("stream"))
    pair.settle(20)
    assert pair.alice.bodies("system$;deadxact") == [b"content"]
    assert pair.alice.unsent == 0


@pytest.mark.conformance("MQQB-rule-3.1.5.7")
def test_a_purge_of_what_has_arrived_is_no_negative_acknowledgement(pair: Exchanging) -> None:
    pair.send(STREAM, transactional=True, negative_journaling_requested=True)
    pair.settle()
    pair.alice.engine.queues.purge_queue(pair.alice.outgoing(STREAM))
    pair.settle()
    pair.alice.kill()
    pair.settle()
    pair.alice.start()
    pair.settle()
    assert pair.alice.unsent == 1
    assert pair.bob.receive("stream") == b"content"
    pair.settle(20)
    assert pair.acknowledged == [
        MessageClass.MQMSG_CLASS_ACK_REACH_QUEUE,
        MessageClass.MQMSG_CLASS_ACK_RECEIVE,
    ]
    assert pair.alice.bodies("system$;deadxact") == []
    assert pair.alice.unsent == 0


@pytest.mark.conformance("MQQB-packet-OrderAck", "MQQB-header-OrderAckBody", "MQQB-rule-3.1.5.1.1")
def test_an_order_acknowledgement_names_the_last_message(pair: Exchanging) -> None:
    travelled: list[bytes] = []
    pair.simulation.record = travelled
    for _ in range(3):
        pair.send(STREAM, transactional=True)
    pair.settle()
    whole = [data for data in travelled if data[4:8] == b"LIOR"]
    (found,) = [data for data in whole if identify_packet(data) is PacketKind.ORDER_ACK]
    body = OrderAckBody.decode(PacketMessage(found).body)
    assert (body.tx_sequence_number, body.tx_previous_sequence_number) == (3, 2)
    assert body.reserved == bytes(20)


@pytest.mark.conformance(
    "MQQB-rule-3.1.5.8.8", "MQDMPR-event-begin_flow_control", "MQDMPR-event-end_flow_control"
)
def test_a_full_queue_refuses_and_keeps_a_dead_letter_of_what_is_not_transactional(
    pair: Exchanging,
) -> None:
    for queue in (pair.orders, pair.stream):
        queue.quota = 1
    pair.send(ORDERS, b"x" * 2048, negative_journaling_requested=True)
    pair.send(STREAM, b"y" * 2048, transactional=True, negative_journaling_requested=True)
    pair.settle()
    assert pair.acknowledged == [MessageClass.MQMSG_CLASS_NACK_Q_EXCEED_QUOTA] * 2
    assert pair.bob.bodies("system$;deadletter") == [b"x" * 2048]
    assert pair.alice.bodies("system$;deadxact") == [b"y" * 2048]
    pair.stream.quota = 100
    pair.send(STREAM, b"next", transactional=True)
    pair.settle()
    assert pair.bob.bodies("stream") == [b"next"]


@pytest.mark.conformance(
    "MQQB-rule-3.1.5.8.8", "MQDMPR-event-begin_flow_control", "MQDMPR-event-end_flow_control"
)
def test_a_full_queue_manager_closes_the_session_and_nothing_is_lost(pair: Exchanging) -> None:
    reserve = pair.bob.engine.store.space.keep_free
    reserve(1 << 50)
    pair.send()
    pair.send(STREAM, transactional=True)
    pair.settle(60)
    assert pair.alice.unsent == 2
    assert pair.acknowledged == []
    reserve(1)
    pair.settle(60)
    assert pair.bob.bodies("orders") == pair.bob.bodies("stream") == [b"content"]
    assert pair.alice.unsent == 0


@pytest.mark.conformance("MQQB-rule-3.1.5.8.1", "MQQB-timer-message_id_history_cleanup")
def test_duplicates_are_dropped_for_half_an_hour(pair: Exchanging) -> None:
    travelled: list[bytes] = []
    pair.simulation.record = travelled
    pair.send()
    pair.settle()
    (packet,) = [data for data in travelled if b"content" in data and data[4:8] == b"LIOR"]
    pair.bob.kill()
    pair.bob.start()
    again(pair, packet)
    assert pair.bob.bodies("orders") == [b"content"]
    pair.settle(29 * 60)
    again(pair, packet)
    assert pair.bob.bodies("orders") == [b"content"]
    pair.settle(61 * 60)
    again(pair, packet)
    assert pair.bob.bodies("orders") == [b"content"] * 2


def again(pair: Exchanging, packet: bytes) -> None:
    """Alice sends a packet once more, beside a message that opens a session."""
    pair.send(STREAM, transactional=True)
    pair.settle(1)
    connections = [
        connection for connection in pair.alice.protocol.connections if connection.session.can_send
    ]
    connections[0].session.send(packet, None)
    pair.settle(20)


@pytest.mark.conformance("MQQB-rule-3.1.5.8.6", "MQQB-element-ProtocolState")
def test_administrators_see_what_arrives_in_sequence(pair: Exchanging) -> None:
    for _ in range(3):
        pair.send(STREAM, transactional=True)
    pair.settle()
    (info,) = pair.stream.incoming_transactional_transfer_info_collection
    assert info.sender_identifier == pair.alice.engine.queue_manager.identifier
    assert info.sequence_number == 3
    assert info.reject_count == 0
    assert info.last_access_time is not None


@pytest.mark.conformance(
    "MQQB-event-get_message_data_element_from_buffer", "MQQB-event-send_user_message"
)
def test_what_arrives_is_what_was_sent(pair: Exchanging) -> None:
    pair.send(label="a label", priority=5, application_tag=77, body_type=8)
    pair.settle()
    (arrived,) = packets(pair.bob, pair.orders)
    assert (arrived.label, arrived.priority, arrived.application_tag) == ("a label", 5, 77)
    assert arrived.identifier.queue_manager_guid == pair.alice.engine.queue_manager.identifier
    assert str(arrived.administration_queue_format_name) == ADMIN


def test_copies_of_a_message_to_several_queues_of_one_machine_all_arrive(pair: Exchanging) -> None:
    pair.bob.create("copies")
    pair.send(f"{ORDERS},DIRECT=OS:bob\\private$\\copies")
    pair.settle(20)
    assert pair.bob.bodies("orders") == pair.bob.bodies("copies") == [b"content"]
    assert pair.alice.unsent == 0


@pytest.mark.conformance("MQQB-rule-3.1.5.8.6")
@pytest.mark.parametrize("together", templates.WAYS)
def test_a_direct_name_is_one_destination_with_our_number_or_without(
    pair: Exchanging, together: bool
) -> None:
    """QueueManagerAddress is no part of a direct name, so that it begins no other sequence."""
    bob, now = pair.bob, pair.simulation.clock.now() // 1000
    bob.switch(together)
    peer = ScriptedPeer(bob)
    own = bob.engine.queue_manager.identifier.bytes_le

    def deliver(*sent: tuple[bytes, int]) -> None:
        packets = []
        for address, number in sent:
            place = (1, number, number - 1)
            packet = bytearray(Sent("stream", number, place=place, body=b"%d" % number).packet(now))
            packet[QUEUE_MANAGER_ADDRESS] = address
            packets.append((bytes(packet), True))
        peer.feed(peer.counting(packets))
        pair.settle(1)

    deliver((bytes(16), 1), (own, 2), (bytes(16), 3), (own, 3), (bytes(16), 2))
    for address in (own, bytes(16)):
        deliver(*((address, number) for number in (4, 5, 6, 7)))
    deliver((own, 8), (bytes(16), 9), (own, 9), (bytes(16), 8))
    assert bob.bodies("stream") == [b"%d" % number for number in range(1, 10)]
    assert len(list(bob.protocol.incoming_transfers)) == 1


@pytest.mark.conformance("MQMQ-packet-SessionHeader")
@pytest.mark.parametrize("recoverable", [False, True])
def test_a_message_whose_counts_differ_is_in_its_queue_and_the_session_closed(
    pair: Exchanging, recoverable: bool
) -> None:
    peer = ScriptedPeer(pair.bob)
    now = pair.simulation.clock.now() // 1000
    octets = Sent("orders", 1, recoverable=recoverable, body=b"counted").packet(now)
    wrong = SessionHeader(user_msg_sequence_number=9, recoverable_msg_seq_number=9)
    peer.feed(with_session_header(octets, wrong))
    assert peer.closed
    pair.settle()
    assert pair.bob.bodies("orders") == [b"counted"]
    pair.bob.kill()
    pair.bob.start()
    assert pair.bob.bodies("orders") == ([b"counted"] if recoverable else [])


@pytest.mark.parametrize("reads", [1, 8])
@pytest.mark.parametrize("too_much", [0, 1])
def test_what_is_kept_beside_a_packet_counts_before_the_message_is_taken(
    pair: Exchanging, reads: int, too_much: int
) -> None:
    """The address that a message came from is kept, too: a quota is not passed by it (G164)."""
    peer = ScriptedPeer(pair.bob)
    now = pair.simulation.clock.now() // 1000
    pair.orders.quota = 8
    empty = len(Sent("orders", 1).packet(now))
    # Packets are multiples of four octets: every other one has two less than its share, or more.
    sizes = [1024 - len(ADDRESS) + (-2 if number % 2 else 2) for number in range(8)]
    sizes[-1] += 4 * too_much
    sent = [
        (Sent("orders", number, body=bytes(size - empty)).packet(now), True)
        for number, size in enumerate(sizes, 1)
    ]
    assert sum(len(packet) + len(ADDRESS) for packet, _ in sent) == 8192 + 4 * too_much
    for first in range(0, 8, 8 // reads):
        peer.feed(peer.counting(sent[first : first + 8 // reads]))
        pair.settle()
    assert pair.orders.message_count == 8 - too_much
    assert pair.orders.total_bytes <= 8192


def test_the_first_message_in_a_row_that_is_out_of_sequence_is_logged(pair: Exchanging) -> None:
    bob, now = pair.bob, pair.simulation.clock.now() // 1000
    peer = ScriptedPeer(bob)

    def deliver(*numbers: int) -> list[tuple[object, ...]]:
        sent = (Sent("stream", number, place=(1, number, number - 1)) for number in numbers)
        with capture_logs() as lines:
            peer.feed(peer.counting([(each.packet(now), True) for each in sent]))
            pair.settle(1)
        told = (line for line in lines if line["event"] == "a message in sequence was dropped")
        return [(line["reason"], line["number"], line["last_number"]) for line in told]

    assert deliver(1, 2) == []
    assert deliver(2, 2, 1) == [("it was taken before", 2, 2)]
    assert deliver(3) == []
    assert deliver(7, 8) == [("messages before it are missing", 7, 3)]
    assert deliver(4, 6) == [("messages before it are missing", 6, 4)]
