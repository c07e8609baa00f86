"""Whatever a command can do, a program can: what is not about the messages of one queue."""

import base64
import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.api.programs import Program
from tests.support.waiting import until

CONSOLE = ("--console-port", "0")
AWAY = r"DIRECT=OS:nowhere.invalid\private$\x"


def add_boss(running: PrivateQueueManager) -> None:
    words = ("user", "add", "boss", "--group", "administrators", "--password-stdin")
    running.run(*words, input="secret\n")


@pytest.fixture(scope="module")
def backups(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("backups")


@pytest.fixture(scope="module")
def running(backups: Path) -> Iterator[PrivateQueueManager]:
    storage = f'[storage]\nbackup_directory = "{backups}"\n'
    with private_queue_manager(CONSOLE, storage) as queue_manager:
        add_boss(queue_manager)
        yield queue_manager


@pytest.fixture
def boss(running: PrivateQueueManager) -> Iterator[Program]:
    program = Program(running.endpoint("console"), "boss")
    yield program
    program.close()


def dead(boss: Program, *bodies: bytes, queue: str = "orders") -> list[dict[str, object]]:
    """Dead letters that somebody has purged."""
    boss.ask("POST", "/queues", {"name": queue})
    for body in bodies:
        headers = {"Rpcqm-Dead-Letter": "true", "Rpcqm-Label": body.decode()}
        assert boss.ask("POST", f"/queues/{queue}/messages", body, headers).status == 201
    assert boss.ask("DELETE", f"/queues/{queue}/messages").status == 200
    letters = boss.ask("GET", "/dead-letters?limit=1000").value["messages"]
    return [each for each in letters if str(each["label"]).encode() in bodies]


def bodies(boss: Program, queue: str) -> list[str]:
    found = boss.ask("GET", f"/queues/{queue}/messages").value["messages"]
    return [base64.b64decode(each["body_base64"]).decode() for each in found]


def test_dead_letters_are_inspected_and_sent_again(boss: Program) -> None:
    one, two, three = dead(boss, b"one", b"two", b"three")
    told = boss.ask("GET", f"/dead-letters/{one['lookup_id']}").value
    assert (told["class"], told["reason"]) == (
        "NACK_Q_PURGED",
        "The queue was purged before the message was received.",
    )
    wanted = {"lookup_ids": [one["lookup_id"], "123456"]}
    sent = boss.ask("POST", "/dead-letters/resend", wanted)
    assert sent.status == 200, sent
    sent = sent.value
    assert (sent["messages"], sent["more"]) == (1, False)
    assert [(each["lookup_id"], each["code"]) for each in sent["failed"]] == [
        ("123456", "MQ_ERROR_MESSAGE_NOT_FOUND")
    ]
    assert bodies(boss, "orders") == ["one"]
    assert boss.ask("GET", f"/dead-letters/{one['lookup_id']}").status == 404
    boss.ask("POST", "/queues", {"name": "others"})
    other = {"all": True, "reason": "receive_timeout"}
    assert boss.ask("POST", "/dead-letters/resend", other).value["messages"] == 0
    rest = {"all": True, "reason": "NACK_Q_PURGED", "to": "others", "ttbr": 60}
    assert boss.ask("POST", "/dead-letters/resend", rest).value["messages"] == 2
    found = boss.ask("GET", "/queues/others/messages").value["messages"]
    assert sorted(each["label"] for each in found) == ["three", "two"]
    assert {each["ttbr"] for each in found} == {60}
    assert {two["label"], three["label"]} == {"two", "three"}
    for wrong in ({}, {"all": True, "lookup_ids": ["1"]}, {"lookup_ids": ["1"], "reason": "x"}):
        assert boss.ask("POST", "/dead-letters/resend", wrong).status == 400


def test_a_dead_letter_that_cannot_be_sent_stays(boss: Program) -> None:
    (letter,) = dead(boss, b"stays", queue="short-lived")
    assert boss.ask("DELETE", "/queues/short-lived").status == 204
    wanted = {"lookup_ids": [letter["lookup_id"]]}
    (failed,) = boss.ask("POST", "/dead-letters/resend", wanted).value["failed"]
    assert failed["code"] == "MQ_ERROR_QUEUE_NOT_FOUND"
    again = boss.ask("POST", "/dead-letters/resend", wanted | {"to": "orders"})
    assert again.value["messages"] == 1


def test_somebody_has_looked_at_the_dead_letters() -> None:
    with private_queue_manager(CONSOLE) as running:
        add_boss(running)
        boss = Program(running.endpoint("console"), "boss")
        boss.ask("POST", "/queues", {"name": "orders"})
        boss.ask("POST", "/queues/orders/messages", b"x", {"Rpcqm-Dead-Letter": "true"})
        boss.ask("DELETE", "/queues/orders/messages")
        assert boss.ask("GET", "/overview").value["dead_letters_unread"] == 1
        assert boss.ask("POST", "/dead-letters/acknowledge").value == {"messages": 1}
        running.restart()
        boss = Program(running.endpoint("console"), "boss")
        assert boss.ask("GET", "/overview").value["dead_letters_unread"] == 0


def test_tokens_are_made_used_listed_and_deleted(
    running: PrivateQueueManager, boss: Program
) -> None:
    wanted = {"name": "meter", "account": "boss", "rights": ["manage"], "life": 3600}
    made = boss.ask("POST", "/tokens", wanted)
    assert made.status == 201
    bearer = Program(running.endpoint("console"))
    bearer.headers["Authorization"] = f"Bearer {made.value['token']}"
    assert bearer.ask("GET", "/leases").status == 200
    assert bearer.ask("GET", "/tokens").status == 403
    (token,) = boss.ask("GET", "/tokens").value["tokens"]
    assert (token["name"], token["rights"], token["queues"]) == ("meter", ["manage"], None)
    assert token["expires"].endswith("Z")
    assert made.value["token"] not in str(token)
    assert boss.ask("DELETE", "/tokens/meter").status == 204
    assert bearer.ask("GET", "/leases").status == 401
    assert boss.ask("DELETE", "/tokens/meter").status == 404


def test_triggers_are_made_changed_listed_and_deleted(boss: Program) -> None:
    rule = {"queue": "orders", "label": "a*", "program": ["/bin/echo", "--", "{label}"]}
    made = boss.ask("POST", "/triggers", {"name": "shop", **rule})
    assert made.status == 201
    assert (made.value["mode"], made.value["program"]) == ("transaction", rule["program"])
    assert boss.ask("POST", "/triggers", {"name": "Shop", **rule}).status == 409
    changed = boss.ask("PUT", "/triggers/SHOP", {**rule, "enabled": False})
    assert (changed.status, changed.value["enabled"]) == (200, False)
    assert boss.ask("GET", "/triggers/shop").value == changed.value
    told = boss.ask("GET", "/triggers").value
    assert told == {"service": None, "triggers": [changed.value]}
    assert boss.ask("DELETE", "/triggers/shop").status == 204
    for method in ("GET", "DELETE"):
        assert boss.ask(method, "/triggers/shop").status == 404
    assert boss.ask("PUT", "/triggers/shop", rule).status == 404


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({"program": ["echo"]}, "whole path"),
        ({"program": ["/bin/sh", "-c", "{text}"]}, "would be a program"),
        ({"url": "https://example.org/"}, "one of"),
        ({"queue": ",;"}, "names no queue"),
    ],
)
def test_a_rule_that_is_wrong_is_told_in_words(
    boss: Program, members: dict[str, Any], said: str
) -> None:
    rule = {"name": "wrong", "queue": "orders", "program": ["/bin/true"]}
    refused = boss.ask("POST", "/triggers", {**rule, **members})
    assert (refused.status, refused.value["code"]) == (400, "MQ_ERROR_INVALID_PARAMETER")
    assert said in refused.value["detail"]


