"""The connections of a server: admits them, and ends those that owe or hold too much."""

import asyncio
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from rpcqm.base.admission import Admission, Caller, Ticket
from rpcqm.base.clock import Clock
from rpcqm.base.log import get_logger
from rpcqm.base.metrics import Metrics

SWEEP_SECONDS = 1.0
"""Deadlines are at least whole seconds, so one look a second is exact enough."""


class ServedConnection(Protocol):
    """One connection, as far as a server needs it to end it."""

    @property
    def peer(self) -> str: ...

    @property
    def held(self) -> int:
        """Octets that are kept for the client."""

    def abort(self) -> None:
        """End at once."""


C = TypeVar("C", bound=ServedConnection)


class ServedConnections(Generic[C]):
    """The connections of one server; `name` begins its metrics and names its log.

    `overdue` gives the reason for ending a connection at a time, or ""; all connections together
    may hold `most_held` octets. `admission` admits callers; servers of other protocols may share
    it.
    """

    def __init__(
        self,
        name: str,
        clock: Clock,
        admission: Admission,
        metrics: Metrics,
        *,
        overdue: Callable[[C, int], str],
        most_held: Callable[[], int],
    ) -> None:
        self._name = name
        self._clock = clock
        self._admission = admission
        self._metrics = metrics
        self._overdue = overdue
        self._most_held = most_held
        self._log = get_logger(name)
        self._sweeper: asyncio.TimerHandle | None = None
        self.open: set[C] = set()

    def admit(self, owner: str, peer: str, caller: Caller = Caller.STRANGER) -> Ticket | None:
        """Let a caller in, unless there are too many connections."""
        reason = self._admission.refusal(owner, caller)
        if not reason:
            return self._admission.let_in(owner)
        self._metrics.count(f"{self._name}.connections_refused")
        self._log.warning("a connection was refused", peer=peer, reason=reason)
        return None

    def keep(self, connection: C) -> None:
        self.open.add(connection)
        self._metrics.count(f"{self._name}.connections")

    def start_sweeping(self) -> None:
        """Look once a second from now on."""
        if self._sweeper is None:
            self._sweep_later()

    def stop_sweeping(self) -> None:
        if self._sweeper is not None:
            self._sweeper.cancel()

    def _sweep_later(self) -> None:
        loop = asyncio.get_running_loop()
        self._sweeper = loop.call_later(SWEEP_SECONDS, self._sweep_and_go_on)

    def _sweep_and_go_on(self) -> None:
        self.sweep()
        self._sweep_later()

    def sweep(self) -> None:
        """End connections that owe something for too long, or have been idle for too long."""
        now = self._clock.monotonic()
        held = 0
        for connection in list(self.open):
            reason = self._overdue(connection, now)
            held += connection.held
            if reason:
                self._metrics.count(f"{self._name}.connections_timed_out")
                self._cut_off(connection, "a connection timed out", reason)
        if held > self._most_held():
            self._give_up_most(held)

    def _give_up_most(self, held: int) -> None:
        """End the connections for which most is kept: unfinished requests, and unread replies."""
        for connection in sorted(self.open, key=lambda each: -each.held):
            if held <= self._most_held():
                break
            held -= connection.held
            self._metrics.count(f"{self._name}.connections_given_up")
            self._cut_off(connection, "a connection was given up", "too much is held in all")

    def _cut_off(self, connection: C, event: str, reason: str) -> None:
        self._log.info(event, peer=connection.peer, reason=reason)
        connection.abort()
