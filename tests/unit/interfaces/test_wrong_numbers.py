"""Numbers of queues that are open for somebody else cannot be found by trying (G88)."""

import pytest

from rpcqm.adm.queue import Queue
from rpcqm.interfaces import _wrong_numbers
from rpcqm.interfaces._wrong_numbers import WINDOW, WRONG_NUMBERS
from tests.support.callers import ALICE, BOB, CallServer
from tests.support.qm2qm_reader import Qm2QmReader, served_qm2qm
from tests.support.queue_manager import RunningQueueManager
from tests.support.remote_reader import status_name

WRONG = "MQ_ERROR_INVALID_PARAMETER"


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
