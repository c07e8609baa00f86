"""What programs do by /api/v1 with a queue manager that runs."""

import base64
import threading
from collections.abc import Iterator
from urllib.parse import quote
from uuid import UUID, uuid4

import pytest

from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.api.programs import Program, Told

CONSOLE = ("--console-port", "0")
SETTINGS = "[console]\nlongest_wait = 1\n"


@pytest.fixture(scope="module")
def running() -> Iterator[PrivateQueueManager]:
    with private_queue_manager(CONSOLE, SETTINGS) as queue_manager:
        rights = {"boss": ["administrators"], "viewer": ["observers"]}
        for name in ("boss", "peeker", "sender", "nobody", "viewer"):
            groups = rights.get(name, [])
            words = [word for group in groups for word in ("--group", group)]
            queue_manager.run("user", "add", name, *words, "--password-stdin", input="secret\n")
        yield queue_manager


@pytest.fixture
def boss(running: PrivateQueueManager) -> Iterator[Program]:
    program = Program(running.endpoint("console"), "boss")
    yield program
    program.close()


@pytest.fixture
def queue(boss: Program, request: pytest.FixtureRequest) -> Iterator[str]:
    name = f"q{abs(hash(request.node.name)) % 10**9}"
    assert boss.ask("POST", "/queues", {"name": name}).status == 201
    yield f"/queues/{name}"
    boss.ask("DELETE", f"/queues/{name}")


def received(told: Told) -> list[str]:
    assert told.status == 200, told
    return [base64.b64decode(each["body_base64"]).decode() for each in told.value["messages"]]


ANSWER = "{00000000-0000-0000-0000-000000000007}\\9"


def later(running: PrivateQueueManager, path: str, headers: dict[str, str]) -> threading.Thread:
    """Sends what somebody waits for by now."""

    def send() -> None:
        program = Program(running.endpoint("console"), "boss")
        program.ask("POST", f"{path}/messages", b"other")
        assert program.ask("POST", f"{path}/messages", b"late", headers).status == 201
        program.close()

    thread = threading.Timer(0.2, send)
    thread.start()
    return thread


def test_an_answer_is_received_by_its_correlation_identifier(
    running: PrivateQueueManager, boss: Program, queue: str
) -> None:
    path = f"{queue}/receive?correlation_id={quote(ANSWER)}"
    boss.ask("POST", f"{queue}/messages/batch", {"messages": [{}] * 130})
    assert received(boss.ask("POST", path)) == []
    sent = {"Rpcqm-Correlation-Id": ANSWER}
    sender = later(running, queue, sent)
    told = boss.ask("POST", f"{path}&wait=60")
    assert received(told) == ["late"], "at most console.longest_wait"
    sender.join()
    assert received(boss.ask("POST", path)) == [], "somebody has it"
    lease = told.value["messages"][0]["lease"]
    assert boss.ask("POST", f"/leases/{lease}/release").status == 204
    (again,) = boss.ask("POST", f"{path}&lease=0").value["messages"]
    assert ("lease" in again, again["delivery_count"]) == (False, 2)
    assert received(boss.ask("POST", f"{path}&wait=60&lease=0")) == []
    assert boss.ask("POST", f"{queue}/receive?correlation_id=x").status == 400
    assert len(received(boss.ask("POST", f"{queue}/receive?max=1000&lease=0"))) == 131


def test_a_peek_waits_for_what_may_come(
    running: PrivateQueueManager, boss: Program, queue: str
) -> None:
    path = f"{queue}/messages"
    assert received(boss.ask("GET", f"{path}?wait=60")) == [], "at most console.longest_wait"
    sender = later(running, queue, {})
    assert received(boss.ask("GET", f"{path}?wait=60")) == ["other"]
    sender.join()
    (first, last) = boss.ask("GET", path).value["messages"]
    assert received(boss.ask("GET", f"{path}?wait=60&after={first['lookup_id']}")) == ["late"]
    assert received(boss.ask("GET", f"{path}?wait=1&after={last['lookup_id']}")) == []


