"""Who has what open: handles, leases, transactions and connections, and how operators end them."""

import enum
import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from uuid import UUID

from rpcqm.adm.descriptor import OpenQueueDescriptor
from rpcqm.adm.queue import Queue
from rpcqm.adm.transaction import Transaction
from rpcqm.base.completion import Completion, completed
from rpcqm.base.errors import HResult, MQError, NtStatus
from rpcqm.base.identity import Identity
from rpcqm.base.open_connections import ConnectionView
from rpcqm.base.origin import Origin
from rpcqm.base.text import iso_time
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.types.mqvalues import QueueAccessType, QueueShareMode
from rpcqm.operations.account_names import AccountNames
from rpcqm.operations.accounts import AccountOperations
from rpcqm.operations.audit import ordered
from rpcqm.operations.queues import QueueOperations
from rpcqm.qm.access import require_administrator, require_observer
from rpcqm.qm.engine import QueueManagerEngine
from rpcqm.qm.leases import Lease

MOST_AT_ONCE = 1000
"""Rows of one answer about what is open.

The answer says from where to go on.

Bound `program.open_rows` [rows]: the rest comes with the next request.
"""

_CONNECTION = "connection"
_ACCESSES = {
    QueueAccessType.RECEIVE_ACCESS: "receive",
    QueueAccessType.RECEIVE_ADMIN_ACCESS: "receive",
    QueueAccessType.PEEK_ACCESS: "peek",
    QueueAccessType.PEEK_ADMIN_ACCESS: "peek",
    QueueAccessType.SEND_ACCESS: "send",
    QueueAccessType.MOVE_ACCESS: "move",
}


class OpenThing(enum.StrEnum):
    """What somebody can have open, in the order in which it is told."""

    HANDLE = "handle"
    LEASE = "lease"
    TRANSACTION = "transaction"


Key = tuple[int, int, str]
"""The place of what is open among all: its kind, then when it came, or its number."""


@dataclass(frozen=True, slots=True)
class OpenPage:
    """Some of what is open; `after` is where to go on, "" at the end."""

    rows: list[dict[str, object]]
    after: str


