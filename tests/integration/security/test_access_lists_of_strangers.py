"""Access lists that nobody means: too long, oddly written, with entries that have no text."""

import contextlib
import json
from collections.abc import Iterator

import pytest

from rpcqm.base.errors import HResult, MQError
from rpcqm.client.blocking import BlockingClient
from rpcqm.client.queue_settings import QueueSettings
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.path_name import PathName
from rpcqm.codec.security.descriptor import Ace, AceType, Acl, SecurityDescriptor
from rpcqm.codec.security.identifier import EVERYONE
from rpcqm.codec.security.sddl import format_sddl, parse_sddl
from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.api.programs import Program

ILLEGAL = HResult.MQ_ERROR_ILLEGAL_SECURITY_DESCRIPTOR
LONGEST = 65_535
"""Octets of an access list ([MS-DTYP] 2.4.5 AclSize)."""
MOST = (LONGEST - 8) // 20
"""Entries for Everyone that a list has room for."""
ENTRY = "(A;;GA;;;WD)"
TOO_LONG = "D:" + ENTRY * (MOST + 1)
QUEUE = r".\private$\orders"
ODD = (
    TOO_LONG,
    "S:" + "(AU;SA;GA;;;WD)" * (MOST + 1),
    "D:(A;;1_0;;;WD)",
    "D:(A;;0b1;;;WD)",
    "D:(A;;\u0663;;;WD)",
    "D:(A;;" + "9" * 5_000 + ";;;WD)",
    "D:(OA;;1;urn:uuid:00000000-0000-0000-0000-000000000000;;WD)",
    "D:(A;;GA;;;S-1-5-" + "-".join("1" * 16) + ")",
    "D:(XA;;GX;;;WD;(1))",
    "O:" + "G" * 60_000,
    "O:" + "D:" + ENTRY,
    "O:BA" + "G:" + "D:" + ENTRY,
    "D:" + "(" * 60_000,
    "D:" * 30_000,
)


@pytest.fixture(scope="module")
def machine() -> Iterator[PrivateQueueManager]:
    with private_queue_manager(("--console-port", "0")) as running:
        words = ("user", "add", "boss", "--group", "administrators", "--password-stdin")
        running.run(*words, input="secret\n")
        running.run("queue", "create", "orders")
        yield running


@pytest.fixture
def boss(machine: PrivateQueueManager) -> Iterator[Program]:
    with contextlib.closing(Program(machine.endpoint("console"), "boss")) as program:
        yield program


@pytest.fixture
def client(machine: PrivateQueueManager) -> Iterator[BlockingClient]:
    with machine.client() as made:
        yield made


@pytest.fixture
def orders() -> FormatName:
    return FormatName.of_path(PathName.parse(QUEUE))


def lines(machine: PrivateQueueManager, event: str) -> list[dict[str, str]]:
    written = [json.loads(line) for line in machine.log.splitlines() if line.startswith("{")]
    return [each for each in written if each["event"] == event]


@pytest.mark.parametrize("text", ODD, ids=range(len(ODD)))
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PUT", "/queues/orders/permissions"),
        ("PUT", "/queue-manager/permissions"),
        ("POST", "/queues"),
    ],
)
def test_a_list_that_is_none_is_refused_over_http(
    boss: Program, method: str, path: str, text: str
) -> None:
    before = boss.ask("GET", "/queues/orders/permissions").value
    told = boss.ask(method, path, {"sddl": text} | ({"name": "new"} if method == "POST" else {}))
    assert (told.status, told.code) == (400, ILLEGAL.name)
    assert len(told.value["detail"]) < 200
    assert boss.ask("GET", "/queues/orders/permissions").value == before
    assert boss.ask("GET", "/queues/new").status == 404


@pytest.mark.parametrize("text", ODD[:3], ids=range(3))
@pytest.mark.parametrize("words", [("create", "new"), ("set", "orders")])
def test_a_list_that_is_none_is_refused_by_commands(
    machine: PrivateQueueManager, words: tuple[str, ...], text: str
) -> None:
    done = machine.run("queue", *words, "--sddl", text, check=False)
    assert done.returncode in (1, 2)
    assert "Traceback" not in done.stderr
    assert len(done.stderr) < 1_000