def test_a_move_to_a_subqueue_of_another_queue_is_refused_without_messages_too(
    boss: Program, queue: str
) -> None:
    assert boss.ask("POST", "/queues", {"name": "unrelated"}).status == 201
    for sent in range(2):
        told = boss.ask("POST", f"{queue}/move", {"to": "unrelated;late"})
        assert (told.status, told.code) == (400, "STATUS_INVALID_PARAMETER"), sent
        assert boss.ask("POST", f"{queue}/messages", b"x").status == 201
    boss.ask("DELETE", "/queues/unrelated")


@pytest.mark.parametrize("number", ["%2B5", "+5", "%205", "5%20", "5.0", "1_0", "05", "%EF%BC%95"])
def test_numbers_are_written_in_one_way(boss: Program, queue: str, number: str) -> None:
    for path in (f"{queue}/messages?limit={number}", f"/event-trail?limit={number}"):
        told = boss.ask("GET", path)
        assert (told.status, told.value["detail"]) == (
            400,
            "limit: a whole number in decimal digits is wanted",
        )
    headers = {"Rpcqm-Priority": number}
    assert boss.ask("POST", f"{queue}/messages", b"", headers).status == 400
    assert boss.ask("GET", f"{queue}/messages").value["messages"] == []


def test_a_message_is_sent_with_its_properties_in_headers(boss: Program, queue: str) -> None:
    headers = {
        "Rpcqm-Label": "Gr%C3%BC%C3%9Fe",
        "Rpcqm-Priority": "6",
        "Rpcqm-Acknowledgements": "arrival, no-receive",
        "Rpcqm-Recoverable": "false",
        "Rpcqm-Correlation-Id": "{00000000-0000-0000-0000-000000000007}\\9",
        "Content-Type": "text/plain",
    }
    sent = boss.ask("POST", f"{queue}/messages", b"\x00body\xff", headers)
    assert sent.status == 201
    assert list(sent.value) == ["id"]
    (message,) = boss.ask("GET", f"{queue}/messages").value["messages"]
    assert message["id"] == sent.value["id"]
    assert base64.b64decode(message["body_base64"]) == b"\x00body\xff"
    shown = {name: message[name] for name in ("label", "priority", "delivery", "acknowledgements")}
    assert shown == {
        "label": "Grüße",
        "priority": 6,
        "delivery": "express",
        "acknowledgements": ["arrival", "no-receive"],
    }
    assert message["correlation_id"] == "{00000000-0000-0000-0000-000000000007}\\9"
    assert boss.ask("GET", f"{queue}/messages/{message['lookup_id']}").value == message
    body = boss.ask("GET", f"{queue}/messages/{message['lookup_id']}/body")
    assert (body.body, body.headers["Content-Type"]) == (
        b"\x00body\xff",
        "application/octet-stream",
    )


def test_several_messages_are_sent_at_once_and_peeked_at_in_pages(
    boss: Program, queue: str
) -> None:
    wanted = [{"body_base64": base64.b64encode(text).decode()} for text in (b"a", b"b", b"c")]
    sent = boss.ask("POST", f"{queue}/messages/batch", {"messages": wanted})
    assert (sent.status, len(sent.value["ids"])) == (201, 3)
    first = boss.ask("GET", f"{queue}/messages?limit=2")
    assert received(first) == ["a", "b"]
    last = boss.ask("GET", f"{queue}/messages?limit=2&after={first.value['next']}")
    assert (received(last), last.value["next"]) == (["c"], None)


def test_a_message_is_received_with_a_lease_and_completed(boss: Program, queue: str) -> None:
    boss.ask("POST", f"{queue}/messages", b"work")
    (message,) = boss.ask("POST", f"{queue}/receive?lease=30&max=10").value["messages"]
    assert message["delivery_count"] == 1
    assert message["lease_expires"].endswith("Z")
    assert received(boss.ask("POST", f"{queue}/receive")) == []
    lease = f"/leases/{message['lease']}"
    assert boss.ask("POST", f"{lease}/extend?lease=60").value["lease"] == message["lease"]
    assert message["lease"] in [
        each["lease"] for each in boss.ask("GET", "/leases").value["leases"]
    ]
    assert boss.ask("POST", f"{lease}/release").status == 204
    (again,) = boss.ask("POST", f"{queue}/receive").value["messages"]
    assert again["delivery_count"] == 2
    assert boss.ask("POST", f"{lease}/complete").status == 410
    assert boss.ask("POST", f"/leases/{again['lease']}/complete").status == 204
    assert boss.ask("GET", queue).value["messages"] == 0


