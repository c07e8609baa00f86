"""Outgoing queues and the dispatcher ([MS-MQDMPR] 3.1.4.14, .15, 3.1.7.1.28, .29, .34, .3.9)."""

import pytest

from rpcqm.adm.enums import OutgoingQueueState, QueueAccessType
from rpcqm.adm.message import MessagePosition
from rpcqm.adm.queue import OutgoingQueue
from rpcqm.qm.settings import QueueManagerSettings
from tests.support.queue_manager import SETTINGS, RunningQueueManager

SEND = QueueAccessType.SEND_ACCESS


def outgoing(qm: RunningQueueManager, name: str = r"DIRECT=OS:other\q") -> OutgoingQueue:
    queue = qm.open(name, SEND).queue_reference
    assert isinstance(queue, OutgoingQueue)
    return queue


class Protocol:
    """Records what it is asked to send."""

    def __init__(self, qm: RunningQueueManager) -> None:
        self.binary: list[tuple[object, MessagePosition]] = []
        self.srmp: list[tuple[object, MessagePosition]] = []
        qm.engine.outgoing.send_by_binary = lambda data, at: self.binary.append((data, at))
        qm.engine.outgoing.send_by_srmp = lambda data, at: self.srmp.append((data, at))


@pytest.mark.conformance("MQDMPR-element-OutgoingQueue")
def test_messages_for_elsewhere_are_kept_durably(qm: RunningQueueManager) -> None:
    queue = outgoing(qm)
    assert queue.active
    qm.send(queue, b"a")
    qm.restart()
    (again,) = qm.engine.outgoing.list()
    assert again.destination_format_name == queue.destination_format_name
    assert again.identifier == queue.identifier
    assert again.state is OutgoingQueueState.INACTIVE
    assert again.active
    assert qm.bodies(again) == [b"a"]


@pytest.mark.conformance(
    "MQDMPR-event-admin_pause_queue",
    "MQDMPR-event-admin_resume_queue",
    "MQDMPR-event-pause_queue",
    "MQDMPR-event-resume_queue",
)
def test_an_administrator_pauses_and_resumes_a_queue(qm: RunningQueueManager) -> None:
    queue = outgoing(qm)
    qm.engine.outgoing.admin_pause_queue(queue)
    assert queue.state is OutgoingQueueState.ON_HOLD
    qm.engine.outgoing.admin_resume_queue(queue)
    assert queue.state.value == "Inactive"


@pytest.mark.conformance("MQDMPR-rule-3.1.3")
def test_hardened_security_locks_at_the_start_and_unlocks_when_it_is_gone(
    qm: RunningQueueManager,
) -> None:
    for name in (r"DIRECT=OS:other\q", "DIRECT=HTTP://other/msmq/q"):
        qm.send(outgoing(qm, name), b"a")
    hardened = QueueManagerSettings(SETTINGS.computer_name, hardened_security=True)
    qm.restart(hardened)
    states = [queue.state for queue in qm.engine.outgoing.list()]
    assert states == [OutgoingQueueState.LOCKED, OutgoingQueueState.INACTIVE]
    locked = outgoing(qm, r"DIRECT=OS:third\q")
    qm.send(locked, b"a")
    qm.restart(SETTINGS)
    states = [queue.state for queue in qm.engine.outgoing.list()]
    assert states == [
        OutgoingQueueState.INACTIVE,
        OutgoingQueueState.INACTIVE,
        OutgoingQueueState.WAITING,
    ]


# Dispatching


@pytest.mark.conformance(
    "MQDMPR-event-add_message_to_dispatch_collection",
    "MQDMPR-event-dispatch_send_message",
    "MQDMPR-element-DispatchEntry",
)
def test_one_message_is_sent_at_a_time(qm: RunningQueueManager) -> None:
    protocol, queue = Protocol(qm), outgoing(qm)
    positions = [MessagePosition(queue, qm.send(queue, body)) for body in (b"a", b"b")]
    for number, position in enumerate(positions):
        qm.engine.outgoing.add_message_to_dispatch_collection(number + 1, position)
    assert protocol.binary == [(1, positions[0])]
    entries = qm.engine.queue_manager.dispatch_collection
    assert [entry.send_in_progress for entry in entries] == [True, False]
    assert [entry.priority for entry in entries] == [3, 3]
    qm.engine.outgoing.remove_message_from_dispatch_collection(positions[0])
    assert protocol.binary == [(1, positions[0]), (2, positions[1])]


