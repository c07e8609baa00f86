"""A connection's next sends take a short way, on which nothing that has changed is overlooked."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rpcqm.codec.types.mqvalues import QueueAccessType
from rpcqm.interfaces._authentication import RemoteReadSecurity
from rpcqm.interfaces._handle_lane import OF_LANE
from rpcqm.interfaces._send_lane import SendLane
from rpcqm.interfaces._send_templates import SendRecogniser
from rpcqm.rpc.call import Call
from rpcqm.rpc.constants import AuthenticationLevel
from rpcqm.rpc.dispatch import PATIENCE
from rpcqm.rpc.interface_registry import NCACN_IP_TCP, NCALRPC, CarefulPath
from rpcqm.rpc.limits import Limits
from rpcqm.rpc.security.context import unauthenticated
from tests.support.callers import ALICE, BOB, LEVEL_NONE, LEVEL_PRIVACY, Fault, PendingCall
from tests.support.dependent_client import Client, served_clients
from tests.support.queue_manager import RunningQueueManager
from tests.support.remote_reader import status_name

SEND = QueueAccessType.SEND_ACCESS


class Lane:
    """A client whose next send its lane takes; `asked` are calls that came to the recogniser."""

    def __init__(
        self,
        qm: RunningQueueManager,
        asked: list[Call],
        transport: str = NCALRPC,
        level: AuthenticationLevel = LEVEL_PRIVACY,
        security: RemoteReadSecurity | None = None,
    ) -> None:
        qm.engine.turn.is_on = True
        self.qm, self.asked = qm, asked
        self.queue = qm.find()
        self.server = served_clients(qm, security)
        handlers: Any = self.server.interfaces["qmcomm2"].handlers
        self.admission = handlers.admission
        self.client = Client(self.server.connect(ALICE, level, transport))
        self.handle = self.client.open(self.queue, SEND)[0]
        for _ in range(4):
            assert self.client.sent(self.handle, b"learned") == "MQ_OK"
        asked.clear()

    @property
    def lane(self) -> SendLane:
        (lane,) = self.client.caller.association.lanes.values()
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
    assert lane.qm.engine.turn.waiting
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
    lane.client.caller.association.lanes.clear()
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
    lane.qm.engine.turn.is_on = False
    call = lane.send()
    assert not lane.qm.engine.turn.waiting
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
    assert lane.client.caller.association.unrecognised < PATIENCE


def test_calls_beyond_the_limit_are_refused(lane: Lane) -> None:
    lane.server.dispatcher.limit(Limits(calls=2))
    calls = [lane.send(), lane.send(), lane.send()]
    assert [lane.status(call) for call in calls] == ["MQ_OK", "MQ_OK", "fault 0x1C010014"]


def test_calls_of_all_beyond_the_limit_are_refused(lane: Lane) -> None:
    lane.server.dispatcher.limit(Limits(calls=8, waiting_calls=2))
    calls = [lane.send(), lane.send(), lane.send()]
    assert [lane.status(call) for call in calls] == ["MQ_OK", "MQ_OK", "fault 0x1C010014"]


@pytest.mark.bound("rpc.open_queues_of_a_lane")
def test_a_lane_remembers_few_open_queues(lane: Lane) -> None:
    for number in range(1, OF_LANE):
        lane.send(handle=lane.client.open(lane.queue, SEND)[0])
        lane.client.caller.settle()
        assert len(lane.lane) == number + 1
    assert lane.status(lane.send(handle=lane.client.open(lane.queue, SEND)[0])) == "MQ_OK"
    assert len(lane.lane) == 1
    assert lane.status(lane.send()) == "MQ_OK"