def test_without_a_lease_a_message_is_removed_at_once(
    running: PrivateQueueManager, boss: Program, queue: str
) -> None:
    boss.ask("POST", f"{queue}/messages", b"gone")
    told = boss.ask("POST", f"{queue}/receive?lease=0")
    assert received(told) == ["gone"]
    assert "lease" not in told.value["messages"][0]
    assert boss.ask("GET", queue).value["messages"] == 0


def test_a_receive_waits_as_long_as_it_may_and_no_longer(
    running: PrivateQueueManager, boss: Program, queue: str
) -> None:
    assert received(boss.ask("POST", f"{queue}/receive?wait=3600")) == []
    other = Program(running.endpoint("console"), "boss")
    sending = threading.Thread(target=other.ask, args=("POST", f"{queue}/messages", b"late"))
    sending.start()
    assert received(boss.ask("POST", f"{queue}/receive?wait=1&lease=0")) == ["late"]
    sending.join()


def test_what_a_program_that_has_gone_was_to_receive_stays(
    running: PrivateQueueManager, boss: Program, queue: str
) -> None:
    other = Program(running.endpoint("console"), "boss")
    path = f"/api/v1{queue}/receive?wait=60&lease=0"
    other.connection.request("POST", path, headers=other.headers)
    boss.ask("GET", queue)
    other.close()
    for _ in range(3):  # so that the end of the connection is seen before what follows
        boss.ask("GET", queue)
    boss.ask("POST", f"{queue}/messages", b"kept")
    assert received(boss.ask("POST", f"{queue}/receive?wait=1&lease=0")) == ["kept"]


def test_a_request_under_a_key_is_done_once(boss: Program, queue: str) -> None:
    key = {"Idempotency-Key": "order-7"}
    first = boss.ask("POST", f"{queue}/messages", b"once", key)
    assert boss.ask("POST", f"{queue}/messages", b"once", key).value == first.value
    other = boss.ask("POST", f"{queue}/messages", b"twice", key)
    assert other.status == 422
    label = boss.ask("POST", f"{queue}/messages", b"once", key | {"Rpcqm-Label": "x"})
    assert label.status == 422
    assert boss.ask("GET", queue).value["messages"] == 1


def test_leases_are_completed_and_messages_sent_in_one_transaction(
    boss: Program, queue: str
) -> None:
    boss.ask("POST", f"{queue}/messages", b"question")
    (message,) = boss.ask("POST", f"{queue}/receive").value["messages"]
    name = queue.rpartition("/")[2]
    answer = {"queue": name, "label": "answer"}
    refused = {"complete": [message["lease"]], "send": [answer, {"queue": "not-there"}]}
    assert boss.ask("POST", "/transactions", refused).status == 404
    assert boss.ask("GET", queue).value["messages"] == 1
    done = boss.ask("POST", "/transactions", {"complete": [message["lease"]], "send": [answer]})
    assert (done.status, len(done.value["ids"])) == (201, 1)
    labels = [each["label"] for each in boss.ask("GET", f"{queue}/messages").value["messages"]]
    assert labels == ["answer"]


