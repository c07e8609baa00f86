"""Creating, deleting, purging queues, properties ([MS-MQDMPR] 3.1.7.1.3, .4, .7, .33)."""

from uuid import UUID, uuid4

import pytest

from rpcqm.adm.enums import PositionState, QueueScope, QueueType
from rpcqm.adm.queue import Queue
from rpcqm.base.identity import ANONYMOUS, authenticated
from rpcqm.codec.packet.enums import MessageClass
from rpcqm.codec.security.access_check import MQQUEUEACCESSMASK
from rpcqm.codec.security.descriptor import Ace, Acl, SecurityDescriptor
from rpcqm.codec.security.identifier import Sid
from rpcqm.codec.types.mqvalues import INFINITE, QueueAccessType, QueuePrivacyLevel
from tests.support.queue_manager import RunningQueueManager, refusal

ADMINISTRATOR = authenticated("root", "S-1-5-21-1-2-3-500", "S-1-5-32-544")
USER = authenticated("ann", "S-1-5-21-1-2-3-1000")


@pytest.mark.conformance("MQDMPR-event-set_queue_defaults")
def test_a_queue_to_be_created_has_the_defaults(qm: RunningQueueManager) -> None:
    queue = Queue(
        label="x",
        type=uuid4(),
        journaling=True,
        quota=1,
        journal_quota=1,
        authentication=True,
        privacy_level=QueuePrivacyLevel.MQ_PRIV_LEVEL_BODY,
        transactional=True,
        multicast_address="224.0.0.1:1",
        base_priority=9,
    )
    qm.engine.queues.set_queue_defaults(queue)
    assert queue.label == ""
    assert queue.type == UUID(int=0)
    assert queue.journaling is False
    assert (queue.quota, queue.journal_quota) == (INFINITE, INFINITE)
    assert queue.authentication is False
    assert queue.privacy_level is QueuePrivacyLevel.MQ_PRIV_LEVEL_OPTIONAL
    assert queue.transactional is False
    assert queue.multicast_address is None
    assert queue.base_priority == 0
    assert SecurityDescriptor.decode(queue.security).dacl is not None


@pytest.mark.conformance("MQDMPR-event-create_queue", "MQDMPR-element-Queue")
def test_a_new_queue_has_what_was_asked_for_and_what_follows(qm: RunningQueueManager) -> None:
    kind = uuid4()
    attributes = {
        "label": "Orders",
        "type": kind,
        "journaling": True,
        "quota": 100,
        "journal_quota": 50,
        "authentication": True,
        "privacy_level": QueuePrivacyLevel.MQ_PRIV_LEVEL_NONE,
        "transactional": True,
        "base_priority": -7,
    }
    queue = qm.create(r"private$\Orders", **attributes)
    assert {name: getattr(queue, name) for name in attributes} == attributes
    assert queue.pathname == r"WORKSTATION\private$\Orders"
    assert queue.qualified_pathname == r"workstation.example.org\private$\Orders"
    assert queue.queue_type is QueueType.PRIVATE
    assert queue.queue_manager is qm.engine.queue_manager
    assert queue.create_time == queue.modify_time == qm.clock.now() // 1000
    assert queue.scope is QueueScope.ENTERPRISE
    assert (queue.full_path, queue.directory_path) == ("", "")
    assert (queue.active, queue.total_bytes, queue.message_count) == (False, 0, 0)
    assert queue.subqueue_collection == {}
    journal = queue.journal_queue_reference
    assert journal is not None
    assert journal.pathname == r"WORKSTATION\private$\Orders;JOURNAL"
    assert journal.is_journal


@pytest.mark.conformance("MQDMPR-event-create_queue")
def test_a_queue_is_durable_when_its_creation_is_acknowledged(qm: RunningQueueManager) -> None:
    queue = qm.create(label="kept", base_priority=3, quota=7)
    qm.restart()
    again = qm.find()
    assert again is not queue
    for name in ("identifier", "label", "base_priority", "quota", "private_queue_number"):
        assert getattr(again, name) == getattr(queue, name)
    assert again.security == queue.security
    assert again.journal_queue_reference is not None


@pytest.mark.conformance("MQDMPR-element-DirectoryObject", "MQDMPR-event-create_queue")
def test_every_queue_has_an_identifier_of_its_own_for_ever(qm: RunningQueueManager) -> None:
    names = [r"private$\first", r"private$\second"]
    identifiers = [qm.create(name).identifier for name in names]
    qm.restart()
    assert [qm.find(name).identifier for name in names] == identifiers
    everything = [queue.identifier for queue in qm.engine.queue_manager.queue_collection.values()]
    assert len(set(everything)) == len(everything)


