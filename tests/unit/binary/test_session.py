"""The state machine of one session ([MS-MQQB] 3.1)."""

import itertools
from uuid import UUID

import pytest

from rpcqm.binary.session_host import SessionState
from rpcqm.codec.layout import NULL_GUID
from rpcqm.codec.packet.base import SessionHeader
from rpcqm.codec.packet.internal import (
    ConnectionParametersHeader,
    ConnectionParametersPacket,
    EstablishConnectionHeader,
    EstablishConnectionPacket,
    OperatingSystemFlags,
    SessionAckPacket,
)
from tests.support.binary.sessions import ALICE, BOB, ORDERS, Host, Pair, packet

PRIVATE = f"PRIVATE={BOB}\\00000010"


def parameters(recoverable: int = 500, ack: int = 20_000, window: int = 64) -> bytes:
    return ConnectionParametersPacket.of(
        ConnectionParametersHeader(recoverable, ack, window_size=window)
    )


def ack_of(host: Host) -> SessionHeader:
    """The one session acknowledgement that the host has sent."""
    (sent,) = host.packets()
    assert isinstance(sent, SessionAckPacket)
    return sent.session_header


@pytest.mark.conformance(
    "MQQB-rule-2.1.1",
    "MQQB-rule-3.1.5.2.3",
    "MQQB-rule-3.1.5.10",
    "MQQB-packet-EstablishConnection",
    "MQQB-packet-ConnectionParameters",
    "MQQB-rule-3.1.5.3.1",
    "MQQB-rule-3.1.5.3.2",
    "MQQB-rule-3.1.5.4.1",
)
def test_both_sides_go_through_their_states() -> None:
    pair = Pair().open()
    assert pair.initiator.states == [
        SessionState.WAITING_ECR_MSG,
        SessionState.WAITING_CPR_MSG,
        SessionState.OPEN,
    ]
    assert pair.acceptor.states == [
        SessionState.WAITING_EC_MSG,
        SessionState.WAITING_CP_MSG,
        SessionState.OPEN,
    ]
    assert pair.initiator.session.remote_qm_guid == BOB
    assert pair.acceptor.session.remote_qm_guid == ALICE


@pytest.mark.conformance("MQQB-rule-3.1.5.2.3", "MQQB-header-EstablishConnectionHeader")
@pytest.mark.parametrize("pinged", [False, True])
def test_the_request_says_who_asks_and_whether_it_pinged(pinged: bool) -> None:
    pair = Pair()
    pair.clock.advance(77)
    pair.initiator.session.start_initiator(pinged)
    (request,) = pair.initiator.packets()
    assert isinstance(request, EstablishConnectionPacket)
    header = request.establish_connection_header
    assert (header.client_guid, header.server_guid) == (ALICE, NULL_GUID)
    assert header.timestamp == 77
    assert bool(header.operating_system.SE) is not pinged
    assert header.operating_system.RE == 0x10


@pytest.mark.conformance("MQQB-rule-3.1.5.3.1", "MQQB-packet-EstablishConnection")
def test_a_request_for_another_queue_manager_is_refused_and_closed() -> None:
    pair = Pair(remote=ALICE)
    pair.open()
    assert pair.acceptor.reason == f"session with another queue manager, {ALICE}"
    assert pair.initiator.reason == "the peer refuses the session"


@pytest.mark.parametrize("server", [BOB, NULL_GUID, ALICE])
def test_an_answer_has_the_reserved_octet_of_windows(server: UUID) -> None:
    """Scanners of networks take a queue manager for one by it (G466), refused or not."""
    pair = Pair()
    pair.acceptor.session.start_acceptor()
    asked = EstablishConnectionPacket.of(EstablishConnectionHeader(ALICE, server))
    assert asked[:2] == b"\x10\0"
    pair.acceptor.session.receive_data(asked)
    assert pair.acceptor.sent[0][:2] == b"\x10\x5a"


