"""Outgoing queues ([MS-MQDMPR] 3.1.1.3, 3.1.4.14, .15)."""

import pytest

from rpcqm.adm.enums import OutgoingQueueState
from rpcqm.adm.queue import OutgoingQueue
from rpcqm.codec.types.mqvalues import QueueAccessType
from rpcqm.qm.settings import QueueManagerSettings
from tests.support.queue_manager import SETTINGS, RunningQueueManager

SEND = QueueAccessType.SEND_ACCESS


def outgoing(qm: RunningQueueManager, name: str = r"DIRECT=OS:other\q") -> OutgoingQueue:
    queue = qm.open(name, SEND).queue_reference
    assert isinstance(queue, OutgoingQueue)
    return queue


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
    paused = qm.engine.outgoing.admin_pause_queue(queue)
    assert queue.state is OutgoingQueueState.ON_HOLD
    assert not paused.done, "who is told that it is on hold may rely on that (G534)"
    qm.done(paused)
    qm.done(qm.engine.outgoing.admin_resume_queue(queue))
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
