"""A door that knows nothing of requests that wait for the end of a turn cannot overtake them.

It has the engine, and does what any door does: it asks for events, and looks at queues.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from rpcqm.base.completion import Completion
from rpcqm.codec.types.mqvalues import QueueAccessType
from rpcqm.qm.engine import QueueManagerEngine
from rpcqm.rpc.interface_registry import NCALRPC
from tests.support.queue_manager import RunningQueueManager
from tests.support.rpc.callers import ALICE, PendingCall
from tests.support.rpc.dependent_client import Client, served_clients
from tests.support.rpc.remote_reader import Reader, served_remote_read, status_name


class Turn:
    """One turn, in which clients of RPC are followed by the door."""

    def __init__(self, qm: RunningQueueManager, templates: bool) -> None:
        self.qm, self.templates = qm, templates
        self.engine: QueueManagerEngine = qm.engine
        qm.speed.switch(templates)
        self.queue = qm.create()
        self._sender = Client(served_clients(qm).connect(ALICE, transport=NCALRPC))
        self._sending = self._sender.open(self.queue, QueueAccessType.SEND_ACCESS)[0]
        self.reader = Reader(served_remote_read(qm).connect(ALICE))
        self.reading = self.reader.open(self.queue)
        for number in range(4):  # until both are recognised
            assert self._sender.sent(self._sending, b"learned") == "MQ_OK"
            self.reader.read(self.reading, request_id=number)
            assert self.reader.end(self.reading, number) == "MQ_OK"

    def send(self, body: bytes) -> PendingCall:
        """What waits where there are templates; the door comes behind it."""
        call = self._sender.start_send(self._sending, body)
        assert self.qm.speed.turn.waiting is self.templates
        return call

    def end_of_read(self) -> PendingCall:
        """The same for the removal of the first message."""
        self.reader.read(self.reading, request_id=7)
        call = self.reader.caller.send(
            "R_EndReceive", phContext=self.reading, dwAck=2, dwRequestId=7
        )
        assert self.qm.speed.turn.waiting is self.templates
        return call

    def door_sends(self, body: bytes) -> Completion[None]:
        return self.qm.enqueue(self.queue, body)

    def settle(self) -> None:
        """End the turn, and let the clients hear of it."""
        self.qm.settle()
        for caller in (self._sender.caller, self.reader.caller):
            caller.protocol()

    def bodies(self) -> list[bytes]:
        self.settle()
        return self.qm.bodies(self.queue)


@pytest.fixture(params=[True, False], ids=["templates", "careful"])
def turn(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Turn]:
    qm = RunningQueueManager(tmp_path)
    yield Turn(qm, request.param)
    qm.stop()


def test_what_it_sends_comes_behind_with_a_later_number(turn: Turn) -> None:
    turn.send(b"1")
    turn.door_sends(b"2")
    turn.send(b"3")
    assert turn.bodies() == [b"1", b"2", b"3"]
    page = turn.queue.message_position_list.page(None, 3)
    kept = [turn.engine.positions.message_at(turn.queue, key).attributes for key in page]
    numbers = [each.identifier.ordinal for each in kept]
    assert numbers == [numbers[0], numbers[0] + 1, numbers[0] + 2]


def test_a_read_without_a_wait_gets_what_is_on_its_way(turn: Turn) -> None:
    descriptor = turn.qm.open(turn.queue)
    turn.send(b"first")
    read = turn.engine.messages.dequeue_message(descriptor, timeout=0)
    assert turn.qm.done(read).attributes.body == b"first"


def test_a_purge_removes_what_came_before_and_nothing_else(turn: Turn) -> None:
    turn.send(b"purged")
    purge = turn.engine.queues.purge_queue(turn.queue)
    turn.send(b"kept")
    assert turn.bodies() == [b"kept"]
    assert purge.result() == 1


def test_a_look_finds_what_is_on_its_way_and_what_is_leaving(turn: Turn) -> None:
    turn.send(b"x")
    assert len(turn.queue.message_position_list.arriving()) == 1
    turn.settle()
    turn.end_of_read()
    key = turn.queue.message_position_list.first(available=False)
    assert key is not None
    assert turn.queue.message_position_list.state(key).name == "LEAVING"


def test_a_quota_counts_what_is_on_its_way(turn: Turn) -> None:
    one = len(turn.qm.compose(turn.queue, bytes(700)).packet)
    turn.queue.quota = 1
    assert one < 1024 < 2 * one
    call = turn.send(bytes(700))
    with pytest.raises(Exception, match="at its quota"):
        turn.door_sends(bytes(700))
    turn.settle()
    assert status_name(call.result().result) == "MQ_OK"


def test_a_quota_counts_what_was_put_off_without_a_number(turn: Turn) -> None:
    first = turn.qm.compose(turn.queue, bytes(700))
    turn.queue.quota = 1
    call = turn.send(bytes(700))
    with pytest.raises(Exception, match="at its quota"):
        turn.engine.messages.enqueue_message(turn.queue, first)
    turn.settle()
    assert status_name(call.result().result) == "MQ_OK"


def test_a_change_of_a_queue_is_behind_what_came_before(turn: Turn) -> None:
    call = turn.send(b"x")
    changed = turn.engine.queues.set_properties(turn.queue, {"quota": 0})
    turn.settle()
    assert changed.error is None
    assert status_name(call.result().result) == "MQ_OK"
    assert turn.bodies() == [b"x"]


def test_a_queue_is_deleted_behind_what_came_before(turn: Turn) -> None:
    call = turn.send(b"x")
    turn.engine.queues.delete_queue(turn.queue)
    turn.settle()
    assert status_name(call.result().result) == "MQ_OK"


def test_a_read_that_has_ended_is_over_for_it(turn: Turn) -> None:
    turn.door_sends(b"x")
    turn.settle()
    call = turn.end_of_read()
    turn.engine.opening.close_all(ALICE.sid)
    turn.settle()
    assert status_name(call.result().result) == "MQ_OK"
    assert turn.bodies() == []


def test_what_it_closes_was_open_for_what_came_before(turn: Turn) -> None:
    turn.queue.quota = 0
    call = turn.send(b"x")
    turn.engine.opening.close_all(ALICE.sid)
    turn.settle()
    assert status_name(call.result().result) == "MQ_ERROR_INSUFFICIENT_RESOURCES"


def test_a_lease_takes_nothing_that_has_been_received(turn: Turn) -> None:
    turn.door_sends(b"1")
    turn.door_sends(b"2")
    turn.settle()
    turn.end_of_read()
    name = turn.engine.queues.format_name_of(turn.queue)
    reception = turn.engine.leases.receive(name, ALICE, lease=1000, most=10)
    turn.settle()
    received = reception.outcome.result()
    assert [each.message.attributes.body for each in received] == [b"2"]
    assert turn.bodies() == []
