"""What administrators see of connections ([MS-MQMQ] 2.3.12.12, 2.3.12.25)."""

import errno
from collections.abc import Iterator

import pytest

from rpcqm.base.completion import Completion, completed, failed
from rpcqm.base.errors import HResult
from rpcqm.binary.connection.peer_connection import NextHop, PeerConnection
from rpcqm.codec.packet.enums import PrivacyLevel
from rpcqm.codec.types.mqvalues import ConnectionStatus
from tests.support.binary.binary_pair import ORDERS, STREAM, Exchanging, exchanging

Told = list[tuple[ConnectionStatus, int]]
UNREACHABLE = int(HResult.MQ_ERROR_REMOTE_MACHINE_NOT_AVAILABLE)
DAYS = 24 * 3600


@pytest.fixture
def pair() -> Iterator[Exchanging]:
    with exchanging() as pair:
        yield pair


def told(pair: Exchanging, to: str = ORDERS) -> Told:
    history = pair.alice.outgoing(to).connection_history
    return [(entry.status, entry.error) for entry in history]


CONNECTING = [
    (errno.ECONNREFUSED, ConnectionStatus.SOCKET_CONNECT_FAILURE, 0x8007_274D),
    (errno.ETIMEDOUT, ConnectionStatus.SOCKET_CONNECT_FAILURE, 0x8007_274C),
    (errno.EMFILE, ConnectionStatus.SOCKET_CREATE_FAILURE, 0x8007_2728),
    (errno.EADDRNOTAVAIL, ConnectionStatus.SOCKET_BIND_FAILURE, 0x8007_2741),
    (errno.EAFNOSUPPORT, ConnectionStatus.TCP_NOT_ENABLED, 0x8007_273F),
    (errno.ENOMEM, ConnectionStatus.LOW_RESOURCE, 0x8007_2747),
    (errno.EPIPE, ConnectionStatus.SOCKET_CONNECT_FAILURE, int(HResult.MQ_ERROR)),
]


@pytest.mark.parametrize(("number", "status", "error"), CONNECTING)
def test_a_failed_connection_is_told_with_its_cause(
    pair: Exchanging,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    status: ConnectionStatus,
    error: int,
) -> None:
    def connect(hop: NextHop, connection: PeerConnection) -> Completion[None]:
        return failed(OSError(number, "no connection"))

    monkeypatch.setattr(pair.alice, "connect", connect)
    pair.alice.send(ORDERS, b"content")
    pair.simulation.advance(100)
    assert told(pair) == [(status, error)]


def test_a_peer_that_closes_during_the_handshake_has_refused(
    pair: Exchanging, monkeypatch: pytest.MonkeyPatch
) -> None:
    accept = pair.bob.protocol.accept

    def accept_and_close() -> PeerConnection:
        connection = accept()
        pair.simulation.later(0, lambda: connection.session.close("not now"))
        return connection

    monkeypatch.setattr(pair.bob.protocol, "accept", accept_and_close)
    pair.alice.send(ORDERS, b"content")
    pair.simulation.advance(100)
    (begun, refused) = told(pair)
    assert begun == (ConnectionStatus.IN_PROCESS, 0)
    assert refused == (ConnectionStatus.CONNECTION_REFUSED, UNREACHABLE)


def test_a_session_that_breaks_while_it_sends_is_told(pair: Exchanging) -> None:
    pair.alice.send(ORDERS, b"content")
    pair.simulation.advance(100)
    (connection,) = pair.alice.protocol.connections
    connection.session.disconnected()
    assert told(pair)[-1] == (ConnectionStatus.SOCKET_SEND_FAILURE, 0x8007_2746)


@pytest.mark.conformance("MQQB-rule-3.1.7.1.5.1")
def test_a_body_that_could_not_be_encrypted_does_not_hide_how_its_session_ends(
    pair: Exchanging,
) -> None:
    pair.alice.send(ORDERS, b"secret", privacy_level=PrivacyLevel.ADVANCED)
    pair.alice.send(ORDERS, b"content")
    pair.simulation.advance(100)
    (connection,) = pair.alice.protocol.connections
    connection.session.disconnected()
    assert told(pair)[-2:] == [
        (ConnectionStatus.CERTIFICATE_VALIDATION_FAILURE, int(HResult.MQ_ERROR)),
        (ConnectionStatus.SOCKET_SEND_FAILURE, 0x8007_2746),
    ]


