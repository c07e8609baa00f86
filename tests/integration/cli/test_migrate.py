"""`rpcqm migrate windows`: what PowerShell printed on Windows becomes queues here."""

import json
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from rpcqm.testing import PrivateQueueManager
from tests.integration.cli.conftest import Command, Outcome
from tests.unit.test_packaging import ROOT

VECTORS = ROOT / "tests/vectors/windows"
FILES = (str(VECTORS / "queues.json"), str(VECTORS / "permissions.json"))
ORDERS = {"QueueName": r"private$\bad"}
OPEN = {
    "QueueName": r"private$\orders",
    "AccountName": r"BUILTIN\Administrators",
    "Right": "FullControl",
}
ENTRY = {"QueueName": "private$\\bad", "AccountName": "Everyone", "Access": "Allow", "Right": 4}


KNOWN = ("--account", r"SHOP\nobody=guests")
"""With this everybody of the files who is denied something is known."""


@pytest.fixture
def migrate(queue_manager: PrivateQueueManager, run: Command) -> Iterator[Callable[..., Outcome]]:
    """Begin without the queues of the files, and with alice."""
    for name in ("orders", "prices"):
        queue_manager.run("queue", "acl", "grant", name, "administrators", "full", check=False)
        queue_manager.run("queue", "delete", name, check=False)
    queue_manager.run("user", "add", "alice", "--password-stdin", input="pw\n", check=False)
    yield lambda *words: run("migrate", "windows", *words)
    queue_manager.run("user", "remove", "alice")


def rights(run: Command, name: str) -> dict[str, str]:
    """What `acl show` prints of each account: its rights, then those that it is denied."""
    lines = run("queue", "acl", "show", name).lines
    return {line.split()[0]: " ".join(line.split()[1:]) for line in lines[2:]}


def written(path: Path, *objects: Mapping[str, object]) -> str:
    path.write_text(json.dumps(objects))
    return str(path)


def shown(run: Command, name: str) -> dict[str, object]:
    told: dict[str, object] = json.loads(run("queue", "show", name, "--json").text)
    return told


def test_a_dry_run_shows_differences_and_changes_nothing(
    migrate: Callable[..., Outcome], run: Command, attempt: Command
) -> None:
    told = migrate(*FILES, *KNOWN)
    assert r"label 'private$\prices'" in told.text
    assert told.lines[0].split() == ["QUEUE", "WHAT", "HERE", "WINDOWS", "THEN"]
    assert r".\private$\orders" in told.text
    assert "--apply does it" in told.text
    assert attempt("queue", "show", "orders").status == 1


def test_queues_properties_and_permissions_are_made(
    migrate: Callable[..., Outcome], run: Command, queue_manager: PrivateQueueManager
) -> None:
    migrate(*FILES, *KNOWN, "--apply")
    orders = shown(run, "orders")
    wanted = {
        "transactional": True,
        "journal": True,
        "quota": 8192,
        "journal_quota": None,
        "label": "Bestellungen für Köln",
        "privacy": "optional",
        "authenticate": False,
    }
    assert {name: orders[name] for name in wanted} == wanted
    acl = rights(run, "orders")
    assert "receive" in acl["alice"]
    assert acl["anonymous"] == "nothing send"
    assert acl["administrators"] == "full"
    assert acl["S-1-5-21-1-2-3-1104"] == "peek"
    queue_manager.restart()
    assert {name: shown(run, "orders")[name] for name in wanted} == wanted


def test_what_is_the_same_already_is_left_alone(migrate: Callable[..., Outcome]) -> None:
    migrate(*FILES, *KNOWN, "--apply")
    again = migrate(*FILES, *KNOWN, "--apply")
    assert "0 differences changed." in again.text
    assert {line.split()[-1] for line in again.lines[1:-1]} == {"stays"}
    assert migrate(str(VECTORS / "one.json")).text == "Nothing differs.\n"


def test_a_queue_is_not_made_where_somebody_who_is_denied_is_not_known(
    migrate: Callable[..., Outcome], run: Command, attempt: Command
) -> None:
    """The list without the denial, and the default list, would let in more than Windows does."""
    told = attempt("migrate", "windows", *FILES, "--apply")
    assert told.status == 1
    assert r"SHOP\nobody: full" in told.text
    assert r".\private$\prices: an account that is denied something" in told.errors
    assert attempt("queue", "show", "prices").status == 1
    assert rights(run, "orders")["administrators"] == "full"
    migrate(*FILES, *KNOWN, "--apply")
    assert rights(run, "prices")["guests"].startswith("nothing full")


