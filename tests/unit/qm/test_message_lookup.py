"""A message is found by its identifier wherever it is."""

from typing import Any
from uuid import uuid4

import pytest

from rpcqm.adm.message import Message, MessagePosition
from rpcqm.base.completion import Completion
from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.codec.types.mqvalues import QueueAccessType
from rpcqm.qm import message_lookup
from rpcqm.qm.message_lookup import LocationState, MessageLocation, find_message
from rpcqm.store.errors import StoreStoppedError
from tests.support.queue_manager import RunningQueueManager

W = LocationState


def search_for(
    qm: RunningQueueManager, identifier: MessageIdentifier
) -> Completion[list[MessageLocation]]:
    return find_message(qm.store, qm.clock.timers, qm.engine.queue_manager, identifier)


def begun(qm: RunningQueueManager, message: Message) -> Completion[list[MessageLocation]]:
    return search_for(qm, message.attributes.identifier)


def found(qm: RunningQueueManager, message: Message) -> list[MessageLocation]:
    search = begun(qm, message)
    qm.advance(1000)
    return search.result()


def places(qm: RunningQueueManager, message: Message) -> list[tuple[str, LocationState]]:
    return [(place.queue, place.whereabouts) for place in found(qm, message)]


def sent(qm: RunningQueueManager, name: str = r"private$\orders", **more: Any) -> Message:
    queue = qm.engine.registry.find_by_path(rf".\{name}") or qm.create(name)
    message = qm.compose(queue, b"a", label="fruit", **more)
    qm.done(qm.engine.messages.enqueue_message(queue, message))
    return message


@pytest.mark.parametrize("delivery_guarantee", [0, 1], ids=["express", "recoverable"])
def test_a_message_is_found_among_others(qm: RunningQueueManager, delivery_guarantee: int) -> None:
    sent(qm)
    message = sent(qm, delivery_guarantee=delivery_guarantee)
    sent(qm)
    (place,) = found(qm, message)
    assert place == MessageLocation(
        qm.find().pathname,
        W.WAITING,
        "fruit",
        message.lookup_identifier,
        message.arrival_time,
    )


def test_a_message_that_is_gone_is_nowhere(qm: RunningQueueManager) -> None:
    message = sent(qm)
    qm.receive(qm.open(qm.find()))
    assert found(qm, message) == []
    other = MessageIdentifier(uuid4(), message.attributes.identifier.ordinal)
    search = search_for(qm, other)
    qm.advance(1000)
    assert search.result() == []


def test_a_message_that_somebody_reads_is_told_as_such(qm: RunningQueueManager) -> None:
    message = sent(qm)
    qm.lock(qm.open(qm.find()))
    assert places(qm, message) == [(qm.find().pathname, W.BEING_READ)]


def test_the_copy_in_a_journal_is_found(qm: RunningQueueManager) -> None:
    queue = qm.create(r"private$\kept", journaling=True)
    message = sent(qm, r"private$\kept")
    qm.receive(qm.open(queue))
    assert places(qm, message) == [(f"{queue.pathname};JOURNAL", W.WAITING)]


def test_a_dead_letter_is_found(qm: RunningQueueManager) -> None:
    message = sent(qm, negative_journaling_requested=True)
    qm.done(qm.engine.queues.purge_queue(qm.find()))
    ((queue, _),) = places(qm, message)
    assert queue.lower().endswith(r"\system$;deadletter")


def test_a_message_in_a_subqueue_is_found_there(qm: RunningQueueManager) -> None:
    message = sent(qm)
    position = MessagePosition(qm.find(), message.lookup_identifier)
    late = qm.subqueue(qm.find(), "late")
    qm.done(qm.engine.messages.move_message(position, late))
    assert places(qm, message) == [(late.pathname, W.WAITING)]


def test_what_is_on_its_way_is_found(qm: RunningQueueManager) -> None:
    name = r"DIRECT=OS:other\private$\q"
    queue = qm.open(name, QueueAccessType.SEND_ACCESS).queue_reference
    assert queue is not None
    message = qm.compose(queue, b"a")
    qm.done(qm.engine.messages.enqueue_message(queue, message))
    assert places(qm, message) == [(name, W.WAITING)]


def test_what_an_open_transaction_has_sent_is_found(qm: RunningQueueManager) -> None:
    queue = qm.create(transactional=True)
    transaction = qm.engine.transactions.create_transaction(uuid4())
    message = qm.compose(queue, b"a", transaction)
    qm.done(qm.engine.messages.enqueue_message(queue, message, transaction))
    assert places(qm, message) == [(queue.pathname, W.IN_TRANSACTION)]
    qm.done(qm.engine.transactions.transaction_commit(transaction.identifier))
    assert places(qm, message) == [(queue.pathname, W.WAITING)]


def test_others_are_served_between_slices(
    qm: RunningQueueManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(message_lookup, "SLICE", 3)
    messages = [sent(qm, delivery_guarantee=number % 2) for number in range(20)]
    searches = [begun(qm, message) for message in messages]
    qm.advance(2)
    assert not any(search.done for search in searches)
    qm.advance(1000)
    assert [[place.lookup_identifier for place in search.result()] for search in searches] == [
        [message.lookup_identifier] for message in messages
    ]


def test_large_bodies_make_slices_short(
    qm: RunningQueueManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(message_lookup, "SLICE_BYTES", 100)
    sent(qm)
    message = sent(qm)
    search = begun(qm, message)
    assert not search.done
    qm.advance(1000)
    assert len(search.result()) == 1


def test_a_search_ends_with_the_store(
    qm: RunningQueueManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(message_lookup, "SLICE_BYTES", 1)
    search = begun(qm, sent(qm))
    qm.restart()
    qm.advance(1000)
    with pytest.raises(StoreStoppedError):
        search.result()