def test_a_session_that_was_idle_ends_without_a_failure(pair: Exchanging) -> None:
    pair.alice.send(ORDERS, b"content")
    pair.simulation.advance(600_000)
    assert [error for _, error in told(pair)] == [0, 0, 0]


def test_a_peer_that_does_not_answer_in_time_is_a_failure_of_unknown_cause(
    pair: Exchanging, monkeypatch: pytest.MonkeyPatch
) -> None:
    accept = pair.bob.protocol.accept

    def say_nothing() -> PeerConnection:
        connection = accept()
        monkeypatch.setattr(connection, "transmit", lambda data: None)
        return connection

    monkeypatch.setattr(pair.bob.protocol, "accept", say_nothing)
    pair.alice.send(ORDERS, b"content")
    pair.simulation.advance(70_000)
    assert told(pair)[1] == (ConnectionStatus.UNKNOWN_FAILURE, int(HResult.MQ_ERROR))


@pytest.mark.parametrize(
    ("to", "expected"),
    [
        (ORDERS, (ConnectionStatus.DNS_FAILURE, 0x8007_2AF9)),
        (
            "PRIVATE=00000000-0000-0000-0000-000000000063\\00000010",
            (ConnectionStatus.ROUTING_DATA_NOT_AVAILABLE, int(HResult.MQ_ERROR_NO_DS)),
        ),
    ],
)
def test_a_name_that_leads_nowhere_is_told_by_who_should_know_it(
    pair: Exchanging,
    monkeypatch: pytest.MonkeyPatch,
    to: str,
    expected: tuple[ConnectionStatus, int],
) -> None:
    monkeypatch.setattr(pair.alice, "resolve", lambda host, senders: failed(OSError("unknown")))
    pair.alice.send(to, b"content")
    pair.simulation.advance(100)
    assert told(pair, to) == [expected]


@pytest.mark.parametrize(
    ("address", "hop", "plain"),
    [
        ("192.0.2.77", "IP=192.0.2.77", "192.0.2.77"),
        ("2001:db8::7", "IPv6=2001:db8::7", "2001:db8::7"),
        ("fe80::1%eth0", "IPv6=fe80::1", "fe80::1"),
    ],
)
def test_next_hops_have_their_family_and_no_scope_and_histories_plain_addresses(
    pair: Exchanging, monkeypatch: pytest.MonkeyPatch, address: str, hop: str, plain: str
) -> None:
    monkeypatch.setattr(pair.alice, "resolve", lambda host, senders: completed((address,)))
    pair.alice.send(ORDERS, b"content")
    pair.simulation.advance(100)
    queue = pair.alice.outgoing(ORDERS)
    assert queue.next_hops == [hop]
    assert queue.connection_history[0].address_list == (plain,)


def test_a_queue_that_uses_somebody_else_s_session_shows_where_it_leads(pair: Exchanging) -> None:
    pair.alice.create("back")
    identifier = pair.alice.engine.queue_manager.identifier
    number = pair.alice.find("back").private_queue_number
    pair.bob.protocol.places.peers[str(identifier)] = [NextHop(pair.alice.address)]
    pair.alice.send(ORDERS, b"there")
    pair.settle(1)
    name = f"PRIVATE={identifier}\\{number:08x}"
    pair.bob.send(name, b"back")
    pair.settle(1)
    queue = pair.bob.outgoing(name)
    assert pair.alice.bodies("back") == [b"back"]
    assert queue.next_hops == [f"IP={pair.alice.address}"]
    (entry,) = queue.connection_history
    assert (entry.status, entry.error) == (ConnectionStatus.ESTABLISHED, 0)
    assert entry.address_list == (pair.alice.address,)


@pytest.mark.conformance("MQQB-packet-FinalAck")
def test_a_source_that_is_away_for_long_learns_what_became_of_its_message(
    pair: Exchanging,
) -> None:
    pair.send(STREAM, transactional=True, negative_journaling_requested=True)
    pair.settle(20)
    pair.alice.kill()
    pair.bob.engine.queues.purge_queue(pair.stream)
    pair.settle(6 * DAYS)
    pair.alice.start()
    pair.settle(3600)
    assert pair.alice.bodies("system$;deadxact") == [b"content"]
    assert pair.alice.unsent == 0