def test_permissions_stay_where_somebody_who_is_denied_is_not_known(
    migrate: Callable[..., Outcome], run: Command, attempt: Command
) -> None:
    run("queue", "create", "prices", "--sddl", "D:(A;;GA;;;BA)")
    before = run("queue", "acl", "show", "prices").text
    assert attempt("migrate", "windows", *FILES, "--apply").status == 1
    assert run("queue", "acl", "show", "prices").text == before


def test_a_queue_whose_accounts_are_not_known_is_for_its_owner_alone(
    migrate: Callable[..., Outcome], run: Command, tmp_path: Path
) -> None:
    entry = {"QueueName": r"private$\orders", "Access": "Allow", "Right": "FullControl"}
    one = written(tmp_path / "p.json", entry | {"AccountName": r"SHOP\nobody"})
    told = migrate(FILES[0], one, "--apply")
    assert told.text.count("nobody may do anything; its owner may change that") == 2
    assert r"SHOP\nobody: full" in told.text
    assert rights(run, "orders") == {}


def test_a_queue_that_is_here_loses_what_windows_does_not_allow(
    migrate: Callable[..., Outcome], run: Command, tmp_path: Path
) -> None:
    run("queue", "create", "orders")
    assert "send" in rights(run, "orders")["everyone"]
    migrate(FILES[0], "--apply")  # no file has its permissions
    assert "send" in rights(run, "orders")["everyone"]
    entry = {"QueueName": r"private$\orders", "Access": "Allow", "Right": "FullControl"}
    migrate(written(tmp_path / "p.json", entry | {"AccountName": r"SHOP\nobody"}), "--apply")
    assert rights(run, "orders") == {}


@pytest.mark.parametrize("account", ["S-1-5-21-1-2-3-1104", r"SHOP\guests", r"SHOP\Everyone"])
def test_a_denial_for_somebody_of_another_domain_does_not_become_anybody_elses(
    migrate: Callable[..., Outcome], attempt: Command, tmp_path: Path, account: str
) -> None:
    """A list that denies it to nobody here lets in whoever has that account."""
    entry = {"QueueName": r"private$\orders", "AccountName": account, "Right": "FullControl"}
    deny, allow = entry | {"Access": "Deny"}, OPEN | {"Access": "Allow"}
    path = written(tmp_path / "permissions.json", deny, allow)
    assert attempt("migrate", "windows", FILES[0], path, "--apply").status == 1
    assert attempt("queue", "show", "orders").status == 1
    migrate(FILES[0], path, "--account", f"{account}=alice", "--apply")


def test_a_group_of_a_domain_is_not_windows_own_of_that_name(
    migrate: Callable[..., Outcome], run: Command, tmp_path: Path
) -> None:
    entry = {"QueueName": r"private$\orders", "Access": "Allow", "Right": "FullControl"}
    names = [r"SHOP\Everyone", r"SHOP\Users", r"SHOP\Administrators"]
    path = written(tmp_path / "p.json", *(entry | {"AccountName": each} for each in names))
    migrate(FILES[0], path, "--apply")
    assert rights(run, "orders") == {}


@pytest.mark.parametrize("denial", ["(D;;0x4;;;AN)", "(D;IO;0x4;;;AN)"])
def test_a_denial_that_has_no_effect_here_is_a_difference(
    migrate: Callable[..., Outcome], run: Command, tmp_path: Path, denial: str
) -> None:
    """An entry that allows stands before it, or it is for what is made below only."""
    order = ("(A;;GA;;;AN)", denial) if "IO" not in denial else (denial, "(A;;GA;;;AN)")
    run("queue", "create", "orders", "--sddl", "D:" + "".join(order))
    entry = {"QueueName": r"private$\orders", "AccountName": r"NT AUTHORITY\ANONYMOUS LOGON"}
    path = written(
        tmp_path / "p.json",
        entry | {"Access": "Deny", "Right": "WriteMessage"},
        entry | {"Access": "Allow", "Right": "FullControl"},
    )
    assert "1 difference changed." in migrate(path, "--apply").text
    assert "Nothing differs." in migrate(path, "--apply").text


