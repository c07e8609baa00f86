"""Logging on: what a peer claims to be, and the throttle that may refuse an attempt."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from rpcqm.base.identity import Identity
from rpcqm.base.text import visible
from rpcqm.codec.security.logon_information import LogonInformation

LONGEST_CLAIM = 256
"""Characters of a claim that logs show: names of accounts are shorter."""


@dataclass(frozen=True, slots=True)
class LogonClaim:
    """What a peer says of itself before anything is proved; for logs.

    Make it by `claimed`, which keeps what strangers say short and harmless.
    """

    account: str = ""
    domain: str = ""
    workstation: str = ""


NO_CLAIM = LogonClaim()


def claimed(account: str, domain: str = "", workstation: str = "") -> LogonClaim:
    """A claim of at most 256 characters a part, where those that do not print are escaped."""
    return LogonClaim(_harmless(account), _harmless(domain), _harmless(workstation))


def _harmless(text: str) -> str:
    return visible(text[:LONGEST_CLAIM])[:LONGEST_CLAIM]


class LogonThrottle(Protocol):
    """Asked around every attempt to prove a password, so that guesses can be slowed down.

    `account` is folded (`folded_name`), `address` is the peer's host without its port; on a
    local socket it is `uid` and a number. Unknown accounts are asked about as well.
    """

    def admit(self, account: str, address: str) -> None:
        """Called before a proof is checked; raises AuthenticationError to refuse it unchecked."""
        ...

    def failed(self, account: str, address: str) -> None:
        """The proof was wrong, or there is no such account."""
        ...

    def succeeded(self, account: str, address: str) -> None:
        """The account has logged on."""
        ...


@runtime_checkable
class Throttled(Protocol):
    """Accounts that bring the throttle of their passwords with them."""

    @property
    def throttle(self) -> LogonThrottle: ...


def throttle_of(accounts: object) -> LogonThrottle | None:
    """The throttle that accounts bring with them, so that there is one for all that read them."""
    return accounts.throttle if isinstance(accounts, Throttled) else None


class DomainLogons(Protocol):
    """The accounts of a domain; where there are any, nobody else logs on by Kerberos."""

    def log_on(self, information: LogonInformation) -> Identity | None:
        """Who an account is of which the domain says that; None refuses the caller."""
        ...

    def add_name(self, domain: str) -> None:
        """Let the domain have a further name, such as that of its realm."""
        ...


@runtime_checkable
class OfDomain(Protocol):
    """Accounts that bring those of a domain with them; None if they are alone."""

    @property
    def domain(self) -> DomainLogons | None: ...


def domain_of(accounts: object) -> DomainLogons | None:
    """The accounts of a domain that stand beside others."""
    return accounts.domain if isinstance(accounts, OfDomain) else None


class NoThrottle:
    """A throttle that lets everybody try as often as they like."""

    def admit(self, account: str, address: str) -> None:
        """Refuse nothing."""

    def failed(self, account: str, address: str) -> None:
        """Count nothing."""

    def succeeded(self, account: str, address: str) -> None:
        """Count nothing."""
