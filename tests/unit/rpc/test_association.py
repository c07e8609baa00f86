"""Requests, fragments, cancels and the end, PDU by PDU."""

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rpcqm.base.errors import FaultStatus
from rpcqm.rpc import pdu
from rpcqm.rpc.association_states import TRANSITIONS, State
from rpcqm.rpc.call import Call
from rpcqm.rpc.constants import (
    WHOLE,
    PfcFlags,
)
from rpcqm.rpc.events import CallCancelled, CallOrphaned, CallRefused
from rpcqm.rpc.limits import Limits
from rpcqm.rpc.presentation import NDR
from tests.support.rpc.probe import (
    OTHER,
    ProbeResponse,
    Rig,
    Wire,
    alter,
    bind,
    element,
    ended,
    is_fault,
    request,
    split,
)

FIRST, LAST = PfcFlags.PFC_FIRST_FRAG, PfcFlags.PFC_LAST_FRAG
NOT_EXECUTED = WHOLE | PfcFlags.PFC_DID_NOT_EXECUTE
UNKNOWN = pdu.SyntaxId(UUID(int=99), 1)


# Requests.


def test_a_request_is_answered(bound: Wire) -> None:
    answer = bound.call(1, b"octets", call_id=9)
    assert answer == pdu.Response(
        call_id=9, p_cont_id=0, alloc_hint=10, stub_data=b"octets\0\0\0\0"
    )


def test_the_object_of_a_request_reaches_the_handler(rig: Rig, bound: Wire) -> None:
    flags = WHOLE | PfcFlags.PFC_OBJECT_UUID
    bound.call(1, b"octets", object_uuid=NDR.uuid, pfc_flags=flags)
    assert rig.handlers.calls[-1].object_uuid == NDR.uuid
    assert len(bound.association.calls) == 0


def test_a_big_endian_client_is_understood(rig: Rig) -> None:
    wire = rig.connect()
    ack = wire.bind(big_endian=True, p_context_elem=(element(3),))
    assert isinstance(ack, pdu.BindAck)
    assert not ack.big_endian
    answer = wire.call(1, b"octets", 77, big_endian=True, p_cont_id=3)
    assert (answer.call_id, type(answer)) == (77, pdu.Response)
    assert rig.handlers.calls[-1].big_endian


@pytest.mark.parametrize(
    "drep", [b"\x11\0\0\0", b"\x10\x01\0\0", b"\x20\0\0\0"], ids=["EBCDIC", "VAX", "order"]
)
def test_other_data_representations_are_refused(bound: Wire, drep: bytes) -> None:
    wrong = bytearray(request(0))
    wrong[4:8] = drep
    (answer,) = bound.send(bytes(wrong))
    assert is_fault(answer, FaultStatus.nca_s_proto_error)
    assert ended(bound)


def test_an_unknown_context_is_refused_and_the_connection_lives(bound: Wire) -> None:
    answer = bound.call(0, p_cont_id=4)
    assert is_fault(answer, FaultStatus.nca_s_unk_if, NOT_EXECUTED)
    assert isinstance(answer, pdu.Fault)
    assert answer.p_cont_id == 0
    assert isinstance(bound.events[-1], CallRefused)
    assert isinstance(bound.call(0), pdu.Response)


def test_a_call_identifier_in_use_ends_the_connection(bound: Wire) -> None:
    assert bound.send(request(2, b"a", 5)) == []
    (answer,) = bound.send(request(2, b"b", 5))
    assert is_fault(answer, FaultStatus.nca_s_proto_error)
    assert ended(bound)


def test_a_call_identifier_may_be_used_again(bound: Wire) -> None:
    for _ in range(3):
        assert isinstance(bound.call(0, call_id=1), pdu.Response)


@pytest.mark.bound("limits.calls")
def test_more_calls_than_allowed_are_refused_as_busy() -> None:
    rig = Rig(limits=Limits(calls=2))
    wire = rig.connect()
    wire.bind()
    wire.send(request(2, b"a", 1) + request(2, b"b", 2))
    assert is_fault(wire.call(2, b"c", 3), FaultStatus.nca_s_server_too_busy, NOT_EXECUTED)
    rig.handlers.waiting[0].succeed(ProbeResponse())
    wire.received()
    assert wire.send(request(2, b"d", 4)) == []


