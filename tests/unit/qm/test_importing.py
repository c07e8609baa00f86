"""Messages that were exported come back as they were."""

import pytest

from rpcqm.adm.queue import Queue
from rpcqm.base.completion import Completion
from rpcqm.codec.packet.enums import AcknowledgementsRequested
from rpcqm.qm.importing import import_message
from tests.support.queue_manager import RunningQueueManager, refusal


def imported(qm: RunningQueueManager, queue: Queue, packet: bytes) -> Completion[int]:
    engine = qm.engine
    return import_message(
        qm.store, engine.admission, engine.quotas, engine.positions, queue, packet
    )


def test_an_imported_message_is_as_it_was(qm: RunningQueueManager) -> None:
    queue, other = qm.create(), qm.create(r"private$\other")
    message = qm.compose(queue, b"a", label="fruit", priority=6, time_to_reach_queue=10)
    qm.advance(100_000)
    key = qm.done(imported(qm, other, message.packet))
    found = qm.engine.positions.message_at(other, key)
    assert found.attributes.identifier == message.attributes.identifier
    assert found.attributes.sent_time == message.attributes.sent_time
    assert (found.attributes.label, found.attributes.body) == ("fruit", b"a")
    assert key >> 56 == 7 - 6
    assert qm.receive(qm.open(other)) == b"a"


def test_it_is_durable_and_waiting_readers_get_it(qm: RunningQueueManager) -> None:
    queue = qm.create()
    packet = qm.compose(queue, b"a").packet
    waiting = qm.engine.messages.dequeue_message(qm.open(queue), 60_000)
    coming = imported(qm, queue, packet)
    assert not coming.done
    assert qm.done(waiting).attributes.body == b"a"
    qm.done(imported(qm, queue, packet))
    qm.restart()
    assert qm.bodies(qm.find()) == [b"a"]


def test_nobody_is_sent_an_acknowledgement(qm: RunningQueueManager) -> None:
    queue, acks = qm.create(), qm.create(r"private$\acks")
    message = qm.compose(
        queue,
        b"a",
        acknowledgements_requested=AcknowledgementsRequested.ACK_POS_ARRIVAL,
        administration_queue_format_name=qm.engine.queues.format_name_of(acks),
    )
    qm.done(imported(qm, queue, message.packet))
    assert qm.bodies(acks) == []


def test_its_time_to_be_received_goes_on(qm: RunningQueueManager) -> None:
    queue = qm.create()
    packet = qm.compose(queue, b"a", time_to_be_received=10).packet
    qm.done(imported(qm, queue, packet))
    assert qm.bodies(queue) == [b"a"]
    qm.advance(20_000)
    assert qm.bodies(queue) == []
    qm.done(imported(qm, queue, packet))
    assert qm.bodies(queue) == []


def test_a_message_of_the_other_kind_is_refused(qm: RunningQueueManager) -> None:
    packet = qm.compose(qm.create(), b"a").packet
    exact = qm.create(r"private$\exact", transactional=True)
    assert refusal(imported, qm, exact, packet) == "MQ_ERROR_TRANSACTION_USAGE"


@pytest.mark.parametrize("cut", [0, 10, 100])
def test_what_is_no_message_is_refused(qm: RunningQueueManager, cut: int) -> None:
    queue = qm.create()
    packet = qm.compose(queue, b"a").packet[:cut]
    assert refusal(imported, qm, queue, packet) == "MQ_ERROR_INVALID_PARAMETER"


def test_quotas_hold(qm: RunningQueueManager) -> None:
    queue = qm.create(quota=1)
    packet = qm.compose(queue, bytes(2000)).packet
    with pytest.raises(Exception, match="at its quota"):
        imported(qm, queue, packet)


def test_nothing_is_imported_during_maintenance(qm: RunningQueueManager) -> None:
    queue = qm.create()
    packet = qm.compose(queue, b"a").packet
    qm.done(qm.engine.begin_maintenance("alice", "a new disk"))
    assert refusal(imported, qm, queue, packet) == "MQ_ERROR_SERVICE_NOT_AVAILABLE"
    qm.engine.end_maintenance()
    qm.done(imported(qm, queue, packet))
    assert qm.bodies(queue) == [b"a"]
