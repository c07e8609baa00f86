"""Queues whose stored names this version refuses: they are left alone, and lose nothing (G494)."""

import struct

from structlog.testing import capture_logs

from rpcqm.adm.message import MessagePosition
from rpcqm.codec.names.written import format_name
from rpcqm.codec.types.mqvalues import QueueAccessType
from rpcqm.qm import acknowledgement_queues
from rpcqm.qm.transfer import AWAITING_PREFIX, IN_DOUBT_PREFIX
from rpcqm.store.records import QUEUE_ID, Family
from tests.support.queue_manager import RunningQueueManager

SECOND = 1_000


def rename(qm: RunningQueueManager, before: bytes, after: bytes) -> None:
    """Let records of queues have another name, as a version that took it has written them."""
    with qm.store.transaction("another version") as change:
        for key, value in list(qm.store.records(Family.QUEUE)):
            if before in value:
                change.put(Family.QUEUE, key, value.replace(before, after))
    qm.settle()


def refuse(qm: RunningQueueManager) -> list[dict[str, object]]:
    """Start with a name that is refused; the lines that the log has of it."""
    rename(qm, b'late"', b'la+te"')
    with capture_logs() as lines:
        qm.restart()
    return [dict(line) for line in lines if line["event"] == "a queue cannot be used"]


def take_again(qm: RunningQueueManager) -> None:
    """Start as a version that takes the name."""
    rename(qm, b'la+te"', b'late"')
    qm.restart()


def test_a_queue_of_a_refused_name_is_left_alone_with_its_subqueue_and_its_journal(
    qm: RunningQueueManager,
) -> None:
    late = qm.create(r"private$\late", journaling=True)
    qm.create(r"private$\orders")
    for body in (b"one", b"two"):
        qm.send(late, body)
    qm.receive(qm.open(late))
    qm.send(late, b"three")
    qm.engine.trail.switch(late, True)
    aside = qm.subqueue(late, "aside")
    first = late.message_position_list.first()
    assert first is not None
    qm.done(qm.engine.messages.move_message(MessagePosition(late, first), aside))
    lines = refuse(qm)
    assert [(line["queue"], line["messages"]) for line in lines] == [
        (r"WORKSTATION\private$\la+te", 2),
        (r"WORKSTATION\private$\late;aside", 1),
    ]
    assert "MQ_ERROR_ILLEGAL_QUEUE_PATHNAME" in str(lines[0]["reason"])
    assert lines[1]["reason"] == "its main queue cannot be used"
    assert qm.engine.registry.find_by_path(r".\private$\late") is None
    assert qm.find(r"private$\orders")
    assert qm.store.total.count == 3
    take_again(qm)
    late = qm.find(r"private$\late")
    assert qm.bodies(late) == [b"three"]
    assert qm.bodies(late.journal_queue_reference) == [b"one"]
    assert qm.bodies(qm.find(r"private$\late;aside")) == [b"two"]
    assert late.trail
    assert qm.engine.queue_manager.unusable_queues == {}


def test_times_do_not_end_in_a_queue_that_is_left_alone_and_end_in_others(
    qm: RunningQueueManager,
) -> None:
    late, orders = qm.create(r"private$\late"), qm.create(r"private$\orders")
    for queue in (late, orders):
        qm.send(queue, b"expires", time_to_be_received=10)
    qm.send(late, b"stays")
    refuse(qm)
    looked = qm.engine.expiry.look
    looks = 0

    def look() -> None:
        nonlocal looks
        looks += 1
        looked()

    qm.engine.expiry.look = look  # type: ignore[method-assign]
    qm.advance(12 * SECOND)
    assert qm.bodies(qm.find(r"private$\orders")) == []
    assert qm.store.total.count == 2
    assert looks < 5
    take_again(qm)
    qm.advance(SECOND)
    assert qm.bodies(qm.find(r"private$\late")) == [b"stays"]


def test_what_protocols_remember_of_an_outgoing_queue_is_kept(qm: RunningQueueManager) -> None:
    name = format_name("DIRECT=HTTP://192.0.2.9/msmq/private$/orders")
    queue = qm.open(name, QueueAccessType.SEND_ACCESS).queue_reference
    assert queue is not None
    key = qm.send(queue, b"waits")
    place = struct.Struct(">IQ").pack(queue.queue_id, key)
    records: dict[bytes, bytes | None] = {
        AWAITING_PREFIX + place: b"",
        IN_DOUBT_PREFIX + place: b"",
        acknowledgement_queues._PREFIX + QUEUE_ID.pack(queue.queue_id): b"192.0.2.1",
    }
    qm.done(qm.engine.protocol_records.write(records))
    rename(qm, b"192.0.2.9", b"[192.0.2.9]")
    qm.restart()
    assert list(qm.engine.queue_manager.unusable_queues) == [queue.queue_id]
    assert all(qm.engine.protocol_records.get(record) is not None for record in records)
    rename(qm, b"[192.0.2.9]", b"192.0.2.9")
    qm.restart()
    found = qm.engine.registry.by_destination[name]
    assert found.message_count == 1
    assert found in qm.engine.acknowledgement_queues
    assert qm.engine.transfer.held == {(queue.queue_id, key)}
