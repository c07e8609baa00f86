"""Sessions with other queue managers, as the protocols that keep them tell of them."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from rpcqm.base.told import MomentOrNone, TextOrNone

OPEN, OPENING = "OPEN", "OPENING"
"""States of sessions that have no more of them than these."""


@dataclass(frozen=True, slots=True)
class SessionView:
    """One session; `peer` is the queue manager as it is known, `queues` are who sends over it.

    `opened_here` says who has connected; numbers of messages are those of this session. `waiting`
    are the messages in `queues`.
    """

    protocol: str
    address: str
    peer: TextOrNone
    opened_here: bool
    state: str
    queues: tuple[str, ...]
    sent: int
    received: int
    unacknowledged: int
    waiting: int
    since: MomentOrNone


SessionSource = Callable[[], Iterable[SessionView]]
"""The sessions of one protocol."""
