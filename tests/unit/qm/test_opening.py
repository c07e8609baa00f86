"""Opening and closing ([MS-MQDMPR] 3.1.7.1.5, .6)."""

from dataclasses import replace
from uuid import uuid4

import pytest

from rpcqm.adm.enums import OutgoingQueueState, PositionState, RemoteReadState
from rpcqm.adm.queue import OutgoingQueue
from rpcqm.base.identity import authenticated
from rpcqm.codec.types.mqvalues import QueueAccessType, QueueShareMode
from tests.support.queue_manager import SETTINGS, RunningQueueManager, refusal

ELSEWHERE = "5d1f8a2e-4c3b-4a19-8e7d-6f5c4b3a2918"

RECEIVE, SEND, PEEK, MOVE, RECEIVE_ADMIN, PEEK_ADMIN = (
    QueueAccessType.RECEIVE_ACCESS,
    QueueAccessType.SEND_ACCESS,
    QueueAccessType.PEEK_ACCESS,
    QueueAccessType.MOVE_ACCESS,
    QueueAccessType.RECEIVE_ADMIN_ACCESS,
    QueueAccessType.PEEK_ADMIN_ACCESS,
)
LOOKER = authenticated("eve", "S-1-5-21-1-2-3-1002", "S-1-5-32-544", read_only=True)
NONE, DENY = QueueShareMode.DENY_NONE, QueueShareMode.DENY_RECEIVE


@pytest.mark.conformance("MQDMPR-event-open_queue", "MQDMPR-element-OpenQueueDescriptor")
def test_an_open_queue_has_a_descriptor(qm: RunningQueueManager) -> None:
    queue = qm.create()
    first, second = qm.open(queue, RECEIVE, DENY), qm.open(queue, PEEK)
    assert first.queue_reference is queue
    assert first.access_type is RECEIVE
    assert first.share_mode is DENY
    assert str(first.format_name) == rf"DIRECT=OS:{queue.pathname}"
    assert first.multiple is False
    assert first.open_queue_descriptor_collection == []
    assert first.remote_read_state is RemoteReadState.NONE
    assert first.cursor_collection == {}
    assert first.waiting_message_read_operation_collection == {}
    numbers = {first.handle, first.context_value, second.handle, second.context_value}
    assert len(numbers) == 4
    assert 0 not in numbers
    assert queue.open_queue_descriptor_collection == {
        first.handle: first,
        second.handle: second,
    }
    assert qm.engine.opening.descriptors[first.handle] is first
    assert queue.active


@pytest.mark.conformance("MQDMPR-event-open_queue")
@pytest.mark.parametrize(
    "host", ["WORKSTATION", "workstation.EXAMPLE.org", "localhost", ".", "127.0.0.1"]
)
def test_every_name_of_this_machine_opens_its_queues(qm: RunningQueueManager, host: str) -> None:
    """NetBIOS, qualified, localhost, the dot and its addresses (G10)."""
    queue = qm.create()
    assert qm.open(rf"DIRECT=OS:{host}\PRIVATE$\ORDERS").queue_reference is queue
    assert qm.open(r"DIRECT=TCP:192.0.2.7\private$\orders").queue_reference is queue
    assert qm.open(r"DIRECT=OS:other\private$\orders", SEND).queue_reference is not queue


@pytest.mark.conformance("MQDMPR-event-open_queue")
def test_private_and_machine_format_names_open_queues_here(qm: RunningQueueManager) -> None:
    queue = qm.create()
    own = qm.engine.queue_manager.identifier
    name = rf"PRIVATE={own}\{queue.private_queue_number:x}"
    assert qm.open(name).queue_reference is queue
    assert qm.open(f"{name};JOURNAL").queue_reference is queue.journal_queue_reference
    manager = qm.engine.queue_manager
    for suffix, system in (
        ("JOURNAL", manager.system_journal_queue),
        ("DEADLETTER", manager.system_deadletter_queue),
        ("DEADXACT", manager.system_transactional_deadletter_queue),
    ):
        assert qm.open(f"MACHINE={own};{suffix}").queue_reference is system
        direct = qm.open(rf"DIRECT=OS:.\SYSTEM$;{suffix}")
        assert direct.queue_reference is system


WITH_HTTP = replace(SETTINGS, http_port=8080, https_port=8443)