def test_open_transactions_and_who_holds_them_are_told(boss: Program) -> None:
    assert boss.ask("GET", "/transactions").value == {"transactions": []}


def test_transfers_to_elsewhere_are_told_with_their_connections(boss: Program) -> None:
    name = quote(AWAY, safe="")
    assert boss.ask("POST", f"/queues/-/messages?queue={name}", b"x").status == 201
    told = boss.ask("GET", f"/outgoing-queues/{name}/transfer").value
    assert (told["messages"], told["format_name"]) == (1, AWAY)
    assert set(told) >= {"connections", "unacknowledged", "resend_count"}
    assert boss.ask("GET", "/sessions").value["sessions"] == []
    assert boss.ask("GET", "/incoming-sequences").value == {"sequences": []}


def test_sessions_are_told_from_both_sides(running: PrivateQueueManager, boss: Program) -> None:
    boss.ask("POST", "/queues", {"name": "inbox"})
    host, port = running.endpoint("binary")
    peers = f'[binary]\npeers = "other={host}:{port}"\n'
    with private_queue_manager(CONSOLE, peers) as sender:
        add_boss(sender)
        theirs = Program(sender.endpoint("console"), "boss")
        away = r"DIRECT=OS:other\private$\inbox"
        name = quote(away, safe="")
        assert theirs.ask("POST", f"/queues/-/messages?queue={name}", b"x").status == 201
        until(lambda: boss.ask("GET", "/sessions").value["sessions"] != [])
        until(lambda: boss.ask("GET", "/sessions").value["sessions"][0]["received"] == 1)
        (there,) = theirs.ask("GET", "/sessions").value["sessions"]
        (here,) = boss.ask("GET", "/sessions").value["sessions"]
        assert (there["opened_here"], here["opened_here"]) == (True, False)
        assert (there["state"], here["state"]) == ("OPEN", "OPEN")
        assert (there["queues"], there["sent"], here["received"]) == ([away], 1, 1)
        connections = theirs.ask("GET", f"/outgoing-queues/{name}/transfer").value["connections"]
        assert connections[-1]["status"] == "ESTABLISHED"
        assert there["since"] <= here["since"]  # one machine, one clock
        until(lambda: theirs.ask("GET", "/sessions").value["sessions"][0]["waiting"] == 0)


