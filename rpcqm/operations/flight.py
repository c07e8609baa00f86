"""Unfinished work: transactions, leases and sessions, with their holders."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from rpcqm.base.identity import Identity
from rpcqm.base.text import iso_time
from rpcqm.base.told import told
from rpcqm.operations.network_shapes import described_transaction
from rpcqm.operations.operations import Operations
from rpcqm.operations.shapes import described_lease

MOST_ROWS = 500
"""Leases, transactions and sessions that `rpcqm top` is told of at once.

Their number in all is told, too.

Bound `program.rows_in_flight` [of each]: the others are counted only.
"""

T = TypeVar("T")


def in_flight(operations: Operations, identity: Identity) -> dict[str, object]:
    """All three in what JSON has; for administrators, as its parts are."""
    names = operations.accounts.names(identity)
    sessions = operations.sessions
    return {
        "now": iso_time(sessions.now() / 1000),
        "leases": _told(operations.messages.leases(identity), described_lease),
        "transactions": _told(
            sessions.transactions(identity), lambda each: described_transaction(each, names)
        ),
        "sessions": _told(sessions.all(identity), told),
    }


def _told(found: Sequence[T], describe: Callable[[T], dict[str, object]]) -> dict[str, object]:
    return {"total": len(found), "rows": [describe(each) for each in found[:MOST_ROWS]]}
