"""Who holds leases and transactions, for administrators, within bounds."""

from typing import Any

import pytest

from rpcqm.base.errors import HResult, MQError
from rpcqm.codec.names.written import format_name
from rpcqm.operations import flight
from rpcqm.operations.drafts import Draft
from rpcqm.operations.flight import in_flight
from rpcqm.operations.operations import Operations
from tests.support.queue_manager import RunningQueueManager
from tests.support.rpc.callers import ADMINISTRATOR, ALICE

ORDERS = format_name("orders")


def test_who_holds_what_is_for_administrators(operations: Operations) -> None:
    with pytest.raises(MQError) as refused:
        in_flight(operations, ALICE)
    assert refused.value.status is HResult.MQ_ERROR_ACCESS_DENIED


@pytest.mark.bound("program.rows_in_flight")
def test_rows_are_bounded_and_counted_all_the_same(
    qm: RunningQueueManager, operations: Operations, monkeypatch: pytest.MonkeyPatch
) -> None:
    qm.create()
    qm.done(operations.messages.send(ADMINISTRATOR, (ORDERS,), [Draft(b"x")] * 3))
    reception = operations.messages.receive(ADMINISTRATOR, ORDERS, 60_000, 0, 3)
    assert len(qm.done(reception.outcome)) == 3
    told: Any = in_flight(operations, ADMINISTRATOR)["leases"]
    assert (told["total"], len(told["rows"])) == (3, 3)
    assert {each["account"] for each in told["rows"]} == {ADMINISTRATOR.name}
    monkeypatch.setattr(flight, "MOST_ROWS", 2)
    told = in_flight(operations, ADMINISTRATOR)["leases"]
    assert (told["total"], len(told["rows"])) == (3, 2)
