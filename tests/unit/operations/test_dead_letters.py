"""Dead letters are sent again: each in one commit, and so many at once."""

from pathlib import Path
from uuid import UUID

import pytest

from rpcqm.base.errors import HResult, MQError
from rpcqm.base.identity import authenticated
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.written import format_name
from rpcqm.codec.types.mqvalues import INFINITE, QueueAccessType
from rpcqm.operations.dead_letters import Range
from rpcqm.operations.drafts import Draft
from rpcqm.operations.operations import Operations
from tests.support.qm.operators import operations_of
from tests.support.queue_manager import RunningQueueManager
from tests.support.rpc.callers import ADMINISTRATOR, ALICE

ORDERS = format_name("orders")
DEAD = format_name(r".\DeadLetter$")
DEAD_TRANSACTIONAL = format_name(r".\XactDeadLetter$")


def purged(qm: RunningQueueManager, operations: Operations, count: int) -> None:
    drafts = [Draft(b"body", str(number), dead_letter=True) for number in range(count)]
    qm.done(operations.messages.send(ADMINISTRATOR, (ORDERS,), drafts))
    qm.done(operations.messages.purge(ADMINISTRATOR, ORDERS))


def counted(qm: RunningQueueManager) -> tuple[int, int]:
    """Dead letters, and messages that have come again."""
    return qm.engine.dead_letters.count(), qm.find().message_count


def test_a_dead_letter_is_never_in_two_queues_nor_lost(
    qm: RunningQueueManager, operations: Operations, tmp_path: Path
) -> None:
    qm.create()
    purged(qm, operations, 1)
    sent = operations.dead_letters.resend_all(ADMINISTRATOR, DEAD)
    qm.crash()
    assert not sent.done
    assert counted(qm) == (1, 0)
    again = operations_of(qm, tmp_path).dead_letters.resend_all(ADMINISTRATOR, DEAD)
    assert qm.done(again).messages == 1
    assert counted(qm) == (0, 1)
    qm.crash()
    assert counted(qm) == (0, 1)


def test_a_transactional_one_is_sent_again_too(
    qm: RunningQueueManager, operations: Operations
) -> None:
    qm.create(transactional=True)
    purged(qm, operations, 2)
    again = operations.dead_letters.resend_all(ADMINISTRATOR, DEAD_TRANSACTIONAL)
    assert qm.done(again).messages == 2
    assert counted(qm) == (0, 2)


def test_a_reason_chooses(qm: RunningQueueManager, operations: Operations) -> None:
    qm.create()
    purged(qm, operations, 1)
    resend = operations.dead_letters.resend_all
    assert qm.done(resend(ADMINISTRATOR, DEAD, "receive_timeout")).messages == 0
    assert qm.done(resend(ADMINISTRATOR, DEAD, "q_purged")).messages == 1


def test_others_than_those_who_may_receive_send_nothing_again(
    qm: RunningQueueManager, operations: Operations
) -> None:
    qm.create()
    purged(qm, operations, 1)
    key = operations.messages.peek(ADMINISTRATOR, DEAD).messages[0].lookup_identifier
    for keys in (None, [key]):
        refused = operations.dead_letters.resend_all(ALICE, DEAD, keys=keys)
        with pytest.raises(MQError) as error:
            qm.done(refused)
        assert error.value.status is HResult.MQ_ERROR_ACCESS_DENIED
    with pytest.raises(MQError):
        operations.dead_letters.acknowledge(ALICE)
    assert counted(qm) == (1, 0)


@pytest.mark.bound("dead_letters.resent_at_once")
@pytest.mark.bound("dead_letters.looked_at_once")
def test_so_many_are_looked_at_and_sent_again_at_once(
    qm: RunningQueueManager, operations: Operations, monkeypatch: pytest.MonkeyPatch
) -> None:
    qm.create()
    purged(qm, operations, 4)
    monkeypatch.setattr("rpcqm.operations.dead_letters.RESENT_AT_ONCE", 2)
    resend = operations.dead_letters.resend_all
    first = qm.done(resend(ADMINISTRATOR, DEAD))
    assert first.messages == 2
    assert first.rest is not None
    monkeypatch.setattr("rpcqm.operations.dead_letters.LOOKED_AT_ONCE", 1)
    second = qm.done(resend(ADMINISTRATOR, DEAD, where=first.rest))
    assert second.messages == 1
    assert second.rest is not None
    third = qm.done(resend(ADMINISTRATOR, DEAD, where=second.rest))
    assert (third.messages, third.rest) == (1, None)
    assert counted(qm) == (0, 4)


