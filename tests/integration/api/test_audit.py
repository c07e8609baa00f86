"""Everything an operator does leaves one line in the log, over whatever door it comes."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from rpcqm.api.routes import ROUTES
from rpcqm.base.log import LINES_AT_ONCE, LINES_PER_SECOND
from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.api.programs import Program

SETTINGS = "[security]\nsupporting_server = true\n"
AWAY = r"DIRECT=OS:nowhere.invalid\private$\x"
RULE = {"queue": "walked", "program": ["/bin/true"]}
WORK = {
    "go_on_with_order",
    "stop_order",
    *("send_message", "send_messages", "receive_messages", "work", "schedule_message"),
    *("complete_lease", "release_lease", "extend_lease"),
}
"""Programs send and receive by these: no line."""


def add(running: PrivateQueueManager, name: str, *words: str) -> None:
    running.run("user", "add", name, "--password-stdin", *words, input="secret\n")


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivateQueueManager]:
    storage = f'[storage]\nbackup_directory = "{tmp_path_factory.mktemp("backups")}"\n'
    with private_queue_manager(("--console-port", "0"), SETTINGS + storage) as queue_manager:
        add(queue_manager, "boss", "--group", "administrators")
        add(queue_manager, "mallory")
        yield queue_manager


@pytest.fixture
def boss(running: PrivateQueueManager) -> Iterator[Program]:
    program = Program(running.endpoint("console"), "boss")
    yield program
    program.close()


class Lines:
    """What the log has told since it was asked last."""

    def __init__(self, running: PrivateQueueManager) -> None:
        self._running = running
        self._at = len(running.log)

    def new(self, event: str = "an operator acts") -> list[dict[str, Any]]:
        said, self._at = self._running.log[self._at :], len(self._running.log)
        lines = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
        return [line for line in lines if line["event"] == event]


def test_each_change_by_a_program_leaves_one_line(
    running: PrivateQueueManager, boss: Program, tmp_path: Path
) -> None:
    lines, away = Lines(running), quote(AWAY, safe="")
    token = {"name": "meter", "account": "boss"}
    sddl = boss.ask("GET", "/queue-manager/permissions").value
    changes: dict[str, tuple[str, str, object]] = {
        "change_machine": ("PATCH", "/queue-manager", {"connected": True}),
        "set_machine_permissions": ("PUT", "/queue-manager/permissions", sddl),
        "compact_store": ("POST", "/queue-manager/compact", None),
        "make_backup": ("POST", "/queue-manager/backups", {"directory": "b"}),
        "create_queue": ("POST", "/queues", {"name": "walked"}),
        "change_queue": ("PATCH", "/queues/walked", {"label": "x"}),
        "set_permissions": (
            *("PUT", "/queues/walked/permissions"),
            {"sddl": "D:(A;;0xf003f;;;WD)(A;;0xf003f;;;BA)"},
        ),
        "change_permission_entries": (
            *("PATCH", "/queues/walked/permission-entries"),
            {"changes": [{"action": "allow", "who": "mallory", "rights": ["peek"]}]},
        ),
        "move_messages": ("POST", "/queues/walked/move", {"to": "walked;late"}),
        "copy_messages": ("POST", "/queues/walked;late/copy", {"to": "walked", "all": True}),
        "resend_messages": ("POST", "/queues/walked/resend", {"to": "walked", "all": True}),
        "remove_message": ("DELETE", "/queues/walked;late/messages/{lookup_id}", None),
        "import_message": ("POST", "/queues/walked/import", b""),
        "purge_queue": ("DELETE", "/queues/walked/messages", None),
        "end_opened": ("DELETE", "/opened/lease-{lease}", None),
        "end_connection": ("DELETE", "/connections/{connection}", None),
        "resend_dead_letters": ("POST", "/dead-letters/resend", {"all": True}),
        "acknowledge_dead_letters": ("POST", "/dead-letters/acknowledge", None),
        "rename_queue": ("POST", "/queues/walked/rename", {"name": "walked-on"}),
        "cancel_scheduled_message": ("DELETE", "/scheduled-messages/{held}", None),
        "delete_queue": ("DELETE", "/queues/walked-on", None),
        "pause_outgoing": ("POST", f"/outgoing-queues/{away}/pause", None),
        "resume_outgoing": ("POST", f"/outgoing-queues/{away}/resume", None),
        "resend_outgoing": ("POST", f"/outgoing-queues/{away}/resend", None),
        "add_account": ("POST", "/accounts", {"name": "dave", "password": "x"}),
        "set_password": ("PUT", "/accounts/dave/password", {"password": "y"}),
        "remove_account": ("DELETE", "/accounts/dave", None),
        "create_token": ("POST", "/tokens", token),
        "delete_token": ("DELETE", "/tokens/meter", None),
        "create_trigger": ("POST", "/triggers", {"name": "t", **RULE}),
        "change_trigger": ("PUT", "/triggers/t", {**RULE, "label": "x"}),
        "delete_trigger": ("DELETE", "/triggers/t", None),
    }
    assert set(changes) | WORK == {each.name for each in ROUTES if each.method != "GET"}
    assert boss.ask("POST", f"/queues/-/messages?queue={away}", b"x").status == 201
    for name, (method, path, body) in changes.items():
        if name == "set_permissions":
            boss.ask("POST", "/queues/walked/messages", b"x", {"Rpcqm-Dead-Letter": "true"})
            packet = boss.ask("GET", "/queues/walked/messages").value["messages"][0]["lookup_id"]
            exported = boss.ask("GET", f"/queues/walked/messages/{packet}/packet").body
        elif name == "remove_message":
            late = boss.ask("GET", "/queues/walked;late/messages").value["messages"]
            path = path.replace("{lookup_id}", late[0]["lookup_id"])
        elif name == "cancel_scheduled_message":
            wait = {"not_before": "2035-01-01T00:00Z"}
            held = boss.ask("POST", "/queues/walked-on/scheduled-messages", wait).value["id"]
            path = path.replace("{held}", held)
        elif name == "end_opened":
            boss.ask("POST", "/queues/walked/messages", b"x")
            got = boss.ask("POST", "/queues/walked/receive?lease=60").value["messages"]
            path = path.replace("{lease}", got[0]["lease"])
        elif name == "end_connection":
            other = Program(running.endpoint("console"), "mallory")
            other.ask("GET", "/leases")
            latest = boss.ask("GET", "/connections").value["connections"][-1]
            path = path.replace("{connection}", latest["id"])
        elif name == "import_message":
            body = exported
        assert lines.new() == [], name
        answer = boss.ask(method, path, body)
        assert answer.status < 300, (name, answer)
        (line,) = lines.new()
        assert (line["who"], line["origin"], line["protocol"]) == ("boss", "127.0.0.1", "http")
        assert line["sid"].startswith("S-1-5-21-"), name
    assert boss.ask("DELETE", "/queues/DeadLetter$/messages").status == 200


def test_sends_and_receives_leave_none(
    running: PrivateQueueManager, boss: Program, tmp_path: Path
) -> None:
    boss.ask("POST", "/queues", {"name": "worked"})
    lines = Lines(running)
    boss.ask("POST", "/queues/worked/messages", b"x")
    boss.ask("POST", "/queues/worked/messages/batch", {"messages": [{}]})
    got = boss.ask("POST", "/queues/worked/receive?max=2").value["messages"]
    assert boss.ask("POST", f"/leases/{got[0]['lease']}/complete").status == 204
    assert boss.ask("POST", f"/leases/{got[1]['lease']}/release").status == 204
    running.run("send", "worked", "--body", "x")
    running.run("receive", "worked")
    running.run("peek", "worked")
    running.run("queue", "export", "worked", str(tmp_path / "worked.mq"))
    assert lines.new() == []


COMMANDS = (
    (("queue", "create", "ordered"), "create queue"),
    (("queue", "set", "ordered", "--label", "x"), "set properties"),
    (("queue", "set", "ordered", "--sddl", "D:(A;;0xf003f;;;WD)"), "set permissions"),
    (("queue", "set", "ordered", "--trail"), "begin trail"),
    (("queue", "set", "ordered", "--journal-max-messages", "5"), "bound the journal"),
    (("queue", "set", "ordered", "--max-deliveries", "5"), "set the limit of deliveries"),
    (("move", "ordered", "ordered;late"), "move messages"),
    (("move", "ordered;late", "ordered", "--all"), "move messages"),
    (("copy", "ordered", "ordered", "--all"), "copy messages"),
    (("resend", "ordered", "--all"), "resend messages"),
    (("purge", "ordered"), "purge"),
    (("dead-letter", "resend", "--all"), "resend dead letter"),
    (("queue", "rename", "ordered", "done"), "rename queue"),
    (("queue", "delete", "done"), "delete queue"),
    (("network", "disconnect"), "disconnect"),
    (("network", "connect"), "connect"),
    (("compact",), "compact"),
    (("token", "create", "meter", "--account", "boss"), "create token"),
    (("token", "delete", "meter"), "delete token"),
    (("machine", "acl", "grant", "boss", "create-queue"), "set permissions"),
)


def test_each_administrative_command_leaves_one_line(
    running: PrivateQueueManager, tmp_path: Path
) -> None:
    lines = Lines(running)
    for words, action in (*COMMANDS, (("backup", str(tmp_path / "backup")), "make backup")):
        if words[0] == "move" and "--all" not in words:
            running.run("send", "ordered", "--body", "x", "--dead-letter")
        running.run(*words)
        told = lines.new()
        assert [(line["origin"], line["protocol"]) for line in told] == [("local", "rpc")], words
        assert [line["action"] for line in told] == [action], words


OVER_THE_NETWORK = (
    (("queue", "create", "far"), "create queue"),
    (("queue", "set", "far", "--label", "x"), "set properties"),
    (("queue", "set", "far", "--sddl", "D:(A;;0xf003f;;;WD)"), "set permissions"),
    (("move", "far", "far;late"), "move messages"),
    (("purge", "far"), "purge"),
    (("queue", "delete", "far"), "delete queue"),
    (("network", "connect"), "connect"),
)


def test_each_change_by_rpc_leaves_one_line_with_its_peer(running: PrivateQueueManager) -> None:
    host, port = running.endpoint("epm")
    words = ("--server", f"{host}:{port}", "--user", "boss", "--password-stdin")
    lines = Lines(running)
    for ordered, action in OVER_THE_NETWORK:
        if action == "move messages":
            running.run("send", "far", "--body", "x")
        running.run(*ordered, *words, input="secret\n")
        told = [(line["who"], line["action"], line["origin"]) for line in lines.new()]
        assert told == [("boss", action, host)], ordered


def test_moves_that_programs_make_leave_lines_but_push_nothing_out_of_the_trail(
    running: PrivateQueueManager, boss: Program
) -> None:
    boss.ask("POST", "/queues", {"name": "moved"})
    key = running.run("send", "moved", "--count", "3", "--body", "x")
    lines = Lines(running)
    before = boss.ask("GET", "/event-trail?kind=operator-acts&limit=1000").value["events"]
    host, port = running.endpoint("epm")
    there = ("--server", f"{host}:{port}", "--user", "boss", "--password-stdin")
    running.run("move", "moved", "moved;late", "--all", *there, input="secret\n")
    told = lines.new()
    assert len({line["lookup_id"] for line in told}) == len(told) == 3, key
    (pair,) = {(line["object"], line["to"]) for line in told}
    assert [name.rpartition("\\")[2] for name in pair] == ["moved", "moved;late"]
    after = boss.ask("GET", "/event-trail?kind=operator-acts&limit=1000").value["events"]
    assert after == before


def test_an_order_for_many_letters_is_one_line_with_their_number(
    running: PrivateQueueManager, boss: Program
) -> None:
    """Its later parts run in the turns of others, and still come from where it came."""
    running.run("purge", "DeadLetter$")
    boss.ask("POST", "/queues", {"name": "many"})
    running.run("send", "many", "--count", "7", "--body", "x", "--dead-letter")
    lines = Lines(running)
    for origin in (("127.0.0.1", "http"), ("local", "rpc")):
        running.run("purge", "many")
        lines.new()
        if origin[1] == "http":
            boss.ask("POST", "/dead-letters/resend", {"all": True})
        else:
            running.run("dead-letter", "resend", "--all")
        (line,) = lines.new()
        assert (line["origin"], line["protocol"]) == origin
        assert (line["action"], line["messages"], line["failed"]) == ("resend dead letter", 7, 0)
        assert line["object"].endswith(";DEADLETTER")


def test_an_order_tells_how_many_messages_it_has_removed(
    running: PrivateQueueManager, boss: Program
) -> None:
    """A message that a transaction or a lease holds is not among them, nor one that is gone."""
    boss.ask("POST", "/queues", {"name": "partly"})
    running.run("send", "partly", "--count", "4", "--body", "x")
    told = boss.ask("GET", "/queues/partly/messages?limit=9").value["messages"]
    boss.ask("POST", "/queues/partly/receive?max=1")
    lines = Lines(running)
    boss.ask("POST", "/queues/partly/move", {"to": "partly;late"})
    boss.ask("DELETE", f"/queues/partly;late/messages/{told[1]['lookup_id']}")
    boss.ask("DELETE", "/queues/partly;late/messages")
    assert [line["messages"] for line in lines.new()] == [3, 1, 2]


def test_who_may_not_order_is_told(running: PrivateQueueManager, boss: Program) -> None:
    sddl = "D:(A;;0xf003f;;;BA)"
    assert boss.ask("POST", "/queues", {"name": "guarded", "sddl": sddl}).status == 201
    mallory = Program(running.endpoint("console"), "mallory")
    host, port = running.endpoint("epm")
    words = ("--server", f"{host}:{port}", "--user", "mallory", "--password-stdin")
    lines, refused = Lines(running), "an operator was refused"
    for method, path, body, action in (
        ("DELETE", "/queues/guarded", None, "delete queue"),
        ("PATCH", "/queues/guarded", {"label": "x"}, "set properties"),
        ("PUT", "/queues/guarded/permissions", {"sddl": "D:(A;;0x2;;;WD)"}, "set permissions"),
        ("DELETE", "/queues/guarded/messages", None, "purge"),
        ("POST", "/accounts", {"name": "eve", "password": "x"}, "add account"),
        ("POST", "/queue-manager/compact", None, "compact"),
    ):
        answer = mallory.ask(method, path, body)
        told = lines.new(refused)
        assert (answer.status, len(told)) == (403, 1), (action, answer.value, told)
        line = told[0]
        assert (line["who"], line["action"], line["protocol"]) == ("mallory", action, "http")
    deleting = ("queue", "delete", "guarded", *words)
    assert running.run(*deleting, check=False, input="secret\n").returncode == 1
    (line,) = lines.new(refused)
    assert (line["who"], line["action"], line["origin"]) == ("mallory", "delete queue", host)
    kept = boss.ask("GET", "/event-trail?kind=operator-acts&limit=1000").value["events"]
    assert not [each for each in kept if each["more"]["who"] == "mallory"]


def bearer(running: PrivateQueueManager, name: str, *words: str) -> Program:
    """A program that shows a token of boss."""
    text = running.run("token", "create", name, "--account", "boss", *words).stdout.strip()
    program = Program(running.endpoint("console"))
    program.headers["Authorization"] = f"Bearer {text}"
    return program


def test_the_token_that_was_shown_is_named_and_never_told(
    running: PrivateQueueManager, boss: Program
) -> None:
    whole = bearer(running, "deployment")
    narrow = bearer(running, "meter", "--rights", "peek")
    lines = Lines(running)
    assert whole.ask("POST", "/queues", {"name": "deployed"}).status == 201
    (line,) = lines.new()
    assert (line["who"], line["token"], line["origin"]) == ("boss", "deployment", "127.0.0.1")
    assert narrow.ask("DELETE", "/queues/deployed").status == 403
    (line,) = lines.new("an operator was refused")
    assert (line["who"], line["token"], line["action"]) == ("boss", "meter", "delete queue")
    assert boss.ask("DELETE", "/queues/deployed").status == 204
    (line,) = lines.new()
    assert "token" not in line
    kept = boss.ask("GET", "/event-trail?kind=operator-acts&limit=1000").value["events"]
    named = [each["more"].get("token") for each in kept if each["about"].endswith("deployed")]
    assert named == ["deployment", None]
    for program in (whole, narrow):
        secret = program.headers["Authorization"].split("_", 2)[2]
        assert secret not in running.log + json.dumps(kept)
        program.close()


def test_a_token_that_is_refused_is_named_without_its_secret(
    running: PrivateQueueManager, boss: Program
) -> None:
    """The secret may have the character that stands in front of it."""
    for number in range(40):
        token = {"name": f"refused{number}", "account": "boss"}
        text = str(boss.ask("POST", "/tokens", token).value["token"])
        assert boss.ask("DELETE", f"/tokens/refused{number}").status == 204
        public, secret = text[:22], text[23:]
        if "_" in secret[8:]:
            break
    lines, stranger = Lines(running), Program(running.endpoint("console"))
    for shown in (text, f"Tr0ub4dor_{secret}"):
        stranger.headers["Authorization"] = f"Bearer {shown}"
        assert stranger.ask("GET", "/queues").status == 401
    refused = lines.new("a program could not log on")
    assert [line["account"] for line in refused] == [public, ""]
    assert secret[:8] not in running.log
    stranger.close()


def test_no_number_of_changes_hides_another_one(
    running: PrivateQueueManager, boss: Program
) -> None:
    assert boss.ask("POST", "/queues", {"name": "restless"}).status == 201
    lines = Lines(running)
    for number in range(250):
        assert boss.ask("PATCH", "/queues/restless", {"label": str(number)}).status == 200
    assert boss.ask("DELETE", "/queues/restless").status == 204
    told = lines.new()
    assert len(told) == 251
    assert not any("left_out" in line for line in told)


def test_who_purges_nothing_does_not_fill_the_log(
    running: PrivateQueueManager, boss: Program
) -> None:
    """That costs no commit (G324); a purge that removes something keeps its line."""
    assert boss.ask("POST", "/queues", {"name": "hollow"}).status == 201
    lines, began = Lines(running), time.monotonic()
    for _ in range(150):
        assert boss.ask("DELETE", "/queues/hollow/messages").status == 200
    told = [line for line in lines.new() if line["action"] == "purge"]
    at_most = LINES_AT_ONCE + LINES_PER_SECOND * (time.monotonic() - began) + 1
    assert 0 < len(told) <= at_most
    for _ in range(3):
        assert boss.ask("POST", "/queues/hollow/messages", b"x").status == 201
        assert boss.ask("DELETE", "/queues/hollow/messages").status == 200
    told = [line for line in lines.new() if line["action"] == "purge" and line["messages"]]
    assert [line["messages"] for line in told] == [1, 1, 1]


def test_who_may_only_look_does_not_fill_the_log(
    running: PrivateQueueManager, boss: Program
) -> None:
    sddl = "D:(A;;0xf003f;;;BA)"
    assert boss.ask("POST", "/queues", {"name": "looked-at", "sddl": sddl}).status == 201
    mallory = Program(running.endpoint("console"), "mallory")
    before, began = len(running.log), time.monotonic()
    for method in ("GET", "DELETE"):
        for _ in range(150):
            assert mallory.ask(method, "/queues/looked-at/messages").status == 403
    told = [line for line in running.log[before:].splitlines() if "mallory" in line]
    at_most = 3 * (LINES_AT_ONCE + LINES_PER_SECOND * (time.monotonic() - began) + 1)
    assert 0 < len(told) <= at_most
    mallory.close()


def test_who_may_not_send_a_dead_letter_where_it_goes_is_told(
    running: PrivateQueueManager, boss: Program
) -> None:
    for name in ("returned", "target"):
        assert boss.ask("POST", "/queues", {"name": name}).status == 201
    assert boss.ask("POST", "/queues/returned/messages", b"x").status == 201
    words = ("--account", "boss", "--rights", "peek,receive")
    text = running.run("token", "create", "reader", *words).stdout.strip()
    reader = Program(running.endpoint("console"))
    reader.headers["Authorization"] = f"Bearer {text}"
    lines = Lines(running)
    wanted = {"all": True, "queue": "returned", "to": "target"}
    told = reader.ask("POST", "/dead-letters/resend", wanted).value
    assert told["messages"] == 0
    (line,) = lines.new("an operator was refused")
    assert (line["who"], line["action"]) == ("boss", "resend dead letter")
    assert line["object"].endswith("target")
    reader.close()
