"""What the queue manager keeps for an account ends with it (G403)."""

from uuid import uuid4

import pytest

from rpcqm.base.errors import HResult, MQError
from rpcqm.base.identity import BUILTIN_ADMINISTRATORS, Identity, Validity, authenticated
from rpcqm.codec.types.mqvalues import QueueAccessType
from rpcqm.qm.access import require_administrator
from tests.support.queue_manager import RunningQueueManager

RECEIVE, SEND = QueueAccessType.RECEIVE_ACCESS, QueueAccessType.SEND_ACCESS


def account(number: int, *groups: str) -> Identity:
    sid = f"S-1-5-21-1-2-3-{number}"
    return authenticated(f"user {number}", sid, *groups, validity=Validity())


def end(qm: RunningQueueManager, identity: Identity) -> None:
    """As whoever keeps accounts does."""
    identity.validity.ended = True
    qm.engine.ended.tell(identity.sid)


def test_an_open_queue_ends_with_its_account(qm: RunningQueueManager) -> None:
    """Its cursors, and what others are kept out of by it, end with it."""
    queue = qm.create()
    engine, name = qm.engine, qm.engine.queues.format_name_of(queue)
    alice, bob = account(1), account(2)
    opened = [engine.opening.open_queue(name, RECEIVE, identity=each) for each in (alice, bob)]
    for descriptor in opened:
        engine.readers.open_cursor(descriptor)
    end(qm, alice)
    assert list(engine.opening.descriptors.values()) == opened[1:]
    assert [each.open_queue_descriptor_reference for each in engine.readers.cursors.values()] == (
        opened[1:]
    )
    assert opened[0].queue_reference is None


def test_a_transaction_ends_with_its_account(qm: RunningQueueManager) -> None:
    """One whose commit is on its way is committed."""
    alice, bob = account(1), account(2)
    transactions = qm.engine.transactions
    begun = [transactions.create_transaction(uuid4(), each.sid) for each in (alice, bob, alice)]
    transactions.transaction_prepare(begun[2].identifier)
    end(qm, alice)
    assert [each.ended for each in begun] == [True, False, False]


def test_an_identity_that_has_ended_is_granted_nothing(qm: RunningQueueManager) -> None:
    """What was proved before is worth nothing, whoever keeps it, and whoever was let in."""
    queue, engine = qm.create(), qm.engine
    alice = account(1, BUILTIN_ADMINISTRATORS)
    engine.access.check_open(queue, alice, SEND)
    require_administrator(alice)
    end(qm, alice)
    for access in (SEND, RECEIVE):
        with pytest.raises(MQError) as raised:
            engine.access.check_open(queue, alice, access)
        assert raised.value.status is HResult.MQ_ERROR_ACCESS_DENIED
    with pytest.raises(MQError):
        require_administrator(alice)
    engine.access.check_open(queue, account(1), SEND)