def test_letters_that_cannot_be_sent_hold_up_no_others(
    qm: RunningQueueManager, operations: Operations, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full queue has more of them, in front, than one request sends."""
    qm.create()
    qm.create(r"private$\tiny", quota=1)
    for name, count in (("tiny", 5), ("orders", 2)):
        drafts = [Draft(b"x" * 300, str(number), dead_letter=True) for number in range(count)]
        for draft in drafts:
            qm.done(operations.messages.send(ADMINISTRATOR, (format_name(name),), [draft]))
            qm.done(operations.messages.purge(ADMINISTRATOR, format_name(name)))
    qm.done(operations.messages.send(ADMINISTRATOR, (format_name("tiny"),), [Draft(b"x" * 500)]))
    monkeypatch.setattr("rpcqm.operations.dead_letters.RESENT_AT_ONCE", 2)
    rest, sent = Range(), 0
    reasons: list[dict[str, object]] = []
    for _ in range(4):
        done = qm.done(operations.dead_letters.resend_all(ADMINISTRATOR, DEAD, where=rest))
        sent, reasons = sent + done.messages, reasons + done.reasons()
        if done.rest is None:
            break
        rest = done.rest
    assert done.rest is None
    assert sent == 2
    assert {each["detail"] for each in reasons} == {"`tiny` is at its quota of 1 KB"}
    assert sum(int(str(each["messages"])) for each in reasons) == 5
    assert counted(qm) == (5, 2)


def test_a_letter_that_dies_again_is_not_sent_again_by_the_same_order(
    qm: RunningQueueManager, operations: Operations, monkeypatch: pytest.MonkeyPatch
) -> None:
    qm.create()
    purged(qm, operations, 3)
    monkeypatch.setattr("rpcqm.operations.dead_letters.RESENT_AT_ONCE", 2)
    first = qm.done(operations.dead_letters.resend_all(ADMINISTRATOR, DEAD, ttbr=0))
    assert (first.messages, counted(qm)) == (2, (3, 0))
    assert first.rest is not None
    again = operations.dead_letters.resend_all
    second = qm.done(again(ADMINISTRATOR, DEAD, ttbr=0, where=first.rest))
    assert (second.messages, second.rest) == (1, None)


@pytest.mark.parametrize(
    "wanted",
    [
        Draft(b"body", "for ever", dead_letter=True),
        Draft(b"body", "soon", dead_letter=True, ttrq=77, ttbr=99),
        Draft(b"body", "secret", dead_letter=True, encrypt=True),
    ],
    ids=lambda draft: str(draft.label),
)
def test_what_was_wanted_of_a_message_is_wanted_again(
    qm: RunningQueueManager, operations: Operations, wanted: Draft
) -> None:
    elsewhere = FormatName.private(UUID(int=7), 5)
    qm.done(operations.messages.send(ADMINISTRATOR, (elsewhere,), [wanted]))
    first = in_outgoing_queue(qm)
    (queue,) = qm.engine.outgoing.list()
    qm.done(qm.engine.queues.purge_queue(queue))
    assert qm.done(operations.dead_letters.resend_all(ADMINISTRATOR, DEAD)).messages == 1
    assert in_outgoing_queue(qm) == first
    assert first[:2] == (wanted.ttrq or INFINITE, wanted.ttbr or INFINITE)
    assert bool(first[2]) is wanted.encrypt


def in_outgoing_queue(qm: RunningQueueManager) -> tuple[int, int, int, int]:
    """Times and encryption of the one message that waits to be sent."""
    (queue,) = qm.engine.outgoing.list()
    key = queue.message_position_list.first_available()
    assert key is not None
    message = qm.engine.positions.message_at(queue, key).attributes
    times = message.time_to_reach_queue, message.time_to_be_received
    return *times, message.privacy_level, message.encryption_algorithm


def test_a_look_of_who_may_only_look_leaves_dead_letters_unread(
    qm: RunningQueueManager, operations: Operations
) -> None:
    """They are for who does something about them; while it looks, they are unread, too (G725)."""
    looker = authenticated("eve", "S-1-5-21-1-2-3-1002", "S-1-5-32-544", read_only=True)
    qm.create()
    purged(qm, operations, 2)
    unread = qm.engine.dead_letters.unread
    with operations.messages.opened(looker, DEAD, QueueAccessType.PEEK_ACCESS):
        assert unread() == 2
    assert unread() == 2
    operations.messages.peek(ADMINISTRATOR, DEAD)
    assert unread() == 0
