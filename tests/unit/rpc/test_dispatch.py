"""Outcomes of handlers, static checks, and context handles as a client sees them."""

from dataclasses import replace

import pytest

from rpcqm.base.completion import Completion, failed
from rpcqm.base.errors import FaultStatus, HResult, MQError, NtStatus, RpcFault
from rpcqm.base.identity import authenticated
from rpcqm.rpc import pdu
from rpcqm.rpc.call import Call
from rpcqm.rpc.constants import WHOLE, PfcFlags
from rpcqm.rpc.context_handle import NULL_HANDLE, ContextHandle
from rpcqm.rpc.interface_registry import NCALRPC, InterfacePolicy
from rpcqm.rpc.limits import Limits
from rpcqm.rpc.security.context import NONE, PKT, PKT_INTEGRITY, PKT_PRIVACY, unauthenticated
from tests.support.rpc.probe import (
    OTHER,
    ProbeRequest,
    ProbeResponse,
    Rig,
    Wire,
    element,
    request,
)

NOT_EXECUTED = WHOLE | PfcFlags.PFC_DID_NOT_EXECUTE
MQ_TIMEOUT = HResult.MQ_ERROR_IO_TIMEOUT


def connected(rig: Rig, client: str = "192.0.2.1") -> Wire:
    wire = rig.connect(client)
    wire.bind(p_context_elem=(element(0), element(1, OTHER)))
    return wire


@pytest.fixture
def rig() -> Rig:
    return Rig()


@pytest.fixture
def wire(rig: Rig) -> Wire:
    return connected(rig)


def status_of(answer: pdu.Pdu) -> int:
    """The status that a response carries."""
    assert isinstance(answer, pdu.Response), answer
    return int.from_bytes(answer.stub_data[-4:], "little")


def fault_of(answer: pdu.Pdu) -> int:
    assert isinstance(answer, pdu.Fault), answer
    return answer.status


# Outcomes.


def test_a_status_alone_becomes_a_response(wire: Wire) -> None:
    assert wire.call(0) == pdu.Response(call_id=1, p_cont_id=0, alloc_hint=4, stub_data=bytes(4))


def test_mqerror_becomes_the_status(rig: Rig, wire: Wire) -> None:
    rig.handlers.failure = lambda: MQError(MQ_TIMEOUT)
    assert status_of(wire.call(8)) == 0xC00E001B


def test_mqerror_of_a_throwing_method_becomes_a_fault() -> None:
    rig = Rig(policy=InterfacePolicy(throws=frozenset({"fail"})))
    rig.handlers.failure = lambda: MQError(NtStatus.STATUS_INVALID_PARAMETER)
    wire = connected(rig)
    answer = wire.call(8)
    assert (fault_of(answer), answer.pfc_flags) == (0xC000000D, WHOLE)
    assert status_of(wire.call(0)) == 0


def test_rpcfault_becomes_its_fault(rig: Rig, wire: Wire) -> None:
    rig.handlers.failure = lambda: RpcFault(FaultStatus.RPC_S_ACCESS_DENIED)
    assert fault_of(wire.call(8)) == 5


def test_an_unexpected_error_is_a_fault_and_the_connection_lives(rig: Rig, wire: Wire) -> None:
    rig.handlers.failure = lambda: ZeroDivisionError("a bug")
    assert fault_of(wire.call(8)) == FaultStatus.nca_s_fault_unspec
    assert status_of(wire.call(0)) == 0
    assert rig.dispatcher.metrics.snapshot()["rpc.failures"] == 1


def test_a_code_that_must_not_be_sent_is_replaced(rig: Rig, wire: Wire) -> None:
    rig.policy = replace(rig.policy)
    rig.handlers.failure = lambda: RpcFault(HResult.MQ_OK)
    assert fault_of(wire.call(8)) == FaultStatus.nca_s_fault_unspec


def test_bad_stub_data_is_refused(wire: Wire) -> None:
    answer = wire.call(1, b"bad stub")
    assert fault_of(answer) == FaultStatus.RPC_X_BAD_STUB_DATA
    assert answer.pfc_flags == NOT_EXECUTED
    assert status_of(wire.call(0)) == 0


@pytest.mark.parametrize("opnum", [3, 11, 12, 0xFFFF], ids=["gap", "no handler", "next", "last"])
def test_an_unknown_opnum_is_refused(wire: Wire, opnum: int) -> None:
    answer = wire.call(opnum)
    assert fault_of(answer) == FaultStatus.nca_s_op_rng_error
    assert answer.pfc_flags == NOT_EXECUTED
    assert status_of(wire.call(0)) == 0