def test_messages_are_moved_exported_imported_and_purged(boss: Program, queue: str) -> None:
    boss.ask("POST", f"{queue}/messages", b"one")
    boss.ask("POST", f"{queue}/messages", b"two")
    one, two = boss.ask("GET", f"{queue}/messages").value["messages"]
    packet = boss.ask("GET", f"{queue}/messages/{one['lookup_id']}/packet").body
    late = f"{queue.rpartition('/')[2]};late"
    moved = boss.ask("POST", f"{queue}/move", {"to": late, "lookup_ids": [one["lookup_id"]]})
    assert (moved.value["messages"], moved.value["ended"]) == (1, True)
    assert received(boss.ask("GET", f"/queues/{late}/messages")) == ["one"]
    assert boss.ask("POST", f"{queue}/import", packet).status == 201
    taken = boss.ask("DELETE", f"{queue}/messages/{two['lookup_id']}")
    assert taken.value["id"] == two["id"]
    assert received(boss.ask("GET", f"{queue}/messages")) == ["one"]
    assert boss.ask("DELETE", f"{queue}/messages").value == {"messages": 1}
    assert boss.ask("POST", f"{queue}/move", {"to": "other"}).status == 404


def test_queues_are_made_changed_and_deleted(boss: Program) -> None:
    wanted = {"name": "bills", "transactional": True, "label": "Bills", "quota": 100}
    made = boss.ask("POST", "/queues", wanted)
    assert made.status == 201
    assert {name: made.value[name] for name in wanted} == wanted
    again = boss.ask("POST", "/queues", wanted)
    assert (again.status, again.code) == (409, "MQ_ERROR_QUEUE_EXISTS")
    changes = {"label": "Paid", "quota": -1, "journal": True, "max_deliveries": 5, "trail": True}
    changes |= {"journal_max_age": 60, "journal_max_messages": 7}
    changed = boss.ask("PATCH", "/queues/bills", changes).value
    assert {name: changed[name] for name in changes} == changes | {"quota": None}
    assert changed == boss.ask("GET", "/queues/bills").value
    sddl = "O:BAG:BAD:(A;;CCDCLC;;;WD)(A;;0xf003f;;;BA)"
    assert boss.ask("PUT", "/queues/bills/permissions", {"sddl": sddl}).status == 204
    assert "WD" in boss.ask("GET", "/queues/bills/permissions").value["sddl"]
    names = [each["name"] for each in boss.ask("GET", "/queues?after=bilk").value["queues"]]
    assert "bills" in names
    assert boss.ask("DELETE", "/queues/bills").status == 204
    assert boss.ask("GET", "/queues/bills").status == 404


def test_a_queue_is_named_by_a_format_name_too(boss: Program, queue: str) -> None:
    name = boss.ask("GET", queue).value["format_name"]
    quoted = name.replace("\\", "%5C")
    assert boss.ask("POST", f"/queues/-/messages?queue={quoted}", b"x").status == 201
    assert boss.ask("GET", f"/queues/-?queue={quoted}").value["messages"] == 1
    away = "DIRECT=OS:other%5Cprivate$%5Cx"
    assert boss.ask("POST", f"/queues/-/messages?queue={away}", b"x").status == 201
    waiting = boss.ask("GET", "/outgoing-queues").value["outgoing_queues"]
    assert [each["messages"] for each in waiting if "other" in each["format_name"]] == [1]
    paused = boss.ask("POST", f"/outgoing-queues/{away}/pause").value
    assert paused["state"] == "ONHOLD"
    assert boss.ask("POST", f"/outgoing-queues/{away}/resume").value["state"] != "ONHOLD"
    purged = boss.ask("DELETE", f"/queues/-/messages?queue={away}")
    assert purged.value == {"messages": 1}
    assert boss.ask("GET", "/dead-letters?limit=10").status == 200


def test_accounts_and_the_queue_manager_are_managed(
    running: PrivateQueueManager, boss: Program
) -> None:
    added = boss.ask("POST", "/accounts", {"name": "carol", "password": "first"})
    assert (added.status, added.value["groups"]) == (201, ["users"])
    carol = Program(running.endpoint("console"), "carol", "second")
    assert carol.ask("GET", "/leases").status == 401
    assert boss.ask("PUT", "/accounts/carol/password", {"password": "second"}).status == 204
    assert carol.ask("GET", "/leases").status == 200
    assert "carol" in [each["name"] for each in boss.ask("GET", "/accounts").value["accounts"]]
    assert boss.ask("DELETE", "/accounts/carol").status == 204
    assert carol.ask("GET", "/leases").status == 401
    assert boss.ask("DELETE", "/accounts/carol").status == 404
    assert boss.ask("GET", "/queue-manager").value["name"] == running.ready.name
    assert boss.ask("PATCH", "/queue-manager", {"connected": False}).value["connected"] is False
    assert boss.ask("PATCH", "/queue-manager", {"connected": True}).value["connected"] is True


