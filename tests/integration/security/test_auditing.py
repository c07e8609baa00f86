"""What is audited: administrators alone see and change it, and it grants nothing."""

import contextlib
import json
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from rpcqm.client.names import format_name
from rpcqm.codec.security.descriptor import SecurityInformation
from rpcqm.codec.security.sddl import format_sddl, parse_sddl
from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.integration.security.conftest import DEFAULTS, PASSWORDS, Connect, add_accounts
from tests.support.api.programs import Program
from tests.support.rpc.dependent_client import Client, object_of

AUDIT, OTHER = "S:(AU;SAFA;0x7;;;WD)", "S:(AU;SA;0x1;;;BA)"
EVERYTHING = "(A;;0x10f003f;;;WD)"
"""All rights of a queue, and the one to the list of what is audited, which no list gives."""
SACL = int(SecurityInformation.SACL_SECURITY_INFORMATION)
DACL = int(SecurityInformation.DACL_SECURITY_INFORMATION)
NOT_HELD = "MQ_ERROR_PRIVILEGE_NOT_HELD"


@pytest.fixture(scope="module")
def machine() -> Iterator[PrivateQueueManager]:
    """One that serves dependent clients and programs."""
    configuration = DEFAULTS + "[security]\nsupporting_server = true\n"
    with private_queue_manager(("--console-port", "0"), configuration) as running:
        add_accounts(running)
        yield running


@pytest.fixture
def hers(machine: PrivateQueueManager, name: str) -> str:
    """A queue of alice's on which everybody has every right, and whose use is audited."""
    with machine.client() as client:
        sid = next(each.sid for each in client.run(client.accounts.list()) if each.name == "alice")
    machine.run("queue", "create", name, "--sddl", f"O:{sid}G:BAD:{EVERYTHING}{AUDIT}")
    return name


@contextlib.contextmanager
def program(machine: PrivateQueueManager, user: str, token: str = "") -> Iterator[Program]:
    made = Program(machine.endpoint("console"), user, PASSWORDS[user])
    if token:
        made.headers["Authorization"] = f"Bearer {token}"
    with contextlib.closing(made):
        yield made


def sacl(machine: PrivateQueueManager, name: str) -> str:
    """What is audited, as an administrator is told."""
    with machine.client() as client:
        return format_sddl(client.run(client.queues.security(format_name(name), SACL)))


def here(name: str) -> str:
    return f"DIRECT=OS:.\\private$\\{name}"


def over_http(asking: Program, name: str) -> list[str]:
    """Every way of /api/v1 to say what is audited."""
    texts = ("S:", OTHER, f"D:{EVERYTHING}{OTHER}")
    told = [asking.ask("PUT", f"/queues/{name}/permissions", {"sddl": each}) for each in texts]
    told.append(asking.ask("PUT", "/queue-manager/permissions", {"sddl": OTHER}))
    made = {"name": f"{name}-made", "sddl": f"D:{EVERYTHING}{AUDIT}"}
    told.append(asking.ask("POST", "/queues", made))
    return [each.code for each in told]


def by_rpc(client: Client, name: str) -> list[Callable[[], str]]:
    """Every way of qmcomm to see or say what is audited."""
    descriptor = parse_sddl(f"D:{EVERYTHING}{OTHER}").encode()
    setting = [
        partial(
            client.status,
            "R_QMSetObjectSecurityInternal",
            pObjectFormat=object_of(here(name)),
            SecurityInformation=parts,
            SDSize=len(descriptor),
            pSecurityDescriptor=descriptor,
        )
        for parts in (SACL, SACL | DACL)
    ]
    seeing = [
        partial(
            client.status,
            "R_QMGetObjectSecurityInternal",
            pObjectFormat=object_of(here(name)),
            RequestedInformation=parts,
            nLength=1024,
        )
        for parts in (SACL, SACL | DACL)
    ]
    making = partial(client.create, rf".\private$\{name}-made", descriptor=descriptor)
    return [*setting, *seeing, making]


