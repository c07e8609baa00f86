"""How many cursors a client may have, over all of its queues and interfaces (G129)."""

from collections.abc import Callable
from itertools import count
from typing import TypeVar

import pytest

from rpcqm.base.completion import Completion
from rpcqm.base.errors import HResult, MQError
from rpcqm.codec.types.qmcomm import CACCreateRemoteCursor
from rpcqm.interfaces import qm2qm, qmcomm, qmcomm2, remote_read
from rpcqm.interfaces._remote_proxy import RemoteNumbers
from rpcqm.qm.remote_reading import PendingRead, RemotelyRead, RemoteReader
from rpcqm.rpc.limits import Limits
from rpcqm.service import interfaces
from tests.support.queue_manager import RunningQueueManager
from tests.support.rpc.callers import (
    ADMINISTRATOR,
    ALICE,
    BOB,
    Caller,
    CallServer,
    Served,
    shortened,
)
from tests.support.rpc.dependent_client import Client, create_remote_cursor, open_remote
from tests.support.rpc.qm2qm_reader import Qm2QmReader
from tests.support.rpc.remote_reader import PEEK_ACCESS, Reader, status_name

REFUSED = "MQ_ERROR_INSUFFICIENT_RESOURCES"
ELSEWHERE = r"DIRECT=OS:elsewhere\private$\orders"

T = TypeVar("T")

Create = Callable[[], str]
"""Makes a cursor, and tells the status."""


class Elsewhere:
    """A queue of another queue manager, which has cursors enough, or answers when it is told to."""

    def __init__(self) -> None:
        self.numbers = count(1)
        self.closed = 0
        self.late: list[Completion[int]] | None = None
        self.refuses = False

    def open(self, machine: str, numbers: RemoteNumbers, asker: str) -> Completion[RemoteReader]:
        taken: RemoteReader = self
        return done(taken)

    def create_cursor(self) -> Completion[int]:
        if self.refuses:
            raise MQError(HResult.MQ_ERROR_REMOTE_MACHINE_NOT_AVAILABLE)
        if self.late is None:
            return done(next(self.numbers))
        self.late.append(Completion())
        return self.late[-1]

    def close_cursor(self, cursor: int) -> Completion[None]:
        return done(None)

    def close(self) -> None:
        self.closed += 1

    def read(
        self, action: int, timeout: int, cursor: int, lookup_identifier: int = 0
    ) -> PendingRead:
        raise NotImplementedError

    def end(self, message: RemotelyRead, acknowledgement: int) -> Completion[None]:
        raise NotImplementedError

    def purge(self) -> Completion[None]:
        raise NotImplementedError


def done(value: T) -> Completion[T]:
    completion: Completion[T] = Completion()
    completion.succeed(value)
    return completion


@pytest.fixture
def elsewhere() -> Elsewhere:
    return Elsewhere()


@pytest.fixture
def server(qm: RunningQueueManager, elsewhere: Elsewhere) -> CallServer:
    qm.engine.queue_manager.supporting_server = True
    handles = interfaces.client_handles(qm.engine, open_remote=elsewhere.open)
    comm = interfaces.qmcomm(qm.engine, handles)
    return CallServer(
        qm,
        shortened(qm, "remoteread", interfaces.remote_read(qm.engine), remote_read.POLICY),
        Served("qmcomm", comm, qmcomm.POLICY),
        shortened(qm, "qmcomm2", interfaces.qmcomm2(qm.engine, handles), qmcomm2.POLICY),
        Served("qm2qm", interfaces.qm2qm(qm.engine, handles), qm2qm.POLICY),
        limits=Limits(cursors=3),
    )


@pytest.fixture
def caller(server: CallServer) -> Caller:
    return server.connect(ADMINISTRATOR)


def through_remote_read(caller: Caller, name: str) -> Create:
    handle = Reader(caller).open(name, PEEK_ACCESS)
    return lambda: Reader(caller).status("R_CreateCursor", phContext=handle)


def through_qmcomm(caller: Caller, name: str) -> Create:
    number = open_remote(Client(caller), name, PEEK_ACCESS).phQueue
    return lambda: status_name(create_remote_cursor(Client(caller), number).result)


def through_qm2qm(caller: Caller, name: str) -> Create:
    number, _ = Qm2QmReader(caller).open(name, PEEK_ACCESS)
    return lambda: status_name(create_remote_cursor(Client(caller), number).result)


def through_qmcomm2(caller: Caller, name: str) -> Create:
    handle, _ = Client(caller).open(name, PEEK_ACCESS)
    return lambda: created(caller, handle)


def through_a_proxy(caller: Caller, name: str) -> Create:
    handle = opened_elsewhere(caller)
    return lambda: created(caller, handle)


def opened_elsewhere(caller: Caller) -> bytes:
    return Client(caller).open(ELSEWHERE, PEEK_ACCESS, hRemoteQueue=1, dwpRemoteContext=1)[0]


def created(caller: Caller, handle: bytes) -> str:
    return Client(caller).status("rpc_ACCreateCursorEx", hQueue=handle, pcc=CACCreateRemoteCursor())


WAYS = [through_remote_read, through_qmcomm, through_qm2qm, through_qmcomm2, through_a_proxy]
through = pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__.replace("_", " "))


@pytest.fixture
def name(qm: RunningQueueManager) -> str:
    return f"DIRECT=OS:{qm.create().pathname}"


