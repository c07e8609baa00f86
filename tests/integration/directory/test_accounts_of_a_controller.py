"""Accounts of Samba's domain log on here with its tickets, at every door, until it ends them."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from rpcqm.codec.security.identifier import Sid
from rpcqm.testing import private, private_queue_manager
from tests.support.directory.domain import CONTROLLER, MACHINE, NAME, PASSWORD, REALM, Domain
from tests.support.network.entering import entered
from tests.support.qm.domain_world import domain_world_of
from tests.support.qm.open_rights import BOSS, FIRST, OPENED
from tests.support.rpc.domain_doors import DOORS, Door, Doors
from tests.support.waiting import until

pytest.importorskip("ldap")


HOST = "qm1.corp.test"


@pytest.fixture(scope="module")
def machine(domain: Domain, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doors]:
    """A queue manager of the domain, which clerks may read: alice is one, bob is not.

    Stewards administer it.
    """
    keytab = tmp_path_factory.mktemp("keys") / "keytab"
    keytab.write_bytes(domain.keytab.read_bytes())
    keytab.chmod(0o600)
    domain.samba_tool("group", "add", "stewards")
    configuration = (
        f'name = "QM1"\n[security]\nsupporting_server = true\nkeytab = "{keytab}"\n'
        f'principal = "host/{HOST}@{REALM}"\n'
        f'[directory]\naccounts = "domain"\ndomain = "corp.test"\nservers = ["{CONTROLLER}"]\n'
        f'keytab = "{keytab}"\nprincipal = "{MACHINE}@{REALM}"\nround = 1\n'
        f'administrators = ["{sid_of(domain, "stewards")}"]\n'
        '[dcom]\nenabled = true\n[storage]\nreserve = 1\n[logging]\nformat = "json"\n'
    )
    options = ("--console-port", "0", "--dcom-port", "0")
    inside = tuple(domain.namespace.argv(private._COMMAND))
    with pytest.MonkeyPatch.context() as patch, entered(domain.namespace):
        for name, value in domain.environment.items():
            patch.setenv(name, value)
        patch.setattr(private, "_COMMAND", inside)
        with private_queue_manager(options, configuration, domain.environment) as running:
            running.run("queue", "create", "orders")
            running.run("queue", "acl", "revoke", "orders", "everyone", "full", check=False)
            until(lambda: "the directory is read" in running.log)
            running.run("queue", "acl", "grant", "orders", f"{NAME}\\clerks", "full")
            running.run("send", "orders", "--body", "an order")
            password = FIRST + "\n"
            running.run("user", "add", BOSS, "--password-stdin", input=password)
            yield Doors(running, REALM, HOST, HOST, "orders")


def sid_of(domain: Domain, name: str) -> str:
    """The SID of an account, as the controller's database has it."""
    found = domain.run("ldbsearch", "-H", domain.database, f"(sAMAccountName={name})", "objectSid")
    (line,) = [each for each in found.splitlines() if each.startswith("objectSid: ")]
    return str(Sid.parse(line.removeprefix("objectSid: ")))


@pytest.mark.parametrize("door", DOORS)
def test_a_group_of_the_domain_may_read_and_others_may_not(
    domain: Domain, machine: Doors, door: Door
) -> None:
    assert door(machine, domain.log_on("alice")) is True
    assert door(machine, domain.log_on("bob")) is False


def test_stewards_administer_and_domain_admins_do_not(domain: Domain, machine: Doors) -> None:
    domain.samba_tool("user", "create", "grace", PASSWORD)
    domain.samba_tool("group", "addmembers", "stewards", "grace")
    domain.samba_tool("group", "addmembers", "Domain Admins", "bob")
    assert machine.ask(domain.log_on("grace"), "/accounts") == 200
    assert machine.ask(domain.log_on("bob"), "/accounts") == 403


def test_names_are_those_of_the_directory(domain: Domain, machine: Doors) -> None:
    running = machine.machine
    running.run("queue", "create", "named")
    for who in (sid_of(domain, "bob"), f"{NAME}\\Domain Users", "corp\\alice"):
        running.run("queue", "acl", "grant", "named", who, "full")
    shown = running.run("queue", "acl", "show", "named").stdout
    for name in ("CORP\\bob", "CORP\\Domain Users", "CORP\\alice"):
        assert name in shown


def test_who_leaves_a_group_may_no_more_at_the_next_logon(domain: Domain, machine: Doors) -> None:
    domain.samba_tool("user", "create", "carol", PASSWORD)
    domain.samba_tool("group", "addmembers", "clerks", "carol")
    assert machine.by_rpc(domain.log_on("carol")) is True
    domain.samba_tool("group", "removemembers", "clerks", "carol")
    assert machine.by_rpc(domain.log_on("carol")) is False


@pytest.mark.parametrize(
    ("name", "order"),
    [("dave", ("user", "disable")), ("erin", ("user", "delete"))],
)
def test_an_account_that_ends_loses_what_is_open_and_its_tickets_count_no_more(
    domain: Domain, machine: Doors, name: str, order: tuple[str, ...]
) -> None:
    domain.samba_tool("user", "create", name, PASSWORD)
    domain.samba_tool("group", "addmembers", "clerks", name)
    cache = domain.log_on(name)
    for door in DOORS:
        assert door(machine, cache) is True
    with machine.caller(cache) as caller:
        caller.call("R_GetServerPort")
        domain.samba_tool(*order, name)
        until(lambda: caller.ended)
    assert [door(machine, cache) for door in DOORS] == [None, None, None]
    if order == ("user", "disable"):
        domain.samba_tool("user", "enable", name)
        until(lambda: machine.by_http(cache) is True)


NOT_OF_A_DOMAIN = {"local socket", "followed page"}
"""What needs a user of this machine, or a password."""


def test_whatever_an_account_has_open_ends_when_the_directory_ends_it(
    domain: Domain, machine: Doors
) -> None:
    """All at once, because the directory is read once."""
    domain.samba_tool("user", "create", "frank", PASSWORD)
    domain.samba_tool("group", "addmembers", "stewards", "frank")
    cache = domain.log_on("frank")
    held = {}
    with ExitStack() as stack:
        for name in sorted(OPENED.keys() - NOT_OF_A_DOMAIN):
            world = stack.enter_context(domain_world_of(machine, cache))
            held[name] = OPENED[name](world)
            if name != "request":
                held[name][1]()
        domain.samba_tool("user", "disable", "frank")
        for ends, _ in held.values():
            ends()