@pytest.mark.conformance("MQQB-rule-3.1.5.3.1")
@pytest.mark.parametrize("unpinged", [0, 1])
def test_the_response_repeats_time_and_ping_and_names_the_acceptor(unpinged: int) -> None:
    pair = Pair()
    pair.acceptor.session.start_acceptor()
    flags = OperatingSystemFlags.of(RE=0x10, SE=unpinged, OS=0, QS=1)
    asked = EstablishConnectionHeader(ALICE, BOB, 12345, flags, padding=bytes(512))
    pair.acceptor.session.receive_data(EstablishConnectionPacket.of(asked))
    (response,) = pair.acceptor.packets()
    assert isinstance(response, EstablishConnectionPacket)
    header = response.establish_connection_header
    assert (header.client_guid, header.server_guid) == (ALICE, BOB)
    assert header.timestamp == 12345
    assert header.operating_system == OperatingSystemFlags.of(RE=0x10, SE=unpinged, OS=1)
    assert header.padding == b"\x5a" * 512


@pytest.mark.conformance("MQQB-rule-3.1.5.3.2")
@pytest.mark.parametrize(
    ("client", "server", "remote"),
    [(BOB, BOB, NULL_GUID), (ALICE, ALICE, BOB)],
    ids=["for somebody else", "of somebody else"],
)
def test_a_wrong_response_closes_the_session(client: UUID, server: UUID, remote: UUID) -> None:
    host = Pair(remote=remote).initiator
    host.session.start_initiator()
    response = EstablishConnectionHeader(client, server)
    host.session.receive_data(EstablishConnectionPacket.of(response))
    assert host.session.state is SessionState.CLOSED


@pytest.mark.conformance(
    "MQQB-rule-3.1.5.3.2",
    "MQQB-packet-ConnectionParameters",
    "MQQB-header-ConnectionParametersHeader",
)
@pytest.mark.parametrize(("round_trip", "timeout"), [(1, 500), (100, 800), (50_000, 120_000)])
def test_recoverable_messages_are_acknowledged_after_eight_round_trips(
    round_trip: int, timeout: int
) -> None:
    pair = Pair()
    pair.initiator.session.start_initiator()
    (request,) = pair.initiator.packets()
    assert isinstance(request, EstablishConnectionPacket)
    pair.clock.advance(round_trip)
    header = EstablishConnectionHeader(ALICE, BOB, request.establish_connection_header.timestamp)
    pair.initiator.session.receive_data(EstablishConnectionPacket.of(header))
    (sent,) = pair.initiator.packets()
    assert isinstance(sent, ConnectionParametersPacket)
    assert sent.connection_parameters_header.recoverable_ack_timeout == timeout
    assert sent.connection_parameters_header.ack_timeout == 20_000
    assert sent.connection_parameters_header.window_size == 64


@pytest.mark.conformance("MQQB-rule-3.1.5.4.1", "MQQB-rule-3.1.5.4.2")
def test_the_acceptor_adopts_the_times_and_each_learns_the_others_window() -> None:
    pair = Pair()
    pair.acceptor.session.start_acceptor()
    pair.acceptor.session.receive_data(
        EstablishConnectionPacket.of(EstablishConnectionHeader(ALICE))
    )
    pair.acceptor.packets()
    pair.acceptor.session.receive_data(parameters(700, 30_000, 5))
    (answer,) = pair.acceptor.packets()
    assert isinstance(answer, ConnectionParametersPacket)
    header = answer.connection_parameters_header
    assert (header.recoverable_ack_timeout, header.ack_timeout) == (700, 30_000)
    assert header.window_size == 64
    session = pair.acceptor.session
    assert session.ack_wait_timeout == 30_000
    assert session.recoverable_ack_send_timeout == 700
    assert session.received_window_size == 5
    pair.initiator.session.start_initiator()
    pair.initiator.session.receive_data(
        EstablishConnectionPacket.of(EstablishConnectionHeader(ALICE, BOB))
    )
    pair.initiator.session.receive_data(parameters(window=9))
    assert pair.initiator.session.received_window_size == 9


@pytest.mark.conformance("MQQB-rule-3.1.5.1.3", "MQQB-element-Session")
def test_a_packet_in_the_wrong_state_closes_the_session() -> None:
    packets = {
        "establish": EstablishConnectionPacket.of(EstablishConnectionHeader(ALICE, BOB)),
        "parameters": parameters(),
        "ack": SessionAckPacket.of(SessionHeader()),
        "message": packet(),
    }
    allowed = {("start", "establish"), ("open", "ack"), ("open", "message")}
    for state, name in itertools.product(("start", "open"), packets):
        pair = Pair()
        if state == "open":
            pair.open()
        else:
            pair.acceptor.session.start_acceptor()
        pair.acceptor.session.receive_data(packets[name])
        closed = pair.acceptor.session.state is SessionState.CLOSED
        assert closed == ((state, name) not in allowed), (state, name)


