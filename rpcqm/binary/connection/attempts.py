"""When to connect: one attempt at a time to each place, less often after failures (G99).

A place is an address and a port. Many queues may wait for one place, and one attempt serves all of
them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from rpcqm.base.clock import Clock, Timer, Timers
from rpcqm.base.retry import delay_after
from rpcqm.binary.connection.peer_connection import NextHop

PLACES = 4096
"""Addresses and ports whose failed attempts to connect are remembered.

Places that nobody waits for are forgotten first.

Bound `binary.places` [places]: the one that was tried longest ago is forgotten.
"""


class ConnectionRequester(Protocol):
    """An object that wants a connection; it is hashed by identity."""

    def look_again(self) -> None:
        """Call `begin` again: another attempt has ended, or the next one is due."""


@dataclass(slots=True, eq=False)
class _Address:
    """`due` is when the next attempt may begin (monotonic ms)."""

    trying: ConnectionRequester | None = None
    due: int = 0
    failures: int = 0
    answered: bool = False
    waiting: dict[ConnectionRequester, None] = field(default_factory=dict)
    timer: Timer | None = None


class ConnectionAttempts:
    """The attempts to connect that are under way, and those that wait, by place.

    `first` gives the shortest delay.
    """

    def __init__(self, clock: Clock, timers: Timers, first: Callable[[], int]) -> None:
        self._clock = clock
        self._timers = timers
        self._first = first
        self._places: dict[tuple[str, int], _Address] = {}
        self._at: dict[ConnectionRequester, _Address] = {}

    def begin(
        self, hops: Sequence[NextHop], asker: ConnectionRequester, *, wait: bool = True
    ) -> int | None:
        """The hop to connect to now; None while every hop has to wait.

        A requester that gets one reports how the attempt `ended`. With `wait` the asker is called
        when it can look again.
        """
        self.leave(asker)
        for index, hop in enumerate(hops):
            place = self._place(hop)
            if place.trying is None and place.due <= self._clock.monotonic():
                place.trying = asker
                self._at[asker] = place
                return index
        if wait and hops:
            self._wait(min(map(self._place, hops), key=_turn), asker)
        return None

    def _place(self, hop: NextHop) -> _Address:
        key = (hop.address, hop.port)
        place = self._places.get(key)
        if place is None:
            if len(self._places) >= PLACES:
                self._forget_one()
            place = self._places[key] = _Address()
        return place

    def _forget_one(self) -> None:
        for key, place in self._places.items():
            if place.trying is None and not place.waiting:
                del self._places[key]
                return

    def _wait(self, place: _Address, asker: ConnectionRequester) -> None:
        place.waiting[asker] = None
        self._at[asker] = place
        if place.trying is None and place.timer is None:
            delay = max(place.due - self._clock.monotonic(), 0)
            place.timer = self._timers.call_later(delay, partial(self._next, place))

    def ended(self, asker: ConnectionRequester, answered: bool | None) -> None:
        """Note that an attempt succeeded, failed, or was given up (None), which proves nothing."""
        place = self._at.get(asker)
        if place is None or place.trying is not asker:
            return
        del self._at[asker]
        place.trying = None
        if answered:
            place.answered, place.failures, place.due = True, 0, 0
        elif answered is not None:
            place.failures += 1
            steps = 1 if place.answered else place.failures
            place.due = self._clock.monotonic() + delay_after(steps, self._first())
        self._next(place)

    def _next(self, place: _Address) -> None:
        """Let the waiting requesters look again, the longest waiting first."""
        if place.timer is not None:
            place.timer.cancel()
            place.timer = None
        waiting, place.waiting = place.waiting, {}
        for asker in waiting:
            self._at.pop(asker, None)
        for asker in waiting:
            asker.look_again()

    def leave(self, asker: ConnectionRequester) -> None:
        """Forget a requester."""
        place = self._at.get(asker)
        if place is None:
            return
        if place.trying is asker:
            self.ended(asker, None)
            return
        del self._at[asker]
        place.waiting.pop(asker, None)
        if not place.waiting and place.timer is not None:
            place.timer.cancel()
            place.timer = None

    def hurry(self, hops: Sequence[NextHop]) -> None:
        """Try these places now, whatever their delays."""
        for hop in hops:
            place = self._place(hop)
            place.due = place.failures = 0
            if place.trying is None:
                self._next(place)


def _turn(place: _Address) -> tuple[bool, int]:
    """The order of waiting requesters: a place with an attempt under way is free soon."""
    return place.trying is None, place.due
