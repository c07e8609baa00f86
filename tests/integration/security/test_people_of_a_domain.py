"""Accounts of a domain log on by what its controller says in their tickets, at every door.

The tickets are made with the services' keys, as whoever forges them could: no controller runs.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from rpcqm.rpc.security.ntlm import NtlmCredentials
from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.accounts import PASSWORD
from tests.support.api.programs import Program
from tests.support.rpc.callers import Fault
from tests.support.rpc.domain_doors import DOORS, Door, Doors
from tests.support.rpc.domain_tickets import REALM, SERVICE, DomainTickets
from tests.support.rpc.network_caller import NetworkCaller, RefusedError
from tests.support.rpc.privileges import BUYERS, DOMAIN, USERS, Person
from tests.support.rpc.remote_reader import Reader

ADMINISTRATORS = 1120
ALICE, BOB = Person(groups=(USERS, BUYERS)), Person("bob", 1104)
ROOT = Person("carol", 1105, groups=(USERS, ADMINISTRATORS))
ORDERS = "orders"


@pytest.fixture(scope="module")
def tickets(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DomainTickets]:
    made = DomainTickets(tmp_path_factory.mktemp("domain"))
    with pytest.MonkeyPatch.context() as patch:
        for name, value in made.environment.items():
            patch.setenv(name, value)
        yield made


@pytest.fixture(scope="module")
def doors(machine: PrivateQueueManager) -> Doors:
    return Doors(machine, REALM, "rpchost", "localhost", ORDERS)


@pytest.fixture(scope="module")
def machine(tickets: DomainTickets) -> Iterator[PrivateQueueManager]:
    """Buyers of the domain may do everything with the queue; a local alice may do nothing."""
    configuration = (
        f'[security]\nkeytab = "{tickets.keytab}"\nprincipal = "{SERVICE}"\n'
        f'[directory]\naccounts = "domain"\nadministrators = ["{DOMAIN}-{ADMINISTRATORS}"]\n'
        '[dcom]\nenabled = true\n[storage]\nreserve = 1\n[logging]\nformat = "json"\n'
    )
    options = ("--console-port", "0", "--dcom-port", "0")
    with private_queue_manager(options, configuration, tickets.environment) as running:
        running.run("user", "add", "alice", "--password-stdin", input=PASSWORD + "\n")
        running.run("queue", "create", ORDERS)
        running.run("queue", "acl", "revoke", ORDERS, "everyone", "full", check=False)
        running.run("queue", "acl", "grant", ORDERS, f"{DOMAIN}-{BUYERS}", "full")
        running.run("send", ORDERS, "--body", "an order")
        yield running


@pytest.mark.parametrize("door", DOORS)
def test_the_groups_in_a_ticket_decide(doors: Doors, tickets: DomainTickets, door: Door) -> None:
    assert door(doors, tickets.of(ALICE)) is True
    assert door(doors, tickets.of(BOB)) is False


# Who is nobody here.


def _broken(pac: bytes) -> bytes:
    """Another number of the user, behind the signature."""
    at = pac.index((1103).to_bytes(4, "little"))
    return pac[:at] + (1104).to_bytes(4, "little") + pac[at + 4 :]


Forge = Callable[[DomainTickets], str]
"""Makes a ticket that proves nothing."""
FORGERIES: dict[str, Forge] = {
    "none": lambda made: made.without_certificate(),
    "no information": lambda made: made.of(None),
    "changed": lambda made: made.of(ALICE, change=_broken),
    "another key": lambda made: made.of(ALICE, key=bytes(32)),
    "cut off": lambda made: made.of(ALICE, change=lambda pac: pac[:-200]),
    "another realm": lambda made: made.of(ALICE, realm="OTHER.TEST"),
    "confused realm": lambda made: made.of(ALICE, realm=f"EVIL@{REALM}"),
    "slash": lambda made: made.of(ALICE, name="alice/admin"),
    "backslash": lambda made: made.of(Person("CORP\\alice"), name="alice"),
    "no name": lambda made: made.of(Person(""), name="alice"),
    "escapes": lambda made: made.of(Person("\x1b[2J"), name="alice"),
    "1,100 groups": lambda made: made.of(Person(groups=range(2000, 3100))),
    "2,000 groups": lambda made: made.of(Person(groups=range(2000, 4000))),
    "builtin": lambda made: made.of(Person(domain="S-1-5-32", number=544)),
    "of a group": lambda made: made.of(Person(number=512)),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("forgery", FORGERIES)
def test_what_nobody_vouches_for_is_refused(
    doors: Doors, tickets: DomainTickets, door: Door, forgery: str
) -> None:
    """A local account of the name is no way out (G770)."""
    assert door(doors, FORGERIES[forgery](tickets)) is None


def test_accounts_of_this_machine_are_given_by_no_domain(
    machine: PrivateQueueManager, doors: Doors, tickets: DomainTickets
) -> None:
    """Neither itself nor by a history of SIDs."""
    listed = json.loads(machine.run("user", "list", "--json").stdout)
    here, _, number = next(each["sid"] for each in listed if each["name"] == "alice").rpartition(
        "-"
    )
    assert doors.by_http(tickets.of(Person(domain=here, number=int(number)))) is None
    machine.run("queue", "create", "local")
    machine.run("queue", "acl", "revoke", "local", "everyone", "full", check=False)
    machine.run("queue", "acl", "grant", "local", "alice", "full")
    claims = Person(extra=(f"{here}-{number}", f"{here}-500", "S-1-5-32-544", "S-1-5-18"))
    cache = tickets.of(claims)
    assert doors.ask(cache, "/queues/local/messages") == 403
    assert doors.ask(cache, "/accounts") == 403


# Local accounts beside it.


def test_a_local_account_is_another_one_than_that_of_the_domain(
    machine: PrivateQueueManager, doors: Doors, tickets: DomainTickets
) -> None:
    def reads(name: str) -> int:
        program = Program(machine.endpoint("console"), name, PASSWORD)
        status = program.ask("GET", f"/queues/{ORDERS}/messages").status
        program.close()
        return status

    assert reads("alice") == 403
    assert reads("CORP\\alice") == 401
    assert doors.by_http(tickets.of(ALICE)) is True


@pytest.mark.parametrize("domain", ["CORP", "corp.test", "Corp"])
def test_ntlm_knows_no_accounts_of_the_domain(machine: PrivateQueueManager, domain: str) -> None:
    """Not even those whose name and password a local one has."""
    for claimed, right in (("", True), (domain, False)):
        credentials = NtlmCredentials("alice", PASSWORD, claimed)
        try:
            with NetworkCaller(
                machine.endpoint("rpc"), "remoteread", credentials=credentials
            ) as caller:
                caller.call("R_GetServerPort")
        except (RefusedError, ConnectionError, Fault):
            assert not right
        else:
            assert right


# Rights.


def test_administrators_are_who_the_configuration_says(
    doors: Doors, tickets: DomainTickets
) -> None:
    """The domain's own administrators are not."""
    of_the_domain = Person("dora", 500, groups=(USERS, 512, 519), extra=("S-1-5-32-544",))
    for person, status in ((ROOT, 200), (ALICE, 403), (of_the_domain, 403)):
        assert doors.ask(tickets.of(person), "/accounts") == status, person.name