def test_a_message_is_traced(boss: Program, queue: str) -> None:
    boss.ask("PATCH", queue, {"trail": True})
    sent = boss.ask("POST", f"{queue}/messages", b"x").value["id"]
    quoted = sent.replace("{", "%7B").replace("}", "%7D").replace("\\", "%5C")
    told = boss.ask("GET", f"/message-traces/{quoted}").value
    assert [each["event"] for each in told["events"]] == ["arrived"]
    assert [each["state"] for each in told["places"]] == ["waiting"]


def test_what_was_sent_is_there_after_a_kill(tmp_path_factory: pytest.TempPathFactory) -> None:
    with private_queue_manager(CONSOLE) as running:
        running.run(
            "user", "add", "boss", "--group", "administrators", "--password-stdin", input="secret\n"
        )
        boss = Program(running.endpoint("console"), "boss")
        boss.ask("POST", "/queues", {"name": "orders"})
        key = {"Idempotency-Key": "k"}
        sent = boss.ask("POST", "/queues/orders/messages", b"durable", key)
        boss.ask("POST", "/queues/orders/receive?lease=3600")
        running.kill()
        running.start()
        boss = Program(running.endpoint("console"), "boss")
        assert boss.ask("POST", "/queues/orders/messages", b"durable", key).value == sent.value
        assert received(boss.ask("POST", "/queues/orders/receive")) == ["durable"]


# Who may do what

PERMISSIONS = "O:BAG:BAD:(A;;0x22;;;{peeker})(A;;0x24;;;{sender})(A;;0xf003f;;;BA)"
"""0x22 peeks and sees properties, 0x24 sends and sees properties."""
ALLOWED = {
    "peeker": {"show_queue", "peek_messages", "peek_message", "peek_body", "export_message"},
    "sender": {"show_queue", "send_message", "send_messages", "schedule_message"},
    "nobody": set(),
}
OWN = {
    "explain_code",
    "list_leases",
    "list_scheduled_messages",
    "cancel_scheduled_message",
    "complete_lease",
    "release_lease",
    "extend_lease",
    "work",
    "search_messages",
    "go_on_with_order",
    "stop_order",
}
"""Everybody has leases and orders of their own and may know what codes mean, transactions are about
queues that they name, and a search finds what each may peek."""
BODIES: dict[str, object] = {
    "change_machine": {"connected": True},
    "change_queue": {"label": "changed"},
    "rename_queue": {"name": "mine"},
    "schedule_message": {"not_before": "2035-01-01T00:00Z"},
    "set_permissions": {"sddl": "D:(A;;0x2;;;WD)"},
    "change_permission_entries": {"changes": [{"action": "deny", "who": "everyone"}]},
    "set_machine_permissions": {"sddl": "D:(A;;0x2;;;WD)"},
    "make_backup": {"directory": "/nowhere/to/be/made"},
    "resend_dead_letters": {"all": True},
    "create_token": {"name": "mallory", "account": "boss"},
    "create_trigger": {"name": "t", "queue": "guarded", "send_to": "elsewhere"},
    "change_trigger": {"queue": "guarded", "send_to": "elsewhere"},
    "send_message": b"x",
    "send_messages": {"messages": [{}]},
    "move_messages": {"to": "guarded;late"},
    "copy_messages": {"to": "guarded", "all": True},
    "resend_messages": {"to": "guarded", "all": True},
    "go_on_with_order": {"step": 0},
    "add_account": {"name": "mallory", "password": "x"},
    "set_password": {"password": "x"},
    "work": {"send": [{"queue": "guarded"}]},
}


