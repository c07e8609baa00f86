"""Bounds how many numbers of queues a caller may guess (G88)."""

from dataclasses import dataclass

from rpcqm.base.addresses import owner_of
from rpcqm.base.clock import Clock
from rpcqm.base.errors import HResult, MQError
from rpcqm.rpc.call import Call

WRONG_NUMBERS = 16
"""How many wrong numbers a caller may give: a client's mistakes are fewer."""

WINDOW = 60_000
"""Milliseconds from the first wrong number until a caller's count is forgotten."""

CALLERS = 4096
"""How many callers are remembered, so that addresses cannot fill the memory; the oldest go."""


@dataclass(slots=True)
class _Wrong:
    since: int
    count: int = 0


class WrongNumbers:
    """Counts wrong numbers by identity; for Anonymous, by address (G91).

    A search through all 32-bit numbers takes an identity 500 years, over any number of
    connections.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._by_caller: dict[str, _Wrong] = {}

    def check(self, call: Call) -> None:
        """Raise MQError(MQ_ERROR_INVALID_PARAMETER) for a caller with too many wrong numbers."""
        known = self._by_caller.get(_key(call)) if self._by_caller else None
        if known is None or known.count < WRONG_NUMBERS:
            return
        if self._clock.monotonic() - known.since < WINDOW:
            raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, "too many wrong numbers")
        del self._by_caller[_key(call)]

    def count(self, call: Call) -> None:
        """Count one more wrong number of the caller."""
        now, key = self._clock.monotonic(), _key(call)
        known = self._by_caller.get(key)
        if known is None or now - known.since >= WINDOW:
            self._make_room(now)
            known = self._by_caller[key] = _Wrong(now)
        known.count += 1

    def _make_room(self, now: int) -> None:
        if len(self._by_caller) >= CALLERS:
            recent = self._by_caller.items()
            self._by_caller = {key: each for key, each in recent if now - each.since < WINDOW}
        while len(self._by_caller) >= CALLERS:
            del self._by_caller[next(iter(self._by_caller))]


def _key(call: Call) -> str:
    if call.identity.is_anonymous:
        return owner_of(call.peer.rpartition(":")[0])
    return call.identity.sid
