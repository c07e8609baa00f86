"""Ends what an account has open once its proof of identity is void (G403).

There is one event for all reasons: the account is removed, or gets another password or other
groups. Each kind of thing that stays open for an account is named here, and one subscriber ends the
things of that kind.
"""

import enum
from collections.abc import Callable

from rpcqm.base.log import get_logger

End = Callable[[str], None]
"""Ends all that is open of the account with a SID."""

_log = get_logger("base")


class OpenKind(enum.StrEnum):
    """The kinds of things that stay open for an account, in the order in which they end."""

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
    """The subscribers that end things of accounts; several may end things of one kind."""

    def __init__(self) -> None:
        self._ends: dict[OpenKind, list[End]] = {kind: [] for kind in OpenKind}

    def subscribe(self, kind: OpenKind, end: End) -> None:
        """Have `end` called with the SID of each account whose rights end."""
        self._ends[kind].append(end)

    def tell(self, sid: str) -> None:
        """End everything of an account, even if ending some of it fails."""
        for kind, ends in self._ends.items():
            for end in ends:
                try:
                    end(sid)
                except Exception:  # the other kinds end all the same
                    _log.exception("what is open of an account could not be ended", kind=kind)
