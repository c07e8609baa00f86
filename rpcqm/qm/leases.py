"""Leases: messages that a program has received, and completes in time or loses (G351).

A lease locks its message as a two-phase read does, but it belongs to an account instead of an open
queue. It ends when the program completes it (the message is removed), when it releases it, or when
its time is over; an end without completion is a failed delivery for `failed_deliveries`. Nothing of
it is durable: after a restart all messages are free.
"""

import heapq
import itertools
import secrets
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from rpcqm.adm.descriptor import OpenQueueDescriptor
from rpcqm.adm.enums import PositionState
from rpcqm.adm.message import Message
from rpcqm.adm.queue import OutgoingQueue, Queue
from rpcqm.base.clock import Clock, Timer, Timers
from rpcqm.base.completion import Completion, completed, start
from rpcqm.base.errors import HResult, MQError
from rpcqm.base.identity import Identity
from rpcqm.base.log import get_logger
from rpcqm.base.origin import ORIGIN, Origin
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.enums import MessageClass
from rpcqm.codec.security.access_check import MQQUEUEACCESSMASK
from rpcqm.codec.types.mqvalues import QueueAccessType
from rpcqm.qm.access import AccessControl
from rpcqm.qm.failed_deliveries import FailedDeliveries
from rpcqm.qm.lease_bounds import (
    BYTES_AT_ONCE,
    LEASES_IN_ALL,
    LEASES_OF_ACCOUNT,
    MESSAGES_AT_ONCE,
)
from rpcqm.qm.opening import Opening
from rpcqm.qm.positions import Positions, purge_reason
from rpcqm.qm.readers import WaitingReaders
from rpcqm.store.store import Store
from rpcqm.store.transaction import StoreTransaction

SHORTEST_LEASE = 1_000
LONGEST_LEASE = 3_600_000
"""How long a lease may be, and how far it can be extended at once.

A program that needs longer extends it, and one that has died blocks nobody for long.

Bound `leases.longest` [milliseconds]: the call is refused.
"""

_IDENTIFIER_BYTES = 16
"""128 random bits cannot be guessed."""

BRIEFLY = 60_000
"""Milliseconds for which a message is locked at most, while it is sent or removed."""

_EXPIRED_AT_ONCE = 1_000
"""Leases that end before others are served; the rest follow at once."""

_RECEIVE = QueueAccessType.RECEIVE_ACCESS
_RECEIVED = MessageClass.MQMSG_CLASS_ACK_RECEIVE
_HELD = (PositionState.LOCKED, PositionState.PURGE_PENDING)

_log = get_logger("qm")


class LeaseEndedError(MQError):
    """A lease has ended, is another account's, or never existed: a caller cannot tell which."""

    def __init__(self) -> None:
        super().__init__(HResult.MQ_ERROR_STALE_HANDLE, "the lease has ended, or is unknown")


class Lease:
    """One message that one account holds.

    `owner` is the account's SID, `account` its name. `delivery_count` is 1 when the message is
    delivered for the first time. `begun` and `expires` are milliseconds since 1970, `due` is the
    moment of `expires` on the monotonic clock, which counts.
    """

    __slots__ = (
        "account",
        "begun",
        "delivery_count",
        "due",
        "expires",
        "identifier",
        "lookup_identifier",
        "origin",
        "owner",
        "queue",
    )

    def __init__(
        self,
        identity: Identity,
        queue: Queue,
        lookup_identifier: int,
        delivery_count: int,
        origin: Origin | None = None,
    ) -> None:
        self.identifier = secrets.token_urlsafe(_IDENTIFIER_BYTES)
        self.owner = identity.sid
        self.account = identity.name
        self.origin = origin or ORIGIN.get()
        self.queue = queue
        self.lookup_identifier = lookup_identifier
        self.delivery_count = delivery_count
        self.begun = 0
        self.due = 0
        self.expires = 0

    @property
    def holds(self) -> bool:
        """Whether its message is still there: its queue may have been deleted."""
        positions, key = self.queue.message_position_list, self.lookup_identifier
        here = self.queue.queue_manager is not None and positions.owner(key) is self
        return here and positions.state(key) in _HELD