def test_groups_change_at_the_next_logon(doors: Doors, tickets: DomainTickets) -> None:
    with doors.caller(tickets.of(ALICE)) as caller:
        reader = Reader(caller.caller)
        reader.open(doors.format_name)
        removed = tickets.of(Person(groups=(USERS,)))
        assert [door(doors, removed) for door in DOORS] == [False, False, False]
        reader.open(doors.format_name)
    assert doors.by_http(tickets.of(ALICE)) is True


def test_a_thousand_groups_are_taken_at_every_door(doors: Doors, tickets: DomainTickets) -> None:
    cache = tickets.of(Person(groups=(*range(2000, 3000), BUYERS)))
    assert [door(doors, cache) for door in DOORS] == [True, True, True]


def test_what_is_told_of_an_account_has_the_name_of_its_domain(
    machine: PrivateQueueManager, doors: Doors, tickets: DomainTickets
) -> None:
    before = len(machine.log)
    assert doors.by_rpc(tickets.of(BOB)) is False
    lines: list[dict[str, Any]] = [json.loads(each) for each in machine.log[before:].splitlines()]
    (logged_on,) = [each for each in lines if each["event"] == "a caller logged on"]
    assert logged_on["identity"] == "CORP\\bob"
    (denied,) = [each for each in lines if each["event"] == "access refused"]
    assert (denied["who"], denied["sid"]) == ("CORP\\bob", f"{DOMAIN}-1104")


def test_tokens_are_for_accounts_of_this_machine(machine: PrivateQueueManager) -> None:
    """Nobody would vouch for the account when a program shows one (G774)."""
    for account in ("CORP\\alice", f"{DOMAIN}-1103"):
        told = machine.run("token", "create", "t", "--account", account, check=False)
        assert told.returncode == 1
        assert "STATUS_NO_SUCH_USER" in told.stderr


# Names.


def test_who_has_logged_on_has_a_name_in_commands_and_in_the_interface(
    machine: PrivateQueueManager, doors: Doors, tickets: DomainTickets
) -> None:
    erin = Person("erin", 1130)
    assert doors.by_http(tickets.of(erin)) is False
    machine.run("queue", "create", "named")
    machine.run("queue", "acl", "grant", "named", "CORP\\erin", "full")
    shown = json.loads(machine.run("queue", "acl", "show", "named", "--json").stdout)
    (entry,) = [each for each in shown["entries"] if each["sid"] == f"{DOMAIN}-1130"]
    assert entry["name"] == "CORP\\erin"
    assert "removed account" not in machine.run("queue", "acl", "show", ORDERS).stdout
    machine.run("queue", "acl", "revoke", "named", "everyone", "full", check=False)
    assert doors.ask(tickets.of(erin), "/queues/named/messages") == 200
    assert doors.ask(tickets.of(BOB), "/queues/named/messages") == 403
    told = machine.run("queue", "acl", "grant", "named", "CORP\\nobody", "full", check=False)
    assert (told.returncode, "CORP\\nobody" in told.stderr) == (1, True)
