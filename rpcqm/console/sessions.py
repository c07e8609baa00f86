"""Who is logged on at the pages: in memory, known by a random secret, of which a digest is kept.

A session belongs to one listener and one name of this host, because browsers send cookies to all
ports of a name (G354).
"""

import hashlib
import hmac
import secrets
from collections import OrderedDict
from dataclasses import dataclass
from typing import Protocol

from rpcqm.base.clock import Clock
from rpcqm.base.identity import Identity

MOST_SESSIONS = 1_000
"""Logons at the pages at a time.

Bound `console.sessions` [sessions]: the oldest session ends.
"""
SESSIONS_OF_ACCOUNT = 32
"""Logons of one account at the pages at a time.

Bound `console.sessions_of_account` [sessions]: the oldest session of the account ends.
"""


@dataclass(frozen=True, slots=True)
class Standing:
    """Who an account is now, and a value that is another one after its password has changed."""

    identity: Identity
    stamp: bytes


class Accounts(Protocol):
    """Checks what people prove themselves with."""

    def log_on(self, name: str, password: str, address: str) -> Identity | None:
        """Who that is, None if the password is wrong; raises GuessedTooOftenError."""
        ...

    def show_logon(self, text: str, address: str) -> Identity | None:
        """Who shows a one-time token, None if it is wrong or over; raises GuessedTooOftenError."""
        ...

    def standing(self, identity: Identity) -> Standing | None:
        """How somebody stands who has logged on, None if the account is there no more."""
        ...


@dataclass(frozen=True, slots=True)
class Place:
    """Where a browser asks: the authority that it calls us by, and the port that it came to."""

    authority: str
    port: int
    secure: bool


@dataclass(slots=True)
class Session:
    """One logon; `token` goes into each form, `said` is shown on the next page."""

    digest: bytes
    identity: Identity
    stamp: bytes
    place: Place
    token: str
    expires: int
    said: str = ""

    def has_token(self, text: str) -> bool:
        """Whether a form is one of this session."""
        return hmac.compare_digest(text.encode("utf-8", "replace"), self.token.encode())


class Sessions:
    """All of them; `hours` is how long one lasts that begins now."""

    def __init__(self, accounts: Accounts, clock: Clock, hours: int) -> None:
        self._accounts, self._clock = accounts, clock
        self.hours = hours
        self._sessions: OrderedDict[bytes, Session] = OrderedDict()

    def begin(self, identity: Identity, place: Place) -> tuple[str, Session] | None:
        """The secret of a new session; None if the account has gone meanwhile."""
        standing = self._accounts.standing(identity)
        if standing is None:
            return None
        self._make_room(identity.sid)
        secret = secrets.token_urlsafe(32)
        expires = self._clock.monotonic() + self.hours * 3_600_000
        session = Session(
            _digest(secret), identity, standing.stamp, place, secrets.token_urlsafe(32), expires
        )
        self._sessions[session.digest] = session
        return secret, session

    def find(self, secret: str, place: Place) -> Session | None:
        """The session of a secret that is shown at its own place, with who that is now."""
        session = self._sessions.get(_digest(secret))
        if session is None or session.place != place or not self.is_alive(session):
            return None
        return session

    def is_alive(self, session: Session) -> bool:
        """Whether a session goes on; one whose account has changed ends here."""
        standing = self._accounts.standing(session.identity)
        ended = standing is None or not hmac.compare_digest(standing.stamp, session.stamp)
        if ended or self._clock.monotonic() >= session.expires:
            self.end(session)
        elif standing is not None:
            session.identity = standing.identity
        return session.digest in self._sessions

    def end(self, session: Session) -> None:
        """Log off."""
        self._sessions.pop(session.digest, None)

    def end_all(self, sid: str) -> None:
        """Log an account off that has ended."""
        for session in [each for each in self._sessions.values() if each.identity.sid == sid]:
            self.end(session)

    def _make_room(self, sid: str) -> None:
        own = [each for each in self._sessions.values() if each.identity.sid == sid]
        for session in own[: max(0, len(own) + 1 - SESSIONS_OF_ACCOUNT)]:
            self.end(session)
        while len(self._sessions) >= MOST_SESSIONS:
            self._sessions.popitem(last=False)


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "replace")).digest()