@pytest.mark.conformance("MQDMPR-event-create_queue")
def test_private_queues_have_numbers_of_their_own_above_the_reserved_ones(
    qm: RunningQueueManager,
) -> None:
    """1 to 15 are the system's, order_queue$ is 4; no number is given twice (G17)."""
    first = qm.create(r"private$\first")
    qm.done(qm.engine.queues.delete_queue(first))
    second = qm.create(r"private$\second")
    qm.restart()
    third = qm.create(r"private$\third")
    numbers = [queue.private_queue_number for queue in (first, second, third)]
    assert len(set(numbers)) == 3
    assert min(numbers) > 15
    assert qm.find(r"private$\order_queue$").private_queue_number == 4


@pytest.mark.conformance("MQDMPR-event-create_queue")
@pytest.mark.parametrize(
    ("pathname", "status"),
    [
        (r"orders", "MQ_ERROR_ILLEGAL_QUEUE_PATHNAME"),
        (r".\private$\a+b", "MQ_ERROR_ILLEGAL_QUEUE_PATHNAME"),
        (r".\private$\orders;journal", "MQ_ERROR_ILLEGAL_QUEUE_PATHNAME"),
        (r"elsewhere\private$\orders", "MQ_ERROR_ILLEGAL_QUEUE_PATHNAME"),
        (r".\private$\EXISTS", "MQ_ERROR_QUEUE_EXISTS"),
        (r".\private$\none;sub", "MQ_ERROR_QUEUE_NOT_FOUND"),
        (r".\published", "MQ_ERROR_NO_DS"),
    ],
)
def test_what_cannot_be_created(qm: RunningQueueManager, pathname: str, status: str) -> None:
    qm.create(r"private$\exists")
    queue = qm.engine.queues.new_queue(pathname)
    assert refusal(qm.engine.queues.create_queue, queue) == status


def test_applications_cannot_create_queues_of_the_system(qm: RunningQueueManager) -> None:
    queue = qm.engine.queues.new_queue(r".\system$;mine")
    create = qm.engine.queues.create_queue
    assert refusal(create, queue, identity=ADMINISTRATOR) == "MQ_ERROR_ILLEGAL_QUEUE_PATHNAME"


def test_creating_needs_the_right_to_create_queues(qm: RunningQueueManager) -> None:
    create = qm.engine.queues.create_queue
    queue = qm.engine.queues.new_queue(r".\private$\mine", USER)
    assert refusal(create, queue, identity=ANONYMOUS) == "MQ_ERROR_ACCESS_DENIED"
    assert qm.done(create(queue, identity=USER)).pathname.endswith("mine")


def test_a_public_queue_can_be_made_without_being_published(qm: RunningQueueManager) -> None:
    queue = qm.engine.queues.new_queue(r".\published")
    created = qm.done(qm.engine.queues.create_queue(queue, skip_directory=True))
    assert created.queue_type is QueueType.PUBLIC
    assert created.private_queue_number == 0
    opened = qm.open(f"PUBLIC={created.identifier}")
    assert opened.queue_reference is created


@pytest.mark.parametrize(
    ("attributes", "status"),
    [
        ({"label": "x" * 125}, "MQ_ERROR_LABEL_TOO_LONG"),
        ({"base_priority": 0x8000}, "MQ_ERROR_ILLEGAL_PROPERTY_VALUE"),
        ({"quota": -1}, "MQ_ERROR_ILLEGAL_PROPERTY_VALUE"),
        ({"multicast_address": "10.0.0.1:80"}, "MQ_ERROR_ILLEGAL_PROPERTY_VALUE"),
        ({"journaling": 1}, "MQ_ERROR_ILLEGAL_PROPERTY_VALUE"),
        (
            {"multicast_address": "224.0.0.1:80", "transactional": True},
            "MQ_ERROR_PROPERTIES_CONFLICT",
        ),
    ],
)
def test_properties_outside_their_ranges_are_refused(
    qm: RunningQueueManager, attributes: dict[str, object], status: str
) -> None:
    queue = qm.engine.queues.new_queue(r".\private$\orders")
    for name, value in attributes.items():
        setattr(queue, name, value)
    assert refusal(qm.engine.queues.create_queue, queue) == status
    assert qm.engine.registry.find_by_path(r".\private$\orders") is None


def test_properties_are_changed_durably_and_all_or_none(qm: RunningQueueManager) -> None:
    queue = qm.create()
    qm.advance(5_000)
    change = qm.engine.queues.set_properties
    qm.done(change(queue, {"label": "new", "quota": 9, "journaling": True}))
    refused = refusal(change, queue, {"label": "newer", "base_priority": 99_999})
    assert refused == "MQ_ERROR_ILLEGAL_PROPERTY_VALUE"
    assert refusal(change, queue, {"transactional": True}) == "MQ_ERROR_PROPERTY_NOTALLOWED"
    assert refusal(change, queue, {"pathname": "x"}) == "MQ_ERROR_PROPERTY_NOTALLOWED"
    qm.restart()
    again = qm.find()
    assert (again.label, again.quota, again.journaling) == ("new", 9, True)
    assert again.modify_time == again.create_time + 5


