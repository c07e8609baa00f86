"""The end of what an account has proved: whoever keeps something open for it hears of that (G403).

There is one event for all reasons: the account is removed, or has another password or other groups.
What stays open for an account is named here by its kind, and somebody subscribes to end it.
"""

import enum
from collections.abc import Callable

from rpcqm.base.log import get_logger

End = Callable[[str], None]
"""Ends all that is open of the account with a SID."""

_log = get_logger("base")


class OpenKind(enum.StrEnum):
    """What stays open for an account, in the order in which it ends."""

    PERMISSION = "permission"
    WAITING_READ = "waiting read"
    HANDLE = "handle"
    ASSOCIATION = "association"
    OBJECT = "object"
    QUEUE = "open queue"
    LEASE = "lease"
    TRANSACTION = "transaction"
    EVENT_STREAM = "event stream"
    SESSION = "session"
    ONE_TIME_LOGON = "one-time logon"


class EndedRights:
    """Who ends what; several may end things of one kind."""

    def __init__(self) -> None:
        self._ends: dict[OpenKind, list[End]] = {kind: [] for kind in OpenKind}

    def subscribe(self, kind: OpenKind, end: End) -> None:
        """Have `end` called with the SID of each account whose rights end."""
        self._ends[kind].append(end)

    def tell(self, sid: str) -> None:
        """End everything of an account, whatever goes wrong with some of it."""
        for kind, ends in self._ends.items():
            for end in ends:
                try:
                    end(sid)
                except Exception:  # the other kinds have to end all the same
                    _log.exception("what is open of an account could not be ended", kind=kind)
