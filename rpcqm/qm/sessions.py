"""Sessions with other queue managers, as the protocols that keep them tell of them."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

OPEN, OPENING = "OPEN", "OPENING"
"""States of sessions that have no more of them than these."""


@dataclass(frozen=True, slots=True)
class SessionView:
    """One session; `peer` is the queue manager as it is known, `queues` are who sends over it.

    `opened_here` says who has connected; numbers of messages are those of this session. `waiting`
    are the messages in `queues`, `since` is in milliseconds since 1970.
    """

    protocol: str
    address: str
    peer: str
    opened_here: bool
    state: str
    queues: tuple[str, ...]
    sent: int
    received: int
    unacknowledged: int
    waiting: int
    since: int


SessionSource = Callable[[], Iterable[SessionView]]
"""The sessions of one protocol."""
