"""What outlives a restart: the persistent attributes ([MS-MQDMPR] 3.1.1.1 to .3), deletions."""

from typing import Any
from uuid import UUID

import pytest

from rpcqm.adm.enums import OutgoingQueueState, QueueScope
from rpcqm.adm.queue import OutgoingQueue, Queue
from rpcqm.codec.security.sddl import parse_sddl
from rpcqm.codec.types.mqvalues import QueueAccessType, QueuePrivacyLevel
from rpcqm.qm.machine import save_queue_manager
from tests.support.queue_manager import RunningQueueManager, refusal

ELSEWHERE = r"DIRECT=OS:elsewhere\private$\orders"
ASKED_FOR: dict[str, Any] = {
    "label": "Orders",
    "type": UUID("5d1f8a2e-4c3b-4a19-8e7d-6f5c4b3a2918"),
    "journaling": True,
    "quota": 88,
    "journal_quota": 77,
    "authentication": True,
    "privacy_level": QueuePrivacyLevel.MQ_PRIV_LEVEL_BODY,
    "transactional": True,
    "multicast_address": "234.1.1.1:8001",
    "security": parse_sddl("O:BAD:(A;;0x4;;;WD)").encode(),
    "base_priority": -5,
}
"""A value of each attribute that is not its default."""
GIVEN = (
    "identifier",
    "create_time",
    "modify_time",
    "pathname",
    "qualified_pathname",
    "private_queue_number",
    "queue_type",
)
"""Attributes that the queue manager decides about."""
OF_THE_DIRECTORY: dict[str, Any] = {
    "full_path": "CN=orders",
    "directory_path": "LDAP://server/CN=orders",
    "scope": QueueScope.SITE,
}
OF_THE_QUEUE_MANAGER: dict[str, Any] = {
    "security": parse_sddl("O:BAD:(A;;0xf00f7;;;BA)").encode(),
    "directory_server_list": ["server"],
    "directory_integrated": True,
    "modify_time": 12345,
}


def test_every_attribute_has_another_value_here_than_by_default() -> None:
    new = Queue()
    given = ASKED_FOR | OF_THE_DIRECTORY
    assert not [name for name, value in given.items() if getattr(new, name) == value]


@pytest.mark.conformance("MQDMPR-element-Queue")
@pytest.mark.parametrize("name", sorted(ASKED_FOR))
def test_what_a_queue_was_created_with_outlives_a_restart(
    qm: RunningQueueManager, name: str
) -> None:
    value = ASKED_FOR[name]
    assert getattr(qm.create(**{name: value}), name) == value
    qm.restart()
    assert getattr(qm.find(), name) == value


@pytest.mark.conformance("MQDMPR-element-Queue")
@pytest.mark.parametrize("name", sorted(ASKED_FOR.keys() - {"transactional", "security"}))
def test_what_was_changed_outlives_the_death_of_the_process(
    qm: RunningQueueManager, name: str
) -> None:
    qm.done(qm.engine.queues.set_properties(qm.create(), {name: ASKED_FOR[name]}))
    qm.crash()
    assert getattr(qm.find(), name) == ASKED_FOR[name]


@pytest.mark.conformance("MQDMPR-element-Queue")
def test_what_the_queue_manager_decides_about_a_queue_outlives_a_restart(
    qm: RunningQueueManager,
) -> None:
    queue = qm.create()
    qm.advance(3_000)
    qm.done(qm.engine.queues.set_properties(queue, {"label": "later"}))
    qm.advance(3_000)
    before = [getattr(queue, name) for name in GIVEN]
    assert queue.modify_time == queue.create_time + 3
    qm.restart()
    assert [getattr(qm.find(), name) for name in GIVEN] == before


@pytest.mark.conformance("MQDMPR-element-Queue")
@pytest.mark.parametrize("name", sorted(OF_THE_DIRECTORY))
def test_what_a_directory_has_said_of_a_queue_outlives_a_restart(
    qm: RunningQueueManager, name: str
) -> None:
    queue = qm.create()
    setattr(queue, name, OF_THE_DIRECTORY[name])
    qm.done(qm.engine.queues.set_properties(queue, {"label": "kept with it"}))
    qm.restart()
    assert getattr(qm.find(), name) == OF_THE_DIRECTORY[name]


