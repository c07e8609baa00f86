#!/usr/bin/env python3
"""What it costs that a ticket says which groups its account is in: both sides of a handshake.

The tickets are made here, so that no domain controller has to run: a client's work with one of its
cache, and the server's, are the same.
"""

import os
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from figures import Figure, UnavailableError, attempt
from harness import brief, pairs, per_second

from rpcqm.service.domain_accounts import DomainAccounts
from tests.support.accounts import TestAccounts
from tests.support.rpc.domain_tickets import WEB_SERVICE, DomainTickets
from tests.support.rpc.privileges import USERS, Person

LOGON = "a logon by a ticket that says the groups of its account, over one that does not"
GROUPS = (USERS, *range(1200, 1220))
"""Those of somebody in an office."""
MACHINE = "S-1-5-21-1-1-1"


class Accounts(TestAccounts):
    """A local alice, with the accounts of a domain beside her or without them."""

    def __init__(self, directory: Path, domain: DomainAccounts | None) -> None:
        directory.mkdir()
        super().__init__(directory)
        self.domain = domain


def rate(logon: Callable[[], object]) -> float:
    """Logons per second."""
    return per_second(logon, brief(2.0))


def measured(root: Path) -> Figure:
    """How much longer a logon takes."""
    try:
        import gssapi

        from rpcqm.rpc.security.negotiation import HttpNegotiation
    except ImportError as error:
        raise UnavailableError("gssapi is not installed: pip install rpcqm[kerberos]") from error
    tickets = DomainTickets(root / "tickets")
    os.environ.update(tickets.environment)
    service = gssapi.Name("@".join(WEB_SERVICE), gssapi.NameType.hostbased_service)

    def log_on(negotiation: HttpNegotiation, cache: str) -> None:
        credentials = gssapi.Credentials(usage="initiate", store={"ccache": cache})
        client = gssapi.SecurityContext(name=service, creds=credentials, usage="initiate")
        identity, _ = negotiation.log_on(client.step() or b"", None, False)
        if not identity.name.endswith("alice"):
            raise RuntimeError(f"{identity.name} has logged on")

    with_groups = Accounts(root / "with", DomainAccounts(MACHINE))
    without = Accounts(root / "without", None)
    caches = tickets.of(Person(groups=GROUPS)), tickets.without_certificate()
    ours = partial(log_on, HttpNegotiation(with_groups, tickets.keytab), caches[0])
    theirs = partial(log_on, HttpNegotiation(without, tickets.keytab), caches[1])
    # Rates the other way round: their ratio is that of the times.
    return pairs(partial(rate, theirs), partial(rate, ours)).figure(LOGON)


def run() -> Iterator[Figure]:
    """The figures for scripts/bench."""
    with tempfile.TemporaryDirectory() as root:
        yield from attempt(LOGON, partial(measured, Path(root)))