def test_pipelined_calls_answer_as_they_finish(rig: Rig, bound: Wire) -> None:
    assert bound.send(request(2, b"a", 1) + request(2, b"b", 2) + request(2, b"c", 3)) == []
    for index in (2, 0, 1):
        rig.handlers.waiting[index].succeed(ProbeResponse())
    assert [answer.call_id for answer in bound.received()] == [3, 1, 2]


@pytest.mark.parametrize("length", [0, 1, 15])
def test_a_frag_length_below_the_header_ends_the_connection(bound: Wire, length: int) -> None:
    wrong = bytearray(request(0))
    wrong[8:10] = length.to_bytes(2, "little")
    (answer,) = bound.send(bytes(wrong))
    assert is_fault(answer, FaultStatus.nca_s_proto_error)


def test_a_request_without_its_header_ends_the_connection(bound: Wire) -> None:
    wrong = bytearray(request(0)[:20])
    wrong[8:10] = (20).to_bytes(2, "little")
    assert is_fault(bound.send(bytes(wrong))[0], FaultStatus.nca_s_proto_error)


def test_a_fragment_over_the_limit_is_refused_before_it_is_read(bound: Wire) -> None:
    wrong = bytearray(request(0)[:16])
    wrong[8:10] = (5841).to_bytes(2, "little")
    (answer,) = bound.send(bytes(wrong))
    assert is_fault(answer, FaultStatus.nca_s_proto_error)
    assert ended(bound)


def test_a_fragment_may_be_larger_than_negotiated(rig: Rig) -> None:
    wire = rig.connect()
    wire.bind(max_xmit_frag=2048, max_recv_frag=2048)
    answers = wire.send(request(1, bytes(5840 - 24)))
    assert sum(len(each.stub_data) for each in answers if isinstance(each, pdu.Response)) == 5820


# Fragments.


def fragmented(stub: bytes, size: int, opnum: int = 1, **fields: Any) -> list[bytes]:
    pieces = [stub[start : start + size] for start in range(0, len(stub), size)]
    marks = [0] * len(pieces)
    marks[0] |= FIRST
    marks[-1] |= LAST
    return [
        request(opnum, piece, pfc_flags=mark, **fields)
        for piece, mark in zip(pieces, marks, strict=True)
    ]


def test_a_fragmented_request_is_put_together(bound: Wire) -> None:
    stub = bytes(range(256)) * 40
    answers = bound.send(b"".join(fragmented(stub, 1000)))
    assert b"".join(each.stub_data for each in answers if isinstance(each, pdu.Response)) == (
        stub + bytes(4)
    )


def test_a_long_response_is_cut_to_the_negotiated_size(rig: Rig) -> None:
    wire = rig.connect()
    wire.bind(max_xmit_frag=2048, max_recv_frag=2048)
    answers = wire.send(request(1, bytes(5000)))
    assert [each.pfc_flags for each in answers] == [FIRST, 0, LAST]
    assert [len(each.pack()) for each in answers] == [2048, 2048, 24 + 5004 - 2 * 2024]
    hints = [each.alloc_hint for each in answers if isinstance(each, pdu.Response)]
    assert hints == [5004, 5004 - 2024, 5004 - 2 * 2024]


def test_what_later_fragments_claim_is_ignored(rig: Rig, bound: Wire) -> None:
    bound.send(request(1, b"one ", pfc_flags=FIRST))
    (answer,) = bound.send(request(99, b"two", pfc_flags=LAST, p_cont_id=55))
    assert isinstance(answer, pdu.Response)
    assert answer.stub_data == b"one two\0\0\0\0"


@pytest.mark.parametrize("flags", [0, LAST], ids=["middle", "last"])
def test_a_fragment_without_its_first_ends_the_connection(bound: Wire, flags: int) -> None:
    (answer,) = bound.send(request(1, b"x", call_id=1, pfc_flags=flags))
    assert is_fault(answer, FaultStatus.nca_s_proto_error)
    assert ended(bound)


