"""Pings: signs of life of clients ([MS-DCOM] 3.1.2.1, 3.1.2.6).

An object that is in no ping set lives as long after its last call as a set does after its last
ping, and little more than one period if its client has no connection any more: one that pings would
have put it into a set by then (G412).
"""

from collections.abc import Sequence

from rpcqm.base.clock import Timer, Timers
from rpcqm.dcom.exporter import ObjectEntry, ObjectExporter, PingSet, new_identifier

PING_PERIOD = 120_000
"""Milliseconds between two pings of a client ([MS-DCOM] 3.1.2.2)."""
EXPIRY = 3 * PING_PERIOD

GONE = PING_PERIOD + 30_000
"""Milliseconds for which an object waits that is in no set, and whose client has no connection."""

LOOK = 10_000
"""Milliseconds between two looks for expired sets: small against EXPIRY."""
BATCH = 1_000
"""Objects of dead clients that are reclaimed in a row.

Bound `dcom.reclaimed_at_once` [objects]: the others are served before the rest is reclaimed.
"""
MOST_SETS = 64
"""Sets of pings that one object is in.

One for each client that the object was handed on to.

Bound `dcom.ping_sets_of_an_object` [sets]: the ping is answered with OR_INVALID_OID.
"""

OR_INVALID_OID = 1911
OR_INVALID_SET = 1912
_QUOTA = 1816
"""ERROR_NOT_ENOUGH_QUOTA: the caller has too many ping sets."""

_HALF = 0x8000
_LONG_AGO = -EXPIRY


class PingSets:
    """The ping sets of all clients over one exporter; unpinged objects end."""

    def __init__(self, exporter: ObjectExporter, timers: Timers) -> None:
        self._exporter = exporter
        self._timers = timers
        self._clock = exporter.clock
        self._sets: dict[int, PingSet] = {}
        self._owned: dict[str, int] = {}
        self._timer: Timer | None = None
        exporter.on_first = self._watch

    def __len__(self) -> int:
        return len(self._sets)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # Called by clients

    def simple_ping(self, set_id: int) -> int:
        """Note that a client lives ([MS-DCOM] 3.1.2.5.1.2); 0, or OR_INVALID_SET."""
        found = self._sets.get(set_id)
        if found is None:
            return OR_INVALID_SET
        found.last_ping = self._clock.monotonic()
        return 0

    def complex_ping(
        self, set_id: int, sequence: int, add: Sequence[int], remove: Sequence[int], caller: str
    ) -> tuple[int, int]:
        """Change a set, or make one for 0: the set's identifier and the status.

        [MS-DCOM] 3.1.2.5.1.3. Numbers of calls are compared in a circle, as they have 16 bits; a
        call that another one has overtaken changes nothing, but is a sign of life (G250).
        """
        if set_id == 0:
            return self._new_set(sequence, add, caller)
        found = self._sets.get(set_id)
        if found is None:
            return set_id, OR_INVALID_SET
        found.last_ping = self._clock.monotonic()
        if 0 < (found.sequence - sequence) % 0x10000 < _HALF:
            return set_id, 0
        found.sequence = sequence
        missing = self._add(found, add)
        self._remove(found, remove)
        return set_id, OR_INVALID_OID if missing else 0

    def _new_set(self, sequence: int, add: Sequence[int], caller: str) -> tuple[int, int]:
        owned = self._owned.get(caller, 0)
        if owned >= self._exporter.limits.ping_sets_per_caller:
            return 0, _QUOTA
        made = PingSet(caller, sequence, self._clock.monotonic())
        self._add(made, add)
        set_id = new_identifier()
        self._sets[set_id] = made
        self._owned[caller] = owned + 1
        self._watch()
        return set_id, 0

    def _add(self, pinged: PingSet, oids: Sequence[int]) -> bool:
        """Put objects into a set; returns whether one is missing, or in too many sets."""
        find, missing = self._exporter.find_object, False
        for oid in oids:
            entry = find(oid)
            if entry is None or (len(entry.sets) >= MOST_SETS and pinged not in entry.sets):
                missing = True
            else:
                pinged.add(entry)
        return missing

    def _remove(self, pinged: PingSet, oids: Sequence[int]) -> None:
        for oid in oids:
            entry = self._exporter.find_object(oid)
            if entry is not None:
                pinged.remove(entry)

    # Expiry

    def _watch(self) -> None:
        if self._timer is None:
            self._timer = self._timers.call_later(LOOK, self._look)

    def _look(self) -> None:
        self._timer = None
        now = self._clock.monotonic()
        for set_id in [key for key, each in self._sets.items() if now - each.last_ping >= EXPIRY]:
            self._expire(set_id, now)
        due = self._due(now)
        for entry in due:
            self._exporter.reclaim(entry)
        if len(due) == BATCH:
            self._timer = self._timers.call_later(0, self._look)
        elif len(self._exporter) or self._sets:
            self._watch()

    def _expire(self, set_id: int, now: int) -> None:
        """Forget a set; its objects go with it unless another client pings or calls them."""
        expired = self._sets.pop(set_id)
        owned = self._owned[expired.owner] - 1
        if owned:
            self._owned[expired.owner] = owned
        else:
            del self._owned[expired.owner]
        for entry in list(expired.members):
            expired.remove(entry)
            if not entry.sets and now - entry.last_call >= PING_PERIOD:
                entry.last_call = _LONG_AGO

    def _due(self, now: int) -> list[ObjectEntry]:
        """Objects that are in no set and were not called for long, at most a batch of them."""
        due: list[ObjectEntry] = []
        for entry in self._exporter.objects():
            if entry.sets or entry.used:
                continue
            if now - entry.last_call >= (GONE if entry.is_client_gone else EXPIRY):
                due.append(entry)
                if len(due) == BATCH:
                    break
        return due
