"""Whatever a client sends, it gets an answer, and everybody else goes on."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rpcqm.adm.queue import Queue
from rpcqm.base.errors import DecodeError, FaultStatus
from rpcqm.codec.idl.tree import ContextHandleType, Pointer
from rpcqm.codec.interface import Operation, load
from rpcqm.codec.ndr.classes import message
from rpcqm.codec.ndr.values import Value
from rpcqm.interfaces import qm2qm, qmcomm, qmcomm2, qmmgmt, remote_read
from rpcqm.service import interfaces
from tests.support.codec.idl_values import messages
from tests.support.queue_manager import SETTINGS, RunningQueueManager
from tests.support.rpc.callers import (
    ADMINISTRATOR,
    Caller,
    CallServer,
    Fault,
    NoAnswerError,
    Served,
    shortened,
)
from tests.support.rpc.dependent_client import SEND_ACCESS, Client, object_of, open_remote
from tests.support.rpc.qm2qm_reader import Qm2QmReader
from tests.support.rpc.remote_reader import PEEK_CURRENT, Reader, format_of

INTERFACES = ("remoteread", "qmcomm", "qmcomm2", "qm2qm", "qmmgmt")
SERVED = [
    (name, operation)
    for name in INTERFACES
    for operation in load(name).operations
    if operation is not None
]
OPERATIONS = [
    pytest.param(name, operation, id=f"{name}-{operation.name}") for name, operation in SERVED
]
USING_HANDLES = [
    pytest.param(name, operation, id=f"{name}-{operation.name}")
    for name, operation in SERVED
    if any("in" in parameter.direction for parameter in operation.context_handles)
]
BAD_STUB_DATA = FaultStatus.RPC_X_BAD_STUB_DATA
MISMATCH = FaultStatus.nca_s_fault_context_mismatch
LENIENT = settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))


class Victim:
    """A queue manager with clients, one of which goes mad."""

    def __init__(self, qm: RunningQueueManager) -> None:
        handles = interfaces.client_handles(qm.engine)
        comm = interfaces.qmcomm(qm.engine, handles, lambda: 2103, lambda: 2105)
        self.qm = qm
        reading = interfaces.remote_read(qm.engine, None, lambda: 2103)
        self.server = CallServer(
            qm,
            shortened(qm, "remoteread", reading, remote_read.POLICY),
            Served("qmcomm", comm, qmcomm.POLICY),
            shortened(qm, "qmcomm2", interfaces.qmcomm2(qm.engine, handles), qmcomm2.POLICY),
            Served("qm2qm", interfaces.qm2qm(qm.engine, handles), qm2qm.POLICY),
            Served("qmmgmt", interfaces.qmmgmt(qm.engine), qmmgmt.POLICY),
        )
        self.other = qm.create(r"private$\other")
        qm.send(self.other, b"precious")
        self.bystander = Reader(self.connect())
        self.precious = self.bystander.open(self.other)

    def connect(self) -> Caller:
        return self.server.connect(ADMINISTRATOR)

    @property
    def failures(self) -> int:
        return self.server.dispatcher.metrics.snapshot().get("rpc.failures", 0)

    def queue(self) -> Queue:
        """The queue that is attacked, anew when it has been deleted."""
        return self.qm.engine.registry.find_by_path(r".\private$\attacked") or self.qm.create(
            r"private$\attacked"
        )

    def check(self) -> None:
        """Nothing failed inside, and the bystander has lost nothing."""
        assert self.failures == 0
        assert self.bystander.body(self.precious, PEEK_CURRENT) == b"precious"


@pytest.fixture
def victim(qm: RunningQueueManager) -> Victim:
    qm.restart(replace(SETTINGS, supporting_server=True))
    return Victim(qm)


def held(mad: Caller, qm: RunningQueueManager, queue: Queue) -> dict[str, Any]:
    """What gets a call further than random values do, by type of handle or name of parameter."""
    reader, client = Reader(mad), Client(mad)
    reading = reader.open(queue)
    context = client.open(queue)[1]
    remote = open_remote(client, queue)
    number, session = Qm2QmReader(mad).open(queue)
    qm.send(queue, b"locked")
    locked = Qm2QmReader(mad).read(number)
    return {
        "QUEUE_CONTEXT_HANDLE_SERIALIZE": reading,
        "QUEUE_CONTEXT_HANDLE_NOSERIALIZE": reading,
        "RPC_QUEUE_HANDLE": client.open(queue, SEND_ACCESS)[0],
        "RPC_INT_XACT_HANDLE": client.enlist(uuid4().bytes),
        "PCTX_OPENREMOTE_HANDLE_TYPE": bytes(remote.pphContext),
        "PCTX_RRSESSION_HANDLE_TYPE": session,
        "PCTX_REMOTEREAD_HANDLE_TYPE": bytes(locked.pphContext),
        "lpRemoteReadDesc": Qm2QmReader(mad).description(number, PEEK_CURRENT),
        "hQMContext": context,
        "hCursor": reader.cursor(reading),
        "hQueue": remote.phQueue,
        "pQueueFormat": format_of(queue),
        "pObjectFormat": object_of(queue),
        "dwAccess": 1,
        "dwDesiredAccess": 1,
        "dwShareMode": 0,
        "ulAction": PEEK_CURRENT,
        "dwRequestId": 1,
        "lpwcsPathName": r".\private$\orders",
        "ulTimeout": 0,
    }


def sensible(operation: Operation, request: Value, known: dict[str, Any], draw: Any) -> None:
    """Put what the client really holds into some parameters."""
    for parameter in message(operation.declaration, response=False).parameters:
        inner = parameter.type.to if isinstance(parameter.type, Pointer) else parameter.type
        is_handle = isinstance(inner, ContextHandleType)
        key = inner.name if isinstance(inner, ContextHandleType) else parameter.name
        fits = key in known and type(getattr(request, parameter.name)) is type(known[key])
        if fits and draw(st.integers(0, 9)) < (9 if is_handle else 6):
            setattr(request, parameter.name, known[key])


def handles_in(operation: Operation) -> Iterator[tuple[str, str]]:
    """The names of the parameters that take a context handle, and the types of these."""
    for parameter in operation.context_handles:
        if "in" in parameter.direction:
            yield parameter.name, parameter.type_name


def decodes(caller: Caller, operation: Operation, stub: bytes) -> bool:
    try:
        operation.decode_request(caller.syntax, stub)
    except DecodeError:
        return False
    return True


def close_all(owner: Caller, known: dict[str, Any]) -> None:
    """Close each handle in its own way."""
    owner.call("R_CloseQueue", pphContext=known["QUEUE_CONTEXT_HANDLE_SERIALIZE"])
    owner.call("rpc_ACCloseHandle", phQueue=known["RPC_QUEUE_HANDLE"])
    owner.call("R_QMCloseRemoteQueueContext", pphContext=known["PCTX_OPENREMOTE_HANDLE_TYPE"])
    owner.call("R_QMAbortTransaction", phIntXact=known["RPC_INT_XACT_HANDLE"])
    read = known["PCTX_REMOTEREAD_HANDLE_TYPE"]
    owner.call("RemoteQMEndReceive", pphContext=read, dwAck=1)
    owner.call("RemoteQMCloseQueue", pphContext=known["PCTX_RRSESSION_HANDLE_TYPE"])


def answer_of(caller: Caller, name: str, operation: Operation, stub: bytes) -> int | None:
    """The status of the fault, or None after an ordinary answer or while the call waits."""
    call = caller.send_stub(load(name), operation, stub)
    caller.settle()
    try:
        call.result()
    except Fault as fault:
        return fault.status
    except NoAnswerError:
        return None
    return None


@pytest.mark.parametrize(("name", "operation"), OPERATIONS)
@LENIENT
@given(data=st.data())
def test_any_values_are_answered(
    victim: Victim, name: str, operation: Operation, data: st.DataObject
) -> None:
    mad = victim.connect()
    request = data.draw(messages(operation.declaration, False))
    sensible(operation, request, held(mad, victim.qm, victim.queue()), data.draw)
    answer_of(mad, name, operation, operation.encode_request(mad.syntax, request))
    mad.lose()
    victim.check()


@pytest.mark.parametrize(("name", "operation"), OPERATIONS)
@LENIENT
@given(data=st.data())
def test_stub_data_that_ends_too_early_is_refused(
    victim: Victim, name: str, operation: Operation, data: st.DataObject
) -> None:
    mad = victim.connect()
    stub = operation.encode_request(mad.syntax, data.draw(messages(operation.declaration, False)))
    cut = data.draw(st.integers(0, max(len(stub) - 1, 0)))
    expected = BAD_STUB_DATA if stub else None
    assert answer_of(mad, name, operation, stub[:cut]) == expected
    mad.lose()
    victim.check()


@pytest.mark.parametrize(("name", "operation"), OPERATIONS)
@LENIENT
@given(data=st.data())
def test_damaged_stub_data_is_refused_or_taken_for_what_it_says(
    victim: Victim, name: str, operation: Operation, data: st.DataObject
) -> None:
    mad = victim.connect()
    request = data.draw(messages(operation.declaration, False))
    sensible(operation, request, held(mad, victim.qm, victim.queue()), data.draw)
    stub = bytearray(operation.encode_request(mad.syntax, request))
    for _ in range(data.draw(st.integers(1, 4)) if stub else 0):
        stub[data.draw(st.integers(0, len(stub) - 1))] = data.draw(st.integers(0, 255))
    answer = answer_of(mad, name, operation, bytes(stub))
    assert (answer == BAD_STUB_DATA) is not decodes(mad, operation, bytes(stub))
    mad.lose()
    victim.check()


@pytest.mark.parametrize(("name", "operation"), USING_HANDLES)
@pytest.mark.parametrize("kind", ["invented", "foreign", "closed"])
@settings(LENIENT, max_examples=3)
@given(data=st.data())
def test_handles_that_are_not_the_callers_own_are_refused(
    victim: Victim, kind: str, name: str, operation: Operation, data: st.DataObject
) -> None:
    """An unknown, a foreign and a stale handle are one and the same to the client (G53)."""
    owner, mad = victim.connect(), victim.connect()
    known = held(owner, victim.qm, victim.queue())
    request = data.draw(messages(operation.declaration, False))
    for parameter, type_name in handles_in(operation):
        handle = known[type_name]
        if kind == "invented":
            handle = handle[:-1] + bytes([handle[-1] ^ 1])
        setattr(request, parameter, handle)
    if kind == "closed":
        close_all(owner, known)
    stub = operation.encode_request(mad.syntax, request)
    caller = mad if kind == "foreign" else owner
    assert answer_of(caller, name, operation, stub) == MISMATCH
    owner.lose()
    mad.lose()
    victim.check()
