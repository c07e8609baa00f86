"""Journals, dead letters and administration acknowledgements."""

from typing import Any
from uuid import UUID, uuid4

import pytest

from rpcqm.adm.message import Message, MessagePosition
from rpcqm.adm.queue import OutgoingQueue, Queue
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.enums import (
    MessageAuthenticationLevel,
    MessageClass,
    PrivacyLevel,
)
from rpcqm.codec.packet.message import MessageAttributes, build_user_message
from rpcqm.codec.packet.patch import set_authentication_level
from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.codec.security.identifier import sid_bytes
from rpcqm.codec.security.sddl import parse_sddl
from rpcqm.codec.types.mqvalues import INFINITE, QueueAccessType
from rpcqm.qm.settings import QueueManagerSettings
from tests.support.qm.acknowledging import (
    DELETED,
    EXPIRED,
    NA,
    NR,
    PA,
    PR,
    PURGED,
    REACHED,
    RECEIVED,
    asking,
    classes,
)
from tests.support.queue_manager import SETTINGS, RunningQueueManager


@pytest.fixture
def administration(qm: RunningQueueManager) -> Queue:
    return qm.create(r"private$\acks")


def begin(qm: RunningQueueManager) -> Any:
    return qm.engine.transactions.create_transaction(uuid4())


# Target journal


@pytest.mark.conformance("MQDMPR-event-message_position_deleted")
def test_a_received_message_is_kept_in_the_journal_by_the_same_commit(
    qm: RunningQueueManager,
) -> None:
    """G14."""
    queue = qm.create(journaling=True)
    journal = queue.journal_queue_reference
    for body in (b"a", b"b"):
        qm.send(queue, body, priority=5, time_to_be_received=60)
    received = qm.engine.messages.dequeue_message(qm.open(queue), 0)
    assert qm.bodies(journal) == []
    qm.done(received)
    assert qm.bodies(journal) == [b"a"]
    qm.restart()
    assert qm.bodies(qm.find().journal_queue_reference) == [b"a"]
    qm.advance(120_000)
    assert qm.bodies(qm.find().journal_queue_reference) == [b"a"]


def test_only_what_was_received_is_journaled(qm: RunningQueueManager) -> None:
    queue = qm.create(journaling=True)
    qm.send(queue, b"purged")
    qm.send(queue, b"expired", time_to_be_received=1)
    qm.advance(1_000)
    qm.done(qm.engine.queues.purge_queue(queue))
    assert qm.bodies(queue.journal_queue_reference) == []


def test_two_phase_reads_and_transactions_are_journaled_at_their_end(
    qm: RunningQueueManager,
) -> None:
    queue = qm.create(journaling=True, transactional=True)
    journal = queue.journal_queue_reference
    sender = begin(qm)
    for body in (b"a", b"b"):
        qm.send(queue, body, sender)
    qm.done(qm.engine.transactions.transaction_commit(sender.identifier))
    descriptor = qm.open(queue)
    position = qm.lock(descriptor)
    reader = begin(qm)
    qm.done(qm.engine.messages.dequeue_message(descriptor, 0, transaction=reader))
    assert qm.bodies(journal) == []
    qm.done(qm.engine.messages.dequeue_message_end(descriptor, position, True))
    assert qm.bodies(journal) == [b"a"]
    qm.done(qm.engine.transactions.transaction_commit(reader.identifier))
    assert qm.bodies(journal) == [b"a", b"b"]


def test_receiving_from_a_journal_is_the_end(qm: RunningQueueManager) -> None:
    queue = qm.create(journaling=True)
    qm.send(queue, b"a")
    qm.receive(qm.open(queue))
    journal = queue.journal_queue_reference
    assert journal is not None
    assert qm.receive(qm.open(journal)) == b"a"
    assert qm.bodies(journal) == []
    assert qm.store.total.count == 0


def test_a_subqueue_is_journaled_like_its_parent(qm: RunningQueueManager) -> None:
    queue = qm.create(journaling=True)
    subqueue = qm.subqueue(queue, "sub")
    position = qm.engine.messages.position(queue, qm.send(queue, b"a"))
    assert position is not None
    qm.done(qm.engine.messages.move_message(position, subqueue))
    assert qm.bodies(queue.journal_queue_reference) == []
    qm.receive(qm.open(f"DIRECT=OS:{subqueue.pathname}"))
    assert qm.bodies(queue.journal_queue_reference) == [b"a"]