class OpenedOperations:
    """Administrators and observers see what all accounts have open; only administrators end it."""

    def __init__(
        self, engine: QueueManagerEngine, queues: QueueOperations, accounts: AccountOperations
    ) -> None:
        self._engine = engine
        self._opening, self._leases = engine.opening, engine.leases
        self._transactions = engine.transactions
        self._queues, self._accounts = queues, accounts
        self.sources = engine.connection_sources

    # Looking

    def page(
        self, identity: Identity, name: FormatName | None, after: str = "", limit: int = 100
    ) -> OpenPage:
        """Up to `limit` of what is open of a queue with its journal and subqueues, or of all.

        Raises MQ_ERROR_INVALID_PARAMETER for an `after` that no page has told.
        """
        require_observer(identity)
        queue = None if name is None else self._queues.find(name).main
        behind = _key_of(after) if after else (-1, 0, "")
        names = self._accounts.names(identity)
        rows: list[dict[str, object]] = []
        last: Key = behind
        for found in (self._handles, self._open_leases, self._open_transactions):
            places = ((key, each) for key, each in found(queue) if key > behind)
            wanted = limit + 1 - len(rows)
            for key, each in heapq.nsmallest(wanted, places, key=lambda place: place[0]):
                if len(rows) == limit:
                    return OpenPage(rows, _text_of(last))
                rows.append(self._described(each, names))
                last = key
        return OpenPage(rows, "")

    def connections(self, identity: Identity) -> list[ConnectionView]:
        """The connections of all doors, the oldest first."""
        require_observer(identity)
        return sorted(self._all_connections(), key=lambda each: each.number)

    def _handles(self, queue: Queue | None) -> Iterator[tuple[Key, OpenQueueDescriptor]]:
        """Open queues; one of several destinations is told with the others of its handle."""
        descriptors = self._opening.descriptors.values()
        parts = {
            id(each) for whole in descriptors for each in whole.open_queue_descriptor_collection
        }
        for each in descriptors:
            if id(each) in parts:
                continue
            if queue is None or queue in (found.main for found in _queues_of(each)):
                yield (0, each.number, ""), each

    def _open_leases(self, queue: Queue | None) -> Iterator[tuple[Key, Lease]]:
        for each in self._leases.all():
            if queue is None or each.queue.main is queue:
                yield (1, each.begun, each.identifier), each

    def _open_transactions(self, queue: Queue | None) -> Iterator[tuple[Key, Transaction]]:
        for each in self._engine.queue_manager.transaction_collection.values():
            operations = each.transactional_operation_collection
            if queue is None or any(one.queue.main is queue for one in operations):
                yield (2, each.begun, str(each.identifier)), each

    def _described(
        self, each: OpenQueueDescriptor | Lease | Transaction, names: AccountNames
    ) -> dict[str, object]:
        if isinstance(each, Lease):
            row = _row(f"{OpenThing.LEASE}-{each.identifier}", each.begun, each.origin)
            more: dict[str, object] = {
                "queues": [self._called(each.queue)],
                "account": each.account,
                "messages": 1,
                "expires": iso_time(each.expires / 1000),
            }
            return row | more
        if isinstance(each, Transaction):
            row = _row(f"{OpenThing.TRANSACTION}-{each.identifier}", each.begun, each.origin)
            operations = each.transactional_operation_collection
            used = {one.queue.queue_id: one.queue for one in operations}
            more = {
                "queues": sorted(map(self._called, used.values())),
                "account": None if each.owner is None else names.of(each.owner),
                "messages": len(operations),
            }
            return row | more
        row = _row(f"{OpenThing.HANDLE}-{each.number}", each.opened, each.origin)
        more = {
            "queues": [self._called(queue) for queue in _queues_of(each)],
            "account": each.account or None,
            "access": _ACCESSES[each.access_type],
            "exclusive": each.share_mode == QueueShareMode.DENY_RECEIVE,
            "cursors": len(each.cursor_collection),
            "waiting": len(each.waiting_message_read_operation_collection),
            "messages": len(each.two_phase_reads),
        }
        return row | more

    def _called(self, queue: Queue) -> str:
        return self._queues.named(queue)

    # Ending

    def end(self, identity: Identity, identifier: str) -> Completion[None]:
        """End what is open: what a client holds it by is run down, as if the client had gone.

        Reads that wait are cancelled, messages that were not finished with are given back, what was
        sent in a transaction is not sent. Raises MQError: STATUS_OBJECT_NAME_NOT_FOUND for what is
        not open, MQ_ERROR_TRANSACTION_SEQUENCE for a transaction whose end is under way.
        """
        kind, _, name = identifier.partition("-")
        if kind == OpenThing.HANDLE:
            return self._end_handle(identity, identifier, name)
        if kind == OpenThing.LEASE:
            return self._end_lease(identity, identifier, name)
        if kind == OpenThing.TRANSACTION:
            return self._abort(identity, identifier, name)
        return self._end_connection(identity, identifier, name if kind == _CONNECTION else "")

    def _end_handle(self, identity: Identity, identifier: str, name: str) -> Completion[None]:
        found = [each for each in self._opening.descriptors.values() if str(each.number) == name]
        shown = ", ".join(map(self._called, _queues_of(found[0]))) if found else identifier
        account = found[0].account if found else ""
        with ordered(identity, "end handle", shown, account=account):
            require_administrator(identity)
            if not found or not found[0].owner:
                raise _gone(identifier)
            self._engine.store.carry_out_first()
            run_down = found[0].end
            if run_down is not None:
                run_down()
            self._opening.close_queue(found[0])
        return completed(None)

    def _end_lease(self, identity: Identity, identifier: str, name: str) -> Completion[None]:
        lease = self._leases.known(name)
        shown = identifier if lease is None else self._called(lease.queue)
        account = "" if lease is None else lease.account
        with ordered(identity, "end lease", shown, account=account):
            require_administrator(identity)
            ended = self._leases.end(name)
            if ended is None:
                raise _gone(identifier)
            return ended

    def _abort(self, identity: Identity, identifier: str, name: str) -> Completion[None]:
        with ordered(identity, "abort transaction", name):
            require_administrator(identity)
            try:
                transaction = self._transactions.find(UUID(name))
            except (ValueError, MQError):
                raise _gone(identifier) from None
            if transaction.prepared:
                said = "the transaction is being committed or aborted"
                raise MQError(HResult.MQ_ERROR_TRANSACTION_SEQUENCE, said)
            return self._transactions.transaction_abort(transaction.identifier)

    def _end_connection(self, identity: Identity, identifier: str, name: str) -> Completion[None]:
        number = int(name) if name.isascii() and name.isdigit() and len(name) < 20 else 0
        found = [each for each in self._all_connections() if each.number == number]
        peer = found[0].peer if found else identifier
        with ordered(identity, "end connection", peer):
            require_administrator(identity)
            if not any(source.end_connection(number) for source in self.sources):
                raise _gone(identifier)
        return completed(None)

    def _all_connections(self) -> Iterator[ConnectionView]:
        return (each for source in self.sources for each in source.open_connections())


def _gone(identifier: str) -> MQError:
    return MQError(NtStatus.STATUS_OBJECT_NAME_NOT_FOUND, f"{identifier} is not open (any more)")


def _row(identifier: str, since: int, origin: Origin) -> dict[str, object]:
    """What all have in common, and what a handle alone has, empty."""
    return {
        "id": identifier,
        "kind": identifier.partition("-")[0],
        "since": iso_time(since / 1000),
        "address": origin.address,
        "door": origin.protocol,
        "access": None,
        "exclusive": False,
        "cursors": 0,
        "waiting": 0,
        "expires": None,
    }


def _queues_of(descriptor: OpenQueueDescriptor) -> Sequence[Queue]:
    """The queues of a handle, which are several for a name of several."""
    singles = descriptor.open_queue_descriptor_collection if descriptor.multiple else [descriptor]
    return [each.queue_reference for each in singles if each.queue_reference is not None]


def described_connection(view: ConnectionView) -> dict[str, object]:
    """A connection in what JSON has."""
    return {
        "id": f"{_CONNECTION}-{view.number}",
        "door": view.door,
        "peer": view.peer,
        "accounts": list(view.accounts),
        "since": iso_time(view.since / 1000),
        "handles": view.handles,
    }


def _text_of(key: Key) -> str:
    return f"{key[0]}.{key[1]}.{key[2]}"


def _key_of(text: str) -> Key:
    kind, _, rest = text.partition(".")
    number, _, name = rest.partition(".")
    try:
        return int(kind), int(number), name
    except ValueError:
        raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, "after: no page ends there") from None