def test_messages_over_http_are_told_as_sessions_from_both_sides() -> None:
    with (
        private_queue_manager(CONSOLE, "http_port = 0\n") as receiver,
        private_queue_manager(CONSOLE, "http_port = 0\n") as sender,
    ):
        for each in (receiver, sender):
            add_boss(each)
        ours = Program(receiver.endpoint("console"), "boss")
        ours.ask("POST", "/queues", {"name": "inbox"})
        place = "{}:{}".format(*receiver.endpoint("http"))
        away = f"DIRECT=HTTP://{place}/msmq/private$/inbox"
        sender.run("send", away, "--body", "x", "--count", "2")
        theirs = Program(sender.endpoint("console"), "boss")
        until(lambda: ours.ask("GET", "/queues/inbox").value["messages"] == 2)
        until(lambda: theirs.ask("GET", "/sessions").value["sessions"][0]["waiting"] == 0)
        (there,) = theirs.ask("GET", "/sessions").value["sessions"]
        (here,) = ours.ask("GET", "/sessions").value["sessions"]
        for each in (there, here):
            assert (each["protocol"], each["address"]) == ("http", "127.0.0.1")
            assert (each["state"], each["unacknowledged"], each["waiting"]) == ("OPEN", 0, 0)
            assert each["since"].endswith("Z")
        assert (there["opened_here"], there["queues"], there["sent"]) == (True, [away], 2)
        assert (here["opened_here"], here["queues"], here["received"]) == (False, [], 2)
        told = receiver.run("top", "--once", "--table", "sessions").stdout
        (row,) = [line.split() for line in told.splitlines() if line.startswith("127.0.0.1")]
        assert row[:4] == ["127.0.0.1", "http", "them", "OPEN"]


def test_the_machines_permissions_are_shown_and_set(boss: Program) -> None:
    sddl = boss.ask("GET", "/queue-manager/permissions").value["sddl"]
    assert "BA" in sddl
    assert boss.ask("PUT", "/queue-manager/permissions", {"sddl": sddl}).status == 204
    assert boss.ask("GET", "/queue-manager/permissions").value["sddl"] == sddl