def test_a_full_journal_removes_without_a_copy(qm: RunningQueueManager) -> None:
    """Journal quota in KB (G58)."""
    queue = qm.create(journaling=True, journal_quota=1)
    for number in range(3):
        qm.send(queue, b"%d" % number * 500)
    descriptor = qm.open(queue)
    for number in range(3):
        assert qm.receive(descriptor) == b"%d" % number * 500
    assert len(qm.bodies(queue.journal_queue_reference)) == 1
    assert queue.message_count == 0


# Source journal


def test_a_message_delivered_here_is_kept_in_the_journal_of_its_source(
    qm: RunningQueueManager,
) -> None:
    queue = qm.create()
    qm.send(queue, b"a", positive_journaling_requested=True)
    journal = qm.engine.queue_manager.system_journal_queue
    assert qm.bodies(journal) == [b"a"]
    qm.receive(qm.open(queue))
    assert qm.bodies(journal) == [b"a"]


def test_a_transactional_message_is_journaled_at_its_source_when_received(
    qm: RunningQueueManager,
) -> None:
    queue = qm.create(transactional=True)
    sender = begin(qm)
    qm.send(queue, b"a", sender, positive_journaling_requested=True)
    qm.done(qm.engine.transactions.transaction_commit(sender.identifier))
    journal = qm.engine.queue_manager.system_journal_queue
    assert qm.bodies(journal) == []
    qm.receive(qm.open(queue))
    assert qm.bodies(journal) == [b"a"]


def test_a_message_from_elsewhere_is_not_journaled_here(qm: RunningQueueManager) -> None:
    queue = qm.create()
    message = foreign(qm, queue, positive_journaling_requested=True)
    qm.done(qm.engine.messages.enqueue_message(queue, message))
    assert qm.bodies(qm.engine.queue_manager.system_journal_queue) == []


def test_a_full_system_journal_takes_no_copy(qm: RunningQueueManager) -> None:
    qm.restart(QueueManagerSettings(SETTINGS.computer_name, journal_quota=1))
    queue = qm.create()
    for _ in range(2):
        qm.send(queue, bytes(600), positive_journaling_requested=True)
    assert len(qm.bodies(qm.engine.queue_manager.system_journal_queue)) == 1
    assert queue.message_count == 2


def foreign(qm: RunningQueueManager, queue: Queue, **more: Any) -> Message:
    """A message as another queue manager would have sent it."""
    attributes = MessageAttributes(
        body=b"foreign",
        identifier=MessageIdentifier(UUID(int=99), 1),
        sent_time=qm.clock.now() // 1000,
        destination_queue_format_name=FormatName.parse(f"DIRECT=OS:{queue.pathname}"),
        delivery_guarantee=1,
        **more,
    )
    return Message(build_user_message(attributes))


# Dead letters


def test_what_expires_or_is_purged_is_a_dead_letter_when_it_asks_for_it(
    qm: RunningQueueManager,
) -> None:
    queue = qm.create()
    deadletter = qm.engine.queue_manager.system_deadletter_queue
    qm.send(queue, b"expired", negative_journaling_requested=True, time_to_be_received=1)
    qm.advance(1_000)
    assert qm.bodies(deadletter) == [b"expired"]
    qm.send(queue, b"purged", negative_journaling_requested=True)
    qm.send(queue, b"silent")
    qm.done(qm.engine.queues.purge_queue(queue))
    assert qm.bodies(deadletter) == [b"expired", b"purged"]
    qm.restart()
    assert qm.bodies(qm.engine.queue_manager.system_deadletter_queue) == [b"expired", b"purged"]