def test_a_completion_answers_when_it_is_resolved(rig: Rig, wire: Wire) -> None:
    assert wire.send(request(2, b"a", 3)) == []
    rig.handlers.waiting[0].succeed(ProbeResponse(octets=b"late"))
    (answer,) = wire.received()
    assert (answer.call_id, status_of(answer)) == (3, 0)


def test_a_completion_may_fail(rig: Rig, wire: Wire) -> None:
    wire.send(request(2, b"a", 3) + request(2, b"b", 4))
    rig.handlers.waiting[0].fail(MQError(MQ_TIMEOUT))
    rig.handlers.waiting[1].fail(KeyError("a bug"))
    timeout, bug = wire.received()
    assert status_of(timeout) == MQ_TIMEOUT
    assert fault_of(bug) == FaultStatus.nca_s_fault_unspec


def test_a_coroutine_is_driven_over_its_completions(rig: Rig, wire: Wire) -> None:
    gate: Completion[int] = Completion()

    class Handlers:
        async def echo(self, call: Call, request: ProbeRequest) -> ProbeResponse:
            return ProbeResponse(octets=request.octets, result=await gate)

        async def null(self, call: Call, request: ProbeRequest) -> ProbeResponse:
            await failed(MQError(MQ_TIMEOUT))
            return ProbeResponse()

    wire = connected(Rig(served=Handlers()))
    assert wire.send(request(1, b"later")) == []
    assert status_of(wire.call(0, call_id=2)) == MQ_TIMEOUT
    gate.succeed(7)
    (answer,) = wire.received()
    assert isinstance(answer, pdu.Response)
    assert answer.stub_data == b"later\x07\0\0\0"


# Static checks.


def test_a_level_below_the_interfaces_is_refused() -> None:
    rig = Rig(policy=InterfacePolicy(minimum_level=PKT_PRIVACY), level=PKT_INTEGRITY)
    assert fault_of(connected(rig).call(0)) == FaultStatus.RPC_S_ACCESS_DENIED


def test_ncalrpc_passes_as_the_highest_level() -> None:
    rig = Rig(policy=InterfacePolicy(minimum_level=PKT_PRIVACY), level=PKT_PRIVACY)
    assert status_of(connected(rig).call(0)) == 0


def test_the_check_of_a_policy_sees_each_call() -> None:
    def check(call: Call) -> None:
        if call.opnum != 1:
            raise RpcFault(FaultStatus.RPC_S_ACCESS_DENIED)

    wire = connected(Rig(policy=InterfacePolicy(check=check)))
    assert fault_of(wire.call(0)) == FaultStatus.RPC_S_ACCESS_DENIED
    assert status_of(wire.call(1, b"x")) == 0


def test_a_call_knows_its_caller() -> None:
    alice = authenticated("alice", "S-1-5-21-1-2-3-1000")
    rig = Rig(identity=alice, level=PKT)
    connected(rig).call(0)
    (call,) = rig.handlers.calls
    assert call.identity is alice
    assert call.authentication_level is PKT
    assert call.transport == "ncacn_ip_tcp"
    assert call.peer == "192.0.2.1:4711"
    assert call.transport != NCALRPC


# Context handles.


def opened(wire: Wire, name: str = "name") -> bytes:
    answer = wire.call(4, name.encode())
    assert isinstance(answer, pdu.Response)
    assert len(answer.stub_data) == 24
    return answer.stub_data[:20]


def test_a_handle_comes_back_as_its_record(wire: Wire) -> None:
    answer = wire.call(5, opened(wire, "queue"))
    assert isinstance(answer, pdu.Response)
    assert answer.stub_data == b"queue\0\0\0\0"


def test_handles_are_not_guessable(wire: Wire) -> None:
    handles = {opened(wire) for _ in range(20)}
    assert len(handles) == 20
    assert all(handle[:4] == bytes(4) and any(handle[4:]) for handle in handles)


@pytest.mark.parametrize(
    "wire_handle",
    [NULL_HANDLE, b"\0\0\0\0" + b"\x07" * 16, b"\1\0\0\0" + bytes(16)],
    ids=["null", "unknown", "attributes only"],
)
def test_no_handle_is_a_context_mismatch(wire: Wire, wire_handle: bytes) -> None:
    assert fault_of(wire.call(5, wire_handle)) == FaultStatus.nca_s_fault_context_mismatch
    assert status_of(wire.call(0)) == 0


def test_a_closed_handle_is_a_context_mismatch(rig: Rig, wire: Wire) -> None:
    handle = opened(wire)
    answer = wire.call(6, handle)
    assert isinstance(answer, pdu.Response)
    assert answer.stub_data == NULL_HANDLE + bytes(4)
    assert fault_of(wire.call(5, handle)) == FaultStatus.nca_s_fault_context_mismatch
    assert fault_of(wire.call(6, handle)) == FaultStatus.nca_s_fault_context_mismatch
    assert rig.handlers.run_down == []