# Deleting


@pytest.mark.conformance("MQDMPR-event-delete_queue")
def test_a_deleted_queue_is_gone_with_everything_that_belongs_to_it(
    qm: RunningQueueManager,
) -> None:
    """Deleting cascades to journal and subqueues (G14)."""
    queue = qm.create(journaling=True)
    subqueue = qm.subqueue(queue, "sub")
    descriptors = [qm.open(queue), qm.open(queue, QueueAccessType.PEEK_ACCESS)]
    for body in (b"a", b"b", b"c"):
        qm.send(queue, body)
    qm.receive(descriptors[0])
    qm.lock(descriptors[0])
    position = qm.engine.messages.position(queue, queue.message_position_list.first() or 0)
    assert position is not None
    qm.done(qm.engine.messages.move_message(position, subqueue))
    reasons: list[MessageClass] = []
    qm.engine.positions.deleted_hooks.append(
        lambda transaction, queue, key, reason: reasons.append(reason)
    )
    qm.done(qm.engine.queues.delete_queue(queue))
    assert reasons == [MessageClass.MQMSG_CLASS_NACK_Q_DELETED] * 3
    assert [descriptor.queue_reference for descriptor in descriptors] == [None, None]
    assert qm.engine.registry.find_by_path(r".\private$\orders") is None
    assert qm.store.total.bytes == 0
    qm.restart()
    assert qm.engine.registry.find_by_path(r".\private$\orders") is None
    assert qm.store.total.count == 0


def test_a_queue_can_be_made_anew_under_the_name_of_a_deleted_one(
    qm: RunningQueueManager,
) -> None:
    old = qm.create()
    qm.send(old, b"old")
    deleted = qm.engine.queues.delete_queue(old)
    new = qm.create()
    assert deleted.done
    assert qm.bodies(new) == []
    assert new.queue_id != old.queue_id


def test_messages_on_their_way_into_a_queue_die_with_it(qm: RunningQueueManager) -> None:
    queue = qm.create()
    sent = qm.enqueue(queue, b"late")
    deleted = qm.engine.queues.delete_queue(queue)
    qm.settle()
    assert sent.done
    assert deleted.done
    assert qm.store.total.count == 0
    qm.restart()
    assert qm.store.total.count == 0


def test_what_leaves_a_queue_while_it_is_deleted_was_received(qm: RunningQueueManager) -> None:
    """The first event wins (G61)."""
    queue = qm.create()
    for body in (b"a", b"b"):
        qm.send(queue, body)
    reasons: list[MessageClass] = []
    qm.engine.positions.deleted_hooks.append(
        lambda transaction, queue, key, reason: reasons.append(reason)
    )
    received = qm.engine.messages.dequeue_message(qm.open(queue), 0)
    deleted = qm.engine.queues.delete_queue(queue)
    assert qm.done(received).attributes.body == b"a"
    assert deleted.result() is None
    assert reasons == [
        MessageClass.MQMSG_CLASS_ACK_RECEIVE,
        MessageClass.MQMSG_CLASS_NACK_Q_DELETED,
    ]


@pytest.mark.parametrize("name", [r"system$;deadletter", r"private$\order_queue$"])
def test_queues_of_the_system_cannot_be_deleted(qm: RunningQueueManager, name: str) -> None:
    queue = qm.find(name)
    assert refusal(qm.engine.queues.delete_queue, queue) == "MQ_ERROR_ACCESS_DENIED"


def test_a_journal_cannot_be_deleted_alone_and_nothing_twice(qm: RunningQueueManager) -> None:
    queue = qm.create()
    journal = queue.journal_queue_reference
    assert journal is not None
    delete = qm.engine.queues.delete_queue
    assert refusal(delete, journal) == "MQ_ERROR_ACCESS_DENIED"
    qm.done(delete(queue))
    assert refusal(delete, queue) == "MQ_ERROR_QUEUE_NOT_FOUND"


def test_deleting_needs_the_right_to_delete(qm: RunningQueueManager) -> None:
    queue = qm.create()
    qm.done(qm.engine.queues.set_security(queue, 4, _allowing_only("S-1-5-32-544").encode()))
    delete = qm.engine.queues.delete_queue
    assert refusal(delete, queue, identity=USER) == "MQ_ERROR_ACCESS_DENIED"
    qm.done(delete(queue, identity=ADMINISTRATOR))