def test_a_message_whose_queue_is_deleted_becomes_a_dead_letter_if_it_asks_for_that(
    qm: RunningQueueManager,
) -> None:
    """What is in its subqueues, too; journals keep copies, which are no dead letters."""
    queue = qm.create(journaling=True)
    for body in (b"read", b"moved", b"waits"):
        qm.send(queue, body, negative_journaling_requested=True)
    qm.send(queue, b"silent")
    qm.receive(qm.open(queue))
    position = MessagePosition(queue, queue.message_position_list.page(None, 1)[0])
    qm.done(qm.engine.messages.move_message(position, qm.subqueue(queue, "late")))
    qm.done(qm.engine.queues.delete_queue(queue))
    deadletter = qm.engine.queue_manager.system_deadletter_queue
    assert sorted(qm.bodies(deadletter)) == [b"moved", b"waits"]
    assert qm.engine.dead_letters.by_reason() == {"q_deleted": 2}
    qm.restart()
    assert qm.engine.dead_letters.by_reason() == {"q_deleted": 2}


def test_a_received_message_is_no_dead_letter(qm: RunningQueueManager) -> None:
    queue = qm.create()
    qm.send(queue, b"a", negative_journaling_requested=True)
    qm.receive(qm.open(queue))
    assert qm.bodies(qm.engine.queue_manager.system_deadletter_queue) == []


@pytest.mark.parametrize("source", ["here", "elsewhere"])
def test_a_transactional_message_is_a_dead_letter_at_its_source_only(
    qm: RunningQueueManager, source: str
) -> None:
    queue = qm.create(transactional=True)
    if source == "here":
        sender = begin(qm)
        qm.send(queue, b"a", sender, negative_journaling_requested=True, time_to_be_received=1)
        qm.done(qm.engine.transactions.transaction_commit(sender.identifier))
    else:
        message = foreign(
            qm,
            queue,
            negative_journaling_requested=True,
            time_to_be_received=1,
            transaction_identifier=7,
        )
        qm.done(qm.engine.messages.enqueue_message(queue, message))
    qm.advance(1_000)
    assert queue.message_count == 0
    manager = qm.engine.queue_manager
    assert qm.bodies(manager.system_deadletter_queue) == []
    kept = [b"a"] if source == "here" else []
    assert qm.bodies(manager.system_transactional_deadletter_queue) == kept


def test_a_transactional_message_whose_queue_was_deleted_is_kept_by_its_source(
    qm: RunningQueueManager, administration: Queue
) -> None:
    queue = qm.create(transactional=True)
    sender = begin(qm)
    qm.send(queue, b"a", sender, negative_journaling_requested=True, **asking(administration, NR))
    qm.done(qm.engine.queues.delete_queue(queue))
    qm.done(qm.engine.transactions.transaction_commit(sender.identifier))
    manager = qm.engine.queue_manager
    assert qm.bodies(manager.system_transactional_deadletter_queue) == [b"a"]
    assert classes(qm, administration) == [DELETED]


def test_a_message_refused_for_quota_is_a_dead_letter_of_the_destination(
    qm: RunningQueueManager, administration: Queue
) -> None:
    queue = qm.create()
    message = foreign(qm, queue, negative_journaling_requested=True, **asking(administration, NA))
    exceeded = MessageClass.MQMSG_CLASS_NACK_Q_EXCEED_QUOTA
    qm.done(qm.engine.acknowledgements.message_refused(message, exceeded))
    assert qm.bodies(qm.engine.queue_manager.system_deadletter_queue) == [b"foreign"]
    assert classes(qm, administration) == [exceeded]


# Administration acknowledgements


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (0, []),
        (PA, [REACHED]),
        (PR, [RECEIVED]),
        (PA | PR, [REACHED, RECEIVED]),
        (NA | NR, []),
    ],
)
def test_a_message_that_is_received_is_acknowledged_as_it_asks(
    qm: RunningQueueManager, administration: Queue, flags: int, expected: list[int]
) -> None:
    queue = qm.create()
    qm.send(queue, b"a", **asking(administration, flags))
    qm.receive(qm.open(queue))
    assert classes(qm, administration) == expected


@pytest.mark.parametrize("how", ["purge", "delete", "expire"])
def test_a_message_that_is_not_received_is_acknowledged_negatively(
    qm: RunningQueueManager, administration: Queue, how: str
) -> None:
    queue = qm.create()
    qm.send(queue, b"a", time_to_be_received=10, **asking(administration, NR))
    qm.send(queue, b"b", time_to_be_received=10, **asking(administration, PR))
    if how == "purge":
        qm.done(qm.engine.queues.purge_queue(queue))
    elif how == "delete":
        qm.done(qm.engine.queues.delete_queue(queue))
    else:
        qm.advance(10_000)
    expected = {"purge": PURGED, "delete": DELETED, "expire": EXPIRED}[how]
    assert classes(qm, administration) == [expected]


