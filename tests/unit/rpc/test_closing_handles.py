"""A context handle while it is being closed, and that it ends once."""

import pytest

from rpcqm.base.completion import Completion
from rpcqm.base.errors import FaultStatus, HResult, MQError
from rpcqm.rpc import pdu
from rpcqm.rpc.call import Call
from rpcqm.rpc.server import RpcServer
from tests.support.rpc.callers import ALICE, BOB
from tests.support.rpc.probe import ProbeHandlers, ProbeRequest, ProbeResponse, Rig, Wire, request

OPEN, USE, CLOSE = 4, 5, 6
MISMATCH = FaultStatus.nca_s_fault_context_mismatch
CANCELLED = HResult.MQ_ERROR_OPERATION_CANCELLED


class SlowToClose:
    """Closing takes as long as the test lets it."""

    def __init__(self) -> None:
        probe = ProbeHandlers()
        self.open, self.use, self.run_down = probe.open, probe.use, probe.run_down
        self.closing: Completion[ProbeResponse] = Completion()

    def close(self, call: Call, request: ProbeRequest) -> Completion[ProbeResponse]:
        self.closing.add_done_callback(
            lambda done: call.close_context_handle(request.handle) if done.error is None else None
        )
        return self.closing


class OpensAndFails(ProbeHandlers):
    """A call that closes what it has opened, and fails all the same."""

    def open(self, call: Call, request: ProbeRequest) -> ProbeResponse:
        response = super().open(call, request)
        call.close_context_handle(response.handle)
        raise RuntimeError("nothing came of it")


@pytest.fixture
def handlers() -> SlowToClose:
    return SlowToClose()


@pytest.fixture
def wire(handlers: SlowToClose) -> Wire:
    connected = Rig(served=handlers).connect()
    connected.bind()
    return connected


def opened(wire: Wire) -> bytes:
    answer = wire.call(OPEN, b"queue")
    assert isinstance(answer, pdu.Response)
    return answer.stub_data[:20]


def refused(wire: Wire, opnum: int, handle: bytes) -> bool:
    answer = wire.call(opnum, handle, 9)
    return isinstance(answer, pdu.Fault) and answer.status == MISMATCH


def test_nothing_uses_a_handle_that_is_being_closed(wire: Wire, handlers: SlowToClose) -> None:
    handle = opened(wire)
    assert wire.send(request(CLOSE, handle, 2)) == []
    assert refused(wire, USE, handle)
    assert refused(wire, CLOSE, handle)
    handlers.closing.succeed(ProbeResponse())
    (closed,) = wire.received()
    assert isinstance(closed, pdu.Response)
    assert refused(wire, USE, handle)


def test_a_handle_whose_closing_fails_can_be_used_on(wire: Wire, handlers: SlowToClose) -> None:
    handle = opened(wire)
    assert wire.send(request(CLOSE, handle, 2)) == []
    handlers.closing.fail(MQError(CANCELLED))
    (failed,) = wire.received()
    assert isinstance(failed, pdu.Response)
    assert failed.stub_data[:20] == handle
    assert isinstance(wire.call(USE, handle, 3), pdu.Response)


def test_a_client_that_goes_while_a_handle_is_closed_runs_it_down_once(
    wire: Wire, handlers: SlowToClose
) -> None:
    handle = opened(wire)
    assert wire.send(request(CLOSE, handle, 2)) == []
    wire.association.connection_lost()
    handlers.closing.succeed(ProbeResponse())
    assert handlers.run_down == ["queue"]


def test_what_was_closed_is_not_run_down_when_its_call_fails() -> None:
    handlers = OpensAndFails()
    wire = Rig(handlers).connect()
    wire.bind()
    assert isinstance(wire.call(OPEN, b"queue"), pdu.Fault)
    wire.association.connection_lost()
    assert handlers.run_down == []


class OpensLateAndFails:
    """A call that opens a handle, waits, and fails."""

    def __init__(self) -> None:
        self.run_down: list[str] = []
        self.waiting: Completion[ProbeResponse] = Completion()

    def wait(self, call: Call, request: ProbeRequest) -> Completion[ProbeResponse]:
        call.open_context_handle("PROBE_HANDLE", "late", lambda each: self.run_down.append("late"))
        return self.waiting


def test_a_handle_of_a_call_that_is_given_up_and_fails_is_run_down_once() -> None:
    handlers = OpensLateAndFails()
    wire = Rig(served=handlers).connect()
    wire.bind()
    assert wire.send(request(2, b"", 2) + pdu.Orphaned(call_id=2).pack()) == []
    handlers.waiting.fail(RuntimeError("nothing came of it"))
    wire.association.connection_lost()
    assert handlers.run_down == ["late"]


def test_the_handles_of_an_account_end_in_every_group() -> None:
    """Also where others are in the group, whose handles stay."""
    server = RpcServer()
    ended: list[object] = []
    for client in ("one", "two"):
        group = server.groups.join(0, "ncacn_ip_tcp", client)
        assert group is not None
        for owner in (ALICE, BOB):
            table, name = group.handles, owner.name
            opened = table.open("handle", name, lambda each: ended.append(each.value), None, owner)
            assert not opened.closed
    server.end_handles(ALICE.sid)
    assert ended == ["alice", "alice"]


def test_the_handles_of_an_account_end_behind_what_was_put_off() -> None:
    server = RpcServer()
    order: list[object] = []
    server.dispatcher.before_close = lambda: order.append("carried out")
    group = server.groups.join(0, "ncacn_ip_tcp", "one")
    assert group is not None
    group.handles.open("handle", "queue", lambda each: order.append(each.value), None, ALICE)
    server.end_handles(ALICE.sid)
    assert order == ["carried out", "queue"]
