"""One forged datagram does not make two queue managers ping each other for ever (G96)."""

import select
import socket
from collections.abc import Iterator
from contextlib import closing
from uuid import UUID, uuid4

import pytest

from rpcqm.binary.ping import PING_PORT, PINGS_OF_ONE_ADDRESS
from rpcqm.codec.packet.internal import PingFlags, PingPacket
from rpcqm.testing import PrivateQueueManager, private_queue_manager

HOST = "127.9.31.1"
PINGER = "127.9.31.2"
OTHER = "127.9.31.3"
CONFIGURATION = f'host = "{HOST}"\n[binary]\nping = true\n'
FLOOD = 500
PATIENCE = 10


@pytest.fixture(scope="module")
def server() -> Iterator[PrivateQueueManager]:
    with private_queue_manager(configuration=CONFIGURATION) as queue_manager:
        yield queue_manager


class Pinger:
    """A socket that asks; what it has not read yet are answers."""

    def __init__(self, host: str, port: int = 0) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((host, port))
        self._socket.settimeout(20)

    def close(self) -> None:
        self._socket.close()

    def ask(self, cookie: int, flags: PingFlags | None = None, guid: UUID | None = None) -> None:
        question = PingPacket.of(guid or uuid4(), cookie, flags or PingFlags.of())
        self._socket.sendto(question, (HOST, PING_PORT))

    def answer(self) -> int:
        """The cookie of the next answer."""
        return PingPacket.decode(self._socket.recv(100)).cookie

    def has_answer(self) -> bool:
        """Whether there is an answer within two seconds."""
        return bool(select.select([self._socket], [], [], 2)[0])

    def count(self) -> int:
        """How many answers are there."""
        self._socket.setblocking(False)
        count = 0
        while True:
            try:
                self._socket.recv(100)
            except BlockingIOError:
                return count
            count += 1


def settle(host: str) -> None:
    """What was asked before has been dealt with once somebody else has an answer.

    A question that comes when the server's socket is full is lost.
    """
    with closing(Pinger(host)) as pinger:
        for _ in range(PATIENCE):
            pinger.ask(7)
            if pinger.has_answer():
                break
        assert pinger.answer() == 7


def test_another_answering_port_gets_no_answer(server: PrivateQueueManager) -> None:
    with closing(Pinger(PINGER, PING_PORT)) as pinger:
        pinger.ask(1)
        settle(OTHER)
        assert pinger.count() == 0


@pytest.mark.conformance("MQQB-event-receive_ping_request")
def test_an_answer_is_not_answered(server: PrivateQueueManager) -> None:
    with closing(Pinger("127.9.31.4")) as pinger:
        pinger.ask(1, PingFlags.of(RF=1))
        pinger.ask(2, guid=server.ready.id)
        pinger.ask(3)
        assert pinger.answer() == 3
        assert pinger.count() == 0


def test_one_address_gets_only_so_many_answers(server: PrivateQueueManager) -> None:
    with closing(Pinger("127.9.31.5")) as pinger:
        for cookie in range(FLOOD):
            pinger.ask(cookie)
        settle("127.9.31.6")
        assert PINGS_OF_ONE_ADDRESS <= pinger.count() < FLOOD // 2


def test_a_port_of_pings_that_is_taken_keeps_no_message_out() -> None:
    taken = "127.9.31.7"
    with closing(Pinger(taken, PING_PORT)):
        configuration = CONFIGURATION.replace(HOST, taken)
        with private_queue_manager(configuration=configuration) as queue_manager:
            assert queue_manager.endpoint("binary")[1] > 0
            assert queue_manager.log.count("pings are not answered") == 1