def test_a_null_handle_may_be_closed_by_the_handler(wire: Wire) -> None:
    assert status_of(wire.call(6, NULL_HANDLE)) == 6


def test_a_handle_of_another_group_is_a_context_mismatch(rig: Rig, wire: Wire) -> None:
    stranger = connected(rig)
    assert fault_of(stranger.call(5, opened(wire))) == FaultStatus.nca_s_fault_context_mismatch


def test_a_handle_serves_all_connections_of_its_group(rig: Rig) -> None:
    first, second = rig.connect(), rig.connect()
    ack = first.bind()
    assert isinstance(ack, pdu.BindAck)
    second.bind(assoc_group_id=ack.assoc_group_id)
    assert status_of(second.call(5, opened(first))) == 0


def test_a_handle_of_another_interface_is_a_context_mismatch_when_strict(wire: Wire) -> None:
    handle = opened(wire)
    answer = wire.call(5, handle, p_cont_id=1)
    assert fault_of(answer) == FaultStatus.nca_s_fault_context_mismatch
    assert status_of(wire.call(9, handle, p_cont_id=1)) == 0


def test_the_type_counts_only_when_type_strict() -> None:
    lax = connected(Rig())
    assert status_of(lax.call(9, opened(lax))) == 0
    strict = connected(Rig(type_strict=True))
    handle = opened(strict)
    assert fault_of(strict.call(9, handle)) == FaultStatus.nca_s_fault_context_mismatch
    assert status_of(strict.call(5, handle)) == 0


def test_a_handle_of_another_identity_is_a_context_mismatch(rig: Rig) -> None:
    first, second = rig.connect(), rig.connect()
    ack = first.bind()
    assert isinstance(ack, pdu.BindAck)
    second.bind(assoc_group_id=ack.assoc_group_id)
    second.association._negotiation.security.base.identity = authenticated("bob", "S-1-5-21-9")
    answer = second.call(5, opened(first))
    assert fault_of(answer) == FaultStatus.nca_s_fault_context_mismatch


def test_a_level_below_the_handles_is_access_denied(rig: Rig, wire: Wire) -> None:
    rig.handlers.minimum_level = PKT_PRIVACY
    handle = opened(wire)
    assert fault_of(wire.call(5, handle)) == FaultStatus.RPC_S_ACCESS_DENIED
    rig.handlers.minimum_level = NONE
    assert status_of(wire.call(5, opened(wire))) == 0


@pytest.mark.bound("limits.handles")
def test_a_group_has_as_many_handles_as_it_may() -> None:
    rig = Rig(limits=Limits(handles=2))
    wire = connected(rig)
    first, _ = opened(wire), opened(wire)
    assert fault_of(wire.call(4, b"x")) == FaultStatus.nca_s_fault_remote_no_memory
    wire.call(6, first)
    opened(wire)


def test_the_last_connection_runs_every_handle_down_once(rig: Rig) -> None:
    first, second = rig.connect(), rig.connect()
    ack = first.bind()
    assert isinstance(ack, pdu.BindAck)
    second.bind(assoc_group_id=ack.assoc_group_id)
    opened(first, "a")
    opened(second, "b")
    first.association.connection_lost()
    assert rig.handlers.run_down == []
    second.association.connection_lost()
    second.association.connection_lost()
    assert rig.handlers.run_down == ["a", "b"]


def test_a_rundown_that_fails_does_not_stop_the_others(rig: Rig, wire: Wire) -> None:
    def explode(handle: ContextHandle) -> None:
        raise RuntimeError("a bug")

    group = wire.association.group
    opened(wire, "a")
    group.handles.open("PROBE_HANDLE", "b", explode, None, rig.identity)
    opened(wire, "c")
    wire.association.connection_lost()
    assert rig.handlers.run_down == ["a", "c"]


def test_calls_are_abandoned_before_handles_are_run_down(rig: Rig, wire: Wire) -> None:
    handle = opened(wire, "a")
    wire.send(request(10, handle + b"read", 2))
    rig.handlers.run_down = rig.handlers.seen
    wire.association.connection_lost()
    assert rig.handlers.seen == ["started read", "abandoned read", "a"]