@pytest.mark.conformance(
    "MQDMPR-event-dispatch_send_message",
    "MQDMPR-event-remove_message_from_dispatch_collection",
    "MQDMPR-event-add_message_to_dispatch_collection",
)
def test_the_highest_priority_is_sent_first(qm: RunningQueueManager) -> None:
    """The priority of the queue and that of the message are added."""
    protocol, urgent = Protocol(qm), outgoing(qm, r"DIRECT=OS:urgent\q")
    plain = outgoing(qm)
    urgent.base_priority = 10
    first = MessagePosition(plain, qm.send(plain, b"1", priority=0))
    sent = [
        MessagePosition(plain, qm.send(plain, b"2", priority=7)),
        MessagePosition(urgent, qm.send(urgent, b"3", priority=0)),
        MessagePosition(plain, qm.send(plain, b"4", priority=1)),
    ]
    for position in (first, *sent):
        qm.engine.outgoing.add_message_to_dispatch_collection("x", position)
    for position in (first, sent[1], sent[0], sent[2]):
        assert protocol.binary[-1][1] == position
        qm.engine.outgoing.remove_message_from_dispatch_collection(position)
    assert qm.engine.queue_manager.dispatch_collection == []


@pytest.mark.conformance("MQDMPR-event-dispatch_send_message")
def test_the_protocols_data_tells_which_protocol_sends(qm: RunningQueueManager) -> None:
    protocol, queue = Protocol(qm), outgoing(qm)
    position = MessagePosition(queue, qm.send(queue, b"a"))
    qm.engine.outgoing.add_message_to_dispatch_collection(None, position)
    assert protocol.srmp == [(None, position)]
    assert protocol.binary == []


@pytest.mark.conformance("MQDMPR-event-dispatch_send_message")
def test_what_is_gone_meanwhile_is_not_sent(qm: RunningQueueManager) -> None:
    protocol, queue = Protocol(qm), outgoing(qm)
    first, second = (MessagePosition(queue, qm.send(queue, body)) for body in (b"a", b"b"))
    third = MessagePosition(queue, qm.send(queue, b"c"))
    for position in (first, second, third):
        qm.engine.outgoing.add_message_to_dispatch_collection("x", position)
    reader = qm.open(r"DIRECT=OS:other\q", QueueAccessType.RECEIVE_ADMIN_ACCESS)
    for expected in (b"a", b"b"):
        assert qm.receive(reader) == expected
    qm.engine.outgoing.remove_message_from_dispatch_collection(first)
    assert [position for _, position in protocol.binary] == [first, third]


@pytest.mark.conformance("MQDMPR-event-remove_messages_from_dispatch_collection_by_queue")
def test_a_queue_is_taken_out_of_the_dispatcher(qm: RunningQueueManager) -> None:
    Protocol(qm)
    queue, other = outgoing(qm), outgoing(qm, r"DIRECT=OS:third\q")
    for target in (queue, other, queue):
        position = MessagePosition(target, qm.send(target, b"a"))
        qm.engine.outgoing.add_message_to_dispatch_collection("x", position)
    qm.engine.outgoing.remove_messages_from_dispatch_collection_by_queue(queue)
    (entry,) = qm.engine.queue_manager.dispatch_collection
    assert entry.message_position_reference.queue_reference is other


def test_without_a_protocol_messages_stay_in_the_collection(qm: RunningQueueManager) -> None:
    queue = outgoing(qm)
    position = MessagePosition(queue, qm.send(queue, b"a"))
    qm.engine.outgoing.add_message_to_dispatch_collection("x", position)
    (entry,) = qm.engine.queue_manager.dispatch_collection
    assert not entry.send_in_progress
