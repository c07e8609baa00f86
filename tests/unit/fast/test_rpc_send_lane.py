"""A connection's next sends take a short way, on which nothing that has changed is overlooked."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rpcqm.base.metrics import Histogram
from rpcqm.codec.types.mqvalues import QueueAccessType
from rpcqm.fast.doors.rpc_send import SendRecogniser
from rpcqm.fast.doors.rpc_send_lane import OF_LANE, SendLane, TemplatedSend
from rpcqm.interfaces._authentication import RemoteReadSecurity
from rpcqm.rpc.association_states import State
from rpcqm.rpc.call import Call
from rpcqm.rpc.constants import AuthenticationLevel
from rpcqm.rpc.dispatch import PATIENCE
from rpcqm.rpc.interface_registry import NCACN_IP_TCP, NCALRPC, CarefulPath
from rpcqm.rpc.limits import Limits
from rpcqm.rpc.security.context import unauthenticated
from tests.support.queue_manager import RunningQueueManager
from tests.support.rpc.callers import ALICE, BOB, LEVEL_NONE, LEVEL_PRIVACY, Fault, PendingCall
from tests.support.rpc.dependent_client import Client, served_clients
from tests.support.rpc.remote_reader import status_name

SEND = QueueAccessType.SEND_ACCESS


class Deaf:
    """In the place of a client that does not listen to what it is answered."""

    def data_to_send(self) -> bytes:
        return b""

    def receive_data(self, _: bytes) -> list[object]:
        return []


class Lane:
    """A client whose next send its lane takes; `asked` are calls that came to the recogniser."""

    def __init__(
        self,
        qm: RunningQueueManager,
        asked: list[Call],
        transport: str = NCALRPC,
        level: AuthenticationLevel = LEVEL_PRIVACY,
        security: RemoteReadSecurity | None = None,
        limits: Limits | None = None,
    ) -> None:
        qm.speed.turn.is_on = True
        self.qm, self.asked = qm, asked
        self.queue = qm.find()
        self.server = served_clients(qm, security, limits)
        handlers: Any = self.server.interfaces["qmcomm2"].handlers
        self.admission = handlers.admission
        self.client = Client(self.server.connect(ALICE, level, transport))
        self.handle = self.client.open(self.queue, SEND)[0]
        for _ in range(4):
            assert self.client.sent(self.handle, b"learned") == "MQ_OK"
        asked.clear()

    @property
    def lane(self) -> SendLane:
        (lane,) = self.client.caller.association.shortcuts.values()
        assert isinstance(lane, SendLane)
        return lane

    def send(self, body: bytes = b"body", handle: bytes = b"") -> PendingCall:
        return self.client.start_send(handle or self.handle, body)

    def status(self, call: PendingCall) -> str:
        self.client.caller.settle()
        try:
            return status_name(call.result().result)
        except Fault as fault:
            return str(fault)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Call]:
    """The calls that no lane has taken."""
    calls: list[Call] = []
    take = SendRecogniser.take

    def looking(self: SendRecogniser, call: Call, path: CarefulPath) -> bool:
        calls.append(call)
        return take(self, call, path)

    monkeypatch.setattr(SendRecogniser, "take", looking)
    return calls


@pytest.fixture
def qm(tmp_path: Path) -> Iterator[RunningQueueManager]:
    running = RunningQueueManager(tmp_path)
    running.create()
    yield running
    running.stop()


@pytest.fixture
def lane(qm: RunningQueueManager, asked: list[Call]) -> Lane:
    return Lane(qm, asked)


def test_the_next_send_is_taken_without_asking_again(lane: Lane) -> None:
    calls = [lane.send(b"%d" % number) for number in range(5)]
    assert lane.qm.speed.turn.waiting
    assert [lane.status(call) for call in calls] == ["MQ_OK"] * 5
    assert lane.asked == []
    assert lane.qm.bodies(lane.queue)[-5:] == [b"%d" % number for number in range(5)]


def test_a_closed_handle_is_refused(lane: Lane) -> None:
    assert lane.status(lane.client.caller.send("rpc_ACCloseHandle", phQueue=lane.handle)) == "MQ_OK"
    assert lane.status(lane.send()) == "fault 0x1C00001A"
    assert len(lane.lane) == 0


def test_a_handle_that_is_about_to_be_closed_is_refused(lane: Lane) -> None:
    (handle,) = lane.client.caller.association.group.handles
    handle.closing = True
    assert lane.status(lane.send()) == "fault 0x1C00001A"


def test_a_handle_whose_level_was_raised_is_refused(qm: RunningQueueManager, asked: Any) -> None:
    open_to_all = RemoteReadSecurity(allow_unprotected_rpc=True)
    lane = Lane(qm, asked, level=LEVEL_NONE, security=open_to_all)
    (handle,) = lane.client.caller.association.group.handles
    handle.minimum_level = LEVEL_PRIVACY
    assert lane.status(lane.send()) == "fault 0x00000005"


def test_a_caller_who_may_call_no_longer_is_refused(qm: RunningQueueManager, asked: Any) -> None:
    lane = Lane(
        qm, asked, level=LEVEL_NONE, security=RemoteReadSecurity(allow_unprotected_rpc=True)
    )
    assert lane.status(lane.send()) == "MQ_OK"
    lane.admission.security = RemoteReadSecurity()
    assert lane.status(lane.send()) == "fault 0x00000005"


def test_clients_on_the_network_are_refused_once_they_are_not_served(
    qm: RunningQueueManager, asked: Any
) -> None:
    qm.engine.queue_manager.supporting_server = True
    lane = Lane(qm, asked, transport=NCACN_IP_TCP)
    assert lane.status(lane.send()) == "MQ_OK"
    assert lane.asked == []
    qm.engine.queue_manager.supporting_server = False
    assert lane.status(lane.send()) == "MQ_ERROR_WKS_CANT_SERVE_CLIENT"


def test_a_queue_that_was_deleted_is_told(lane: Lane) -> None:
    lane.qm.done(lane.qm.engine.queues.delete_queue(lane.queue))
    assert lane.status(lane.send()) != "MQ_OK"


def test_another_queue_behind_a_handle_is_not_taken_for_the_first(lane: Lane) -> None:
    other = lane.qm.create(r"private$\other")
    (handle,) = lane.client.caller.association.group.handles
    handle.value.open_queue_descriptor_reference.queue_reference = other
    lane.status(lane.send(b"elsewhere"))
    assert lane.asked
    assert b"elsewhere" not in lane.qm.bodies(lane.queue)


def test_another_security_is_not_taken_for_the_first(lane: Lane) -> None:
    lane.asked.clear()
    lane.client.caller.association.shortcuts.clear()
    lane.status(lane.send())
    (call,) = lane.asked
    for context, security, taken in (
        (call.context, call.security, True),
        (call.context, unauthenticated(BOB, LEVEL_PRIVACY), False),
        (object(), call.security, False),
    ):
        arguments: Any = context, security
        assert lane.lane.fits(*arguments) is taken


def test_a_switch_that_is_off_counts(lane: Lane) -> None:
    lane.qm.speed.turn.is_on = False
    call = lane.send()
    assert not lane.qm.speed.turn.waiting
    assert lane.status(call) == "MQ_OK"


def test_who_has_gone_the_careful_way_is_asked_again(lane: Lane) -> None:
    lane.client.start_send(lane.handle, b"kept when lost", pAuditing=2)
    assert lane.asked
    lane.client.caller.settle()
    lane.asked.clear()
    lane.send()
    assert len(lane.asked) == 1
    lane.send()
    assert len(lane.asked) == 1
    assert lane.client.caller.association.untaken < PATIENCE


def test_a_send_in_fragments_is_taken_by_its_lane(lane: Lane) -> None:
    body = bytes(range(256)) * 40
    for _ in range(3):
        assert lane.status(lane.send(body)) == "MQ_OK"
    lane.asked.clear()
    calls = [lane.send(body), lane.send(body[::-1])]
    assert all(isinstance(each, TemplatedSend) for each in flying(lane))
    assert [lane.status(call) for call in calls] == ["MQ_OK"] * 2
    assert lane.asked == []
    assert lane.qm.bodies(lane.queue)[-2:] == [body, body[::-1]]


def test_no_more_sends_are_in_flight_than_other_calls(qm: RunningQueueManager, asked: Any) -> None:
    lane = Lane(qm, asked, limits=Limits(calls=3))
    lane.server.dispatcher.limit(Limits())
    with lane.client.caller.one_segment():
        calls = [lane.send(b"%d" % number) for number in range(5)]
    assert len(flying(lane)) == 3
    refused = ["fault 0x1C010014"] * 2
    assert [lane.status(call) for call in calls] == ["MQ_OK"] * 3 + refused


def flying(lane: Lane) -> list[object]:
    """What is in flight of the client."""
    return list(lane.client.caller.association.calls.values())


def test_calls_beyond_the_limit_are_refused(lane: Lane) -> None:
    lane.server.dispatcher.limit(Limits(calls=2))
    calls = [lane.send(), lane.send(), lane.send()]
    assert [lane.status(call) for call in calls] == ["MQ_OK", "MQ_OK", "fault 0x1C010014"]


def test_calls_of_all_beyond_the_limit_are_refused(lane: Lane) -> None:
    lane.server.dispatcher.limit(Limits(calls=8, waiting_calls=2))
    calls = [lane.send(), lane.send(), lane.send()]
    assert [lane.status(call) for call in calls] == ["MQ_OK", "MQ_OK", "fault 0x1C010014"]


def test_sends_of_one_segment_are_taken_up_to_the_first_other_call(lane: Lane) -> None:
    caller = lane.client.caller
    with caller.one_segment():
        first = [lane.send(b"1"), lane.send(b"2")]
        closing = caller.send("rpc_ACCloseHandle", phQueue=lane.handle)
        late = lane.send(b"too late")
    assert [lane.status(call) for call in first] == ["MQ_OK"] * 2
    assert lane.status(closing) == "MQ_OK"
    assert lane.status(late) == "fault 0x1C00001A"
    assert lane.qm.bodies(lane.queue)[-2:] == [b"1", b"2"]


def test_a_send_whose_rest_has_not_come_waits_for_it(lane: Lane) -> None:
    association = lane.client.caller.association
    with lane.client.caller.one_segment() as segment:
        calls = [lane.send(b"first"), lane.send(b"in two pieces")]
        rest, segment[1] = segment[1][200:], segment[1][:200]
    assert len(association.calls) == 1
    for place in range(0, len(rest), 50):
        association.receive_data(rest[place : place + 50])
    assert [lane.status(call) for call in calls] == ["MQ_OK"] * 2
    assert lane.qm.bodies(lane.queue)[-2:] == [b"first", b"in two pieces"]


@pytest.mark.parametrize(
    ("place", "octets"),
    [
        (12, b"\xff\xff\xff\xff"),  # call_id
        (8, b"\x10\x00"),  # frag_length
        (10, b"\x08\x00"),  # auth_length
        (0, b"\x04"),  # rpc_vers
        (3, b"\x07"),  # PFC_PENDING_CANCEL
    ],
)
def test_what_is_wrong_with_a_pdu_is_told_although_its_lane_knows_the_rest(
    lane: Lane, place: int, octets: bytes
) -> None:
    caller = lane.client.caller
    before = lane.qm.bodies(lane.queue)
    with caller.one_segment() as segment:
        taken = lane.send(b"as ever")
        lane.send(b"wrong")
        wrong = bytearray(segment[1])
        wrong[place : place + len(octets)] = octets
        segment[1] = bytes(wrong)
        del caller.pending[max(caller.pending)]
        segment.append(b"")
        caller.client = Deaf()  # type: ignore[assignment]
    lane.qm.settle()
    assert caller.association.state is State.CLOSED
    assert lane.qm.bodies(lane.queue) == [*before, b"as ever"]
    assert not taken.answered


def test_a_call_id_that_is_in_use_breaks_the_connection(lane: Lane) -> None:
    caller = lane.client.caller
    with caller.one_segment() as segment:
        lane.send(b"the first with it")
        segment.append(segment[0])
        caller.client = Deaf()  # type: ignore[assignment]
    assert caller.association.state is State.CLOSED
    lane.qm.settle()
    assert lane.qm.bodies(lane.queue).count(b"the first with it") == 1


def test_a_call_id_is_free_again_once_its_send_is_answered(lane: Lane) -> None:
    caller = lane.client.caller
    with caller.one_segment() as segment:
        for number in range(3):
            lane.send(b"%d" % number)
        same = [pdu[:12] + (1).to_bytes(4, "little") + pdu[16:] for pdu in segment]
        segment.clear()
    for pdu in same:
        caller.association.receive_data(pdu)
        assert list(caller.association.calls) == [1]
        lane.qm.settle()
        assert not caller.association.calls
    assert lane.asked == []
    assert lane.qm.bodies(lane.queue)[-3:] == [b"0", b"1", b"2"]


def test_a_send_that_its_client_gives_up_is_carried_out_and_not_answered(lane: Lane) -> None:
    caller = lane.client.caller
    call = lane.send(b"given up")
    caller.client.orphan(call.call_id)
    caller.protocol()
    assert not caller.association.calls
    sent = caller.association.pdus_out
    assert lane.status(lane.send(b"next")) == "MQ_OK"
    assert caller.association.pdus_out == sent + 1
    assert not call.answered
    assert lane.qm.bodies(lane.queue)[-2:] == [b"given up", b"next"]
    (handle,) = caller.association.group.handles
    assert handle.try_acquire()
    assert caller.association.pending == lane.server.dispatcher.pending == 0


def test_a_send_that_is_cancelled_is_answered(lane: Lane) -> None:
    call = lane.send(b"cancelled")
    lane.client.caller.cancel(call)
    assert lane.status(call) == "MQ_OK"
    assert lane.qm.bodies(lane.queue)[-1] == b"cancelled"


def test_a_send_whose_connection_breaks_is_carried_out(lane: Lane) -> None:
    caller = lane.client.caller
    lane.send(b"its client has gone")
    sent = caller.association.pdus_out
    caller.lose()
    assert caller.association.idle
    assert caller.association.pdus_out == sent
    assert lane.qm.bodies(lane.queue)[-1] == b"its client has gone"
    assert caller.association.pending == lane.server.dispatcher.pending == 0


@pytest.mark.parametrize("given_up", [False, True])
def test_a_send_that_goes_the_careful_way_is_a_call_like_others(lane: Lane, given_up: bool) -> None:
    caller, before = lane.client.caller, lane.server.dispatcher.calls
    call = lane.send(b"carefully")
    if given_up:
        caller.client.orphan(call.call_id)
        caller.protocol()
    lane.queue.trail = True
    sent = caller.association.pdus_out
    caller.settle()
    assert caller.association.pdus_out == sent + (not given_up)
    assert given_up or lane.status(call) == "MQ_OK"
    assert call.answered is not given_up
    assert lane.server.dispatcher.calls == before + 1
    assert not caller.association.calls
    assert caller.association.pending == lane.server.dispatcher.pending == 0
    assert lane.qm.bodies(lane.queue)[-1] == b"carefully"


def test_a_careful_send_stays_behind_sends_that_go_the_careful_way_at_their_end(lane: Lane) -> None:
    lane.queue.trail = True
    calls = [lane.send(b"first"), lane.send(b"second")]
    calls.append(lane.client.start_send(lane.handle, b"third", pAuditing=2))
    assert [lane.status(call) for call in calls] == ["MQ_OK"] * 3
    numbers = [call.result().pMessageID.Uniquifier for call in calls]
    assert numbers == sorted(numbers)
    assert lane.qm.bodies(lane.queue)[-3:] == [b"first", b"second", b"third"]


def test_sends_are_counted_and_timed_like_other_calls(lane: Lane) -> None:
    lane.lane.durations = durations = Histogram()
    before = lane.server.dispatcher.calls, lane.client.caller.association.pdus_in
    calls = [lane.send() for _ in range(5)]
    assert [lane.status(call) for call in calls] == ["MQ_OK"] * 5
    assert lane.server.dispatcher.calls == before[0] + 5
    assert lane.client.caller.association.pdus_in == before[1] + 5
    assert durations.count == 5
    assert durations.total > 0


@pytest.mark.bound("rpc.open_queues_of_a_lane")
def test_a_lane_remembers_few_open_queues(lane: Lane) -> None:
    for number in range(1, OF_LANE):
        lane.send(handle=lane.client.open(lane.queue, SEND)[0])
        lane.client.caller.settle()
        assert len(lane.lane) == number + 1
    assert lane.status(lane.send(handle=lane.client.open(lane.queue, SEND)[0])) == "MQ_OK"
    assert len(lane.lane) == 1
    assert lane.status(lane.send()) == "MQ_OK"