def test_a_stray_fragment_of_a_recent_call_is_ignored(bound: Wire) -> None:
    bound.call(0, call_id=200)
    assert bound.send(request(1, b"x", call_id=60, pfc_flags=LAST)) == []
    assert isinstance(bound.call(0, call_id=201), pdu.Response)
    (answer,) = bound.send(request(1, b"x", call_id=51, pfc_flags=LAST))
    assert is_fault(answer, FaultStatus.nca_s_proto_error)


@pytest.mark.parametrize("flags", [FIRST, WHOLE], ids=["its first fragment", "whole"])
@pytest.mark.parametrize("call_id", [1, 2], ids=["same call", "another call"])
def test_a_request_may_not_begin_inside_another(bound: Wire, call_id: int, flags: int) -> None:
    bound.send(request(1, b"x", call_id=1, pfc_flags=FIRST))
    (answer,) = bound.send(request(1, b"x", call_id=call_id, pfc_flags=flags))
    assert is_fault(answer, FaultStatus.nca_s_proto_error)
    assert answer.call_id == 1
    assert ended(bound)


def test_the_largest_call_identifier_is_the_last_one(bound: Wire) -> None:
    """[MS-RPCE] 3.3.3.5.2 <123>."""
    assert isinstance(bound.call(0, call_id=0x7FFFFFFF), pdu.Response)
    assert isinstance(bound.call(0, call_id=1), pdu.Response)
    assert is_fault(bound.call(0, call_id=0x80000000), FaultStatus.nca_s_proto_error)
    assert ended(bound)


def test_the_last_fragment_of_a_call_with_too_large_an_identifier(bound: Wire) -> None:
    bound.send(request(1, b"x", call_id=0xFFFFFFFF, pfc_flags=FIRST))
    (answer,) = bound.send(request(1, b"x", call_id=0xFFFFFFFF, pfc_flags=LAST))
    assert is_fault(answer, FaultStatus.nca_s_proto_error)
    assert ended(bound)


@pytest.mark.parametrize(
    "flag", [PfcFlags.PFC_MAYBE, PfcFlags.PFC_DID_NOT_EXECUTE, PfcFlags.PFC_RESERVED_1]
)
def test_flags_without_a_meaning_in_requests_are_ignored(bound: Wire, flag: int) -> None:
    """[MS-RPCE] 2.2.2.2 <35>: a call with PFC_MAYBE is answered like any other."""
    answer = bound.call(1, b"octets", pfc_flags=WHOLE | flag)
    assert isinstance(answer, pdu.Response)
    assert answer.pfc_flags == WHOLE


def test_with_multiplexing_the_fault_is_the_intruders(rig: Rig) -> None:
    wire = rig.connect()
    wire.bind(pfc_flags=WHOLE | PfcFlags.PFC_CONC_MPX)
    wire.send(request(1, b"x", call_id=1, pfc_flags=FIRST))
    (answer,) = wire.send(request(1, b"x", call_id=2, pfc_flags=FIRST))
    assert (answer.call_id, is_fault(answer, FaultStatus.nca_s_proto_error)) == (2, True)


def test_a_cancelled_first_fragment_has_no_call(bound: Wire) -> None:
    flags = FIRST | PfcFlags.PFC_PENDING_CANCEL
    (answer,) = bound.send(request(1, b"x", pfc_flags=flags))
    assert is_fault(answer, FaultStatus.RPC_S_NO_CALL_ACTIVE, NOT_EXECUTED)
    assert ended(bound)


def test_a_later_fragment_may_announce_a_cancel(bound: Wire) -> None:
    bound.send(request(1, b"a", pfc_flags=FIRST))
    assert bound.send(request(1, b"b", pfc_flags=PfcFlags.PFC_PENDING_CANCEL)) == []
    (answer,) = bound.send(request(1, b"c", pfc_flags=LAST))
    assert isinstance(answer, pdu.Response)


