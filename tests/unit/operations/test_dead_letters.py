"""Dead letters are sent again: each in one commit, and so many at once."""

from pathlib import Path
from uuid import UUID

import pytest

from rpcqm.base.errors import HResult, MQError
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.written import format_name
from rpcqm.codec.types.mqvalues import INFINITE
from rpcqm.operations.drafts import Draft
from rpcqm.operations.operations import Operations
from rpcqm.service.accounts import Accounts
from rpcqm.service.backups import Backups
from rpcqm.service.tokens import tokens_of
from tests.support.callers import ADMINISTRATOR, ALICE
from tests.support.queue_manager import RunningQueueManager

ORDERS = format_name("orders")
DEAD = format_name(r".\DeadLetter$")
DEAD_TRANSACTIONAL = format_name(r".\XactDeadLetter$")


@pytest.fixture
def operations(qm: RunningQueueManager, tmp_path: Path) -> Operations:
    return made(qm, tmp_path)


def made(qm: RunningQueueManager, path: Path) -> Operations:
    directory = path / "accounts"
    directory.mkdir(exist_ok=True)
    accounts = Accounts(qm.store, directory, clock=qm.clock)
    backups = Backups(qm.engine, accounts.user_file)
    return Operations(qm.engine, accounts, backups.make, tokens_of(qm.engine, accounts))


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
    again = made(qm, tmp_path).dead_letters.resend_all(ADMINISTRATOR, DEAD)
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
    assert (first.messages, first.more) == (2, True)
    monkeypatch.setattr("rpcqm.operations.dead_letters.LOOKED_AT_ONCE", 1)
    second = qm.done(resend(ADMINISTRATOR, DEAD))
    assert (second.messages, second.more) == (1, False)
    assert counted(qm) == (1, 3)


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
