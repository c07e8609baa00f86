"""The examples of [MS-MQQB] 4.1 replayed, with us as their sender and as their receiver.

Bytes that the sender chooses freely are masked by the names of their fields.
"""

from pathlib import Path
from uuid import UUID

import pytest

from rpcqm.binary.ping import PingRequests, answer_ping
from rpcqm.binary.session_host import SessionState
from rpcqm.binary.settings import BinarySettings
from rpcqm.codec.packet.acknowledgement import PacketKind
from rpcqm.codec.packet.internal import PingPacket
from tests.support.binary.sessions import Host
from tests.support.clock import SimulatedClock

VECTORS = Path(__file__).parents[2] / "vectors" / "packets"


def example(name: str) -> bytes:
    return bytes.fromhex((VECTORS / f"{name}.hex").read_text("ascii"))


PING_REQUEST = example("4.1.1_ping_request")
PING_RESPONSE = example("4.1.2_ping_response")
ESTABLISH_REQUEST = example("4.1.3_establish_connection_request")
ESTABLISH_RESPONSE = example("4.1.4_establish_connection_response")
PARAMETERS_REQUEST = example("4.1.5_connection_parameters_request")
PARAMETERS_RESPONSE = example("4.1.6_connection_parameters_response")
USER_MESSAGE = example("4.1.7_user_message") + b"a\0" * 286 + bytes(2)
SESSION_ACK = example("4.1.8_session_ack")

INITIATOR = UUID(bytes_le=ESTABLISH_REQUEST[20:36])
ACCEPTOR = UUID(bytes_le=ESTABLISH_REQUEST[36:52])
SETTINGS = BinarySettings(ack_wait_timeout=120_000)
ROUND_TRIP = 187

FIELDS = {
    "BaseHeader.Reserved": (1, 2),
    "EstablishConnectionHeader.ClientGuid": (20, 36),
    "EstablishConnectionHeader.ServerGuid": (36, 52),
    "EstablishConnectionHeader.TimeStamp": (52, 56),
}
IDENTITIES = (
    "EstablishConnectionHeader.ClientGuid",
    "EstablishConnectionHeader.ServerGuid",
)
"""The printed response names other queue managers than its request."""


def masked(packet: bytes, *names: str) -> bytes:
    result = bytearray(packet)
    for name in ("BaseHeader.Reserved", *names):
        start, end = FIELDS[name]
        result[start:end] = bytes(end - start)
    return bytes(result)


def of_this_session(response: bytes) -> bytes:
    """The printed response with the names and the time of its request."""
    return response[:20] + ESTABLISH_REQUEST[20:56] + response[56:]


@pytest.mark.conformance(
    "MQQB-packet-EstablishConnection",
    "MQQB-rule-3.1.5.3.2",
    "MQQB-header-EstablishConnectionHeader",
)
def test_as_initiator_we_send_what_the_example_sends() -> None:
    clock = SimulatedClock()
    clock.advance(int.from_bytes(ESTABLISH_REQUEST[52:56], "little"))
    host = Host(clock, INITIATOR, ACCEPTOR, SETTINGS)
    host.session.start_initiator()
    assert masked(host.sent.popleft()) == masked(ESTABLISH_REQUEST)
    clock.advance(ROUND_TRIP)
    host.session.receive_data(of_this_session(ESTABLISH_RESPONSE))
    assert masked(host.sent.popleft()) == masked(PARAMETERS_REQUEST)
    host.session.receive_data(PARAMETERS_RESPONSE)
    assert host.session.state is SessionState.OPEN
    host.session.send(USER_MESSAGE, "message")
    assert host.sent.popleft() == USER_MESSAGE
    host.session.receive_data(SESSION_ACK)
    assert host.acknowledged == ["message"]
    assert not host.sent


@pytest.mark.conformance("MQQB-packet-SessionAck", "MQQB-rule-3.1.5.3.1", "MQQB-rule-3.1.5.4.1")
def test_as_acceptor_we_answer_what_the_example_answers() -> None:
    clock = SimulatedClock()
    host = Host(clock, ACCEPTOR, settings=SETTINGS)
    host.session.start_acceptor()
    host.session.receive_data(ESTABLISH_REQUEST)
    response = host.sent.popleft()
    assert masked(response, *IDENTITIES) == masked(ESTABLISH_RESPONSE, *IDENTITIES)
    assert response[20:52] == ESTABLISH_REQUEST[20:52]
    host.session.receive_data(PARAMETERS_REQUEST)
    assert masked(host.sent.popleft()) == masked(PARAMETERS_RESPONSE)
    host.session.receive_data(USER_MESSAGE)
    assert host.received == [(PacketKind.USER_MESSAGE, USER_MESSAGE, None)]
    clock.advance(60_000)
    assert masked(host.sent.popleft()) == masked(SESSION_ACK)


@pytest.mark.conformance(
    "MQQB-packet-Ping", "MQQB-event-receive_ping_request", "MQQB-event-send_ping_request"
)
def test_we_ask_and_answer_pings_as_the_example_does() -> None:
    clock = SimulatedClock()
    requests = PingRequests(INITIATOR, clock.timers, SETTINGS, cookie=3)
    sent: list[bytes] = []
    outcome = requests.send("192.0.2.1", sent.append)
    asked, printed = PingPacket.decode(sent[0]), PingPacket.decode(PING_REQUEST)
    assert (asked.signature, asked.cookie, asked.qm_guid) == (
        printed.signature,
        printed.cookie,
        printed.qm_guid,
    )
    own = UUID(bytes_le=PING_RESPONSE[8:])
    answer = PingPacket.decode(answer_ping(PING_REQUEST, own, refused=False) or b"")
    expected = PingPacket.decode(PING_RESPONSE)
    assert (answer.signature, answer.cookie, answer.qm_guid) == (
        expected.signature,
        expected.cookie,
        expected.qm_guid,
    )
    assert (answer.flags.RC, answer.flags.RF) == (expected.flags.RC, expected.flags.RF) == (1, 0)
    requests.receive(PING_RESPONSE)
    assert outcome.result() is True
