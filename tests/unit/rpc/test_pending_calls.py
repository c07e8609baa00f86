"""How many calls may wait: of one connection, and of all."""

import pytest

from rpcqm.base.errors import FaultStatus
from rpcqm.rpc import pdu
from rpcqm.rpc.constants import WHOLE, PfcFlags
from rpcqm.rpc.limits import Limits
from tests.support.rpc.probe import ProbeResponse, Rig, Wire, is_fault, request

ECHO, WAIT, OPEN, USE_IN_TURN, WAIT_WITH = 1, 2, 4, 7, 10
BUSY = FaultStatus.nca_s_server_too_busy
NOT_EXECUTED = WHOLE | PfcFlags.PFC_DID_NOT_EXECUTE


def connected(rig: Rig) -> Wire:
    wire = rig.connect()
    wire.bind()
    return wire


def refused(answers: list[pdu.Pdu]) -> bool:
    return len(answers) == 1 and is_fault(answers[0], BUSY, NOT_EXECUTED)


def answer_all(rig: Rig) -> None:
    for completion in rig.handlers.waiting:
        if not completion.done:
            completion.succeed(ProbeResponse())


def test_calls_that_are_given_up_count_until_their_handlers_have_ended() -> None:
    rig = Rig(limits=Limits(calls=3))
    wire = connected(rig)
    for number in range(3):
        assert wire.send(request(WAIT, b"", number)) == []
        wire.send(pdu.Orphaned(call_id=number).pack())
    assert len(wire.association.calls) == 0
    assert refused(wire.send(request(WAIT, b"", 9)))
    answer_all(rig)
    assert wire.send(request(WAIT, b"", 10)) == []


def test_calls_that_wait_for_their_turn_count_too() -> None:
    rig = Rig(limits=Limits(calls=3))
    wire = connected(rig)
    opened = wire.call(OPEN, b"queue")
    assert isinstance(opened, pdu.Response)
    handle = opened.stub_data[:20]
    assert wire.send(request(WAIT_WITH, handle, 1)) == []
    for number in (2, 3):
        assert wire.send(request(USE_IN_TURN, handle, number)) == []
        wire.send(pdu.Orphaned(call_id=number).pack())
    assert refused(wire.send(request(USE_IN_TURN, handle, 4)))
    answer_all(rig)
    wire.received()
    assert rig.dispatcher.pending == wire.association.pending == 0
    assert isinstance(wire.call(USE_IN_TURN, handle, 5), pdu.Response)


@pytest.mark.bound("limits.waiting_calls")
def test_when_many_wait_in_all_every_connection_may_have_one() -> None:
    rig = Rig(limits=Limits(waiting_calls=2))
    greedy, modest = connected(rig), connected(rig)
    for number in (1, 2):
        assert greedy.send(request(WAIT, b"", number)) == []
    assert refused(greedy.send(request(WAIT, b"", 3)))
    assert isinstance(modest.call(ECHO, b"quick"), pdu.Response)
    assert modest.send(request(WAIT, b"", 1)) == []
    assert refused(modest.send(request(ECHO, b"", 2)))
    answer_all(rig)
    assert len(greedy.received()) == 2
    assert greedy.send(request(WAIT, b"", 4)) == []


@pytest.mark.parametrize("lost", [False, True])
def test_nothing_is_counted_when_all_have_ended(lost: bool) -> None:
    rig = Rig()
    wire = connected(rig)
    for number in range(1, 6):
        wire.send(request(WAIT, b"", number))
    assert (rig.dispatcher.pending, wire.association.pending) == (5, 5)
    if lost:
        wire.association.connection_lost()
    answer_all(rig)
    assert (rig.dispatcher.pending, wire.association.pending) == (0, 0)