@pytest.mark.conformance("MQDMPR-event-open_queue")
@pytest.mark.parametrize(
    "url",
    [
        "HTTP://workstation:8080/msmq/private$/orders",
        "http://192.0.2.7:8080/MSMQ/private%24/%6Frders",
        "HTTP://[::1]:8080/msmq/private$/orders",
        "HTTPS://localhost:8443/msmq/private$/orders?x=y",
    ],
)
def test_a_url_with_the_host_and_the_port_of_this_machine_opens_its_queue(
    qm: RunningQueueManager, url: str
) -> None:
    qm.restart(WITH_HTTP)
    queue = qm.create()
    assert qm.open(f"DIRECT={url}", SEND).queue_reference is queue
    missing = "DIRECT=" + url.replace("rders", "thers")
    assert refusal(qm.open, missing, SEND) == "MQ_ERROR_QUEUE_NOT_FOUND"


@pytest.mark.conformance("MQDMPR-event-open_queue")
@pytest.mark.parametrize(
    "url",
    [
        "HTTP://workstation/msmq/private$/orders",
        "HTTP://workstation:8443/msmq/private$/orders",
        "HTTPS://workstation:8080/msmq/private$/orders",
        "HTTP://other:8080/msmq/private$/orders",
    ],
)
def test_a_url_with_another_port_is_elsewhere(qm: RunningQueueManager, url: str) -> None:
    qm.restart(WITH_HTTP)
    qm.create()
    assert isinstance(qm.open(f"DIRECT={url}", SEND).queue_reference, OutgoingQueue)


@pytest.mark.conformance("MQDMPR-event-open_queue")
@pytest.mark.parametrize("host", ["other", "workstation"])
def test_http_names_are_refused_while_nothing_carries_messages_over_http(
    qm: RunningQueueManager, host: str
) -> None:
    qm.restart(replace(SETTINGS, srmp_http_support=False))
    qm.create()
    url = f"DIRECT=HTTP://{host}/msmq/private$/orders"
    for name in (url, rf"DIRECT=OS:other\q,{url}"):
        assert refusal(qm.open, name, SEND) == "MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION"
    assert all("HTTP" not in each.label for each in qm.engine.outgoing.list())


@pytest.mark.conformance("MQDMPR-event-open_queue")
def test_a_name_of_several_queues_mixes_urls_and_others(qm: RunningQueueManager) -> None:
    queue = qm.create()
    name = r"DIRECT=HTTP://other/msmq/q,DIRECT=OS:.\private$\orders,DIRECT=HTTPS://x/msmq/q"
    singles = qm.open(name, SEND).open_queue_descriptor_collection
    queues = [each.queue_reference for each in singles]
    assert queue in queues
    assert sum(isinstance(each, OutgoingQueue) for each in queues) == 2


@pytest.mark.conformance("MQDMPR-event-open_queue")
@pytest.mark.parametrize("access", [RECEIVE, SEND, PEEK, MOVE])
def test_a_queue_that_should_be_here_and_is_not_is_not_found(
    qm: RunningQueueManager, access: QueueAccessType
) -> None:
    own = qm.engine.queue_manager.identifier
    for name in (r"DIRECT=OS:.\private$\none", rf"PRIVATE={own}\4711"):
        assert refusal(qm.open, name, access) == "MQ_ERROR_QUEUE_NOT_FOUND"
    assert qm.engine.outgoing.list() == []


