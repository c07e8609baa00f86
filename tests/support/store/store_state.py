"""Everything that a store holds, as plain values that can be compared."""

from dataclasses import astuple
from typing import Any

from rpcqm.adm.enums import PositionState
from rpcqm.store.counters import KEY_PREFIX
from rpcqm.store.index import QueueIndex
from rpcqm.store.records import FLAG_EXPRESS, SYNCED_KEY, Family
from rpcqm.store.store import Store

RECORD_FAMILIES = (Family.META, Family.QUEUE, Family.STREAM, Family.HISTORY)


def state_of(store: Store) -> dict[str, Any]:
    """What can be seen, and what is on its way."""
    queues = {number: queue_state(store, store.index(number)) for number in store.queue_ids()}
    staged = {
        name: {number: astuple(op) for number, op in staged.operations.items()}
        for name, staged in store.uncommitted.items()
        if staged.operations
    }
    records = {
        family: {
            k: v
            for k, v in store.records(family)
            if not k.startswith(KEY_PREFIX) and k != SYNCED_KEY
        }
        for family in RECORD_FAMILIES
    }
    return {
        "queues": {number: queue for number, queue in queues.items() if queue["account"] != (0, 0)},
        "staged": staged,
        "records": records,
        "total": (store.total.count, store.total.bytes),
        "express": (store.express.memory, store.express.spilled),
    }


def queue_state(store: Store, index: QueueIndex) -> dict[str, Any]:
    messages = {}
    for key in list(index.keys()):
        position = index.position(key)
        assert position is not None
        packet = store.read_packet(position.serial)
        messages[key] = (position, index.state(key), index.moves(key), index.owner(key), packet)
    return {
        "messages": messages,
        "pending": {key: index.pending_position(key) for key in index.pending},
        "account": (index.account.count, index.account.bytes),
    }


def after_restart(state: dict[str, Any]) -> dict[str, Any]:
    """What of a state must be there again: no express message, no lock, no open transaction."""
    charges = Charges()
    messages = {number: _kept(queue["messages"]) for number, queue in state["queues"].items()}
    for number, kept in messages.items():
        for position, *_ in kept.values():
            charges.add(number, position.size)
    return {
        "queues": {
            number: {"messages": messages.get(number, {}), "pending": {}, "account": account}
            for number, account in charges.accounts.items()
        },
        "staged": {},
        "records": state["records"],
        "total": charges.total,
        "express": (0, 0),
    }


class Charges:
    """What the accounts of queues must show."""

    def __init__(self) -> None:
        self.accounts: dict[int, tuple[int, int]] = {}
        self.total = (0, 0)

    def add(self, queue_id: int, size: int) -> None:
        count, charged = self.accounts.get(queue_id, (0, 0))
        self.accounts[queue_id] = (count + 1, charged + size)
        self.total = (self.total[0] + 1, self.total[1] + size)


def _kept(messages: dict[int, Any]) -> dict[int, Any]:
    return {
        key: (position, _unlocked(status), moves, None, packet)
        for key, (position, status, moves, _, packet) in messages.items()
        if not position.flags & FLAG_EXPRESS
    }


def _unlocked(state: PositionState) -> PositionState:
    return PositionState.AVAILABLE if state is PositionState.LOCKED else state