def test_a_handle_opened_by_a_failing_call_is_run_down(rig: Rig, wire: Wire) -> None:
    def open_and_fail(call: Call, request: ProbeRequest) -> ProbeResponse:
        call.open_context_handle("PROBE_HANDLE", "lost", rig.handlers._run_down)
        raise RpcFault(FaultStatus.RPC_S_ACCESS_DENIED)

    wire.association.endpoint.interfaces.find(OTHER)
    entry = wire.association._negotiation.presentation.contexts[0].operations[4]
    assert entry is not None
    entry.handler = open_and_fail
    assert fault_of(wire.call(4, b"x")) == 5
    assert rig.handlers.run_down == ["lost"]
    assert len(wire.association.group.handles) == 0


def test_a_handle_that_the_client_never_learns_of_is_run_down(rig: Rig) -> None:
    first, second = rig.connect(), rig.connect()
    ack = first.bind()
    assert isinstance(ack, pdu.BindAck)
    second.bind(assoc_group_id=ack.assoc_group_id)
    first.association.receive_data(request(2, b"wait"))
    (call,) = rig.handlers.calls
    call.open_context_handle("PROBE_HANDLE", "late", rig.handlers._run_down)
    first.association.connection_lost()
    rig.handlers.waiting[0].succeed(ProbeResponse())
    assert rig.handlers.run_down == ["late"]
    assert len(second.association.group.handles) == 0


def test_no_handle_is_opened_for_a_client_that_is_gone(rig: Rig, wire: Wire) -> None:
    wire.association.receive_data(request(2, b"wait"))
    (call,) = rig.handlers.calls
    wire.association.connection_lost()
    with pytest.raises(RpcFault, match="the client is gone"):
        call.open_context_handle("PROBE_HANDLE", "late", rig.handlers._run_down)
    assert call.association_group.connections == 0


# Serialized handles.


def test_a_serialized_handle_serves_one_call_at_a_time(rig: Rig, wire: Wire) -> None:
    handle = opened(wire)
    for call_id, name in ((2, b"a"), (3, b"b"), (4, b"c")):
        wire.send(request(10, handle + name, call_id))
    assert rig.handlers.seen == ["started a"]
    rig.handlers.waiting[0].succeed(ProbeResponse())
    assert rig.handlers.seen == ["started a", "started b"]
    rig.handlers.waiting[1].fail(MQError(MQ_TIMEOUT))
    assert rig.handlers.seen == ["started a", "started b", "started c"]
    assert [answer.call_id for answer in wire.received()] == [2, 3]


def test_other_handles_do_not_wait(rig: Rig, wire: Wire) -> None:
    first, second = opened(wire), opened(wire)
    wire.send(request(10, first + b"a", 2) + request(10, second + b"b", 3))
    assert rig.handlers.seen == ["started a", "started b"]


def test_calls_that_do_not_serialize_do_not_wait(rig: Rig, wire: Wire) -> None:
    handle = opened(wire)
    wire.send(request(10, handle + b"a", 2))
    assert status_of(wire.call(5, handle, call_id=3)) == 0
    assert wire.send(request(7, handle, 4)) == []


def test_a_close_never_waits_and_ends_what_waited(rig: Rig, wire: Wire) -> None:
    handle = opened(wire, "queue")
    wire.send(request(10, handle + b"a", 2) + request(10, handle + b"b", 3))
    assert status_of(wire.call(6, handle, call_id=4)) == 0
    assert rig.handlers.seen == ["started a", "closed queue"]
    rig.handlers.waiting[0].fail(MQError(HResult.MQ_ERROR_OPERATION_CANCELLED))
    cancelled, waited = wire.received()
    assert status_of(cancelled) == HResult.MQ_ERROR_OPERATION_CANCELLED
    assert fault_of(waited) == FaultStatus.nca_s_fault_context_mismatch


def test_an_abandoned_call_does_not_get_its_turn(rig: Rig, wire: Wire) -> None:
    handle = opened(wire)
    wire.send(request(10, handle + b"a", 2) + request(10, handle + b"b", 3))
    wire.send(pdu.Orphaned(call_id=3).pack())
    rig.handlers.waiting[0].succeed(ProbeResponse())
    assert rig.handlers.seen == ["started a"]
    assert status_of(wire.received()[0]) == 0


def test_a_thousand_waiting_calls_do_not_nest() -> None:
    rig = Rig(limits=Limits(calls=3000))
    wire = connected(rig)
    handle = opened(wire)
    wire.send(request(10, handle + b"a", 2))
    wire.send(b"".join(request(7, handle, call_id) for call_id in range(3, 2500)))
    rig.handlers.waiting[0].succeed(ProbeResponse())
    assert len(wire.received()) == 2498


def test_the_security_of_plain_calls_is_the_sockets() -> None:
    alice = authenticated("alice", "S-1-5-21-1")
    security = unauthenticated(alice, PKT_PRIVACY)
    assert security.established
    assert (security.identity, security.level) == (alice, PKT_PRIVACY)