@pytest.mark.conformance("MQDMPR-event-open_queue")
@pytest.mark.parametrize(
    ("name", "access", "share", "status"),
    [
        (r"DIRECT=OS:other\q", RECEIVE, NONE, "MQ_ERROR_QUEUE_NOT_FOUND"),
        (r"DIRECT=OS:other\q", PEEK_ADMIN, NONE, "MQ_ERROR_QUEUE_NOT_FOUND"),
        (
            r"DIRECT=HTTP://other/msmq/q",
            RECEIVE,
            NONE,
            "MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION",
        ),
        (r"MULTICAST=224.0.0.1:80", PEEK, NONE, "MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION"),
        (
            f"MACHINE={ELSEWHERE};DEADLETTER",
            SEND,
            NONE,
            "MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION",
        ),
        (f"PUBLIC={ELSEWHERE}", SEND, NONE, "MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION"),
        (f"DL={ELSEWHERE}", SEND, NONE, "MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION"),
        (
            r"DIRECT=OS:a\q,DIRECT=OS:b\q",
            RECEIVE,
            NONE,
            "MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION",
        ),
        (r"DIRECT=OS:a\q,DIRECT=OS:b\q", SEND, DENY, "MQ_ERROR_UNSUPPORTED_ACCESS_MODE"),
        (
            r"DIRECT=OS:.\private$\orders;journal",
            SEND,
            NONE,
            "MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION",
        ),
        (r"DIRECT=OS:.\private$\orders;journal", MOVE, NONE, "MQ_ERROR_UNSUPPORTED_ACCESS_MODE"),
        (r"DIRECT=OS:.\private$\orders", RECEIVE_ADMIN, NONE, "MQ_ERROR_UNSUPPORTED_ACCESS_MODE"),
    ],
)
def test_what_cannot_be_opened(
    qm: RunningQueueManager,
    name: str,
    access: QueueAccessType,
    share: QueueShareMode,
    status: str,
) -> None:
    qm.create()
    assert refusal(qm.open, name, access, share) == status
    assert qm.engine.opening.descriptors == {}


SHARING = [
    # existing, its share mode, asked for, share mode, refused
    (RECEIVE, DENY, RECEIVE, DENY, True),
    (RECEIVE, DENY, PEEK, DENY, True),
    (RECEIVE, DENY, RECEIVE, NONE, True),
    (RECEIVE, DENY, PEEK, NONE, False),
    (RECEIVE, DENY, SEND, NONE, False),
    (PEEK, DENY, RECEIVE, NONE, True),
    (PEEK, DENY, RECEIVE, DENY, True),
    (PEEK, DENY, PEEK, DENY, False),
    (PEEK, DENY, SEND, NONE, False),
    (RECEIVE, NONE, RECEIVE, DENY, True),
    (RECEIVE, NONE, PEEK, DENY, True),
    (RECEIVE, NONE, RECEIVE, NONE, False),
    (PEEK, NONE, RECEIVE, DENY, False),
    (SEND, NONE, RECEIVE, DENY, False),
]


@pytest.mark.conformance("MQDMPR-event-open_queue", "MQDMPR-element-QueueShareMode")
@pytest.mark.parametrize(("existing", "held", "access", "share", "refused"), SHARING)
def test_sharing(
    qm: RunningQueueManager,
    existing: QueueAccessType,
    held: QueueShareMode,
    access: QueueAccessType,
    share: QueueShareMode,
    refused: bool,
) -> None:
    queue = qm.create()
    holder = qm.open(queue, existing, held)
    if refused:
        assert refusal(qm.open, queue, access, share) == "MQ_ERROR_SHARING_VIOLATION"
    else:
        qm.open(queue, access, share)
    qm.engine.opening.close_queue(holder)
    if refused:
        qm.open(queue, access, share)


@pytest.mark.conformance("MQDMPR-event-open_queue", "MQDMPR-element-OutgoingQueue")
def test_sending_elsewhere_makes_an_outgoing_queue(qm: RunningQueueManager) -> None:
    descriptor = qm.open(r"DIRECT=OS:other\private$\q", SEND)
    queue = descriptor.queue_reference
    assert isinstance(queue, OutgoingQueue)
    assert queue.destination_format_name == r"DIRECT=OS:other\private$\q"
    assert queue.label == queue.destination_format_name
    assert queue.state is OutgoingQueueState.INACTIVE
    assert queue.next_hops == []
    assert queue.multicast is False
    assert queue.connection_history == []
    again = qm.open(r"DIRECT=OS:OTHER\private$\Q", SEND)
    assert again.queue_reference is queue
    other = qm.open(f"PRIVATE={uuid4()}\\17", SEND)
    assert other.queue_reference is not queue


@pytest.mark.parametrize(
    ("name", "state"),
    [
        (r"DIRECT=OS:other\q", OutgoingQueueState.LOCKED),
        (r"DIRECT=HTTP://other/msmq/q", OutgoingQueueState.INACTIVE),
    ],
)
def test_hardened_security_locks_outgoing_queues_that_are_not_http(
    qm: RunningQueueManager, name: str, state: OutgoingQueueState
) -> None:
    qm.restart(replace(SETTINGS, hardened_security=True))
    queue = qm.open(name, SEND).queue_reference
    assert isinstance(queue, OutgoingQueue)
    assert queue.state is state