class LeasedMessage:
    """A message that was received; `lease` is None if it has been removed at once."""

    __slots__ = ("delivery_count", "lease", "message")

    def __init__(self, message: Message, delivery_count: int, lease: Lease | None) -> None:
        self.message = message
        self.delivery_count = delivery_count
        self.lease = lease


def packet_size(message: Message) -> int:
    """Octets of a message's packet."""
    return len(message.packet)


class Reception:
    """A receive that goes on, or has ended.

    `outcome` gives the messages in order, none when nothing came in time. It fails with MQError:
    QUEUE_DELETED, OPERATION_CANCELLED, SERVICE_NOT_AVAILABLE, INSUFFICIENT_RESOURCES.
    """

    def __init__(
        self,
        leases: "Leases",
        descriptor: OpenQueueDescriptor,
        identity: Identity,
        lease: int,
        most: int,
        still: Callable[[], bool] = lambda: True,
        measure: Callable[[Message], int] = packet_size,
    ) -> None:
        self._leases = leases
        self.still = still
        self.measure = measure
        self.descriptor = descriptor
        self.identity = identity
        self.lease = lease
        self.most = most
        self.received: list[LeasedMessage] = []
        self.size = 0
        self.outcome: Completion[list[LeasedMessage]]

    @property
    def has_room(self) -> bool:
        """Whether it takes another message."""
        return len(self.received) < self.most and self.size < BYTES_AT_ONCE

    def abandon(self) -> None:
        """End it: the program has gone, and its messages were not delivered.

        Messages that were removed at once stay removed. Does nothing a second time.
        """
        self._leases.abandon(self)