def _allowing_only(sid: str) -> SecurityDescriptor:
    everything = int(MQQUEUEACCESSMASK.MQSEC_QUEUE_GENERIC_ALL)
    return SecurityDescriptor(dacl=Acl((Ace(0, mask=everything, sid=Sid.parse(sid)),)))


# Purging


@pytest.mark.conformance("MQDMPR-event-purge_queue")
def test_purging_removes_what_nobody_holds(qm: RunningQueueManager) -> None:
    queue = qm.create()
    for body in (b"a", b"b", b"c"):
        qm.send(queue, body)
    position = qm.lock(qm.open(queue))
    assert qm.done(qm.engine.queues.purge_queue(queue)) == 2
    assert position.state is PositionState.PURGE_PENDING
    assert queue.message_count == 1
    qm.send(queue, b"d")
    assert qm.bodies(queue) == [b"d"]


def test_purging_an_empty_queue_removes_nothing(qm: RunningQueueManager) -> None:
    assert qm.engine.queues.purge_queue(qm.create()).result() == 0


def test_a_long_queue_is_purged_in_several_commits(
    qm: RunningQueueManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What arrives meanwhile stays."""
    monkeypatch.setattr("rpcqm.qm.queues.PURGE_CHUNK", 3)
    queue = qm.create()
    for number in range(8):
        qm.send(queue, b"%d" % number)
    purged = qm.engine.queues.purge_queue(queue)
    sent = qm.enqueue(queue, b"new")
    assert qm.done(purged) == 8
    assert sent.done
    assert qm.bodies(queue) == [b"new"]


# Subqueues


def test_a_subqueue_comes_by_opening_and_goes_when_empty_and_closed(
    qm: RunningQueueManager,
) -> None:
    """G14."""
    queue = qm.create()
    descriptor = qm.open(f"DIRECT=OS:{queue.pathname};sub")
    qm.settle()
    subqueue = queue.subqueue_collection["sub"]
    assert descriptor.queue_reference is subqueue
    assert subqueue.subqueue_name == "sub"
    assert subqueue.main is queue
    qm.engine.opening.close_queue(descriptor)
    qm.settle()
    assert queue.subqueue_collection == {}


def test_a_subqueue_with_messages_stays_over_a_restart(qm: RunningQueueManager) -> None:
    queue = qm.create()
    subqueue = qm.subqueue(queue, "sub")
    key = qm.send(queue, b"a")
    position = qm.engine.messages.position(queue, key)
    assert position is not None
    qm.done(qm.engine.messages.move_message(position, subqueue))
    qm.restart()
    again = qm.find().subqueue_collection["sub"]
    assert qm.bodies(again) == [b"a"]
    descriptor = qm.open(f"DIRECT=OS:{again.pathname}")
    assert qm.receive(descriptor) == b"a"
    qm.engine.opening.close_queue(descriptor)
    qm.settle()
    assert qm.find().subqueue_collection == {}


def test_an_empty_subqueue_does_not_outlive_a_restart(qm: RunningQueueManager) -> None:
    qm.subqueue(qm.create(), "sub")
    qm.restart()
    assert qm.find().subqueue_collection == {}


@pytest.mark.parametrize(
    ("name", "access", "status"),
    [
        ("none;sub", QueueAccessType.RECEIVE_ACCESS, "MQ_ERROR_QUEUE_NOT_FOUND"),
        (
            "orders;sub",
            QueueAccessType.SEND_ACCESS,
            "MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION",
        ),
    ],
)
def test_subqueues_need_a_parent_and_are_not_sent_to(
    qm: RunningQueueManager, name: str, access: QueueAccessType, status: str
) -> None:
    qm.create()
    assert refusal(qm.open, rf"DIRECT=OS:.\private$\{name}", access) == status


def test_a_subqueue_name_has_31_characters_at_most(qm: RunningQueueManager) -> None:
    """The header that carries it holds 32 with the null (G41)."""
    queue = qm.create()
    qm.open(f"DIRECT=OS:{queue.pathname};{'s' * 31}")
    refused = refusal(qm.open, f"DIRECT=OS:{queue.pathname};{'s' * 32}")
    assert refused == "MQ_ERROR_ILLEGAL_FORMATNAME"


def test_an_existing_subqueue_can_be_created_by_its_path_name(qm: RunningQueueManager) -> None:
    queue = qm.create()
    new = qm.engine.queues.new_queue(rf"{queue.pathname};sub")
    created = qm.engine.queues.create_queue(new)
    assert qm.done(created).journal_queue_reference is None
    again = qm.engine.queues.new_queue(rf"{queue.pathname};SUB")
    assert refusal(qm.engine.queues.create_queue, again) == "MQ_ERROR_QUEUE_EXISTS"