@pytest.mark.bound("limits.call_bytes")
def test_a_request_over_the_limit_is_refused_in_time() -> None:
    wire = Rig(limits=Limits(call_bytes=3000)).connect()
    wire.bind()
    first, second, third, *_ = fragmented(bytes(5000), 1000)
    assert wire.send(first + second + third) == []
    (answer,) = wire.send(request(1, b"x", pfc_flags=0))
    assert is_fault(answer, FaultStatus.RPC_S_ACCESS_DENIED)
    assert ended(wire)


def test_an_alloc_hint_over_the_limit_is_refused_at_once(bound: Wire) -> None:
    (answer,) = bound.send(request(1, b"x", pfc_flags=FIRST, alloc_hint=0x400001))
    assert is_fault(answer, FaultStatus.RPC_S_ACCESS_DENIED)


def test_the_alloc_hint_of_a_whole_request_is_ignored(bound: Wire) -> None:
    assert isinstance(bound.call(1, b"x", alloc_hint=0xFFFFFFFF), pdu.Response)


@pytest.mark.bound("limits.call_fragments")
def test_tiny_fragments_are_counted() -> None:
    wire = Rig(limits=Limits(call_fragments=10)).connect()
    wire.bind()
    wire.send(request(1, b"", pfc_flags=FIRST))
    for _ in range(9):
        assert wire.send(request(1, b"", pfc_flags=0)) == []
    (answer,) = wire.send(request(1, b"", pfc_flags=0))
    assert is_fault(answer, FaultStatus.RPC_S_ACCESS_DENIED)


# Cancels, orphans, and the end.


def test_cancel_wakes_exactly_the_call_asked_for(rig: Rig, bound: Wire) -> None:
    bound.send(request(2, b"a", 1) + request(2, b"b", 2))
    assert bound.send(pdu.CoCancel(call_id=2).pack()) == []
    assert rig.handlers.seen == ["cancelled b"]
    assert isinstance(bound.events[-1], CallCancelled)
    rig.handlers.waiting[1].succeed(ProbeResponse(result=8))
    (answer,) = bound.received()
    assert answer.call_id == 2
    assert len(bound.association.calls) == 1


@pytest.mark.parametrize("kind", [pdu.CoCancel, pdu.Orphaned])
def test_a_cancel_of_no_call_is_ignored(bound: Wire, kind: type[pdu.Pdu]) -> None:
    assert bound.send(kind(call_id=9).pack()) == []
    assert isinstance(bound.call(0), pdu.Response)


@pytest.mark.parametrize("kind", [pdu.CoCancel, pdu.Orphaned])
def test_a_cancel_inside_a_request_changes_nothing(bound: Wire, kind: type[pdu.Pdu]) -> None:
    bound.send(request(1, b"a", pfc_flags=FIRST))
    assert bound.send(kind(call_id=1).pack()) == []
    (answer,) = bound.send(request(1, b"b", pfc_flags=LAST))
    assert isinstance(answer, pdu.Response)


def test_an_orphaned_call_is_not_answered(rig: Rig, bound: Wire) -> None:
    bound.send(request(2, b"a", 1))
    bound.send(pdu.Orphaned(call_id=1).pack())
    assert isinstance(bound.events[-1], CallOrphaned)
    rig.handlers.waiting[0].succeed(ProbeResponse())
    assert bound.received() == []
    assert rig.handlers.seen == ["abandoned a", "undelivered a"]
    assert isinstance(bound.call(0, call_id=1), pdu.Response)


def test_a_vanished_client_abandons_its_calls_once(rig: Rig, bound: Wire) -> None:
    bound.send(request(2, b"a", 1) + request(2, b"b", 2))
    bound.association.connection_lost()
    bound.association.connection_lost()
    assert sorted(rig.handlers.seen) == ["abandoned a", "abandoned b"]
    rig.handlers.waiting[0].succeed(ProbeResponse())
    assert rig.handlers.seen[-1] == "undelivered a"
    assert bound.received() == []


