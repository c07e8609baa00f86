"""The queue manager itself: its state, its permissions, its data."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from rpcqm.adm.queue_manager import StandingOrder
from rpcqm.base.completion import Completion, start
from rpcqm.base.identity import Identity
from rpcqm.base.log import get_logger
from rpcqm.base.told import MomentOrNone
from rpcqm.operations.audit import ordered, refusals
from rpcqm.operations.backup_places import REFUSED, new_place, remove_place
from rpcqm.operations.management_orders import (
    CONNECT,
    DISCONNECT,
    MACHINE,
    STORE,
    TIDY,
    ManagementOrders,
    called,
)
from rpcqm.qm.access import require_administrator, require_observer
from rpcqm.qm.engine import QueueManagerEngine
from rpcqm.qm.queue_status import QueueStatus, queue_statuses
from rpcqm.qm.standing_orders import LONGEST_REASON as LONGEST_REASON
from rpcqm.qm.standing_orders import in_maintenance

_log = get_logger("operations")

MakeBackup = Callable[[str, bool], Completion[str]]
"""Copies all durable data to a directory, with secret files if the flag is true; the outcome is a
problem or ""."""


@dataclass(frozen=True, slots=True)
class Standing:
    """An order that holds until it is taken back: since when, by whom, and why.

    `since` is null, and `by` empty, where an older version has kept the order.
    """

    since: MomentOrNone
    by: str
    reason: str


def standing(order: StandingOrder | None) -> Standing | None:
    """An order in the form for programs."""
    return None if order is None else Standing(order.since, order.by, order.reason)


@dataclass(frozen=True, slots=True)
class MachineState:
    """A queue manager; sizes are bytes.

    `disconnected` and `maintenance` are the orders that keep it off the network, and from taking
    new messages; null where there is no such order.
    """

    name: str
    identifier: str
    version: str
    connected: bool
    disconnected: Standing | None
    maintenance: Standing | None
    started: MomentOrNone
    queues: int
    messages: int
    bytes: int
    disk_bytes: int


class MachineOperations:
    """Raises MQ_ERROR_ACCESS_DENIED for those whom nothing entitles."""

    def __init__(self, engine: QueueManagerEngine, make_backup: MakeBackup) -> None:
        self._engine = engine
        self._orders = ManagementOrders(engine.management)
        self._store, self._clock, self._access = engine.store, engine.clock, engine.access
        self._queue_manager = engine.queue_manager
        self._make_backup = make_backup
        self.backup_directory: Callable[[], Path | None] = lambda: None
        """Below which callers over the network have backups made; the service says where."""
        self.started = engine.clock.now()

    def now(self) -> int:
        """The time, in milliseconds since 1970."""
        return self._clock.now()

    def state(self, identity: Identity) -> MachineState:
        """The state of the queue manager, and its stored amounts."""
        require_observer(identity)
        machine, total = self._queue_manager, self._store.total
        return MachineState(
            name=machine.computer_name,
            identifier=str(machine.identifier),
            version=machine.queue_manager_version,
            connected=machine.connection_active,
            disconnected=standing(machine.disconnected),
            maintenance=standing(machine.maintenance),
            started=self.started,
            queues=sum(1 for _ in queue_statuses(machine, self._access)),
            messages=total.count,
            bytes=total.bytes,
            disk_bytes=self._store.disk_bytes(),
        )

    def pulse(self) -> tuple[object, ...]:
        """A value that is another one after anything has happened but questions over HTTP."""
        total, counts = self._store.total, self._store.metrics.snapshot()
        counted = {name: count for name, count in counts.items() if not name.startswith("http.")}
        return total.count, total.bytes, counted

    def connect(self, identity: Identity, online: bool, reason: str = "") -> Completion[None]:
        """Use the network from now on, or use it no more; done when that is durable (G585)."""
        if online or not reason:
            return self._orders.of_machine(identity, CONNECT if online else DISCONNECT)
        with ordered(identity, called(DISCONNECT), MACHINE, reason=reason):
            require_administrator(identity)
            return self._engine.take_offline(identity.name, reason)

    def check_may_order(self, identity: Identity) -> None:
        """Raise MQ_ERROR_ACCESS_DENIED for a caller whose `connect` and `maintain` are refused."""
        require_administrator(identity)

    def maintain(self, identity: Identity, on: bool, reason: str = "") -> Completion[None]:
        """Take no new message from now on, or take them again; done when that is durable (G631)."""
        return self._begin_maintenance(identity, reason) if on else self._end_maintenance(identity)

    def _end_maintenance(self, identity: Identity) -> Completion[None]:
        with ordered(identity, "end maintenance", MACHINE):
            require_administrator(identity)
            return self._engine.end_maintenance()

    def _begin_maintenance(self, identity: Identity, reason: str) -> Completion[None]:
        with ordered(identity, "begin maintenance", MACHINE, reason=reason):
            require_administrator(identity)
            return self._engine.begin_maintenance(identity.name, reason)

    def why_not_ready(self) -> str | None:
        """Why an order keeps new messages away, for any caller; None if they are taken."""
        order = self._engine.queue_manager.maintenance
        return None if order is None else in_maintenance(order)

    def queue_statuses(self, identity: Identity) -> Iterator[QueueStatus]:
        """The status of all queues, with those to other queue managers."""
        require_observer(identity)
        return queue_statuses(self._queue_manager, self._access)

    def exposed_queues(self, identity: Identity) -> list[str]:
        """The path names of queues that Anonymous owns, or may read."""
        require_observer(identity)
        queues = self._queue_manager.queue_collection.values()
        mains = (each for each in queues if each.main is each)
        return sorted(each.pathname for each in mains if self._access.is_exposed(each))

    # Permissions

    def security(self, identity: Identity, parts: int) -> bytes:
        """The `parts` of the queue manager's own descriptor, which says who may ask."""
        return self._access.get_queue_manager_security(parts, identity)

    def set_security(self, identity: Identity, parts: int, change: bytes) -> Completion[None]:
        """Replace `parts` of it; done when durable."""
        with ordered(identity, "set permissions", MACHINE):
            return self._access.set_queue_manager_security(parts, change, identity)

    # Data

    def disk_bytes(self, identity: Identity) -> int:
        """What the store takes on the disk: who compacts it asks before and afterwards."""
        with refusals(identity, called(TIDY), STORE):
            require_administrator(identity)
        return self._store.disk_bytes()

    def compact(self, identity: Identity) -> Completion[None]:
        """Give the disk space of removed messages back."""
        return self._orders.of_machine(identity, TIDY)

    def make_backup(
        self, identity: Identity, directory: str, secrets: bool = False
    ) -> Completion[str]:
        """Copy the store, the accounts and the configuration to a directory that is new or empty.

        The files with keys and passwords that the configuration names are copied if `secrets`.

        The outcome is a sentence that says why it cannot be done, "" when it is.
        """
        with ordered(identity, "make backup", directory, secrets=secrets):
            require_administrator(identity)
            return self._make_backup(directory, secrets)

    def make_backup_below(
        self, identity: Identity, directory: str, secrets: bool = False
    ) -> Completion[str]:
        """The same for callers over the network, below the configured directory only (G419).

        The outcome is REFUSED for whatever goes wrong; the log says what it was.
        """
        with ordered(identity, "make backup", directory, secrets=secrets):
            require_administrator(identity)
            return start(self._below(directory, secrets))

    async def _below(self, directory: str, secrets: bool) -> str:
        try:
            place = new_place(self.backup_directory(), directory)
        except (ValueError, OSError) as error:
            _log.warning("a backup was refused", problem=str(error))
            return REFUSED
        if not (problem := await self._make_backup(str(place), secrets)):
            return ""
        _log.warning("a backup was refused", problem=problem)
        remove_place(place)
        return REFUSED