EMPTY_LOOKS = {
    (404, "show_outgoing"),
    (404, "show_transfer"),
    (404, "inspect_dead_letter"),
    (404, "show_trigger"),
}
"""What a look finds nothing of here."""


@pytest.fixture(scope="module")
def guarded(running: PrivateQueueManager) -> str:
    boss = Program(running.endpoint("console"), "boss")
    sids = {each["name"]: each["sid"] for each in boss.ask("GET", "/accounts").value["accounts"]}
    sddl = PERMISSIONS.format(**sids)
    assert boss.ask("POST", "/queues", {"name": "guarded", "sddl": sddl}).status == 201
    boss.ask("POST", "/queues/guarded/messages", b"x")
    told: str = boss.ask("GET", "/queues/guarded/messages").value["messages"][0]["lookup_id"]
    return told


@pytest.mark.parametrize("account", ALLOWED)
def test_an_account_may_do_of_the_whole_interface_what_its_rights_say(
    running: PrivateQueueManager, guarded: str, account: str
) -> None:
    program = Program(running.endpoint("console"), account)
    document = program.ask("GET", "/openapi.json").value
    done = set()
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            name = operation["operationId"]
            status = _tried(program, path, method.upper(), name, guarded)
            if name in OWN - {"work"}:
                assert status in (200, 404, 410), (name, status)
            elif status != 403:
                assert status < 300, (name, status)
                done.add(name)
    expected = ALLOWED[account] | ({"work"} if account == "sender" else set())
    # what the descriptor of the machine lets all users do
    of_all = {"create_queue", "show_machine_permissions", "explain_machine_access"}
    assert done == expected | of_all


def test_who_may_only_look_sees_the_whole_interface_and_changes_nothing(
    running: PrivateQueueManager, guarded: str
) -> None:
    """G654; `work` without a queue that is sent to, and what is about own leases, does nothing."""
    program = Program(running.endpoint("console"), "viewer")
    document = program.ask("GET", "/openapi.json").value
    before = program.ask("GET", "/queues").value
    names: dict[str, set[str]] = {"get": set(), "refused": set()}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            name = operation["operationId"]
            status = _tried(program, path, method.upper(), name, guarded)
            if method == "get":
                assert status < 300 or (status, name) in EMPTY_LOOKS, (name, status)
            elif name not in OWN - {"work"}:
                assert status == 403 or (status, name) == (404, "change_trigger"), (name, status)
                names["refused"].add(name)
    assert names["refused"] >= {"work", "add_account", "acknowledge_dead_letters", "purge_queue"}
    assert program.ask("GET", "/queues").value == before


def _tried(program: Program, path: str, method: str, name: str, lookup_id: str) -> int:
    values = {
        "{name}": "guarded",
        "{lookup_id}": lookup_id,
        "{lease}": "x",
        "{account}": "everyone",
        "{opened}": "handle-1",
        "{connection}": "connection-1",
        "{code}": "MQ_OK",
        "{id}": "%7B00000000-0000-0000-0000-000000000000%7D%5C1",
    }
    for part, value in values.items():
        path = path.replace(part, value)
    body = {"name": uuid4().hex} if name == "create_queue" else BODIES.get(name)
    return program.ask(method, path.removeprefix("/api/v1"), body).status


def test_messages_have_the_members_that_the_description_has(boss: Program, queue: str) -> None:
    boss.ask("POST", f"{queue}/messages", b"x")
    (message,) = boss.ask("POST", f"{queue}/receive").value["messages"]
    schema = boss.ask("GET", "/openapi.json").value["components"]["schemas"]["Message"]
    assert message.keys() <= schema["properties"].keys()
    assert set(schema["required"]) <= message.keys()


def with_token(running: PrivateQueueManager, text: str) -> Program:
    program = Program(running.endpoint("console"))
    program.headers["Authorization"] = f"Bearer {text}"
    return program