def test_a_stopping_server_answers_what_is_in_flight(rig: Rig, bound: Wire) -> None:
    bound.send(request(2, b"a", 1))
    bound.association.stop()
    assert is_fault(bound.call(0, call_id=2), FaultStatus.nca_s_server_too_busy, NOT_EXECUTED)
    rig.handlers.waiting[0].succeed(ProbeResponse(result=8))
    answer, shutdown = bound.received()
    assert isinstance(answer, pdu.Response)
    assert isinstance(shutdown, pdu.Shutdown)
    assert ended(bound)


def test_a_stopping_server_ends_idle_connections(rig: Rig, bound: Wire) -> None:
    bound.association.stop()
    assert isinstance(bound.received()[0], pdu.Shutdown)
    assert ended(bound)


def test_nothing_is_accepted_after_the_end(bound: Wire) -> None:
    bound.send(pdu.Shutdown(call_id=0).pack())
    assert bound.send(request(0)) == []


def test_requests_behind_one_that_ends_its_connection_are_not_run(rig: Rig, bound: Wire) -> None:
    run: list[int] = []

    def ending(call: Call) -> None:
        run.append(call.call_id)
        bound.association.end("its caller cannot be trusted")

    bound.association.on_call = ending
    bound.send(request(0, b"", 1) + request(0, b"", 2))
    assert run == [1]


def test_output_is_announced_once_per_flush(rig: Rig, bound: Wire) -> None:
    announced: list[int] = []
    bound.association.output_ready = lambda: announced.append(1)
    bound.association.receive_data(request(2, b"a", 1) + request(2, b"b", 2))
    for completion in rig.handlers.waiting:
        completion.succeed(ProbeResponse())
    assert announced == [1]


# Feeding.

CONVERSATION = (
    bind()
    + request(1, b"first", 1)
    + b"".join(fragmented(bytes(range(200)), 64, call_id=2))
    + alter(p_context_elem=(element(9, OTHER),))
    + request(0, b"", 3, p_cont_id=9)
    + request(4, b"name", 4)
    + request(8, b"", 5)
    + pdu.CoCancel(call_id=77).pack()
    + request(0, b"", 6, p_cont_id=33)
)


def answers_in_pieces(sizes: list[int]) -> list[str]:
    """The answers to the conversation fed in pieces, without what is random in them."""
    wire, octets, answers = Rig().connect(), CONVERSATION, []
    for size in [*sizes, len(octets)]:
        answers += wire.send(octets[:size])
        octets = octets[size:]
    assert not wire.association.unfinished
    plain = [
        replace(each, assoc_group_id=0)
        if isinstance(each, pdu.BindAck | pdu.AlterContextResp)
        else replace(each, stub_data=each.stub_data[20:])
        if isinstance(each, pdu.Response) and each.call_id == 4
        else each
        for each in answers
    ]
    return [repr(each) for each in plain]


def test_feeding_byte_by_byte_is_feeding_whole() -> None:
    whole = answers_in_pieces([])
    assert len(whole) == 8
    assert answers_in_pieces([1] * len(CONVERSATION)) == whole


@settings(max_examples=30)
@given(sizes=st.lists(st.integers(0, 120), max_size=30))
def test_feeding_in_any_pieces_is_feeding_whole(sizes: list[int]) -> None:
    assert answers_in_pieces(sizes) == answers_in_pieces([])


def test_what_is_unfinished_is_known(rig: Rig) -> None:
    wire = rig.connect()
    assert wire.association.unfinished
    wire.bind()
    assert not wire.association.unfinished
    wire.send(request(0)[:5])
    assert wire.association.unfinished
    wire.send(request(0)[5:])
    assert not wire.association.unfinished
    wire.send(request(1, b"x", pfc_flags=FIRST))
    assert wire.association.unfinished


def test_every_state_is_in_the_table() -> None:
    assert set(TRANSITIONS) == set(State)
    assert all(row.then for rows in TRANSITIONS.values() for row in rows.values())


def test_split_reads_what_data_to_send_joins(bound: Wire) -> None:
    octets = request(0, b"", 1) + request(0, b"", 2)
    assert len(split(octets)) == 2
    assert len(bound.send(octets)) == 2