@pytest.mark.conformance("MQQB-event-send_administration_acknowledgment")
def test_what_an_acknowledgement_says(qm: RunningQueueManager, administration: Queue) -> None:
    queue = qm.create()
    key = qm.send(queue, b"body", label="L", **asking(administration, PA | NR))
    original = qm.engine.positions.message_at(queue, key).attributes
    qm.done(qm.engine.queues.purge_queue(queue))
    first, second = (
        qm.engine.positions.message_at(administration, key).attributes
        for key in administration.message_position_list.page(None, 10)
    )
    for acknowledgement in (first, second):
        assert acknowledgement.correlation_identifier == original.identifier
        assert acknowledgement.identifier != original.identifier
        assert acknowledgement.source_machine_identifier == qm.engine.queue_manager.identifier
        response = acknowledgement.response_queue_format_name
        assert response == original.destination_queue_format_name
        assert acknowledgement.delivery_guarantee == original.delivery_guarantee
        assert acknowledgement.time_to_be_received == 0xFFFFFFFF
        assert acknowledgement.time_to_reach_queue == 0xFFFFFFFF
        assert acknowledgement.acknowledgements_requested == 0
        assert not acknowledgement.negative_journaling_requested
    assert first.body == b""
    assert second.body == b"body"


@pytest.mark.conformance("MQQB-event-send_administration_acknowledgment")
def test_an_acknowledgement_asks_for_nothing_that_its_message_asked_for(
    qm: RunningQueueManager, administration: Queue
) -> None:
    queue = qm.create()
    qm.send(
        queue,
        b"body",
        time_to_reach_queue=50,
        time_to_be_received=60,
        positive_journaling_requested=True,
        negative_journaling_requested=True,
        privacy_level=PrivacyLevel.BASE,
        **asking(administration, PA | NR),
    )
    qm.done(qm.engine.queues.purge_queue(queue))
    told = administration.message_position_list.page(None, 10)
    assert len(told) == 2
    for key in told:
        acknowledgement = qm.engine.positions.message_at(administration, key).attributes
        assert acknowledgement.time_to_reach_queue == INFINITE
        assert acknowledgement.time_to_be_received == INFINITE
        assert acknowledgement.acknowledgements_requested == 0
        assert not acknowledgement.positive_journaling_requested
        assert not acknowledgement.negative_journaling_requested
        assert acknowledgement.privacy_level == PrivacyLevel.NONE
        assert acknowledgement.authentication_level == MessageAuthenticationLevel.NONE
        assert acknowledgement.body == b""


def test_an_express_message_is_acknowledged_by_an_express_one(
    qm: RunningQueueManager, administration: Queue
) -> None:
    queue = qm.create()
    qm.send(queue, b"a", delivery_guarantee=0, **asking(administration, PA))
    assert classes(qm, administration) == [REACHED]
    qm.restart()
    assert classes(qm, qm.find(r"private$\acks")) == []


def test_acknowledgement_and_removal_are_one_commit(
    qm: RunningQueueManager, administration: Queue
) -> None:
    queue = qm.create()
    qm.send(queue, b"a", **asking(administration, PR))
    commits = qm.store.metrics.snapshot()["store_commits"]
    received = qm.engine.messages.dequeue_message(qm.open(queue), 0)
    assert classes(qm, administration) == []
    qm.done(received)
    assert classes(qm, administration) == [RECEIVED]
    assert qm.store.metrics.snapshot()["store_commits"] == commits + 1


def test_a_transaction_is_acknowledged_when_it_commits(
    qm: RunningQueueManager, administration: Queue
) -> None:
    queue = qm.create(transactional=True)
    sender = begin(qm)
    qm.send(queue, b"a", sender, **asking(administration, PA | PR))
    assert classes(qm, administration) == []
    qm.done(qm.engine.transactions.transaction_commit(sender.identifier))
    assert classes(qm, administration) == [REACHED]
    reader = begin(qm)
    qm.done(qm.engine.messages.dequeue_message(qm.open(queue), 0, transaction=reader))
    qm.done(qm.engine.transactions.transaction_abort(reader.identifier))
    assert classes(qm, administration) == [REACHED]
    qm.receive(qm.open(queue))
    assert classes(qm, administration) == [REACHED, RECEIVED]