@pytest.mark.conformance("MQDMPR-element-Queue")
def test_a_journal_keeps_its_identifier(qm: RunningQueueManager) -> None:
    names = ("first", "second")

    def identifiers() -> list[UUID]:
        journals = [qm.find(rf"private$\{name}").journal_queue_reference for name in names]
        return [journal.identifier for journal in journals if journal is not None]

    queues = [qm.create(rf"private$\{name}") for name in names]
    before = identifiers()
    assert len({*before, *(queue.identifier for queue in queues)}) == 4
    qm.restart()
    assert identifiers() == before


@pytest.mark.conformance("MQDMPR-element-OutgoingQueue")
@pytest.mark.parametrize(
    ("name", "value"),
    [("base_priority", 9), ("state", OutgoingQueueState.ON_HOLD), ("multicast", True)],
)
def test_an_outgoing_queue_outlives_a_restart(
    qm: RunningQueueManager, name: str, value: object
) -> None:
    queue = qm.open(ELSEWHERE, QueueAccessType.SEND_ACCESS).queue_reference
    assert isinstance(queue, OutgoingQueue)
    qm.send(queue, b"a")
    setattr(queue, name, value)
    qm.engine.outgoing.pause_queue(queue)
    qm.settle()
    before = (queue.identifier, queue.label, queue.destination_format_name, getattr(queue, name))
    qm.restart()
    (again,) = qm.engine.outgoing.list()
    kept = (again.identifier, again.label, again.destination_format_name, getattr(again, name))
    assert kept == before
    assert getattr(again, name) == value


@pytest.mark.conformance("MQDMPR-element-QueueManager")
@pytest.mark.parametrize("name", sorted(OF_THE_QUEUE_MANAGER))
def test_what_is_kept_of_the_queue_manager_outlives_a_restart(
    qm: RunningQueueManager, name: str
) -> None:
    own = qm.engine.queue_manager
    assert getattr(own, name) != OF_THE_QUEUE_MANAGER[name]
    setattr(own, name, OF_THE_QUEUE_MANAGER[name])
    qm.done(save_queue_manager(qm.store, own))
    qm.restart()
    assert getattr(qm.engine.queue_manager, name) == OF_THE_QUEUE_MANAGER[name]


@pytest.mark.conformance("MQDMPR-event-delete_queue")
def test_a_deletion_that_is_acknowledged_outlives_the_death_of_the_process(
    qm: RunningQueueManager,
) -> None:
    queue = qm.create(journaling=True)
    qm.send(queue, b"a")
    qm.send(queue, b"b")
    qm.receive(qm.open(queue))
    qm.done(qm.engine.queues.delete_queue(queue))
    qm.crash()
    assert qm.engine.registry.find_by_path(queue.pathname) is None
    assert qm.store.total.count == 0
    qm.restart()
    assert qm.engine.registry.find_by_path(queue.pathname) is None


@pytest.mark.conformance("MQDMPR-event-begin_flow_control", "MQDMPR-event-end_flow_control")
def test_flow_is_controlled_while_the_disk_is_short_of_room(qm: RunningQueueManager) -> None:
    """Over a restart too; and it ends by itself when somebody sends and there is room (G138)."""
    queue, own = qm.create(), qm.engine.queue_manager
    qm.free = 0
    qm.store.space.keep_free(1)
    assert own.throttled
    qm.restart()
    assert qm.engine.queue_manager.throttled
    refused = refusal(qm.enqueue, qm.find(), b"a")
    assert refused == "MQ_ERROR_INSUFFICIENT_RESOURCES"
    qm.free = 1 << 40
    assert qm.engine.queue_manager.throttled
    qm.send(qm.find(), b"b")
    assert not qm.engine.queue_manager.throttled
    assert qm.bodies(qm.find()) == [b"b"]
    assert queue.identifier == qm.find().identifier