@pytest.mark.conformance("MQQB-rule-3.1.5.1.2", "MQQB-rule-3.1.5.1.3")
@pytest.mark.parametrize(
    ("offset", "value"),
    [(0, 0x11), (4, 0x00), (11, 0x7F), (16, 0xFF)],
)
def test_a_damaged_header_closes_the_session_and_reaches_nobody(offset: int, value: int) -> None:
    pair = Pair().open()
    damaged = bytearray(SessionAckPacket.of(SessionHeader()))
    if offset == 16:
        damaged[18] = 0x0F
    else:
        damaged[offset] = value
    pair.acceptor.session.receive_data(bytes(damaged))
    assert pair.acceptor.reason is not None
    assert pair.acceptor.reason.startswith("bad packet")
    assert pair.acceptor.received == []


@pytest.mark.conformance("MQQB-rule-3.1.5.1.3")
def test_before_it_is_open_a_session_takes_no_large_packet() -> None:
    pair = Pair()
    pair.acceptor.session.start_acceptor()
    head = bytearray(SessionAckPacket.of(SessionHeader())[:16])
    head[8:12] = (4_000_000).to_bytes(4, "little")
    pair.acceptor.session.receive_data(bytes(head))
    assert pair.acceptor.session.state is SessionState.CLOSED


def changed(packet: bytes, offset: int, bits: int) -> bytes:
    """A packet in which bits of one octet are turned over."""
    return packet[:offset] + bytes((packet[offset] ^ bits,)) + packet[offset + 1 :]


def longer(packet: bytes) -> bytes:
    """A packet with a hundred octets more, which its size counts."""
    size = len(packet) + 100
    return packet[:8] + size.to_bytes(4, "little") + packet[12:] + bytes(100)


BASE_FLAGS, INTERNAL_FLAGS = 2, 18
SH, CS = 0x10, 0x10
ESTABLISH = EstablishConnectionPacket.of(EstablishConnectionHeader(ALICE, BOB))
ACK = SessionAckPacket.of(SessionHeader())


@pytest.mark.conformance("MQQB-rule-3.1.5.1.1", "MQQB-rule-3.1.5.1.3")
@pytest.mark.parametrize(
    ("steps", "bad"),
    [
        ([], changed(ESTABLISH, BASE_FLAGS, SH)),
        ([], changed(ESTABLISH, INTERNAL_FLAGS, CS)),
        ([ESTABLISH], changed(parameters(), INTERNAL_FLAGS, CS)),
        ([ESTABLISH], changed(parameters(), BASE_FLAGS, SH)),
        ([ESTABLISH, parameters()], changed(ACK, BASE_FLAGS, SH)),
        ([ESTABLISH, parameters()], changed(ACK, INTERNAL_FLAGS, CS)),
        ([ESTABLISH, parameters()], longer(ACK)),
    ],
    ids=[
        "request with SH",
        "request with CS",
        "parameters with CS",
        "parameters with SH",
        "acknowledgement without SH",
        "acknowledgement with CS",
        "acknowledgement that is too long",
    ],
)
def test_an_internal_packet_that_is_not_as_it_must_be_closes_the_session(
    steps: list[bytes], bad: bytes
) -> None:
    host = Pair().acceptor
    host.session.start_acceptor()
    for step in steps:
        host.session.receive_data(step)
    assert host.reason is None
    host.session.receive_data(bad)
    assert host.session.violated


@pytest.mark.conformance("MQQB-rule-3.1.5.4.2")
def test_parameters_that_refuse_end_the_session_of_who_asked() -> None:
    host = Pair().initiator
    host.session.start_initiator()
    host.session.receive_data(ESTABLISH)
    host.session.receive_data(changed(parameters(), INTERNAL_FLAGS, CS))
    assert host.reason == "the peer refuses the session"
    assert not host.session.violated


@pytest.mark.conformance(
    "MQQB-rule-3.1.5.4.1", "MQQB-rule-3.1.5.4.2", "MQQB-header-ConnectionParametersHeader"
)
@pytest.mark.parametrize("side", ["initiator", "acceptor"])
@pytest.mark.parametrize(
    ("recoverable", "ack"), [(499, 20_000), (120_001, 20_000), (500, 19_999), (500, 120_001)]
)
def test_parameters_outside_their_ranges_close_the_session(
    side: str, recoverable: int, ack: int
) -> None:
    pair = Pair()
    host = pair.initiator if side == "initiator" else pair.acceptor
    host.session.start_initiator() if side == "initiator" else host.session.start_acceptor()
    host.session.receive_data(ESTABLISH)
    assert host.reason is None
    host.session.receive_data(parameters(recoverable, ack))
    assert host.session.violated