def test_a_token_opens_what_it_is_for_and_nothing_else(
    running: PrivateQueueManager, boss: Program, queue: str
) -> None:
    name = queue.removeprefix("/queues/")
    assert boss.ask("POST", f"{queue}/messages", b"one").status == 201
    words = ("--account", "boss", "--rights", "peek", "--queues", name)
    text = running.run("token", "create", "meter", *words).stdout.strip()
    program = with_token(running, text)
    assert program.ask("GET", f"{queue}/messages").status == 200
    for method, path in (
        ("POST", f"{queue}/messages"),
        ("POST", f"{queue}/receive?lease=0"),
        ("DELETE", queue),
        ("GET", "/accounts"),
    ):
        assert program.ask(method, path, b"" if method == "POST" else None).status == 403
    running.run("token", "delete", "meter")
    assert program.ask("GET", f"{queue}/messages").status == 401
    program.close()


def test_guessed_tokens_are_refused_and_slowed(running: PrivateQueueManager) -> None:
    text = running.run("token", "create", "guessed", "--account", "nobody").stdout.strip()
    program = with_token(running, f"{text[:-1]}{'A' if text[-1] != 'A' else 'B'}")
    told = [program.ask("GET", "/queue-manager").status for _ in range(7)]
    assert told[0] == 401
    assert told[-1] == 429
    program.close()


def test_a_program_chooses_where_its_dead_letters_go(boss: Program, queue: str) -> None:
    boss.ask("POST", "/queues", {"name": "mine", "sddl": "D:(D;;0x4;;;AN)(A;;0xf003b;;;BA)"})
    boss.ask("POST", "/queues", {"name": "undelivered"})
    send, chosen = f"{queue}/messages", "Rpcqm-Dead-Letter-Queue"
    assert boss.ask("POST", send, b"lost", {chosen: "undelivered"}).status == 201
    assert boss.ask("DELETE", send).value == {"messages": 1}
    (dead,) = boss.ask("GET", "/queues/undelivered/messages").value["messages"]
    assert (dead["body"], dead["class"]) == ("lost", "NACK_Q_PURGED")
    assert boss.ask("POST", send, b"x", {chosen: "nowhere"}).status == 404
    assert boss.ask("POST", send, b"x", {chosen: "DeadLetter$"}).status == 400
    assert boss.ask("POST", send, b"x", {chosen: "mine"}).status == 403
    batch = {"messages": [{"dead_letter_queue": "nowhere"}]}
    assert boss.ask("POST", f"{send}/batch", batch).status == 404


def test_a_body_is_not_encrypted_by_a_direct_name(boss: Program, queue: str) -> None:
    told = boss.ask("POST", f"{queue}/messages", b"x", {"Rpcqm-Encrypt": "true"})
    assert (told.status, told.code) == (400, "MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION")
    assert boss.ask("GET", queue).value["messages"] == 0


def test_queues_to_elsewhere_and_traces_have_paths_that_no_client_changes(boss: Program) -> None:
    """A backslash in a path becomes a slash in some clients and proxies, encoded or not."""
    there = "DIRECT=OS:unchanged\\private$\\q"
    sent = boss.ask("POST", f"/queues/-/messages?queue={quote(there, safe='')}", {"text": "a"})
    assert sent.status == 201, sent
    asked = f"queue={quote(there, safe='')}"
    known = boss.ask("GET", f"/outgoing-queues/{quote(there, safe='')}").value
    assert boss.ask("GET", f"/outgoing-queues/-?{asked}").value["oldest"] == known["oldest"]
    transfer = boss.ask("GET", f"/outgoing-queues/-/transfer?{asked}").value
    assert transfer["format_name"] == known["format_name"]
    assert boss.ask("POST", f"/outgoing-queues/-/pause?{asked}").value["state"] == "ONHOLD"
    assert boss.ask("POST", f"/outgoing-queues/-/resend?{asked}").status == 200
    assert boss.ask("POST", f"/outgoing-queues/-/resume?{asked}").value["state"] != "ONHOLD"
    guid, _, number = sent.value["id"].partition("\\")
    digits = UUID(guid).bytes_le.hex() + int(number).to_bytes(4, "little").hex()
    (place,) = boss.ask("GET", f"/message-traces/{digits}").value["places"]
    assert place["queue"] == there