def test_the_longest_list_is_taken_and_finds_no_room_for_one_more(
    machine: PrivateQueueManager, client: BlockingClient, orders: FormatName
) -> None:
    """By qmcomm, and by the command that adds an entry to what is there."""
    longest = parse_sddl("D:" + "(A;;GA;;;BA)" * 2 + ENTRY * (MOST - 3))
    client.run(client.queues.set_security(orders, longest))
    assert client.run(client.queues.security(orders)).dacl == longest.dacl
    for _ in range(2):
        done = machine.run("queue", "acl", "deny", "orders", "guests", "send", check=False)
    grants = [
        machine.run("queue", "acl", "deny", "orders", f"S-1-5-{number}", "send", check=False)
        for number in (100, 101, 102)
    ]
    assert [each.returncode for each in grants][-1] == 1
    assert ILLEGAL.name in grants[-1].stderr
    assert "Traceback" not in done.stderr + "".join(each.stderr for each in grants)
    client.run(client.queues.set_security(orders, parse_sddl("D:(A;;GA;;;BA)" + ENTRY)))


def test_a_list_of_audited_accesses_is_set_by_administrators_alone(
    machine: PrivateQueueManager, boss: Program
) -> None:
    """What a text says is done or refused, and never left out in silence."""
    machine.run("user", "add", "alice", "--password-stdin", input="secret\n")
    with contextlib.closing(Program(machine.endpoint("console"), "alice")) as alice:
        boss.ask("POST", "/queues", {"name": "hers", "sddl": "D:(A;;GA;;;WD)"})
        wanted = {"sddl": "D:(A;;GA;;;WD)S:(AU;SA;0x4;;;WD)"}
        refused = alice.ask("PUT", "/queues/hers/permissions", wanted)
        assert refused.code == HResult.MQ_ERROR_PRIVILEGE_NOT_HELD.name
        made = alice.ask("POST", "/queues", {"name": "other"} | wanted)
        assert made.code == HResult.MQ_ERROR_PRIVILEGE_NOT_HELD.name
        assert boss.ask("PUT", "/queues/hers/permissions", wanted).status == 204
        sent = alice.ask("POST", "/queues/hers/messages", {"body": "x"})
        assert sent.status == 201
    (line,) = [each for each in lines(machine, "access granted") if each["who"] == "alice"]
    assert line["object"].endswith("hers")


def test_the_text_that_lets_in_everybody_is_not_left_out(boss: Program) -> None:
    boss.ask("POST", "/queues", {"name": "open"})
    wanted = {"sddl": "D:NO_ACCESS_CONTROL"}
    assert boss.ask("PUT", "/queues/open/permissions", wanted).status == 204
    told = boss.ask("GET", "/queues/open/permissions").value["sddl"]
    assert told.endswith(wanted["sddl"])


def test_a_queue_with_entries_that_have_no_text_is_shown(
    machine: PrivateQueueManager, client: BlockingClient, boss: Program
) -> None:
    """A program may set a conditional entry by RPC."""
    name = FormatName.of_path(PathName.parse(r".\private$\conditional"))
    settings = QueueSettings()
    path = PathName.parse(r".\private$\conditional")
    conditional = Ace(AceType.ACCESS_DENIED_CALLBACK_ACE_TYPE, mask=4, sid=EVERYONE, data=bytes(4))
    plain = parse_sddl("D:(A;;GA;;;BA)").dacl
    assert plain is not None
    descriptor = SecurityDescriptor(dacl=Acl((conditional, *plain.aces)))
    with pytest.raises(MQError):
        format_sddl(descriptor)
    client.run(client.queues.create(path, settings, descriptor))
    assert client.run(client.queues.security(name)).dacl == descriptor.dacl
    for words in ((), ("--json",)):
        assert "conditional" in machine.run("queue", "show", "conditional", *words).stdout
    told = boss.ask("GET", "/queues/conditional/permissions")
    assert (told.status, told.code) == (400, ILLEGAL.name)
