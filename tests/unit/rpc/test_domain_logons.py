"""Logging on with what a domain controller says in a ticket: who it is, and why nobody is."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rpcqm.rpc.security.context import AuthenticationError
from rpcqm.service.domain_accounts import DomainAccounts
from tests.support.accounts import TestAccounts
from tests.support.rpc.domain_tickets import REALM, SERVICE, DomainTickets
from tests.support.rpc.privileges import BUYERS, DOMAIN, USERS, Person

gssapi = pytest.importorskip("gssapi")
kerberos = pytest.importorskip("rpcqm.rpc.security.kerberos", exc_type=ImportError)

MACHINE = "S-1-5-21-1-1-1"
ALICE = Person(groups=(USERS, BUYERS))


class Accounts(TestAccounts):
    """A local alice, beside the accounts of a domain."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.domain = DomainAccounts(MACHINE)


@pytest.fixture
def tickets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DomainTickets:
    made = DomainTickets(tmp_path / "domain")
    for name, value in made.environment.items():
        monkeypatch.setenv(name, value)
    return made


def peer(tickets: DomainTickets, accounts: Accounts, cache: str) -> Any:
    """Who shows a ticket to a server of HTTP; raises AuthenticationError."""
    credentials = gssapi.Credentials(usage="initiate", store={"ccache": cache})
    service = gssapi.Name("HTTP@localhost", gssapi.NameType.hostbased_service)
    client = gssapi.SecurityContext(name=service, creds=credentials, usage="initiate")
    accepting = kerberos.HttpKerberosProvider(accounts, tickets.keytab).accept(None)
    accepting.step(client.step() or b"")
    return accepting.peer()


def test_an_account_is_who_its_controller_says(tickets: DomainTickets, tmp_path: Path) -> None:
    identity = peer(tickets, Accounts(tmp_path), tickets.of(ALICE))
    assert (identity.name, identity.sid) == ("CORP\\alice", f"{DOMAIN}-1103")
    groups = {f"{DOMAIN}-{USERS}", f"{DOMAIN}-{BUYERS}", "S-1-1-0", "S-1-5-11"}
    assert identity.groups == groups
    assert not identity.is_administrator


def test_without_a_domain_an_account_has_the_name_of_the_ticket(
    tickets: DomainTickets, tmp_path: Path
) -> None:
    accounts = Accounts(tmp_path)
    accounts.domain = None  # type: ignore[assignment]
    assert peer(tickets, accounts, tickets.of(ALICE)).name == "alice"


def _broken(pac: bytes) -> bytes:
    at = pac.index((1103).to_bytes(4, "little"))
    return pac[:at] + (1104).to_bytes(4, "little") + pac[at + 4 :]


VOUCHES = "no domain controller vouches for the account"


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda made: made.without_certificate(), VOUCHES),
        (lambda made: made.of(None), VOUCHES),
        (lambda made: made.of(ALICE, change=_broken), VOUCHES),
        (lambda made: made.of(ALICE, key=bytes(32)), VOUCHES),
        (lambda made: made.of(ALICE, realm="OTHER.TEST"), "alice@OTHER.TEST may not log on"),
        (lambda made: made.of(ALICE, realm=f"EVIL@{REALM}"), "may not log on"),
        (lambda made: made.of(ALICE, name="alice/admin"), "alice/admin@CORP.TEST may not log on"),
        (lambda made: made.of(Person(groups=range(2000))), "more than 1024 groups"),
        (lambda made: made.of(Person(domain=MACHINE)), "alice@CORP.TEST may not log on"),
    ],
)
def test_why_nobody_logs_on(
    tickets: DomainTickets, tmp_path: Path, make: Callable[[DomainTickets], str], reason: str
) -> None:
    with pytest.raises(AuthenticationError, match=reason):
        peer(tickets, Accounts(tmp_path), make(tickets))


def test_what_is_said_and_not_proved_is_refused() -> None:
    """A library that shows parts which nobody has signed says so."""
    from rpcqm.rpc.security.privileges import logon_information
    from tests.support.rpc import privileges

    part = SimpleNamespace(
        values=[privileges.logon_information(ALICE)], authenticated=False, display_values=[]
    )
    name: Any = SimpleNamespace(attributes={b"urn:mspac:logon-info": part})
    with pytest.raises(AuthenticationError, match="is not proved"):
        logon_information(name)
    part.authenticated = True
    assert logon_information(name).account == "alice"
    part.values *= 2
    with pytest.raises(AuthenticationError, match="is not proved"):
        logon_information(name)


def test_the_service_has_a_name_of_the_domain(tickets: DomainTickets, tmp_path: Path) -> None:
    provider = kerberos.KerberosProvider(Accounts(tmp_path), tickets.keytab, SERVICE)
    assert provider.realm == REALM