def test_what_was_changed_here_is_shown_and_changed_back(
    migrate: Callable[..., Outcome], run: Command
) -> None:
    migrate(*FILES, *KNOWN, "--apply")
    run("queue", "set", "orders", "--quota", "77")
    told = migrate(FILES[0])
    assert "77 KB" in told.text
    assert "8192 KB" in told.text
    migrate(FILES[0], "--apply")
    assert shown(run, "orders")["quota"] == 8192


def test_a_queue_that_hides_itself_stops_no_other(
    migrate: Callable[..., Outcome], run: Command, refused: Command, tmp_path: Path
) -> None:
    """Windows' list may leave administrators nothing; what they may not see is a row."""
    path = tmp_path / "permissions.json"
    name = {"QueueName": "private$\\orders", "AccountName": "Everyone"}
    path.write_text(json.dumps(name | {"Access": "Allow", "Right": "ReceiveMessage"}))
    migrate(*FILES[:1], str(path), "--apply")
    told = migrate(*FILES[:1], str(path))
    hidden = [line.split() for line in told.lines if "you may not see them" in line]
    assert [row[:2] for row in hidden] == [
        [r".\private$\orders", "properties"],
        [r".\private$\prices", "properties"],
    ]
    assert {row[-1] for row in hidden} == {"stays"}
    path.write_text(json.dumps(name | {"Access": "Allow", "Right": "GetQueueProperties"}))
    migrate(str(path), "--apply")  # its owner may still change who may do what
    run("queue", "acl", "show", "orders")
    changed = tmp_path / "changed.json"
    changed.write_text(json.dumps({"QueueName": "private$\\orders", "Label": "other"}))
    sentence = refused("migrate", "windows", str(changed), "--apply").errors
    assert "rpcqm queue acl grant orders administrators full" in sentence
    run("queue", "acl", "grant", "orders", "administrators", "full")
    migrate(str(changed), "--apply")
    assert shown(run, "orders")["label"] == "other"


def test_the_command_that_takes_a_queue_over_is_one_word_for_its_name(
    migrate: Callable[..., Outcome], run: Command, refused: Command, tmp_path: Path
) -> None:
    """Its name stands in a file that somebody else has made."""
    name = "a b&reboot'$(x)"
    run("queue", "create", rf".\private$\{name}", "--sddl", "O:BAD:(A;;0x20020;;;WD)")
    changed = tmp_path / "changed.json"
    changed.write_text(json.dumps({"QueueName": rf"private$\{name}", "Label": "other"}))
    sentence = refused("migrate", "windows", str(changed), "--apply").errors
    (command,) = re.findall("`(rpcqm queue acl grant [^`]*)`", sentence)
    grant = f"rpcqm queue acl grant {shlex.quote(name)} administrators full"
    assert command == grant
    run("queue", "acl", "grant", name, "administrators", "full")
    run("queue", "delete", name)


def test_accounts_of_two_domains_are_not_one(
    migrate: Callable[..., Outcome], tmp_path: Path
) -> None:
    path = tmp_path / "permissions.json"
    entry = {"QueueName": "private$\\orders", "Access": "Allow", "Right": "ReceiveMessage"}
    names = (r"SHOP\alice", r"STRANGE\alice")
    path.write_text(json.dumps([entry | {"AccountName": name} for name in names]))
    told = migrate(FILES[0], str(path))
    assert r"STRANGE\alice: receive" in told.text
    assert r"SHOP\alice: receive" not in told.text


