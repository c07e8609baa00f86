"""Orders of administrators that hold until they are taken back, over restarts too (G585, G631)."""

import json

from rpcqm.adm.queue_manager import QueueManager, StandingOrder
from rpcqm.base.clock import Clock
from rpcqm.base.completion import Completion
from rpcqm.base.errors import HResult, MQError
from rpcqm.base.log import get_logger
from rpcqm.codec.packet.enums import MessageClass
from rpcqm.store.records import Family
from rpcqm.store.store import Store

OFFLINE_KEY = b"off the network"
MAINTENANCE_KEY = b"maintenance"
LONGEST_REASON = 1_000
"""Characters of a reason.

Bound `overview.reason` [characters]: the order is refused.
"""

_log = get_logger("qm")


class MaintenanceError(MQError):
    """No new message is taken, because an administrator has ordered so."""

    def __init__(self, order: StandingOrder) -> None:
        super().__init__(HResult.MQ_ERROR_SERVICE_NOT_AVAILABLE, in_maintenance(order))


def in_maintenance(order: StandingOrder) -> str:
    """What is said of maintenance to whoever wants to send."""
    told = "no new message is taken during maintenance"
    return f"{told}: {order.reason}" if order.reason else told


class Admission:
    """Whether messages may come into being here at all; whoever takes one asks."""

    def __init__(self, queue_manager: QueueManager) -> None:
        self._queue_manager = queue_manager

    def check(self) -> None:
        """Raise MaintenanceError for a new message, whoever sends it by whatever door."""
        if self._queue_manager.maintenance is not None:
            raise MaintenanceError(self._queue_manager.maintenance)

    def check_arrived(self, message_class: int) -> None:
        """The same for what another queue manager sends: what it tells of messages goes on."""
        if message_class == MessageClass.MQMSG_CLASS_NORMAL:
            self.check()


class StandingOrders:
    """Keeps the orders in the store, and shows them in the queue manager."""

    def __init__(self, store: Store, clock: Clock, queue_manager: QueueManager) -> None:
        self._store, self._clock, self._queue_manager = store, clock, queue_manager

    def restore(self) -> None:
        """Take over what was ordered before this start; the log tells of it."""
        machine = self._queue_manager
        machine.disconnected = self._kept(OFFLINE_KEY)
        machine.maintenance = self._kept(MAINTENANCE_KEY)
        if (order := machine.disconnected) is not None:
            _log.warning(
                "still off the network, as somebody has ordered before this start",
                by=order.by,
                reason=order.reason,
            )
        if (order := machine.maintenance) is not None:
            _log.warning(
                "still in maintenance, as somebody has ordered before this start",
                by=order.by,
                reason=order.reason,
            )

    def disconnect(self, by: str, reason: str) -> Completion[None]:
        """Note that the network is not used; done when that is durable."""
        order = self._order(self._queue_manager.disconnected, by, reason)
        self._queue_manager.disconnected = order
        return self._keep(OFFLINE_KEY, order)

    def connect(self) -> Completion[None]:
        """Note that it is used again; done when that is durable."""
        self._queue_manager.disconnected = None
        return self._keep(OFFLINE_KEY, None)

    def begin_maintenance(self, by: str, reason: str) -> Completion[None]:
        """Take no new message from now on; done when that is durable."""
        order = self._order(self._queue_manager.maintenance, by, reason)
        self._queue_manager.maintenance = order
        return self._keep(MAINTENANCE_KEY, order)

    def end_maintenance(self) -> Completion[None]:
        """Take messages again; done when that is durable."""
        self._queue_manager.maintenance = None
        return self._keep(MAINTENANCE_KEY, None)

    def _order(self, before: StandingOrder | None, by: str, reason: str) -> StandingOrder:
        """The order that holds now.

        One that is given again begins when the first one did, and keeps its reason if no other one
        is given (G726).
        """
        if len(reason) > LONGEST_REASON:
            detail = f"a reason has at most {LONGEST_REASON:,} characters"
            raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, detail)
        if before is None:
            return StandingOrder(self._clock.now(), by, reason)
        return StandingOrder(before.since, by, reason or before.reason)

    def _keep(self, key: bytes, order: StandingOrder | None) -> Completion[None]:
        with self._store.transaction("keep an order") as change:
            if order is None:
                change.delete(Family.META, key)
            else:
                change.put(Family.META, key, _encoded(order))
            return change.committed

    def _kept(self, key: bytes) -> StandingOrder | None:
        value = self._store.get(Family.META, key)
        return None if value is None else _decoded(value)


def _encoded(order: StandingOrder) -> bytes:
    return json.dumps([order.since, order.by, order.reason]).encode()


def _decoded(value: bytes) -> StandingOrder:
    """An older version has kept a 1: nobody knows more of the order."""
    kept = json.loads(value)
    return StandingOrder(*kept) if isinstance(kept, list) else StandingOrder()
