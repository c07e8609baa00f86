"""Who has what open: pages of it, in an order that stays while things come and go."""

import pytest

from rpcqm.base.errors import HResult, MQError, NtStatus
from rpcqm.base.origin import ORIGIN, Origin
from rpcqm.codec.names.written import format_name
from rpcqm.codec.types.mqvalues import QueueAccessType
from rpcqm.operations.drafts import Draft
from rpcqm.operations.opened import MOST_AT_ONCE
from rpcqm.operations.operations import Operations
from tests.support.queue_manager import RunningQueueManager
from tests.support.rpc.callers import ADMINISTRATOR, ALICE

ORDERS = format_name("orders")
PEEK = QueueAccessType.PEEK_ACCESS
MANY = 10_000


def everything(operations: Operations, limit: int, name: object = ORDERS) -> list[str]:
    """The identifiers of all pages."""
    found: list[str] = []
    after = ""
    while True:
        page = operations.opened.page(ADMINISTRATOR, ORDERS if name else None, after, limit)
        assert len(page.rows) <= limit
        found += [str(each["id"]) for each in page.rows]
        after = page.after
        if not after:
            return found


@pytest.mark.bound("program.open_rows")
def test_ten_thousand_handles_are_told_in_pages(
    qm: RunningQueueManager, operations: Operations
) -> None:
    qm.create()
    for _ in range(MANY):
        qm.engine.opening.open_queue(ORDERS, PEEK, identity=ALICE)
    first = operations.opened.page(ADMINISTRATOR, ORDERS, "", 2)
    assert [each["id"] for each in first.rows] == ["handle-1", "handle-2"]
    operations.opened.end(ADMINISTRATOR, "handle-2")
    operations.opened.end(ADMINISTRATOR, "handle-3")
    rest = operations.opened.page(ADMINISTRATOR, ORDERS, first.after, 2)
    assert [each["id"] for each in rest.rows] == ["handle-4", "handle-5"]
    found = everything(operations, MOST_AT_ONCE)
    assert len(found) == len(set(found)) == MANY - 2


def test_handles_leases_and_transactions_of_a_queue_are_told(
    qm: RunningQueueManager, operations: Operations
) -> None:
    qm.create()
    qm.create(r"private$\other")
    before = ORIGIN.set(Origin("192.0.2.7", "http"))
    try:
        qm.done(operations.messages.send(ADMINISTRATOR, (ORDERS,), [Draft(b"x")]))
        qm.done(operations.messages.receive(ADMINISTRATOR, ORDERS, 60_000, 0, 1).outcome)
    finally:
        ORIGIN.reset(before)
    opened = qm.engine.opening.open_queue(ORDERS, PEEK, identity=ALICE)
    qm.engine.opening.open_queue(format_name("other"), PEEK, identity=ALICE)
    names = (ORDERS, format_name("other"))
    several = qm.engine.opening.open_queue(names, QueueAccessType.SEND_ACCESS, identity=ALICE)
    rows = operations.opened.page(ADMINISTRATOR, ORDERS, "", 10).rows
    kinds = [each["kind"] for each in rows]
    assert kinds == ["handle", "handle", "lease"]
    assert [each["id"] for each in rows[:2]] == [
        f"handle-{each.number}" for each in (opened, several)
    ]
    assert (rows[0]["account"], rows[0]["access"]) == (ALICE.name, "peek")
    assert rows[1]["queues"] == ["orders", "other"]
    assert (rows[2]["address"], rows[2]["door"], rows[2]["messages"]) == ("192.0.2.7", "http", 1)
    operations.opened.end(ADMINISTRATOR, str(rows[1]["id"]))
    assert several.handle not in qm.engine.opening.descriptors
    qm.done(operations.opened.end(ADMINISTRATOR, str(rows[2]["id"])))
    message = qm.engine.registry.find_by_format_name(ORDERS)
    assert message is not None
    assert message.message_position_list.available == 1


def test_what_is_open_is_for_administrators(
    qm: RunningQueueManager, operations: Operations
) -> None:
    qm.create()
    opened = qm.engine.opening.open_queue(ORDERS, PEEK, identity=ALICE)
    own = qm.engine.opening.open_queue(ORDERS, PEEK)
    for order in (
        lambda: operations.opened.page(ALICE, ORDERS),
        lambda: operations.opened.connections(ALICE),
        lambda: operations.opened.end(ALICE, f"handle-{opened.number}"),
        lambda: operations.opened.end(ALICE, "connection-1"),
    ):
        with pytest.raises(MQError) as refused:
            order()
        assert refused.value.status is HResult.MQ_ERROR_ACCESS_DENIED
    for gone in (
        f"handle-{own.number}",
        "handle-0",
        "lease-x",
        "transaction-x",
        "connection-x",
        "x",
    ):
        with pytest.raises(MQError) as missing:
            operations.opened.end(ADMINISTRATOR, gone)
        assert missing.value.status is NtStatus.STATUS_OBJECT_NAME_NOT_FOUND, gone
    with pytest.raises(MQError) as wrong:
        operations.opened.page(ADMINISTRATOR, ORDERS, "behind")
    assert wrong.value.status is HResult.MQ_ERROR_INVALID_PARAMETER