@pytest.mark.parametrize("journaling", [False, True])
def test_the_source_journals_its_transactional_message_whatever_the_queue_journals(
    qm: RunningQueueManager, journaling: bool
) -> None:
    queue = qm.create(transactional=True, journaling=journaling)
    sender = begin(qm)
    qm.send(queue, b"a", sender, positive_journaling_requested=True)
    qm.done(qm.engine.transactions.transaction_commit(sender.identifier))
    assert qm.bodies(qm.find("system$;journal")) == []
    qm.receive(qm.open(queue))
    qm.restart()
    assert qm.bodies(qm.find("system$;journal")) == [b"a"]
    journal = qm.find().journal_queue_reference
    assert qm.bodies(journal) == ([b"a"] if journaling else [])


def test_an_acknowledgement_wakes_who_waits_for_it(
    qm: RunningQueueManager, administration: Queue
) -> None:
    queue = qm.create()
    waiting = qm.engine.messages.dequeue_message(qm.open(administration))
    qm.send(queue, b"a", **asking(administration, PA))
    assert waiting.result().attributes.message_class == REACHED


def test_an_acknowledgement_for_elsewhere_waits_in_an_outgoing_queue(
    qm: RunningQueueManager,
) -> None:
    queue = qm.create()
    name = FormatName.parse(r"DIRECT=TCP:198.51.100.1\private$\acks")
    qm.send(queue, b"a", acknowledgements_requested=PA, administration_queue_format_name=name)
    qm.restart()
    (outgoing,) = qm.engine.outgoing.list()
    assert isinstance(outgoing, OutgoingQueue)
    assert outgoing.destination_format_name == str(name)
    assert classes(qm, outgoing) == [REACHED]


@pytest.mark.parametrize("kind", ["transactional", "full", "missing"])
def test_an_acknowledgement_that_finds_no_place_is_dropped(
    qm: RunningQueueManager, kind: str
) -> None:
    queue = qm.create()
    administration = qm.create(
        r"private$\acks", transactional=kind == "transactional", quota=0 if kind == "full" else 9
    )
    if kind == "missing":
        qm.done(qm.engine.queues.delete_queue(administration))
    qm.send(queue, b"a", **asking(administration, PA))
    assert qm.bodies(queue) == [b"a"]
    assert qm.store.total.count == 1


def test_a_full_disk_does_not_stop_acknowledgements(
    qm: RunningQueueManager, administration: Queue
) -> None:
    queue = qm.create()
    qm.send(queue, b"a", **asking(administration, PR))
    qm.free = 0
    qm.advance(2_000)
    qm.receive(qm.open(queue))
    assert classes(qm, administration) == [RECEIVED]


@pytest.mark.parametrize("insecure", [False, True])
def test_strangers_are_not_told_why_they_were_refused(
    qm: RunningQueueManager, insecure: bool
) -> None:
    """SendInsecureNacks, off by default ([MS-MQQB] 3.1.7.15)."""
    qm.restart(QueueManagerSettings(SETTINGS.computer_name, send_insecure_nacks=insecure))
    administration = qm.create(r"private$\acks")
    denied = MessageClass.MQMSG_CLASS_NACK_ACCESS_DENIED
    message = foreign(qm, administration, **asking(administration, NA))
    qm.done(qm.engine.acknowledgements.message_refused(message, denied))
    assert classes(qm, administration) == ([denied] if insecure else [])


def test_what_leaves_an_outgoing_queue_by_hand_never_arrived(
    qm: RunningQueueManager, administration: Queue
) -> None:
    descriptor = qm.open(r"DIRECT=OS:other\q", QueueAccessType.SEND_ACCESS)
    outgoing = descriptor.queue_reference
    assert outgoing is not None
    for body in (b"a", b"b"):
        qm.send(outgoing, body, **asking(administration, PR | NA))
    reader = qm.open(r"DIRECT=OS:other\q", QueueAccessType.RECEIVE_ADMIN_ACCESS)
    qm.receive(reader)
    qm.done(qm.engine.queues.purge_queue(outgoing))
    never = MessageClass.MQMSG_CLASS_NACK_DELETED
    assert classes(qm, administration) == [never, never]