def test_a_backup_is_made_and_the_store_compacted(boss: Program, backups: Path) -> None:
    told = boss.ask("POST", "/queue-manager/compact").value
    assert set(told) == {"bytes_before", "bytes_after"}
    wanted = {"directory": str(backups / "backup")}
    assert boss.ask("POST", "/queue-manager/backups", wanted).status == 204
    assert (backups / "backup").is_dir()
    again = boss.ask("POST", "/queue-manager/backups", wanted)
    assert (again.status, again.value["detail"] != "") == (409, True)
    assert boss.ask("POST", "/queue-manager/backups", {"directory": ""}).status == 400


def test_what_queues_do_is_counted(boss: Program) -> None:
    boss.ask("POST", "/queues", {"name": "counted"})
    boss.ask("POST", "/queues/counted/messages", b"x")
    told = boss.ask("GET", "/statistics").value
    (queue,) = (each for each in told["queues"] if each["name"].endswith("counted"))
    assert (queue["messages"], queue["entered"], queue["left"]) == (1, 1, 0)
    assert boss.ask("GET", "/public-queues").value == {"queues": []}
    assert boss.ask("GET", "/routing").value == {"sites": [], "queue_managers": [], "links": []}


def test_codes_are_explained_with_the_status_that_they_have(boss: Program) -> None:
    (told,) = boss.ask("GET", "/explanations/MQ_ERROR_QUEUE_NOT_FOUND").value["codes"]
    assert (told["value"], told["http_status"]) == (0xC00E0003, 404)
    assert boss.ask("GET", "/explanations/0xC00E0003").value["codes"] == [told]
    assert boss.ask("GET", "/explanations/nothing").status == 404


def test_what_operators_did_is_told_in_order(running: PrivateQueueManager, boss: Program) -> None:
    boss.ask("POST", "/accounts", {"name": "dave", "password": "x"})
    running.run("network", "disconnect")
    running.run("network", "connect")
    acts = boss.ask("GET", "/event-trail?kind=operator-acts&limit=1000").value["events"]
    told = [(each["more"]["action"], each["about"], each["more"]["origin"]) for each in acts]
    assert told[-3:] == [
        ("add account", "dave", "127.0.0.1"),
        ("disconnect", "the queue manager", "local"),
        ("connect", "the queue manager", "local"),
    ]
    host, port = running.endpoint("epm")
    words = ("--server", f"{host}:{port}", "--user", "boss", "--password-stdin")
    running.run("network", "connect", *words, input="secret\n")
    last = boss.ask("GET", "/event-trail?kind=operator-acts&limit=1000").value["events"][-1]
    assert (last["more"]["who"], last["more"]["origin"]) == ("boss", host)
    first = boss.ask("GET", "/event-trail?kind=operator-acts&limit=1").value
    assert first["next"] == first["events"][0]["id"]
    following = boss.ask("GET", f"/event-trail?kind=operator-acts&after={first['next']}").value
    assert following["events"][0] == acts[1]


def test_people_read_the_description_as_a_page_without_scripts(
    running: PrivateQueueManager,
) -> None:
    nobody = Program(running.endpoint("console"))
    for path in ("", "/"):
        told = nobody.ask("GET", path)
        assert told.status == 200
        text = told.body.decode()
        assert told.headers["Content-Type"] == "text/html; charset=utf-8"
        (policy,) = told.headers.get_all("Content-Security-Policy") or []
        assert "default-src 'none'" in policy
        assert "<script" not in text
        document = nobody.ask("GET", "/openapi.json").value
        for name in document["paths"]:
            assert f" {name}</code>" in text
        places = set(re.findall(r'href="?#([\w-]+)', text))
        assert {"queues", "refusals", "models", "Messages"} <= places
        assert all(f" id={each}>" in text for each in places)
        assert "integer, from 0 to 3600, 30 if it is left out" in text
        assert "<th scope=row>422 <code>MQ_ERROR_PROPERTIES_CONFLICT</code></th>" in text
        for model in document["components"]["schemas"]:
            assert f"<h3 id={model}>" in text
        style = text.partition("<style>")[2].partition("</style>")[0]
        digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
        assert f"style-src 'sha256-{digest}'" in policy
    assert nobody.ask("POST", "/").status == 405
