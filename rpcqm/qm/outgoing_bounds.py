"""Bounds the number of queues to other queue managers, and the life of empty ones (G426).

Senders name destinations on any host, and each new one is a queue that is kept over restarts, looks
for its host and connects. So each origin has its share: an account, or the address that messages
come from. Administrators, and the queue manager itself, may have any number.
"""

from rpcqm.adm.message import Message
from rpcqm.adm.queue import OutgoingQueue
from rpcqm.base.clock import Clock, Timer, Timers
from rpcqm.base.errors import HResult, MQError
from rpcqm.base.identity import Identity
from rpcqm.base.log import get_logger
from rpcqm.qm.registry import IN_USE, QueueRegistry
from rpcqm.qm.settings import QueueManagerSettings

OWN = ""
"""The origin of the queue manager's own messages."""
TOLD = 1024
"""Accounts and addresses whose refused queues are told once a minute each.

Bound `outgoing.origins_in_log` [origins]: the origin that was refused longest ago is logged anew.
"""

_log = get_logger("qm")
ACCOUNT = "S-1-"
"""The beginning of accounts' origins."""
_TOLD_AGAIN = 60_000
_LOOK_MILLISECONDS = 60_000
_EMPTY_MILLISECONDS = 600_000
"""How often empty queues are looked for, and how long one is kept: an active sender needs it again.
"""


class TooManyOutgoingQueuesError(MQError):
    """An origin has as many outgoing queues as it may have; that is logged already."""

    def __init__(self) -> None:
        super().__init__(HResult.MQ_ERROR_INSUFFICIENT_RESOURCES, "too many outgoing queues")


def origin_of(identity: Identity | None) -> str:
    """The origin that a caller's outgoing queues count for."""
    return OWN if identity is None else identity.sid


def source_of(message: Message) -> str:
    """The source of a message: an address, or without one the queue manager in the message."""
    return message.source_address or str(message.attributes.identifier.queue_manager_guid)


class OutgoingBounds:
    """Admits new outgoing queues, and forgets those that have long been empty."""

    def __init__(
        self, clock: Clock, timers: Timers, registry: QueueRegistry, settings: QueueManagerSettings
    ) -> None:
        self._clock, self._timers = clock, timers
        self._registry, self._settings = registry, settings
        self._told: dict[str, tuple[int, int]] = {}
        self._unused: dict[OutgoingQueue, tuple[int, int]] = {}
        """Since when a queue is empty, and how many messages had come by then."""
        self._timer: Timer | None = None
        self._stopped = False
        registry.outgoing_hooks.append(self._look_later)

    def admit(self, origin: str) -> None:
        """Raise TooManyOutgoingQueuesError if an origin may have no further queue."""
        if not self.has_room(origin):
            self._tell(origin)
            raise TooManyOutgoingQueuesError

    def has_room(self, origin: str) -> bool:
        """Whether an origin may have one more."""
        if origin == OWN:
            return True
        settings, registry = self._settings, self._registry
        account = origin.startswith(ACCOUNT)
        share = settings.outgoing_queues_per_account
        most = share if account else settings.outgoing_queues_per_source
        in_all = len(registry.by_destination)
        return registry.origins[origin] < most and in_all < settings.outgoing_queues

    def _tell(self, origin: str) -> None:
        """Log a refusal once a minute for each origin, with the number of refusals."""
        now = self._clock.monotonic()
        until, refused = self._told.pop(origin, (now, 0))
        refused += 1
        if until <= now:
            _log.warning("too many outgoing queues", origin=origin, refused=refused)
            until, refused = now + _TOLD_AGAIN, 0
        self._told[origin] = until, refused
        if len(self._told) > TOLD:
            del self._told[next(iter(self._told))]

    # Empty ones

    def stop(self) -> None:
        """Stop the timer."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look_later(self) -> None:
        if self._timer is None and not self._stopped:
            self._timer = self._timers.call_later(_LOOK_MILLISECONDS, self._look)

    def _look(self) -> None:
        """Drop the queues that have been empty, and used by nobody, for ten minutes."""
        self._timer = None
        now = self._clock.monotonic()
        before, self._unused = self._unused, {}
        for queue in list(self._registry.by_destination.values()):
            if queue.active or queue.state in IN_USE:
                continue
            entered = queue.message_position_list.entered
            since, had_come = before.get(queue, (now, entered))
            if had_come != entered:
                since = now
            if now - since >= _EMPTY_MILLISECONDS:
                self._registry.drop_if_unused(queue)
            if not queue.deleted:
                self._unused[queue] = since, entered
        if self._registry.by_destination:
            self._look_later()