class Leases:
    """The leases of all accounts, and their ends."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        timers: Timers,
        access: AccessControl,
        readers: WaitingReaders,
        opening: Opening,
        positions: Positions,
        failed_deliveries: FailedDeliveries,
    ) -> None:
        self._store = store
        self._clock = clock
        self._timers = timers
        self._access = access
        self._readers = readers
        self._opening = opening
        self._positions = positions
        self._failed_deliveries = failed_deliveries
        self._leases: dict[str, Lease] = {}
        self._of_owner: dict[str, dict[str, Lease]] = {}
        self._deadlines: list[tuple[int, int, Lease]] = []
        self._serial = itertools.count()
        self._timer: Timer | None = None

    def __len__(self) -> int:
        """The number of present leases of all accounts."""
        return len(self._leases)

    def visible_to(self, identity: Identity) -> list[Lease]:
        """The leases of an account, or all for callers who may see everything, oldest first.

        The bearer of a token sees those of queues that it may receive from.
        """
        if identity.may_look:
            return self.all()
        allows, right = self._access.allows, MQQUEUEACCESSMASK.MQSEC_RECEIVE_MESSAGE
        own = list(self._of_owner.get(identity.sid, {}).values())
        return [each for each in own if each.holds and allows(each.queue, identity, right)]

    # Receiving

    def receive(
        self,
        name: FormatName,
        identity: Identity,
        *,
        lease: int,
        wait: int = 0,
        most: int = 1,
        still: Callable[[], bool] = lambda: True,
        measure: Callable[[Message], int] = packet_size,
    ) -> Reception:
        """Receive up to `most` messages of a local queue, each under a lease of `lease` ms.

        Waits up to `wait` ms for the first one; more are given only if they are there by then. A
        lease of 0 removes the messages at once, in one commit. A caller that has waited and may not
        log on any more, as `still` says, gets the outcome ACCESS_DENIED. `measure` gives the size
        of each message, once; after BYTES_AT_ONCE no more are given.

        Raises MQError: INVALID_PARAMETER, INSUFFICIENT_RESOURCES if the account has too many
        leases, and those of opening the queue for receiving: ACCESS_DENIED, QUEUE_NOT_FOUND,
        SHARING_VIOLATION.
        """
        if lease:
            _check_length(lease)
        if not 1 <= most <= MESSAGES_AT_ONCE:
            raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, f"{most} messages at once")
        descriptor = self._opening.open_queue(name, _RECEIVE, identity=identity)
        reception = Reception(self, descriptor, identity, lease, most, still, measure)
        reception.outcome = start(self._receive(reception, wait))
        return reception

    def hold(
        self,
        name: FormatName,
        identity: Identity,
        key: int,
        lease: int,
        access: QueueAccessType = QueueAccessType.RECEIVE_ACCESS,
    ) -> Reception:
        """Take one message, by its lookup identifier, under a lease of `lease` ms.

        Raises as `receive` does, and MQ_ERROR_MESSAGE_NOT_FOUND, also for one that is locked.
        """
        _check_length(lease)
        descriptor = self._opening.open_queue(name, access, identity=identity)
        try:
            queue = descriptor.queue_reference
            assert queue is not None
            reception = Reception(self, descriptor, identity, lease, 1)
            self._take(reception, queue, key)
        finally:
            self._opening.close_queue(descriptor)
        return reception

    def check(
        self,
        name: FormatName,
        identity: Identity,
        access: QueueAccessType = QueueAccessType.RECEIVE_ACCESS,
    ) -> Queue:
        """The queue that a caller may receive from; raises as `receive` does."""
        descriptor = self._opening.open_queue(name, access, identity=identity)
        queue = descriptor.queue_reference
        self._opening.close_queue(descriptor)
        assert queue is not None
        return queue

    async def _receive(self, reception: Reception, wait: int) -> list[LeasedMessage]:
        queue = reception.descriptor.queue_reference
        assert queue is not None
        try:
            self._take_available(reception, queue)
            if not reception.received and wait > 0:
                await self._wait(reception, queue, wait)
                self._take_available(reception, queue)
            if not reception.lease:
                await self._remove(reception, queue)
        except BaseException:
            self._undeliver(reception)
            raise
        finally:
            self._opening.close_queue(reception.descriptor)
        return reception.received

    async def _wait(self, reception: Reception, queue: Queue, wait: int) -> None:
        """Wait for one message among the other readers of the queue."""
        take = partial(self._take_after_waiting, reception, queue)
        try:
            await self._readers.wait_for_new_message(
                reception.descriptor, wait, True, None, None, take
            )
        except MQError as error:
            if error.status is not HResult.MQ_ERROR_IO_TIMEOUT:
                raise

    def _take_after_waiting(
        self, reception: Reception, queue: Queue, key: int
    ) -> Completion[Message]:
        require_logon(reception.still)
        return self._take(reception, queue, key)

    def _take_available(self, reception: Reception, queue: Queue) -> None:
        while reception.has_room:
            key = queue.message_position_list.first_available()
            if key is None:
                return
            if reception.received and reception.lease and not self.has_room(reception.identity.sid):
                return
            self._take(reception, queue, key)

    def _take(self, reception: Reception, queue: Queue, key: int) -> Completion[Message]:
        """Lock a message for a reception."""
        message = self._positions.message_at(queue, key)
        count = message.abort_count + 1
        lease: Lease | None = None
        if reception.lease:
            if not self.has_room(reception.identity.sid):
                raise MQError(HResult.MQ_ERROR_INSUFFICIENT_RESOURCES, "too many leases")
            origin = reception.descriptor.origin
            lease = Lease(reception.identity, queue, key, count, origin)
        self._positions.lock(queue, message, lease or reception)
        watch = self._positions.watch
        if watch is not None:
            watch.received(queue, message, watch.now(), settles=lease is not None)
        if lease is not None:
            self.begin(lease, reception.lease)
        reception.received.append(LeasedMessage(message, count, lease))
        reception.size += reception.measure(message)
        return completed(message)

    async def _remove(self, reception: Reception, queue: Queue) -> None:
        """Remove the messages that a reception without leases has locked."""
        with self._store.transaction("receive") as change:
            for received in reception.received:
                key = received.message.lookup_identifier
                self._positions.message_position_deleted(change, queue, key, _reason(queue, key))
            committed = change.committed
        if reception.received:
            await committed

    def abandon(self, reception: Reception) -> None:
        """End a reception, as `Reception.abandon` says."""
        self._opening.close_queue(reception.descriptor)
        if reception.lease:
            self._undeliver(reception)

    def _undeliver(self, reception: Reception) -> None:
        """Give back the messages that a reception has locked, without counting deliveries."""
        received, reception.received = reception.received, []
        for each in received:
            queue, key = each.message.queue, each.message.lookup_identifier
            holder: object = each.lease or reception
            if queue is not None and queue.message_position_list.owner(key) is holder:
                self._positions.release(queue, key)
            if each.lease is not None:
                self.forget(each.lease)

    def begin(self, lease: Lease, length: int) -> None:
        """Begin a lease of `length` ms; its message has been locked for it."""
        lease.begun = self._clock.now()
        self._enter(lease)
        self._set_end(lease, length)

    def answered(self, lease: Lease) -> None:
        """Begin the time of a lease when its answer leaves, unless it has ended (G396)."""
        if lease.identifier in self._leases:
            length = lease.expires - lease.begun
            lease.begun = self._clock.now()
            self._set_end(lease, length)

    def has_room(self, owner: str) -> bool:
        """Whether an account may have another lease; leases without messages do not count."""
        for _ in range(2):
            own = self._of_owner.get(owner, {})
            if len(own) < LEASES_OF_ACCOUNT and len(self._leases) < LEASES_IN_ALL:
                return True
            crowd = own if len(own) >= LEASES_OF_ACCOUNT else self._leases
            for lease in [each for each in crowd.values() if not each.holds]:
                self.forget(lease)
        return False

    # Settling

    def pulse(self) -> tuple[int, int]:
        """A value that changes whenever leases begin, end or are extended."""
        return len(self._leases), sum(each.due for each in self._leases.values())

    def find(self, identity: Identity, identifiers: Sequence[str]) -> list[Lease]:
        """The leases of those identifiers, each once.

        Raises LeaseEndedError unless all are the caller's and go on, MQ_ERROR_ACCESS_DENIED if the
        caller, or its token, may not receive from a queue any more.
        """
        leases = [self._live(identity, each) for each in dict.fromkeys(identifiers)]
        for queue in {id(lease.queue): lease.queue for lease in leases}.values():
            self._access.check_open(queue, identity, _RECEIVE)
        return leases

    def _live(self, identity: Identity, identifier: str) -> Lease:
        lease = self._leases.get(identifier)
        if lease is None or lease.owner != identity.sid:
            raise LeaseEndedError
        if not lease.holds:
            self.forget(lease)
            raise LeaseEndedError
        if lease.due <= self._clock.monotonic():
            self._give_back(lease)
            raise LeaseEndedError
        return lease

    def going_on(self, identity: Identity, identifier: str) -> Lease | None:
        """A lease of the caller that has its message; None where only `find` can decide."""
        lease = self._leases.get(identifier)
        if lease is None or lease.owner != identity.sid or lease.due <= self._clock.monotonic():
            return None
        owner = lease.queue.message_position_list.owner(lease.lookup_identifier)
        return lease if owner is lease else None

    def complete(self, identity: Identity, identifiers: Sequence[str]) -> Completion[None]:
        """Remove the messages of leases, all of them or none; it succeeds when that is durable.

        Raises as `find` does.
        """
        leases = self.find(identity, identifiers)
        with self._store.transaction("complete") as change:
            self.complete_in(change, leases)
            return change.committed

    def complete_in(self, change: StoreTransaction, leases: Iterable[Lease]) -> None:
        """Add the removal of messages of leases from `find` to a commit; the leases have ended."""
        for lease in leases:
            queue, key = lease.queue, lease.lookup_identifier
            self._positions.message_position_deleted(change, queue, key, _reason(queue, key))
            self.forget(lease)
            change.call_when_undone(partial(self._enter, lease))

    def release(self, identity: Identity, identifiers: Sequence[str]) -> Completion[None]:
        """End leases, and give their messages back after a failed delivery.

        Each is available at once, or put aside as poison when durable. Raises as `find` does.
        """
        leases = self.find(identity, identifiers)
        return start(_all([self._give_back(lease) for lease in leases]))

    def extend(self, identity: Identity, identifier: str, lease: int) -> Lease:
        """Let a lease last `lease` ms from now on. Raises as `find` does, or INVALID_PARAMETER."""
        _check_length(lease)
        found = self.find(identity, [identifier])[0]
        self._set_end(found, lease)
        return found

    def all(self) -> list[Lease]:
        """All present leases."""
        return [lease for lease in list(self._leases.values()) if lease.holds]

    def known(self, identifier: str) -> Lease | None:
        """The lease of an identifier, whichever account has it."""
        return self._leases.get(identifier)

    def end(self, identifier: str) -> Completion[None] | None:
        """End any lease as a failed delivery, whichever account has it; None if it has ended
        already."""
        lease = self._leases.get(identifier)
        return None if lease is None or not lease.holds else self._give_back(lease)

    def end_all(self, owner: str) -> None:
        """End the leases of an account that is removed (its SID), in the next turn."""
        for lease in list(self._of_owner.get(owner, {}).values()):
            self._set_end(lease, 0)

    def _give_back(self, lease: Lease) -> Completion[None]:
        """End a lease as a failed delivery; a message that cannot be put aside is available all the
        same."""
        self.forget(lease)
        if not lease.holds:
            return completed(None)
        queue, key = lease.queue, lease.lookup_identifier
        try:
            return self._failed_deliveries.give_back(queue, key)
        except MQError as error:
            _log.error(
                "a message that was delivered in vain cannot be put aside",
                queue=queue.pathname,
                problem=str(error),
            )
            self._positions.release(queue, key)
            return completed(None)

    # The table, and its deadlines

    def _enter(self, lease: Lease) -> None:
        self._leases[lease.identifier] = lease
        self._of_owner.setdefault(lease.owner, {})[lease.identifier] = lease

    def forget(self, lease: Lease) -> None:
        """Remove a lease that has ended; does nothing a second time."""
        if self._leases.pop(lease.identifier, None) is None:
            return
        own = self._of_owner[lease.owner]
        del own[lease.identifier]
        if not own:
            del self._of_owner[lease.owner]

    def _set_end(self, lease: Lease, length: int) -> None:
        due = self._clock.monotonic() + length
        if due == lease.due:
            return
        lease.due, lease.expires = due, self._clock.now() + length
        self._tidy()
        heapq.heappush(self._deadlines, (lease.due, next(self._serial), lease))
        if self._deadlines[0][2] is lease:
            self._arm()

    def _tidy(self) -> None:
        """Drop deadlines of leases that have ended or were extended, if most are such."""
        if len(self._deadlines) > 64 + 2 * len(self._leases):
            self._deadlines = [entry for entry in self._deadlines if self._counts(entry)]
            heapq.heapify(self._deadlines)

    def _counts(self, entry: tuple[int, int, Lease]) -> bool:
        due, _, lease = entry
        return lease.due == due and lease.identifier in self._leases

    def _arm(self) -> None:
        """Wake when the earliest deadline comes; there is one timer for all."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._deadlines and not self._counts(self._deadlines[0]):
            heapq.heappop(self._deadlines)
        if self._deadlines:
            delay = max(self._deadlines[0][0] - self._clock.monotonic(), 0)
            self._timer = self._timers.call_later(delay, self._expire)

    def _expire(self) -> None:
        """End the leases whose time is over."""
        self._timer = None
        now = self._clock.monotonic()
        try:
            for _ in range(_EXPIRED_AT_ONCE):
                if not self._deadlines or self._deadlines[0][0] > now:
                    break
                entry = heapq.heappop(self._deadlines)
                if self._counts(entry):
                    self._give_back(entry[2])
        finally:
            self._arm()

    def stop(self) -> None:
        """Forget all leases at the service's end: their messages are free afterwards."""
        self._deadlines.clear()
        self._arm()
        self._leases.clear()
        self._of_owner.clear()


async def _all(outcomes: list[Completion[None]]) -> None:
    for outcome in outcomes:
        await outcome


def require_logon(still: Callable[[], bool]) -> None:
    """Raise MQError unless a caller that has waited may still log on."""
    if not still():
        raise MQError(HResult.MQ_ERROR_ACCESS_DENIED, "the logon counts no more")


def _check_length(lease: int) -> None:
    if not SHORTEST_LEASE <= lease <= LONGEST_LEASE:
        raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, f"a lease of {lease} ms")


def _reason(queue: Queue, key: int) -> MessageClass:
    """The reason of a received message's removal: it may have been purged meanwhile (G13)."""
    purged = queue.message_position_list.state(key) is PositionState.PURGE_PENDING
    return purge_reason(queue) if purged or isinstance(queue, OutgoingQueue) else _RECEIVED
