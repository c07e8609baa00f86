"""A connection's next reads take a short way, on which nothing that has changed is overlooked."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rpcqm.fast.doors.rpc_end import EndRecogniser
from rpcqm.fast.doors.rpc_lane import CarryingLane
from rpcqm.fast.doors.rpc_start import StartRecogniser
from rpcqm.interfaces._authentication import RemoteReadSecurity
from rpcqm.rpc.call import Call
from rpcqm.rpc.constants import AuthenticationLevel
from rpcqm.rpc.interface_registry import CarefulPath
from tests.support.callers import ALICE, LEVEL_NONE, LEVEL_PRIVACY, Fault, PendingCall
from tests.support.queue_manager import RunningQueueManager
from tests.support.remote_reader import ACK, Reader, body_of, served_remote_read, status_name

UNPROTECTED = RemoteReadSecurity(allow_nonauthenticated_rpc=True)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Call]:
    """The calls that no lane has taken."""
    calls: list[Call] = []
    for kind in (StartRecogniser, EndRecogniser):
        take = kind.take

        def looking(self: Any, call: Call, path: CarefulPath, take: Any = take) -> bool:
            calls.append(call)
            return bool(take(self, call, path))

        monkeypatch.setattr(kind, "take", looking)
    return calls


@pytest.fixture
def qm(tmp_path: Path) -> Iterator[RunningQueueManager]:
    running = RunningQueueManager(tmp_path)
    running.create()
    yield running
    running.stop()


class Lanes:
    """A reader whose next read its lanes take; ten messages are left for it."""

    def __init__(
        self,
        qm: RunningQueueManager,
        asked: list[Call],
        level: AuthenticationLevel = LEVEL_PRIVACY,
        security: RemoteReadSecurity | None = None,
    ) -> None:
        qm.engine.turn.is_on = True
        self.qm, self.asked, self.queue = qm, asked, qm.find()
        for number in range(16):
            qm.send(self.queue, b"%d" % number)
        self.server = served_remote_read(qm, security)
        self.reader = Reader(self.server.connect(ALICE, level))
        self.handle = self.reader.open(self.queue)
        self.number = 0
        for _ in range(6):
            assert self.received() == "MQ_OK"
        asked.clear()

    @property
    def admission(self) -> Any:
        handlers: Any = self.server.interfaces["remoteread"].handlers
        return handlers.admission

    @property
    def context(self) -> Any:
        (handle,) = self.reader.caller.association.group.handles
        return handle

    def start(self) -> PendingCall:
        self.number += 1
        return self.reader.start(self.handle, request_id=self.number)

    def end(self, number: int = 0) -> PendingCall:
        number = number or self.number
        return self.reader.caller.send(
            "R_EndReceive", phContext=self.handle, dwAck=ACK, dwRequestId=number
        )

    def status(self, call: PendingCall) -> str:
        self.reader.caller.settle()
        try:
            return status_name(call.result().result)
        except Fault as fault:
            return str(fault)

    def received(self) -> str:
        started = self.status(self.start())
        return started if started != "MQ_OK" else self.status(self.end())


@pytest.fixture
def lanes(qm: RunningQueueManager, asked: list[Call]) -> Lanes:
    return Lanes(qm, asked)


def test_the_next_reads_are_taken_without_asking_again(lanes: Lanes) -> None:
    started = [lanes.start() for _ in range(4)]
    lanes.reader.caller.settle()
    assert [body_of(call.result()) for call in started] == [b"6", b"7", b"8", b"9"]
    ended = [lanes.end(number) for number in range(lanes.number - 3, lanes.number + 1)]
    assert lanes.qm.engine.turn.waiting
    assert [lanes.status(call) for call in ended] == ["MQ_OK"] * 4
    assert lanes.asked == []
    assert lanes.qm.bodies(lanes.queue) == [b"%d" % number for number in range(10, 16)]


@pytest.mark.parametrize("begun", [False, True])
def test_a_handle_that_was_closed_is_refused(lanes: Lanes, begun: bool) -> None:
    if begun:
        assert lanes.status(lanes.start()) == "MQ_OK"
    lanes.reader.caller.call("R_CloseQueue", pphContext=lanes.handle)
    read = lanes.end() if begun else lanes.start()
    assert lanes.status(read) == "fault 0x1C00001A"
    assert len(lanes.qm.bodies(lanes.queue)) == 10


@pytest.mark.parametrize("begun", [False, True])
def test_a_handle_whose_level_was_raised_is_refused(
    qm: RunningQueueManager, asked: list[Call], begun: bool
) -> None:
    lanes = Lanes(qm, asked, LEVEL_NONE, UNPROTECTED)
    if begun:
        assert lanes.status(lanes.start()) == "MQ_OK"
    lanes.context.minimum_level = LEVEL_PRIVACY
    assert lanes.status(lanes.end() if begun else lanes.start()) == "fault 0x00000005"


@pytest.mark.parametrize("begun", [False, True])
def test_a_caller_who_may_read_no_longer_is_refused(
    qm: RunningQueueManager, asked: list[Call], begun: bool
) -> None:
    lanes = Lanes(qm, asked, LEVEL_NONE, UNPROTECTED)
    if begun:
        assert lanes.status(lanes.start()) == "MQ_OK"
    lanes.admission.security = RemoteReadSecurity()
    assert lanes.status(lanes.end() if begun else lanes.start()) == "fault 0x00000005"


def test_a_switch_that_is_off_counts(lanes: Lanes) -> None:
    assert lanes.status(lanes.start()) == "MQ_OK"
    before = lanes.qm.store.metrics.snapshot()
    lanes.qm.engine.turn.is_on = False
    assert lanes.status(lanes.end()) == "MQ_OK"
    assert lanes.received() == "MQ_OK"
    after = lanes.qm.store.metrics.snapshot()
    assert after["templates.read"] == before["templates.read"]
    assert after["templates.ended"] == before["templates.ended"]


def test_a_queue_without_messages_has_its_reader_wait_the_careful_way(lanes: Lanes) -> None:
    for _ in range(10):
        assert lanes.received() == "MQ_OK"
    assert lanes.received() == "MQ_ERROR_IO_TIMEOUT"
    assert lanes.asked


def test_each_operation_has_a_lane_of_its_own(lanes: Lanes) -> None:
    kept = lanes.reader.caller.association.lanes
    assert sorted(kept) == [7, 9]
    for lane in kept.values():
        assert isinstance(lane, CarryingLane)
        assert len(lane) == 1
