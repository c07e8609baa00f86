"""The dispatcher by itself ([MS-MQDMPR] 3.1.7.1.28, .29, .34, 3.1.7.3.9)."""

import pytest
from structlog.testing import capture_logs

from rpcqm.adm.message import MessagePosition
from rpcqm.adm.queue import OutgoingQueue
from rpcqm.codec.types.mqvalues import QueueAccessType
from tests.support.queue_manager import RunningQueueManager


class Protocol:
    """Records whose turn it is, and says at once that the message has been sent."""

    def __init__(self, qm: RunningQueueManager) -> None:
        self.turns: list[object] = []
        self.dispatcher = qm.engine.dispatcher
        self.dispatcher.send_by_binary = self.send

    def send(self, data: object, position: MessagePosition) -> None:
        self.turns.append(data)
        self.dispatcher.remove_message_from_dispatch_collection(position)
        if data == "fails":
            raise ValueError(data)


def position(
    qm: RunningQueueManager, name: str, base: int = 0, priority: int = 3
) -> MessagePosition:
    """A message in an outgoing queue of a base priority."""
    queue = qm.open(f"DIRECT=OS:{name}\\q", QueueAccessType.SEND_ACCESS).queue_reference
    assert isinstance(queue, OutgoingQueue)
    queue.base_priority = base
    return MessagePosition(queue, qm.send(queue, name.encode(), priority=priority))


def test_the_sum_of_both_priorities_decides_and_of_equals_the_age(qm: RunningQueueManager) -> None:
    protocol = Protocol(qm)
    with protocol.dispatcher.gathering:
        for name, base, priority in (("a", 0, 7), ("b", 5, 1), ("c", 5, 3), ("d", 1, 6)):
            message = position(qm, name, base, priority=priority)
            protocol.dispatcher.add_message_to_dispatch_collection(name, message)
        assert protocol.turns == []
    assert protocol.turns == ["c", "a", "d", "b"]
    assert qm.engine.queue_manager.dispatch_collection == {}


def test_a_later_message_of_a_queue_can_bring_its_turn_forward(qm: RunningQueueManager) -> None:
    protocol = Protocol(qm)
    add = protocol.dispatcher.add_message_to_dispatch_collection
    with protocol.dispatcher.gathering:
        add("other", position(qm, "other", priority=4))
        add("low", position(qm, "queue", priority=0))
        add("high", position(qm, "queue", priority=7))
        add("no more", position(qm, "queue", priority=5))
    assert protocol.turns == ["high", "other"]


def test_without_a_protocol_messages_wait_in_the_collection(qm: RunningQueueManager) -> None:
    message = position(qm, "other")
    qm.engine.dispatcher.add_message_to_dispatch_collection("x", message)
    (entry,) = qm.engine.queue_manager.dispatch_collection.values()
    assert (entry.message_position_reference, entry.send_in_progress) == (message, False)


def test_a_queue_that_fails_holds_no_other_up(qm: RunningQueueManager) -> None:
    protocol = Protocol(qm)
    add = protocol.dispatcher.add_message_to_dispatch_collection
    with capture_logs() as logs, protocol.dispatcher.gathering:
        add("fails", position(qm, "first", priority=7))
        add("second", position(qm, "second"))
    assert protocol.turns == ["fails", "second"]
    (entry,) = logs
    assert entry["event"] == "a message could not be sent"


@pytest.mark.conformance("MQDMPR-event-remove_messages_from_dispatch_collection_by_queue")
def test_a_queue_that_is_taken_out_has_no_turn(qm: RunningQueueManager) -> None:
    protocol = Protocol(qm)
    add = protocol.dispatcher.add_message_to_dispatch_collection
    with protocol.dispatcher.gathering:
        taken = position(qm, "taken", priority=7)
        add("taken", taken)
        add("stays", position(qm, "stays"))
        remove = protocol.dispatcher.remove_messages_from_dispatch_collection_by_queue
        remove(taken.queue_reference)
    assert protocol.turns == ["stays"]