@pytest.mark.parametrize("name", [r"DIRECT=OS:other\q", "DIRECT=HTTP://other/msmq/q"])
def test_an_outgoing_queue_with_messages_is_opened_by_administrators(
    qm: RunningQueueManager, name: str
) -> None:
    descriptor = qm.open(name, SEND)
    queue = descriptor.queue_reference
    assert queue is not None
    qm.send(queue, b"out")
    reader = qm.open(name, PEEK_ADMIN)
    assert qm.done(qm.engine.messages.peek_message(reader, 0)).attributes.body == b"out"


@pytest.mark.conformance("MQDMPR-event-open_queue", "MQDMPR-event-close_queue")
def test_several_queues_are_opened_and_closed_together(qm: RunningQueueManager) -> None:
    """Multiple is looked at before the missing queue when closing (G11)."""
    first = qm.create(r"private$\first")
    names = r"DIRECT=OS:.\private$\first,DIRECT=OS:other\q"
    descriptor = qm.open(names, SEND)
    assert descriptor.multiple
    assert descriptor.queue_reference is None
    assert len(descriptor.open_queue_descriptor_collection) == 2
    assert first.active
    qm.engine.opening.close_queue(descriptor)
    assert not first.active
    assert qm.engine.opening.descriptors == {}


def test_when_one_of_several_cannot_be_opened_none_stays_open(qm: RunningQueueManager) -> None:
    first = qm.create(r"private$\first")
    names = r"DIRECT=OS:.\private$\first,DIRECT=OS:.\private$\none"
    assert refusal(qm.open, names, SEND) == "MQ_ERROR_QUEUE_NOT_FOUND"
    assert not first.active
    assert qm.engine.opening.descriptors == {}


@pytest.mark.conformance("MQDMPR-event-close_queue")
def test_closing_gives_back_what_was_locked_in_two_phases(qm: RunningQueueManager) -> None:
    """Always released, before anything else is forgotten (G37)."""
    queue = qm.create()
    for body in (b"a", b"b"):
        qm.send(queue, body)
    descriptor, other = qm.open(queue), qm.open(queue)
    positions = [qm.lock(descriptor), qm.lock(descriptor)]
    kept = qm.engine.messages.dequeue_message(other)
    qm.engine.opening.close_queue(descriptor)
    qm.settle()
    assert kept.result().attributes.body == b"a"
    assert [position.state for position in positions] == [
        PositionState.DELETED,
        PositionState.AVAILABLE,
    ]
    assert descriptor.queue_reference is None
    assert not queue.open_queue_descriptor_collection.keys() - {other.handle}


@pytest.mark.conformance("MQDMPR-event-close_queue")
def test_closing_closes_the_cursors_and_closing_again_does_nothing(
    qm: RunningQueueManager,
) -> None:
    queue = qm.create()
    descriptor = qm.open(queue)
    cursor = qm.engine.readers.open_cursor(descriptor)
    assert cursor is not None
    qm.engine.opening.close_queue(descriptor)
    qm.engine.opening.close_queue(descriptor)
    assert qm.engine.readers.cursors == {}
    assert not queue.active


def test_an_outgoing_queue_that_is_empty_and_closed_is_forgotten(qm: RunningQueueManager) -> None:
    descriptor = qm.open(r"DIRECT=OS:other\q", SEND)
    qm.engine.opening.close_queue(descriptor)
    qm.settle()
    assert qm.engine.outgoing.list() == []
    qm.restart()
    assert qm.engine.outgoing.list() == []


def test_who_may_only_look_keeps_nobody_out(qm: RunningQueueManager) -> None:
    """Whoever peeks exclusively lets nobody receive (G725)."""
    queue = qm.create()
    for access in (PEEK, RECEIVE):
        assert refusal(qm.open, queue, access, DENY, identity=LOOKER) == "MQ_ERROR_ACCESS_DENIED"
    qm.open(queue, PEEK, identity=LOOKER)
    qm.open(queue, RECEIVE)
