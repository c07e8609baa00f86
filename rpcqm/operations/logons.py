"""One-time logons: how the local user comes to the pages without a password.

A token is made for who asks over the local socket, lasts for a minute and is good for one logon.
Only a digest of it is kept, in memory.
"""

import hashlib
import secrets
from collections import OrderedDict
from dataclasses import dataclass

from rpcqm.base.clock import Clock
from rpcqm.base.identity import Identity
from rpcqm.operations.audit import note, refusals
from rpcqm.qm.access import require_observer

LIFE = 60_000
"""How long a one-time logon can be used.

The browser has to come up in this time.

Bound `console.logon_life` [milliseconds]: it cannot be used any more.
"""
MOST_WAITING = 64
"""One-time logons that nobody has used yet.

Bound `console.logons_waiting` [tokens]: the oldest one cannot be used any more.
"""


class GuessedTooOftenError(Exception):
    """Too many wrong passwords were given for that account from that address."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    identity: Identity
    expires: int


class LogonOperations:
    """`home` is where browsers of this machine find the pages, "" where they find none."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiting: OrderedDict[bytes, _Waiting] = OrderedDict()
        self.home = ""

    def create(self, identity: Identity) -> str:
        """Create a token for one logon of the caller in a browser; for administrators."""
        with refusals(identity, "make a one-time logon", "the console"):
            require_observer(identity)
        text = secrets.token_urlsafe(32)
        expires = self._clock.monotonic() + LIFE
        self._waiting[_digest(text)] = _Waiting(identity, expires)
        if len(self._waiting) > MOST_WAITING:
            self._waiting.popitem(last=False)
        note(identity, "make a one-time logon", "the console")
        return text

    @property
    def page(self) -> str:
        """The address at which a browser shows a token, "" where no pages are served."""
        return f"{self.home}/console/one-time" if self.home else ""

    def redeem(self, text: str) -> Identity | None:
        """The identity for a token, which is used up; None for a wrong or expired one."""
        found = self._waiting.pop(_digest(text), None)
        if found is None or found.expires <= self._clock.monotonic():
            return None
        return found.identity

    def end_all(self, sid: str) -> None:
        """Forget the tokens of an account that has ended."""
        for digest in [key for key, each in self._waiting.items() if each.identity.sid == sid]:
            del self._waiting[digest]

    def logged_on(self, identity: Identity) -> None:
        """Record a logon to the pages."""
        note(identity, "log on", "the console")

    def logged_off(self, identity: Identity) -> None:
        """Record a logoff from the pages."""
        note(identity, "log off", "the console")


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