@pytest.mark.conformance("MQQB-timer-session_initialization")
def test_the_acceptor_waits_a_minute_from_its_response_on() -> None:
    pair = Pair()
    pair.acceptor.session.start_acceptor()
    pair.clock.advance(50_000)
    pair.acceptor.session.receive_data(ESTABLISH)
    pair.clock.advance(59_999)
    assert pair.acceptor.reason is None
    pair.clock.advance(1)
    assert pair.acceptor.reason == "the session was not initialized in time"


@pytest.mark.conformance("MQQB-rule-3.1.5.8.2", "MQQB-timer-session_ack_wait")
@pytest.mark.parametrize(("name", "wait"), [(PRIVATE, 20_000), (ORDERS, 40_000)])
def test_an_accepted_session_becomes_direct_with_the_first_direct_name(
    name: str, wait: int
) -> None:
    pair = Pair()
    pair.acceptor = Host(pair.clock, BOB, direct=False)
    pair.open()
    pair.initiator.session.send(packet(1, name=name), 1)
    pair.settle()
    pair.acceptor.session.send(packet(2), 2)
    pair.acceptor.sent.clear()
    pair.clock.advance(2 * wait - 1)
    assert pair.acceptor.reason is None
    pair.clock.advance(1)
    assert pair.acceptor.reason == "the peer acknowledges nothing"


def test_bytes_may_come_one_by_one() -> None:
    pair = Pair().open()
    for byte in packet(1) + packet(2, True):
        pair.acceptor.session.receive_data(bytes((byte,)))
    assert [body for _, body, _ in pair.acceptor.received] == [packet(1), packet(2, True)]


# Timers


@pytest.mark.conformance("MQQB-timer-session_initialization")
@pytest.mark.parametrize("side", ["initiator", "acceptor"])
def test_a_session_that_is_not_initialized_in_a_minute_is_closed(side: str) -> None:
    pair = Pair()
    host = getattr(pair, side)
    getattr(host.session, f"start_{side}")()
    pair.clock.advance(59_999)
    assert host.reason is None
    pair.clock.advance(1)
    assert host.reason == "the session was not initialized in time"
    assert not len(pair.clock.timers)


@pytest.mark.conformance("MQQB-timer-session_cleanup", "MQQB-rule-3.1.5.4.2")
def test_an_idle_session_is_closed_after_five_minutes() -> None:
    pair = Pair().open()
    pair.advance(200_000)
    pair.initiator.session.send(packet(), 1)
    pair.settle()
    pair.advance(399_999)
    assert pair.initiator.session.is_open
    pair.advance(1)
    assert pair.initiator.reason == pair.acceptor.reason == "the session was idle"


@pytest.mark.conformance("MQQB-timer-session_ack_wait", "MQQB-rule-3.1.7.1.6")
@pytest.mark.parametrize(("direct", "wait"), [(False, 20_000), (True, 40_000)])
def test_a_peer_that_acknowledges_nothing_is_given_up(direct: bool, wait: int) -> None:
    pair = Pair()
    pair.initiator = Host(pair.clock, ALICE, direct=direct)
    pair.open()
    pair.initiator.session.send(packet(), 1)
    pair.initiator.sent.clear()
    pair.clock.advance(2 * wait - 1)
    assert pair.initiator.reason is None
    pair.clock.advance(1)
    assert pair.initiator.reason == "the peer acknowledges nothing"


@pytest.mark.conformance("MQQB-rule-3.1.5.9", "MQQB-event-network_disconnect")
def test_a_closed_session_has_no_timers_and_closes_once() -> None:
    pair = Pair().open()
    pair.initiator.session.send(packet(1, True), 1)
    pair.settle()
    pair.initiator.session.disconnected()
    pair.acceptor.session.close("enough")
    pair.acceptor.session.close("again")
    assert pair.acceptor.reason == "enough"
    assert not len(pair.clock.timers)
    pair.acceptor.session.receive_data(packet())
    assert len(pair.acceptor.received) == 1
