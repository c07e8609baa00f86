"""What a session counts and acknowledges ([MS-MQQB] 3.1.1.4, 3.1.5.5, 3.1.5.8.7)."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rpcqm.binary.session import Session
from rpcqm.binary.session_host import SessionState
from rpcqm.binary.settings import BinarySettings
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.acknowledgement import PacketKind, final_ack, order_ack
from rpcqm.codec.packet.base import SESSION_HEADER_SIZE, SessionHeader
from rpcqm.codec.packet.enums import MessageClass
from rpcqm.codec.packet.internal import FinalAckBody, OrderAckBody, SessionAckPacket
from rpcqm.codec.packet.message import build_user_message
from rpcqm.codec.packet.patch import with_session_header
from rpcqm.codec.packet.types import MessageIdentifier, TxSequenceID
from tests.support.binary.sessions import ALICE, BOB, Host, Pair, packet

PRIVATE = f"PRIVATE={BOB}\\00000010"


def ack_of(host: Host) -> SessionHeader:
    """The one session acknowledgement that the host has sent."""
    (sent,) = host.packets()
    assert isinstance(sent, SessionAckPacket)
    return sent.session_header


@pytest.mark.conformance("MQQB-rule-3.1.1.4", "MQQB-rule-3.1.5.8.7")
def test_all_messages_and_the_recoverable_ones_are_counted_apart() -> None:
    pair = Pair().open()
    for number, recoverable in enumerate((False, True, False, True), 1):
        pair.initiator.session.send(packet(number, recoverable), number)
    pair.settle()
    assert [number for _, _, number in pair.acceptor.received] == [None, 1, None, 2]
    assert pair.acceptor.session.message_received_count == 4
    assert pair.acceptor.session.recoverable_message_received_count == 2
    assert pair.initiator.session.un_acked_message_count == 4


@pytest.mark.conformance(
    "MQQB-rule-3.1.5.5.1", "MQQB-rule-3.1.5.5.2", "MQQB-timer-session_ack_send"
)
def test_an_express_message_is_acknowledged_by_count_after_half_the_wait() -> None:
    pair = Pair().open()
    pair.initiator.session.send(packet(), "one")
    pair.settle()
    pair.advance(9_999)
    assert pair.initiator.acknowledged == []
    pair.advance(1)
    assert pair.initiator.acknowledged == ["one"]
    assert pair.initiator.session.un_acked_message_count == 0


@pytest.mark.conformance("MQQB-rule-3.1.5.5.3", "MQQB-rule-3.1.5.8.7", "MQQB-packet-SessionAck")
def test_a_recoverable_message_is_acknowledged_once_it_is_on_the_disk() -> None:
    pair = Pair().open()
    pair.acceptor.persist = False
    pair.initiator.session.send(packet(1, True), "one")
    pair.initiator.session.send(packet(2, True), "two")
    pair.settle()
    pair.advance(10_000)
    assert pair.initiator.session.un_acked_message_count == 0
    assert pair.initiator.acknowledged == []
    pair.acceptor.session.persisted(1)
    pair.advance(499)
    assert pair.initiator.acknowledged == []
    pair.advance(1)
    assert pair.initiator.acknowledged == ["one"]
    pair.acceptor.session.persisted(2)
    pair.advance(500)
    assert pair.initiator.acknowledged == ["one", "two"]


@pytest.mark.conformance("MQQB-rule-3.1.5.8.7")
def test_what_is_persisted_out_of_order_is_acknowledged_in_order() -> None:
    pair = Pair().open()
    pair.acceptor.persist = False
    for number in (1, 2, 3):
        pair.initiator.session.send(packet(number, True), number)
    pair.settle()
    pair.acceptor.session.persisted(3)
    pair.acceptor.session.persisted(2)
    pair.advance(10_000)
    assert pair.initiator.acknowledged == []
    pair.acceptor.session.persisted(1)
    pair.advance(500)
    assert pair.initiator.acknowledged == [1, 2, 3]


@pytest.mark.conformance("MQQB-rule-3.1.5.8.7")
def test_thirty_two_recoverable_messages_are_acknowledged_at_once() -> None:
    pair = Pair(BinarySettings(window_size=1000)).open()
    for number in range(1, 32):
        pair.initiator.session.send(packet(number, True), number)
    pair.settle()
    assert pair.initiator.acknowledged == []
    pair.initiator.session.send(packet(32, True), 32)
    pair.acceptor.session.receive_data(pair.initiator.sent.popleft())
    header = ack_of(pair.acceptor)
    assert header.recoverable_msg_ack_seq_number == 1
    assert header.recoverable_msg_ack_flags == 0xFFFF_FFFF


@pytest.mark.conformance("MQQB-rule-3.1.5.8.2")
@pytest.mark.parametrize("of_the_peer", [64, 200])
def test_half_a_window_is_acknowledged_at_once(of_the_peer: int) -> None:
    pair = Pair()
    pair.initiator.session.window_size = of_the_peer
    pair.open()
    for number in range(1, 32):
        pair.initiator.session.send(packet(number), number)
    pair.settle()
    assert pair.initiator.acknowledged == []
    pair.initiator.session.send(packet(32), 32)
    pair.settle()
    assert pair.initiator.acknowledged == list(range(1, 33))


@pytest.mark.conformance("MQQB-event-send_user_message")
def test_a_full_window_stops_the_sender_until_it_moves() -> None:
    pair = Pair(BinarySettings(window_size=4)).open()
    for number in range(4):
        assert pair.initiator.session.can_send
        pair.initiator.session.send(packet(number), number)
    assert not pair.initiator.session.can_send
    pair.settle()
    assert pair.initiator.session.can_send
    assert pair.initiator.moved


@pytest.mark.conformance("MQQB-event-pause_queue")
def test_a_paused_session_lets_the_peer_send_one_message_at_a_time() -> None:
    pair = Pair().open()
    pair.acceptor.session.pause()
    assert pair.acceptor.session.session_active is False
    pair.settle()
    assert pair.initiator.session.received_window_size == 1
    pair.initiator.session.send(packet(), 1)
    assert not pair.initiator.session.can_send


@pytest.mark.conformance("MQQB-event-construction_of_a_usermessage_packet", "MQQB-rule-3.1.5.8.4")
def test_an_acknowledgement_that_is_nearly_due_rides_on_a_message() -> None:
    pair = Pair().open()
    pair.initiator.session.send(packet(1), "one")
    pair.settle()
    pair.clock.advance(7_500)
    pair.acceptor.session.send(packet(2), "two")
    assert len(pair.acceptor.sent[0]) == len(packet(2))
    pair.settle()
    pair.clock.advance(1)
    pair.acceptor.session.send(packet(3), "three")
    assert len(pair.acceptor.sent[0]) == len(packet(3)) + 16
    pair.settle()
    assert pair.initiator.acknowledged == ["one"]
    assert pair.initiator.received[-1][1] == packet(3)
    pair.clock.advance(60_000)
    assert pair.acceptor.session.is_open


@pytest.mark.conformance("MQQB-event-construction_of_a_usermessage_packet")
def test_what_rides_along_says_what_has_come_and_gone_and_rides_once() -> None:
    pair = Pair(BinarySettings(window_size=40)).open()
    for number, recoverable in ((1, False), (2, True), (3, True)):
        pair.initiator.session.send(packet(number, recoverable), number)
    pair.settle()
    session, sent = pair.acceptor.session, pair.acceptor.sent
    session.send(packet(4), 4)
    pair.settle()
    pair.clock.advance(376)
    session.send(packet(5, True), 5)
    header = SessionHeader.decode(sent[0], len(sent[0]) - SESSION_HEADER_SIZE)
    assert header == SessionHeader(3, 1, 0b11, 2, 1, 40)
    pair.settle()
    assert pair.initiator.acknowledged == [1, 2, 3]
    session.send(packet(6), 6)
    assert len(sent[0]) == len(packet(6))
    pair.settle()
    for number in range(7, 26):  # one less than half a window
        pair.initiator.session.send(packet(number), number)
    pair.settle()
    assert pair.initiator.acknowledged == [1, 2, 3]
    pair.initiator.session.send(packet(26), 26)
    pair.settle()
    assert pair.initiator.acknowledged == [1, 2, 3, *range(7, 27)]


@pytest.mark.conformance("MQQB-packet-OrderAck", "MQQB-packet-FinalAck")
@pytest.mark.parametrize("kind", [PacketKind.ORDER_ACK, PacketKind.FINAL_ACK])
def test_nothing_rides_on_acknowledgements_of_queue_managers(kind: PacketKind) -> None:
    """A peer that reads the text to the letter knows them by flags that are all 0."""
    pair = Pair().open()
    pair.initiator.session.send(packet(1), "one")
    pair.settle()
    pair.clock.advance(7_501)
    acknowledging = acknowledgement(kind)
    assert acknowledging[2:4] == bytes(2)
    pair.acceptor.session.send_many([acknowledging, packet(2)], ["two", "three"])
    assert list(pair.acceptor.sent) == [acknowledging + packet(2)]
    pair.settle()
    assert pair.initiator.acknowledged == []
    pair.advance(2_499)
    assert pair.initiator.acknowledged == ["one"]
    assert pair.initiator.received[0][:2] == (kind, acknowledging)
    assert pair.initiator.session.is_open


@pytest.mark.conformance("MQQB-rule-3.1.5.6", "MQQB-rule-3.1.5.7")
@pytest.mark.parametrize("kind", [PacketKind.ORDER_ACK, PacketKind.FINAL_ACK])
def test_a_session_that_is_not_open_yet_ends_with_an_acknowledgement(kind: PacketKind) -> None:
    pair = Pair()
    pair.acceptor.session.start_acceptor()
    pair.acceptor.session.receive_data(acknowledgement(kind))
    assert pair.acceptor.session.violated
    assert pair.acceptor.received == []


def acknowledgement(kind: PacketKind) -> bytes:
    destination = FormatName.parse(f"PRIVATE={BOB}\\00000004")
    made = MessageIdentifier(BOB, 7), 1_780_000_000
    if kind is PacketKind.ORDER_ACK:
        order = OrderAckBody(TxSequenceID.from_value(1), 5, 4)
        return build_user_message(order_ack(destination, *made, order))
    final = FinalAckBody(TxSequenceID.from_value(1), 5, 4, BOB, 7)
    received = MessageClass.MQMSG_CLASS_ACK_RECEIVE
    return build_user_message(final_ack(destination, *made, final, received))


def test_an_acknowledgement_that_rides_on_the_first_of_several_counts_only_that_one() -> None:
    pair = Pair().open()
    pair.initiator.session.send(packet(1), "one")
    pair.settle()
    pair.clock.advance(7_501)
    several = [packet(number) for number in (2, 3, 4)]
    pair.acceptor.session.send_many(several, ["two", "three", "four"])
    assert len(pair.acceptor.sent[0]) == sum(map(len, several)) + 16
    pair.settle()
    assert pair.initiator.acknowledged == ["one"]
    assert [octets for _, octets, *_ in pair.initiator.received] == several
    assert pair.initiator.session.is_open


@pytest.mark.conformance("MQQB-rule-3.1.5.5.5")
@pytest.mark.parametrize("field", ["user_msg_sequence_number", "recoverable_msg_seq_number"])
def test_counts_that_differ_close_the_session(field: str) -> None:
    pair = Pair().open()
    pair.acceptor.session.receive_data(SessionAckPacket.of(SessionHeader(**{field: 1})))
    assert pair.acceptor.reason == "message counts differ"


@pytest.mark.conformance("MQQB-rule-3.1.5.5.5", "MQMQ-packet-SessionHeader")
@pytest.mark.parametrize("field", ["user_msg_sequence_number", "recoverable_msg_seq_number"])
def test_a_message_whose_counts_differ_is_taken_before_the_session_closes(field: str) -> None:
    """[MS-MQMQ] 2.2.20.4 has it delivered; nothing that follows it is."""
    pair = Pair().open()
    counts = {"user_msg_sequence_number": 1, "recoverable_msg_seq_number": 1, field: 2}
    wrong = with_session_header(packet(1, True), SessionHeader(**counts))
    pair.acceptor.session.receive_data(wrong + packet(2, True))
    assert [octets for _, octets, *_ in pair.acceptor.received] == [packet(1, True)]
    assert pair.acceptor.reason == "message counts differ"


@pytest.mark.conformance("MQQB-rule-3.1.5.5.5", "MQQB-timer-session_ack_wait")
def test_counts_that_agree_begin_the_wait_for_acknowledgements_anew() -> None:
    """Twice the wait passes until the peer is given up, because it has said something."""
    pair = Pair()
    pair.initiator = Host(pair.clock, ALICE, direct=False)
    pair.open()
    pair.initiator.session.send(packet(1), 1)
    pair.clock.advance(10_000)
    pair.initiator.session.receive_data(SessionAckPacket.of(SessionHeader()))
    pair.clock.advance(2 * 20_000 - 1)
    assert pair.initiator.reason is None
    pair.clock.advance(1)
    assert pair.initiator.reason == "the peer acknowledges nothing"


@pytest.mark.conformance("MQQB-rule-3.1.5.8.4")
def test_both_counters_come_before_the_session_header() -> None:
    pair = Pair().open()
    header = SessionHeader(user_msg_sequence_number=1, recoverable_msg_seq_number=1)
    pair.acceptor.session.receive_data(with_session_header(packet(1, True), header))
    assert pair.acceptor.session.is_open
    assert pair.acceptor.received[0][1] == packet(1, True)


@pytest.mark.conformance("MQQB-rule-3.1.5.5.1")
def test_an_acknowledgement_of_what_was_not_sent_closes_the_session() -> None:
    pair = Pair().open()
    pair.initiator.session.receive_data(SessionAckPacket.of(SessionHeader(1)))
    assert pair.initiator.session.state is SessionState.CLOSED


@pytest.mark.conformance("MQQB-rule-3.1.1.4")
def test_counters_roll_over() -> None:
    pair = Pair().open()
    for session in (pair.initiator.session, pair.acceptor.session):
        near(session)
    for number in range(1, 9):
        pair.initiator.session.send(packet(number, True), number)
    pair.settle()
    pair.advance(500)
    assert pair.initiator.acknowledged == list(range(1, 9))
    assert pair.initiator.session.message_sent_count == 4
    assert pair.acceptor.session.recoverable_message_received_count == 4


def near(session: Session) -> None:
    """Let a session have sent and received 65,532 recoverable messages."""
    session.message_sent_count = session.recoverable_message_sent_count = 0xFFFC
    session.message_received_count = session.recoverable_message_received_count = 0xFFFC
    session._persisted_recoverable = session._acknowledged_recoverable = 0xFFFC


@pytest.mark.conformance("MQQB-rule-3.1.5.8.1")
def test_a_message_that_is_sent_twice_at_once_is_counted_and_acknowledged_twice() -> None:
    pair = Pair().open()
    for token in ("one", "again"):
        pair.initiator.session.send(packet(1, True), token)
    pair.settle()
    pair.advance(500)
    assert pair.initiator.acknowledged == ["one", "again"]
    assert pair.acceptor.session.is_open
    assert pair.acceptor.session.recoverable_message_received_count == 2


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(["express", "recoverable", "answer", "wait"]), max_size=60))
def test_every_message_is_acknowledged_exactly_once(steps: list[str]) -> None:
    pair = Pair(BinarySettings(window_size=8)).open()
    numbers = itertools.count(1)
    sent: dict[str, list[int]] = {"initiator": [], "acceptor": []}
    for step in steps:
        side = "acceptor" if step == "answer" else "initiator"
        session = getattr(pair, side).session
        if step == "wait":
            pair.advance(8_000)
        elif session.can_send:
            number = next(numbers)
            session.send(packet(number, step == "recoverable"), number)
            sent[side].append(number)
        pair.settle()
    pair.advance(60_000)
    assert sorted(map(str, pair.initiator.acknowledged)) == sorted(map(str, sent["initiator"]))
    assert sorted(map(str, pair.acceptor.acknowledged)) == sorted(map(str, sent["acceptor"]))