@pytest.mark.parametrize(
    ("octets", "place"),
    [
        (b"\xff\xfeh", "no text of utf-16"),
        (b"\x80", "no text of utf-8 (byte 0)"),
        (b'[{"QueueName": "a"},\n x]', "line 2, column 2"),
        (b"[" * 100_000, "no JSON"),
        (b"[7]", "object 1"),
        (b"\xff\xfe\r\x00\n\x00", "is empty"),
        (b"AccountName Access Right", "has the commands for Windows"),
        (json.dumps([{"Label": "x"}]).encode(), "object 1, QueueName"),
        (json.dumps([ORDERS, ORDERS | {"Transactional": 3}]).encode(), "object 2, Transactional"),
        (json.dumps(ORDERS | {"MaximumQueueSize": "x"}).encode(), "object 1, MaximumQueueSize"),
        (json.dumps(ORDERS | {"MaximumQueueSize": 1 << 40}).encode(), "MaximumQueueSize"),
        (json.dumps(ORDERS | {"EncryptionRequired": "Maybe"}).encode(), "EncryptionRequired"),
        (json.dumps(ORDERS | {"Label": ["x"]}).encode(), "object 1, Label"),
        (json.dumps([ORDERS, ORDERS | {"Label": "y"}]).encode(), "there twice"),
        (json.dumps(ENTRY | {"Access": 1}).encode(), "object 1, Access"),
        (json.dumps([ENTRY | {"Access": n} for n in (0, 1, 3)]).encode(), "object 1, Access"),
        (json.dumps([ENTRY | {"Access": n} for n in (0, 2)]).encode(), "object 2, Access"),
        (json.dumps([ENTRY | {"Access": n} for n in (False, True)]).encode(), "object 1, Access"),
        (json.dumps([ENTRY | {"Access": n} for n in ([0], {"x": 0})]).encode(), "1, Access"),
        (json.dumps(ENTRY | {"Right": "Fly"}).encode(), "`Fly` is no right"),
        (json.dumps(ENTRY | {"Right": -1}).encode(), "object 1, Right"),
        (json.dumps(ENTRY | {"AccountName": ""}).encode(), "object 1, AccountName"),
    ],
)
def test_a_bad_file_is_told_with_the_place(
    refused: Command, tmp_path: Path, octets: bytes, place: str
) -> None:
    path = tmp_path / "bad.json"
    path.write_bytes(octets)
    assert place in refused("migrate", "windows", str(path), "--apply").errors


@pytest.mark.parametrize(("allow", "deny"), [(0, 1), (1, 3)])
def test_numbers_of_access_are_read_where_they_are_certain(
    migrate: Callable[..., Outcome], run: Command, tmp_path: Path, allow: int, deny: int
) -> None:
    path = tmp_path / "numbers.json"
    entries = [
        ENTRY | OPEN | {"Access": allow},
        ENTRY | {"QueueName": r"private$\orders", "Access": allow, "Right": 0x2B},
        ENTRY | {"QueueName": r"private$\orders", "Access": deny, "AccountName": "alice"},
    ]
    path.write_text(json.dumps(entries), "utf-16")
    migrate(FILES[0], str(path), "--apply")
    lines = [" ".join(each.split()) for each in run("queue", "acl", "show", "orders").lines]
    assert "everyone receive, receive-journal, get-properties" in lines
    assert "alice nothing send" in lines


def test_what_powershell_7_got_by_remoting_is_read(
    migrate: Callable[..., Outcome], run: Command, tmp_path: Path
) -> None:
    queue = {
        "QueueName": {"value": r"private$\orders", "Length": 14},
        "EncryptionRequired": {"value": 2, "Value": "Body"},
        "CreateTime": "2017-03-09T01:00:00+01:00",
        "PSComputerName": "localhost",
        "RunspaceId": "e3b6ac7a-0000-0000-0000-000000000000",
    }
    entry = {
        "QueueName": r"private$\orders",
        "AccountName": "Everyone",
        "Access": {"value": 1, "Value": "Allow"},
        "Right": {"value": 4, "Value": "WriteMessage"},
    }
    path = tmp_path / "remoting.json"
    path.write_text(json.dumps([queue, entry, ENTRY | OPEN]), "utf-8")
    migrate(str(path), "--apply")
    assert shown(run, "orders")["privacy"] == "body"
    assert "send" in run("queue", "acl", "show", "orders").text


def test_a_list_that_powershell_has_counted_is_read(
    migrate: Callable[..., Outcome], tmp_path: Path
) -> None:
    path = tmp_path / "counted.json"
    path.write_text(json.dumps({"value": [ORDERS, {"Path": "SHOP\\journal$"}], "Count": 2}))
    told = migrate(str(path)).text
    assert r".\private$\bad" in told
    assert "not a queue of applications" in told


def test_wrong_usage_is_told(attempt: Command, tmp_path: Path) -> None:
    missing = attempt("migrate", "windows", str(tmp_path / "none.json"))
    assert missing.status == 1
    assert "none.json" in missing.errors
    assert attempt("migrate", "windows", FILES[0], "--account", "alice").status == 2
