"""Names of accounts and groups, in place of the security identifiers that are stored."""

from collections.abc import Callable, Mapping

from rpcqm.base.identity import ADMINISTRATOR_IDENTIFIER
from rpcqm.codec.security.permissions import WELL_KNOWN

ADMINISTRATOR = "administrator"
"""The name of root and of the queue manager's own user, who have no account."""

_WORDS = {str(sid): word for word, sid in WELL_KNOWN.items()}


class AccountNames:
    """The names that somebody may know: `accounts` are their SIDs with their names.

    `machine` is the SID that all accounts of this queue manager begin with, "" for those who may
    not know which of them are there. A number of an account is never given again. `elsewhere` gives
    the names of other SIDs, "" for those that it does not know.
    """

    def __init__(
        self,
        accounts: Mapping[str, str],
        machine: str = "",
        administrator: str = ADMINISTRATOR,
        elsewhere: Callable[[str], str] = lambda _: "",
    ) -> None:
        self._elsewhere = elsewhere
        self._known = {**_WORDS, **accounts}
        self._machine = machine
        if machine:
            self._known[f"{machine}-{ADMINISTRATOR_IDENTIFIER}"] = administrator

    def found(self, sid: object) -> str | None:
        """The name of the account or group with this SID, None for others."""
        return self._known.get(str(sid))

    def of(self, sid: str) -> str:
        """A name; "removed account" with the SID, or the SID alone if it has no name here."""
        known = self._known.get(sid)
        if known is not None:
            return known
        return f"removed account {sid}" if self.is_removed(sid) else self._elsewhere(sid) or sid

    def is_removed(self, sid: str) -> bool:
        """Whether the SID is that of a removed account of this queue manager."""
        return bool(self._machine) and sid not in self._known and self._is_here(sid)

    def _is_here(self, sid: str) -> bool:
        return sid.rpartition("-")[0] == self._machine
