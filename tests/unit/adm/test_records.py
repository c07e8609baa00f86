"""How elements are kept."""

import json
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpcqm.adm.enums import OutgoingQueueState, QueueType
from rpcqm.adm.queue import OutgoingQueue, Queue
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.adm.records import (
    OUTGOING_QUEUE_ATTRIBUTES,
    QUEUE_ATTRIBUTES,
    QUEUE_MANAGER_ATTRIBUTES,
    decode_queue,
    decode_queue_manager,
    encode_queue,
    encode_queue_manager,
)
from rpcqm.base.errors import DecodeError
from rpcqm.codec.types.mqvalues import QueuePrivacyLevel

U32 = st.integers(0, 0xFFFFFFFF)

QUEUES = st.builds(
    Queue,
    identifier=st.uuids(),
    label=st.text(),
    create_time=U32,
    modify_time=U32,
    type=st.uuids(),
    pathname=st.text(),
    private_queue_number=U32,
    journaling=st.booleans(),
    quota=U32,
    privacy_level=st.sampled_from(QueuePrivacyLevel),
    transactional=st.booleans(),
    multicast_address=st.none() | st.text(),
    security=st.binary(),
    base_priority=st.integers(-0x8000, 0x7FFF),
    queue_type=st.sampled_from(QueueType),
)


def values(element: Any, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: getattr(element, name) for name in names}


@given(QUEUES, U32)
def test_a_queue_comes_back_as_it_was(queue: Queue, queue_id: int) -> None:
    record = decode_queue(queue_id, encode_queue(queue))
    assert values(record.queue, QUEUE_ATTRIBUTES) == values(queue, QUEUE_ATTRIBUTES)
    assert type(record.queue) is Queue
    assert record.queue.queue_id == queue_id
    assert (record.journal_id, record.parent_id, record.subqueue_name) == (0, 0, "")


def test_a_queue_knows_its_journal_and_a_subqueue_its_parent() -> None:
    queue = Queue(queue_id=20, journal_queue_reference=Queue(queue_id=21))
    assert decode_queue(20, encode_queue(queue)).journal_id == 21
    subqueue = Queue(queue_id=22, parent=queue, subqueue_name="Sub")
    record = decode_queue(22, encode_queue(subqueue))
    assert (record.parent_id, record.subqueue_name) == (20, "Sub")


def test_an_outgoing_queue_comes_back_as_it_was() -> None:
    queue = OutgoingQueue(
        identifier=UUID(int=7),
        label="L",
        destination_format_name=r"DIRECT=OS:a\b",
        multicast=True,
        base_priority=3,
        state=OutgoingQueueState.ON_HOLD,
    )
    record = decode_queue(30, encode_queue(queue))
    assert isinstance(record.queue, OutgoingQueue)
    names = OUTGOING_QUEUE_ATTRIBUTES
    assert values(record.queue, names) == values(queue, names)


def test_the_queue_manager_comes_back_as_it_was() -> None:
    manager = QueueManager(
        identifier=UUID(int=9),
        create_time=5,
        security=b"\x01\x02",
        directory_server_list=["dc1"],
        hardened_security=True,
        computer_name="NOT KEPT",
    )
    again = QueueManager()
    decode_queue_manager(encode_queue_manager(manager), again)
    names = QUEUE_MANAGER_ATTRIBUTES
    assert values(again, names) == values(manager, names)
    assert again.computer_name == ""


def test_what_earlier_versions_kept_besides_is_not_read() -> None:
    """The record of a queue manager as it was written before attributes were taken out."""
    record = json.loads(encode_queue_manager(QueueManager(identifier=UUID(int=9))))
    older = {
        "last_domain": str(UUID(int=3)),
        "srmp_pgm_support": True,
        "initialization_retry_timer_duration": 7,
    }
    again = QueueManager()
    decode_queue_manager(json.dumps(record | older).encode(), again)
    assert again.identifier == UUID(int=9)
    assert not older.keys() & json.loads(encode_queue_manager(again)).keys()


def changed(**changes: Any) -> bytes:
    record = json.loads(encode_queue(Queue())) | changes
    return json.dumps(record).encode()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "damaged record"),
        (b"[]", "damaged record"),
        (b"\xff", "damaged record"),
        (changed(version=2), "version 2"),
        (changed(kind="outgoing"), "damaged record of the queue 5"),
        (changed(queue_type="Elephant"), "damaged record of the queue 5"),
        (changed(security="xyz"), "damaged record of the queue 5"),
        (changed(identifier="1"), "damaged record of the queue 5"),
        (changed(quota="1"), "damaged record of the queue 5"),
        (changed(journaling=1), "damaged record of the queue 5"),
    ],
)
def test_damaged_records_and_those_of_later_versions_are_refused(data: bytes, reason: str) -> None:
    with pytest.raises(DecodeError, match=reason):
        decode_queue(5, data)


def test_a_damaged_record_of_the_queue_manager_is_refused() -> None:
    with pytest.raises(DecodeError, match="queue manager"):
        decode_queue_manager(b'{"version":1}', QueueManager())
