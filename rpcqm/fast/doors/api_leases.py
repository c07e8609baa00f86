"""Receives under leases without waiting, and the ends of leases, carried out once a turn.

`Leases` stays the only definition of their effects. This module covers the first message of an
ordinary queue, if nothing has happened to it since it came, and the end of one lease without
further consequences (docs/request-templates.md).
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from rpcqm.adm.enums import QueueType
from rpcqm.adm.message import Message
from rpcqm.adm.queue import OutgoingQueue, Queue
from rpcqm.base.completion import Completion
from rpcqm.base.identity import Identity
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.types.mqvalues import QueueAccessType
from rpcqm.fast.first_messages import FirstMessage, FirstMessages
from rpcqm.fast.repeated_name import RepeatedName
from rpcqm.fast.turn import Turn
from rpcqm.qm.engine import QueueManagerEngine
from rpcqm.qm.leases import LONGEST_LEASE, SHORTEST_LEASE, Lease, LeasedMessage, Leases
from rpcqm.qm.opening import is_name_for
from rpcqm.qm.positions import only_leaves

_RECEIVE = QueueAccessType.RECEIVE_ACCESS


class RepeatedReceive:
    """A receive that repeats: one message of a queue, under a lease of `lease` ms."""

    __slots__ = ("lease", "name")

    def __init__(self, name: FormatName, lease: int) -> None:
        self.name, self.lease = RepeatedName(name), lease

    @classmethod
    def of(cls, name: FormatName, lease: int) -> "RepeatedReceive | None":
        """The repeated receive of a queue; None if it always goes the careful way."""
        usual = SHORTEST_LEASE <= lease <= LONGEST_LEASE and is_name_for(name, _RECEIVE)
        return cls(name, lease) if usual else None


class TakenMessage(NamedTuple):
    """A first message and the lease that locks it; this is its first delivery."""

    first: FirstMessage
    lease: Lease

    @property
    def received(self) -> LeasedMessage:
        """The message in the form of `Leases.receive`."""
        first, lease = self
        message = Message.restored(first.stored, 0)
        message.queue, message.lookup_identifier = lease.queue, first.key
        message.arrival_time = first.arrival
        return LeasedMessage(message, lease.delivery_count, lease)


class LeaseEnd:
    """The end of a lease whose message is removed (`turn.TemplatedRemoval`).

    `alone` ends it the careful way, or raises before anything has happened.
    """

    __slots__ = ("_alone", "_leases", "descriptor", "outcome")

    response = b""
    """Unused: the door answers by the outcome."""

    def __init__(self, leases: Leases, lease: Lease, alone: Callable[[], Completion[None]]) -> None:
        self._leases, self._alone = leases, alone
        self.descriptor = lease
        self.outcome: Completion[None] = Completion()

    def removing(self) -> None:
        """Note that the lease has ended."""
        self._leases.forget(self.descriptor)

    def removed(self) -> None:
        """Report that the message is durably gone."""
        self.outcome.succeed(None)

    def carefully(self) -> None:
        """End the lease alone."""
        self.outcome.follow_call(self._alone)


class RepeatedLeases:
    """Begins and ends leases."""

    def __init__(
        self, engine: QueueManagerEngine, first_messages: FirstMessages, turn: Turn
    ) -> None:
        self._registry, self._opening, self._access = engine.registry, engine.opening, engine.access
        self._leases, self._first_messages, self._turn = engine.leases, first_messages, turn

    def receive(self, identity: Identity, again: RepeatedReceive) -> TakenMessage | None:
        """The first message of a queue under a lease; None for the careful path.

        Raises MQError as `Leases.receive` does if the caller may not receive.
        """
        if not self._turn.is_on:
            return None
        queue = again.name.find(self._registry)
        first = None if queue is None else self._first(queue)
        if queue is None or first is None or not self._leases.has_room(identity.sid):
            return None
        self._opening.check_to_receive(queue, identity)
        held = Lease(identity, queue, first.key, 1)
        self._first_messages.lock_for(queue, first, held)
        self._leases.begin(held, again.lease)
        self._turn.count_read()
        return TakenMessage(first, held)

    def _first(self, queue: Queue) -> FirstMessage | None:
        """The first message, if receiving it has no further effects."""
        if queue.parent is not None or queue.queue_type is QueueType.SYSTEM:
            return None
        return None if isinstance(queue, OutgoingQueue) else self._first_messages.find_in(queue)

    def complete(self, identity: Identity, identifier: str) -> Completion[None]:
        """Remove the message of a lease, if possible together with others of the turn.

        The errors of `Leases.complete` are raised here, or are those of the completion.
        """
        alone = partial(self._leases.complete, identity, (identifier,))
        lease = self._leases.going_on(identity, identifier)
        if lease is None or not self._turn.is_on or not only_leaves(lease.queue):
            return alone()
        self._access.check_open(lease.queue, identity, _RECEIVE)
        end = LeaseEnd(self._leases, lease, alone)
        self._turn.remove(lease.queue, lease.lookup_identifier, end)
        return end.outcome