def test_a_damaged_packet_is_removed_without_acknowledgement(
    qm: RunningQueueManager, administration: Queue
) -> None:
    queue = qm.create()
    packet = qm.compose(queue, b"a", **asking(administration, PR)).packet
    message = Message(packet[:70])
    qm.done(qm.engine.messages.enqueue_message(queue, message))
    qm.done(qm.engine.queues.purge_queue(queue))
    assert classes(qm, administration) == []
    assert queue.message_count == 0


# Administration queues of this machine, named by messages from elsewhere

CLOSED_TO_ANONYMOUS = "O:SYG:SYD:(A;;0x7;;;WD)"
CLOSED_TO_ALL = "O:SYG:SYD:(A;;0x1f003f;;;SY)"
SENDER = "S-1-5-21-1-2-3-1001"


@pytest.mark.conformance("MQQB-event-send_administration_acknowledgment")
@pytest.mark.parametrize(
    ("descriptor", "signed", "told"),
    [
        (CLOSED_TO_ANONYMOUS, False, []),
        (CLOSED_TO_ANONYMOUS, True, [REACHED, PURGED]),
        (CLOSED_TO_ALL, True, []),
    ],
)
def test_a_message_from_elsewhere_writes_into_no_queue_that_its_sender_may_not_write_into(
    qm: RunningQueueManager,
    administration: Queue,
    descriptor: str,
    signed: bool,
    told: list[MessageClass],
) -> None:
    administration.security = parse_sddl(descriptor).encode()
    queue = qm.create()
    message = from_elsewhere(qm, queue, administration, signed)
    qm.done(qm.engine.messages.enqueue_message(queue, message))
    qm.done(qm.engine.queues.purge_queue(queue))
    assert classes(qm, administration) == told


def from_elsewhere(
    qm: RunningQueueManager, queue: Queue, administration: Queue, signed: bool
) -> Message:
    """What has arrived, with the mark of a signature that was found good."""
    attributes = MessageAttributes(
        destination_queue_format_name=FormatName.parse(f"DIRECT=OS:{queue.pathname}"),
        identifier=MessageIdentifier(UUID(int=5), 7),
        sent_time=qm.clock.now() // 1000,
        body=b"anything",
        delivery_guarantee=1,
        sender_identifier_type=1,
        sender_identifier=sid_bytes(SENDER),
        **asking(administration, PA | NR),
    )
    packet = bytearray(build_user_message(attributes))
    if signed:
        set_authentication_level(packet, MessageAuthenticationLevel.SIG20)
    message = Message(bytes(packet))
    message.source_address = "192.0.2.66"
    return message


@pytest.mark.conformance("MQDMPR-event-transaction_abort")
@pytest.mark.parametrize("end", ["abort", "stop", "crash"])
def test_a_message_purged_under_a_transaction_was_purged_however_that_ends(
    qm: RunningQueueManager, administration: Queue, end: str
) -> None:
    """Nobody has received it, and so there is no copy in the journal either (G465)."""
    queue = qm.create(transactional=True, journaling=True)
    sending, receiving = begin(qm), begin(qm)
    qm.send(queue, b"a", sending, **asking(administration, PR | NR))
    qm.done(qm.engine.transactions.transaction_commit(sending.identifier))
    qm.done(qm.engine.messages.dequeue_message(qm.open(queue), 0, transaction=receiving))
    assert qm.done(qm.engine.queues.purge_queue(queue)) == 0
    if end == "abort":
        qm.done(qm.engine.transactions.transaction_abort(receiving.identifier))
    elif end == "stop":
        qm.restart()
    else:
        qm.crash()
    qm.settle()
    journal = qm.find().journal_queue_reference
    assert journal is not None
    assert (qm.find().message_count, journal.message_count) == (0, 0)
    assert classes(qm, qm.find(r"private$\acks")) == [PURGED]
