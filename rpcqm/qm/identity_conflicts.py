"""Signs that two queue managers have one identity, or that one has gone back in time (G492).

Copies of a data directory, or of a machine, send as one queue manager: receivers drop messages of
one as duplicates of the other's. Protocols report such signs here.
"""

from collections import OrderedDict
from dataclasses import dataclass
from uuid import UUID

from rpcqm.base.clock import Clock
from rpcqm.base.log import get_logger
from rpcqm.base.metrics import Metrics

MOST_CONFLICTS = 100
"""Identities at two addresses that are remembered.

Bound `identity.conflicts` [pairs]: the pair that was seen longest ago is forgotten.
"""
MOST_LINES = 20
"""Lines of the log within an hour about identities at two addresses.

Bound `identity.lines` [lines]: more pairs are counted only.
"""
HOUR = 3_600_000
RECENT = 24 * HOUR
"""Milliseconds for which a conflict needs attention after it was seen last."""
COUNTED = "identities.conflicts"
"""Counts the signs of a conflict."""

BOTH_ALIVE = "both addresses are alive"
OTHER_CONTENT = "an identifier came back with other content"

_log = get_logger("qm")


@dataclass(slots=True)
class IdentityConflict:
    """One identity at two addresses, which are one address where both share it.

    Times are milliseconds since 1970.
    """

    identity: UUID
    addresses: tuple[str, str]
    reason: str
    last: int
    count: int = 0


class IdentityConflicts:
    """The conflicts of identities that this queue manager has met since its start."""

    def __init__(self, clock: Clock, metrics: Metrics) -> None:
        self._clock, self._metrics = clock, metrics
        self._known: OrderedDict[tuple[UUID, str, str], IdentityConflict] = OrderedDict()
        self._hour, self._lines = 0, 0

    def note(self, identity: UUID, one: str, other: str, reason: str) -> None:
        """Note a sign that the queue managers at two addresses are different ones."""
        first, second = sorted((one, other))
        key = identity, first, second
        conflict = self._known.pop(key, None)
        if conflict is None:
            conflict = IdentityConflict(identity, (first, second), reason, 0)
            self._say(conflict)
        conflict.last, conflict.reason = self._clock.now(), reason
        conflict.count += 1
        self._known[key] = conflict
        if len(self._known) > MOST_CONFLICTS:
            self._known.popitem(last=False)
        self._metrics.count(COUNTED)

    def _say(self, conflict: IdentityConflict) -> None:
        """Log a pair once, as long as it is remembered."""
        hour = self._clock.monotonic() // HOUR
        if hour != self._hour:
            self._hour, self._lines = hour, 0
        if self._lines < MOST_LINES:
            self._lines += 1
            _log.warning(
                "two queue managers have one identity",
                queue_manager=str(conflict.identity),
                addresses=list(conflict.addresses),
                reason=conflict.reason,
            )

    def recent(self) -> list[IdentityConflict]:
        """The conflicts that need attention, the latest first."""
        since = self._clock.now() - RECENT
        return [each for each in reversed(self._known.values()) if each.last >= since]
