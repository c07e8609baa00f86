"""Runs: messages that arrive together for one queue, and are put there in one step.

A run has the effect of `Arrivals.store` with each of its messages in order, where nothing else
follows from their arrival. Anything unusual raises an exception before anything has happened.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial

from rpcqm.adm.message import Message
from rpcqm.adm.queue import Queue
from rpcqm.base.clock import Clock
from rpcqm.qm.message_counts import ARRIVED
from rpcqm.qm.positions import Positions
from rpcqm.qm.quotas import Quotas
from rpcqm.qm.standing_orders import Admission
from rpcqm.store.records import NEVER
from rpcqm.store.store import Store
from rpcqm.store.transaction import StoreTransaction


@dataclass(slots=True)
class ArrivalRun:
    """Messages for one queue, in the order of their arrival; all of them durable, or none.

    `stored` are their stored octets.
    """

    queue: Queue
    durable: bool
    stored: list[bytes] = field(default_factory=list)
    priorities: list[int] = field(default_factory=list)
    flags: list[int] = field(default_factory=list)
    expiries: list[int] = field(default_factory=list)


@dataclass(eq=False, repr=False)
class ArrivalRuns:
    """Puts runs into queues."""

    _store: Store
    _clock: Clock
    _admission: Admission
    _quotas: Quotas
    _positions: Positions

    def insert(self, change: StoreTransaction, run: ArrivalRun) -> None:
        """Add a run to a commit. Raises MQError if there is no room for all of it.

        Raises MaintenanceError while no new message is taken.
        """
        self._admission.check()
        queue, stored = run.queue, run.stored
        self._quotas.admit(queue, sum(map(len, stored)))
        keys = self._store.counters.next_lookup_identifiers(run.priorities)
        timed = run.expiries.count(NEVER) < len(run.expiries)
        change.insert_many(
            queue.queue_id,
            keys,
            stored,
            arrival=self._clock.now(),
            expiries=run.expiries if timed else None,
            flags=run.flags,
            durable=run.durable,
        )
        self._store.metrics.count(ARRIVED, len(keys))
        watch = self._positions.watch
        if watch is not None:
            change.call_after(partial(watch.arrived_together, queue, stored, watch.now()))
        change.call_after(partial(self._positions.published_many, queue, keys, run.expiries))

    def insert_each(
        self, change: StoreTransaction, arriving: Iterable[tuple[Queue, bytes]]
    ) -> None:
        """Add messages to a commit one by one, with the consequences of each.

        `arriving` are their queues and stored octets; the next one is asked for when all
        consequences of the one before have their numbers. Raises MQError if there is no room for
        one of them, MaintenanceError while no new message is taken.
        """
        self._admission.check()
        for queue, stored in arriving:
            message = Message.restored(stored, 0)
            self._quotas.admit(queue, len(stored))
            self._positions.arrive(change, queue, message, message.envelope)