def test_no_right_and_no_ownership_lets_anybody_see_or_change_it(
    machine: PrivateQueueManager, hers: str, connect: Connect
) -> None:
    words = ("token", "create", f"of-{hers}", "--account", "admin", "--rights", "manage")
    token = machine.run(*words).stdout.strip()
    for user, shown in (("alice", ""), ("bob", ""), ("admin", token)):
        with program(machine, user, shown) as asking:
            assert set(over_http(asking, hers)) == {NOT_HELD}
    for user in ("alice", "bob"):
        client = Client(connect("qmcomm", "qmcomm2", user=user, server=machine).caller)
        assert [attempt() for attempt in by_rpc(client, hers)] == [NOT_HELD] * 5
    assert sacl(machine, hers) == AUDIT
    assert machine.run("queue", "show", f"{hers}-made", check=False).returncode == 1


def test_administrators_see_and_change_it_by_every_door(
    machine: PrivateQueueManager, hers: str, connect: Connect
) -> None:
    """Without this the refusals above would prove nothing."""
    with program(machine, "admin") as admin:
        assert admin.ask("PUT", f"/queues/{hers}/permissions", {"sddl": OTHER}).status == 204
        assert sacl(machine, hers) == OTHER
    machine.run("queue", "set", hers, "--sddl", AUDIT)
    assert sacl(machine, hers) == AUDIT
    client = Client(connect("qmcomm", "qmcomm2", user="admin", server=machine).caller)
    assert [attempt() for attempt in by_rpc(client, hers)] == ["MQ_OK"] * 5
    assert sacl(machine, hers) == OTHER


def test_who_changes_something_else_leaves_it_as_it_is(
    machine: PrivateQueueManager, hers: str, connect: Connect
) -> None:
    """By each door, also with a descriptor that has another list, and after a restart."""
    with program(machine, "alice") as alice:
        wanted = {"sddl": f"D:{EVERYTHING}"}
        assert alice.ask("PUT", f"/queues/{hers}/permissions", wanted).status == 204
    client = Client(connect("qmcomm", "qmcomm2", user="alice", server=machine).caller)
    descriptor = parse_sddl(f"D:{EVERYTHING}{OTHER}").encode()
    told = client.status(
        "R_QMSetObjectSecurityInternal",
        pObjectFormat=object_of(here(hers)),
        SecurityInformation=DACL,
        SDSize=len(descriptor),
        pSecurityDescriptor=descriptor,
    )
    assert told == "MQ_OK"
    for words in (
        ("set", hers, "--label", "another"),
        ("set", hers, "--sddl", f"D:{EVERYTHING}"),
        ("acl", "grant", hers, "bob", "send"),
        ("acl", "revoke", hers, "bob"),
        ("acl", "owner", hers, "administrators"),
    ):
        machine.run("queue", *words)
        assert sacl(machine, hers) == AUDIT, words
    machine.restart()
    assert sacl(machine, hers) == AUDIT


def test_what_is_granted_and_refused_is_written_down(
    machine: PrivateQueueManager, hers: str
) -> None:
    """For each request, however many are alike; and the list itself grants nothing."""
    machine.run("queue", "set", hers, "--sddl", f"D:(D;;0x3;;;WD){EVERYTHING}")
    with program(machine, "bob") as bob:
        for _ in range(3):
            assert bob.ask("POST", f"/queues/{hers}/messages", {"body": "x"}).status == 201
            assert bob.ask("GET", f"/queues/{hers}/messages").status == 403
    written = [json.loads(line) for line in machine.log.splitlines() if line.startswith("{")]
    events = [
        (each["event"], each["audited"])
        for each in written
        if each.get("who") == "bob" and str(each.get("object", "")).endswith(hers)
    ]
    assert events == [("access granted", True), ("access refused", True)] * 3


def test_the_list_of_the_queue_manager_itself_stays_too(
    machine: PrivateQueueManager, name: str
) -> None:
    """It is known by what it has written down."""

    def made(number: int) -> int:
        """Let bob make a queue; how often that was written down so far."""
        with program(machine, "bob") as bob:
            assert bob.ask("POST", "/queues", {"name": f"{name}-{number}"}).status == 201
        told = [line for line in machine.log.splitlines() if '"access granted"' in line]
        return sum("the queue manager" in line and '"bob"' in line for line in told)

    assert made(0) == 0
    with program(machine, "admin") as admin:
        assert admin.ask("PUT", "/queue-manager/permissions", {"sddl": AUDIT}).status == 204
    assert made(1) == 1
    machine.run("machine", "acl", "grant", "guests", "create-queue")
    assert made(2) == 2
    machine.restart()
    assert made(3) == 3
