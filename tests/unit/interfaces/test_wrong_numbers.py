"""Numbers of queues that are open for somebody else cannot be found by trying (G88)."""

import pytest

from rpcqm.adm.queue import Queue
from rpcqm.codec.security.sddl import parse_sddl
from rpcqm.interfaces import _wrong_numbers
from rpcqm.interfaces._authentication import RemoteReadSecurity
from rpcqm.interfaces._wrong_numbers import WINDOW, WRONG_NUMBERS
from tests.support.queue_manager import RunningQueueManager
from tests.support.rpc.callers import ALICE, BOB, LEVEL_NONE, NOBODY, CallServer
from tests.support.rpc.dependent_client import Client, create_remote_cursor
from tests.support.rpc.qm2qm_reader import Qm2QmReader, served_qm2qm
from tests.support.rpc.remote_reader import PEEK_ACCESS, PEEK_CURRENT, status_name

WRONG = "MQ_ERROR_INVALID_PARAMETER"
UNKNOWN = "MQ_ERROR_INVALID_HANDLE"


@pytest.fixture
def queue(qm: RunningQueueManager) -> Queue:
    return qm.create()


@pytest.fixture
def server(qm: RunningQueueManager) -> CallServer:
    return served_qm2qm(qm)


def adopted(reader: Qm2QmReader, number: int) -> str:
    return status_name(reader.adopt(number).result)


def searched(server: CallServer, number: int) -> None:
    """Bob tries as many wrong numbers as he may, each over a connection of its own."""
    for wrong in range(1, WRONG_NUMBERS + 1):
        assert wrong != number
        assert adopted(Qm2QmReader(server.connect(BOB)), wrong) == WRONG


def test_a_search_ends_before_the_right_number(
    qm: RunningQueueManager, server: CallServer, queue: Queue
) -> None:
    number = Qm2QmReader(server.connect(ALICE)).open_by_qmcomm(queue).phQueue
    searched(server, number)
    assert adopted(Qm2QmReader(server.connect(BOB)), number) == WRONG
    assert adopted(Qm2QmReader(server.connect(ALICE)), number) == "MQ_OK"


def test_one_less_is_no_search(qm: RunningQueueManager, server: CallServer, queue: Queue) -> None:
    reader = Qm2QmReader(server.connect(ALICE))
    number = reader.open_by_qmcomm(queue).phQueue
    supporting = Qm2QmReader(server.connect(BOB))
    for wrong in range(1, WRONG_NUMBERS):
        assert adopted(supporting, wrong) == WRONG
    assert adopted(supporting, number) == "MQ_OK"


def test_a_search_is_forgotten_after_a_minute(
    qm: RunningQueueManager, server: CallServer, queue: Queue
) -> None:
    number = Qm2QmReader(server.connect(ALICE)).open_by_qmcomm(queue).phQueue
    searched(server, number)
    qm.advance(WINDOW - 1)
    assert adopted(Qm2QmReader(server.connect(BOB)), number) == WRONG
    qm.advance(1)
    assert adopted(Qm2QmReader(server.connect(BOB)), number) == "MQ_OK"


def test_only_so_many_callers_are_remembered(
    qm: RunningQueueManager, server: CallServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_wrong_numbers, "CALLERS", 1)
    assert adopted(Qm2QmReader(server.connect(ALICE)), 1) == WRONG
    searched(server, 0)
    assert adopted(Qm2QmReader(server.connect(ALICE)), 2) == WRONG


# Callers who have not logged on, where the switch for readers is on


@pytest.fixture
def switched(qm: RunningQueueManager) -> CallServer:
    return served_qm2qm(qm, RemoteReadSecurity(allow_nonauthenticated_rpc=True))


def nobody(server: CallServer) -> Qm2QmReader:
    return Qm2QmReader(server.connect(NOBODY, LEVEL_NONE))


@pytest.fixture
def shared(qm: RunningQueueManager) -> Queue:
    """A queue that Anonymous may peek at."""
    return qm.create(security=parse_sddl("O:BAD:(A;;0xf003f;;;WD)(A;;0x2;;;AN)").encode())


def test_whoever_has_not_logged_on_searches_for_no_number(
    switched: CallServer, shared: Queue
) -> None:
    """Neither for one to take over, nor for what somebody else has open or has taken over."""
    number = nobody(switched).open_by_qmcomm(shared, PEEK_ACCESS).phQueue
    assert [adopted(nobody(switched), wrong) for wrong in range(1, 17)] == [WRONG] * 16
    for attempt in (adopted, cursor, read):
        assert attempt(nobody(switched), number) == WRONG
    assert adopted(Qm2QmReader(switched.connect(ALICE)), number) == "MQ_OK"


def test_every_number_counts_for_them(switched: CallServer, shared: Queue) -> None:
    number = nobody(switched).open_by_qmcomm(shared, PEEK_ACCESS).phQueue
    for wrong in range(1, 9):
        assert cursor(nobody(switched), wrong) == UNKNOWN
        assert read(nobody(switched), wrong) != "MQ_OK"
    assert adopted(nobody(switched), number) == WRONG


def test_other_addresses_of_one_owner_are_no_others(switched: CallServer, shared: Queue) -> None:
    """The last 64 bits of an IPv6 address are for its owner to choose (G91)."""

    def at(number: int) -> Qm2QmReader:
        return Qm2QmReader(switched.connect(NOBODY, LEVEL_NONE, address=f"2001:db8::{number:x}"))

    number = nobody(switched).open_by_qmcomm(shared, PEEK_ACCESS).phQueue
    for wrong in range(1, WRONG_NUMBERS + 1):
        assert adopted(at(wrong), wrong) == WRONG
    assert adopted(at(77), number) == WRONG
    assert adopted(nobody(switched), number) == "MQ_OK"


def cursor(reader: Qm2QmReader, number: int) -> str:
    return status_name(create_remote_cursor(Client(reader.caller), number).result)


def read(reader: Qm2QmReader, number: int) -> str:
    return status_name(reader.read(number, PEEK_CURRENT).result)