@pytest.mark.bound("limits.cursors")
@through
def test_a_client_has_as_many_cursors_as_it_may_on_all_queues_together(
    caller: Caller, name: str, way: Callable[[Caller, str], Create]
) -> None:
    first, second = way(caller, name), way(caller, name)
    assert [first(), second(), first()] == ["MQ_OK"] * 3
    assert [first(), second()] == [REFUSED] * 2


@through
def test_all_interfaces_count_together(
    caller: Caller, name: str, way: Callable[[Caller, str], Create]
) -> None:
    create, others = way(caller, name), [each(caller, name) for each in WAYS if each is not way]
    assert [create() for _ in range(3)] == ["MQ_OK"] * 3
    assert {other() for other in others} == {REFUSED}


@through
def test_another_client_has_its_own(
    server: CallServer, caller: Caller, name: str, way: Callable[[Caller, str], Create]
) -> None:
    create = way(caller, name)
    assert [create() for _ in range(4)][-1] == REFUSED
    assert way(server.connect(ADMINISTRATOR), name)() == "MQ_OK"
    joined = server.connect(ADMINISTRATOR, group_id=caller.group_id)
    assert way(joined, name)() == REFUSED


def test_a_cursor_that_is_closed_makes_room_once(caller: Caller, name: str) -> None:
    reader, client = Reader(caller), Client(caller)
    handle, (local, _), proxy = reader.open(name), client.open(name), opened_elsewhere(caller)
    cursors = reader.cursor(handle), client.cursor(local), client.cursor(proxy)
    for _ in range(2):
        reader.status("R_CloseCursor", phContext=handle, hCursor=cursors[0])
        client.status("rpc_ACCloseCursor", hQueue=local, hCursor=cursors[1])
        client.status("rpc_ACCloseCursor", hQueue=proxy, hCursor=cursors[2])
    assert [created(caller, proxy) for _ in range(4)] == ["MQ_OK"] * 3 + [REFUSED]


def test_a_queue_that_is_closed_makes_room(caller: Caller, name: str) -> None:
    reader, client = Reader(caller), Client(caller)
    handle, (local, _), proxy = reader.open(name), client.open(name), opened_elsewhere(caller)
    reader.cursor(handle), client.cursor(local), client.cursor(proxy)
    reader.close(handle), client.close(local), client.close(proxy)
    create = through_remote_read(caller, name)
    assert [create() for _ in range(4)] == ["MQ_OK"] * 3 + [REFUSED]


def test_who_takes_a_queue_over_takes_its_cursors_over(
    qm: RunningQueueManager, server: CallServer, name: str
) -> None:
    """Else a client would get new ones by handing its queues over."""
    client, supporting = Qm2QmReader(server.connect(ALICE)), Qm2QmReader(server.connect(BOB))
    numbers = [client.open_by_qmcomm(name, PEEK_ACCESS).phQueue for _ in range(3)]
    for number in numbers[0], numbers[0], numbers[1]:
        client.cursor(number)
    assert status_name(supporting.adopt(numbers[0]).result) == "MQ_OK"
    create = through_qmcomm(client.caller, name)
    assert [create() for _ in range(3)] == ["MQ_OK", "MQ_OK", REFUSED]
    assert status_name(supporting.adopt(numbers[1]).result) == "MQ_OK"
    assert status_name(supporting.adopt(numbers[2]).result) == "MQ_OK"
    result = create_remote_cursor(Client(supporting.caller), numbers[2]).result
    assert status_name(result) == REFUSED


def test_a_queue_with_more_cursors_than_there_is_room_for_is_not_taken_over(
    server: CallServer, name: str
) -> None:
    client, supporting = Qm2QmReader(server.connect(ALICE)), Qm2QmReader(server.connect(BOB))
    create = through_qm2qm(supporting.caller, name)
    assert [create(), create()] == ["MQ_OK"] * 2
    number = client.open_by_qmcomm(name, PEEK_ACCESS).phQueue
    client.cursor(number), client.cursor(number)
    assert status_name(supporting.adopt(number).result) == REFUSED
    assert [create(), create()] == ["MQ_OK", REFUSED]
    assert client.cursor(number)


def test_a_cursor_that_the_other_side_refuses_takes_no_room(
    caller: Caller, elsewhere: Elsewhere, name: str
) -> None:
    create = through_a_proxy(caller, name)
    elsewhere.refuses = True
    assert create() == "MQ_ERROR_REMOTE_MACHINE_NOT_AVAILABLE"
    elsewhere.refuses = False
    assert [create() for _ in range(4)] == ["MQ_OK"] * 3 + [REFUSED]


def test_cursors_on_their_way_count(caller: Caller, elsewhere: Elsewhere) -> None:
    handles = [opened_elsewhere(caller) for _ in range(4)]
    elsewhere.late = []
    pcc = CACCreateRemoteCursor()
    calls = [caller.send("rpc_ACCreateCursorEx", hQueue=each, pcc=pcc) for each in handles[:3]]
    assert created(caller, handles[3]) == REFUSED
    for completion in elsewhere.late:
        completion.succeed(7)
    caller.settle()
    assert {status_name(call.result().result) for call in calls} == {"MQ_OK"}
    assert Client(caller).close(handles[0]) == "MQ_OK"
    elsewhere.late = None
    assert [created(caller, handles[3]) for _ in range(2)] == ["MQ_OK", REFUSED]


@pytest.mark.conformance("MQRR-op-4")
def test_the_cursors_of_remote_read_are_bounded(caller: Caller, name: str) -> None:
    create = through_remote_read(caller, name)
    assert [create() for _ in range(4)] == ["MQ_OK"] * 3 + [REFUSED]
