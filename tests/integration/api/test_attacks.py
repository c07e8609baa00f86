"""Strangers, and programs with mistakes, at the port of /api/v1."""

import base64
import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rpcqm.operations.messages import LONGEST_KEY
from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.api.programs import Program
from tests.support.certificates import write_tls_files
from tests.support.waiting import PATIENCE

CONSOLE = ("--console-port", "0")
AUTHORIZATION = "Basic " + base64.b64encode(b"boss:secret").decode()
LAZY = {"aiohttp", "jinja2", "opentelemetry", "prometheus_client", "pydantic", "textual"}
"""What takes long to import, and is for those who ask."""
LOADED = "import sys; from rpcqm.service.run import serve; print('aiohttp' in sys.modules)"


def add_boss(running: PrivateQueueManager) -> None:
    words = ("user", "add", "boss", "--group", "administrators", "--password-stdin")
    running.run(*words, input="secret\n")


@pytest.fixture(scope="module")
def running() -> Iterator[PrivateQueueManager]:
    settings = '[console]\nallow_hosts = ["queues.example.com"]\nlongest_wait = 1\n'
    with private_queue_manager(CONSOLE, settings) as queue_manager:
        add_boss(queue_manager)
        program = Program(queue_manager.endpoint("console"), "boss")
        program.ask("POST", "/queues", {"name": "orders"})
        program.close()
        yield queue_manager


@pytest.fixture
def boss(running: PrivateQueueManager) -> Iterator[Program]:
    program = Program(running.endpoint("console"), "boss")
    yield program
    program.close()


def raw(running: PrivateQueueManager, request: bytes) -> bytes:
    """Everything that is answered to octets, until the connection is closed."""
    with socket.create_connection(running.endpoint("console"), PATIENCE) as connection:
        connection.sendall(request)
        parts = []
        while part := connection.recv(1 << 16):
            parts.append(part)
        return b"".join(parts)


def status_of(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


def head(line: str, *headers: str, host: str = "localhost") -> bytes:
    lines = [
        f"{line} HTTP/1.1",
        f"Host: {host}",
        f"Authorization: {AUTHORIZATION}",
        "Connection: close",
    ]
    return "\r\n".join([*lines, *headers, "", ""]).encode("latin-1")


ANYTHING = [
    head("GET /api/v1/queues"),
    head("GET /api/v1/queues", host="evil.example.com"),
    head("GET /nothing"),
    head("PROPFIND /api/v1/queues"),
    b"GET /api/v1/queues HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    b"nonsense\r\n\r\n",
    head("GET /healthz"),
]


@pytest.mark.parametrize("request_", ANYTHING)
def test_every_answer_forbids_scripts_and_guessing_and_sets_no_cookie(
    running: PrivateQueueManager, request_: bytes
) -> None:
    answer = raw(running, request_).partition(b"\r\n\r\n")[0].lower()
    assert b"content-security-policy: default-src 'none'" in answer
    assert b"x-content-type-options: nosniff" in answer
    assert b"set-cookie" not in answer
    assert b"\r\nserver:" not in answer


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("mine.localhost:15680", 200),
        ("127.0.0.1", 200),
        ("[::1]:15680", 200),
        ("QUEUES.example.com", 200),
        ("evil.example.com", 403),
        ("localhost.evil.example.com", 403),
        ("127.0.0.1.evil.example.com", 403),
        ("evil.example.com#localhost", 403),
        ("localhost@evil.example.com", 403),
        ("", 403),
        ("[", 403),
    ],
)
def test_only_names_of_this_host_are_answered(
    running: PrivateQueueManager, host: str, status: int
) -> None:
    assert status_of(raw(running, head("GET /api/v1/leases", host=host))) == status


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("http://LOCALHOST", 200),
        ("https://localhost", 403),
        ("https://queues.example.com", 403),
        ("https://queues.example.com:8443", 403),
        ("http://localhost:8080", 403),
        ("http://mine.localhost", 403),
        ("http://198.51.100.7", 403),
        ("http://[2001:db8::1]", 403),
        ("https://evil.example.com", 403),
        ("null", 403),
    ],
)
def test_pages_of_other_hosts_may_not_ask(
    running: PrivateQueueManager, origin: str, status: int
) -> None:
    assert status_of(raw(running, head("GET /api/v1/leases", f"Origin: {origin}"))) == status


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("http://queues.example.com:15680", 200),
        ("http://QUEUES.example.com:15680", 200),
        ("https://queues.example.com:15680", 403),
        ("http://queues.example.com", 403),
        ("http://queues.example.com:8080", 403),
        ("http://queues.example.com:15680.evil.example", 403),
        ("http://evil@queues.example.com:15680", 403),
    ],
)
def test_pages_of_other_ports_of_our_own_name_may_not_ask(
    running: PrivateQueueManager, origin: str, status: int
) -> None:
    """A browser shows them the password, or the ticket, that it keeps for us (G325)."""
    line, host = "POST /api/v1/queues/orders/messages", "queues.example.com:15680"
    answer = raw(running, head(line, f"Origin: {origin}", "Content-Length: 0", host=host))
    assert status_of(answer) == (201 if status == 200 else status)


def test_two_hosts_in_one_request_are_refused(running: PrivateQueueManager) -> None:
    answer = raw(running, head("GET /api/v1/leases", "Host: evil.example.com"))
    assert status_of(answer) in (400, 403)


@pytest.mark.parametrize(
    ("line", "allowed"),
    [
        ("HEAD /healthz", b"GET"),
        ("OPTIONS /api/v1/queues?limit=1", b"GET, POST"),
        ("TRACE /api/v1/queues", b"GET, POST"),
        ("OPTIONS /api/v1/queues/orders%2F", b"GET, PATCH, DELETE"),
        ("PUT /api/v1/leases/x/extend", b"POST"),
        ("OPTIONS /console", b"GET, POST"),
        ("OPTIONS /api/v1/%ff", b"GET, POST, PUT, PATCH, DELETE"),
    ],
)
def test_other_methods_are_refused_with_those_that_are_served(
    running: PrivateQueueManager, line: str, allowed: bytes
) -> None:
    answer = raw(running, head(line))
    assert status_of(answer) == 405
    assert b"\r\nAllow: %s\r\n" % allowed in answer


def test_two_logons_in_one_request_are_refused(running: PrivateQueueManager) -> None:
    answer = raw(running, head("GET /api/v1/leases", f"Authorization: {AUTHORIZATION}"))
    assert status_of(answer) == 400


@pytest.mark.parametrize(
    "target",
    [
        "/api/v1/queues/../accounts",
        "/api/v1//queues",
        "/api/v1/queues/",
        "/api/v1/./queues",
        "/api/v1/%2e%2e/healthz",
        "/api/v1x",
        "/API/v1/queues",
        "/api/v1/queues/orders/messages/1/body/../..",
        "http://localhost/api/v1/queues",
        "/api/v1/queues/orders%2Fmessages",
        "/api/v1/queues/%00",
        "/api/v1/queues/%ff",
        "/api/v1/queues/orders%",
        "/api/v1/queues/%u006f",
        "/api/v1/queues/" + "a" * 5000,
        "/api/v1/queues/orders/messages/99999999999999999999999",
        "/api/v1/queues/orders/messages/-1",
        "/api/v1/queues/orders/messages/%D9%A1",
    ],
)
def test_odd_targets_are_refused(running: PrivateQueueManager, target: str) -> None:
    assert status_of(raw(running, head(f"GET {target}"))) in (400, 404)


@pytest.mark.parametrize(
    "query",
    [
        "?limit=0",
        "?limit=1001",
        "?limit=ten",
        "?limit=1&limit=2",
        "?after=x",
        "?unknown=1",
        "?limit=" + "9" * 5000,
        "?" + "&".join(f"a{n}=1" for n in range(33)),
        "?queue=%ff",
        "?queue=orders%",
        "?queue=orders%2",
        "?queue=orders%zz",
        "?queue=",
        "?queue=NONSENSE=1",
    ],
)
def test_parameters_that_cannot_be_are_refused(boss: Program, query: str) -> None:
    told = boss.ask("GET", f"/queues/orders/messages{query}")
    assert told.status == 400
    assert told.headers["Content-Type"] == "application/problem+json"
    assert told.code.startswith("MQ_ERROR_")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"messages": []}',
        b'{"messages": [{"unknown": 1}]}',
        b'{"messages": [{"priority": 8}]}',
        b'{"messages": [{"priority": "3"}]}',
        b'{"messages": [{"priority": ' + b"9" * 10_000 + b"}]}",
        b'{"messages": [{"priority": 1e400}]}',
        b'{"messages": [{"priority": NaN}]}',
        b'{"messages": [{"body_base64": "*"}]}',
        b'{"messages": [{"label": "\\ud800"}]}',
        b'{"messages": ' + b"[" * 100_000,
        b'{"messages": [' + b"{}," * 1000 + b"{}]}",
        b"\xff\xfe{",
        b'{"messages": [{"label": "a", "label": "b"}]}',
        b'{"messages": [{"label": "a\\u0000b"}]}',
    ],
    ids=range(18),
)
def test_json_that_cannot_be_is_refused_and_nothing_is_sent(boss: Program, body: bytes) -> None:
    before = boss.ask("GET", "/queues/orders").value["messages"]
    told = boss.ask("POST", "/queues/orders/messages/batch", body)
    assert told.status == 400
    assert boss.ask("GET", "/queues/orders").value["messages"] == before


@pytest.mark.parametrize(
    "header",
    [
        "Rpcqm-Priority: 8",
        "Rpcqm-Priority: many",
        "Rpcqm-Label: %ff",
        "Rpcqm-Label: 100%",
        "Rpcqm-Label: a%zz",
        "Rpcqm-Label: %+1",
        "Rpcqm-Label: " + "x" * 250,
        "Rpcqm-Label: a%00b",
        "Rpcqm-Unknown: 1",
        "Rpcqm-Recoverable: perhaps",
        "Rpcqm-Acknowledgements: everything",
        "Rpcqm-Response-Queue: NONSENSE=1",
        "Rpcqm-Correlation-Id: seven",
        "Rpcqm-Extension-Base64: *",
        "Idempotency-Key: " + "k" * (LONGEST_KEY + 1),
        "Idempotency-Key:",
    ],
)
def test_headers_that_cannot_be_are_refused(boss: Program, header: str) -> None:
    name, _, value = header.partition(":")
    told = boss.ask("POST", "/queues/orders/messages", b"x", {name: value.strip()})
    assert told.status == 400, told.body


def test_a_key_has_a_longest_form(boss: Program) -> None:
    longest = {"Idempotency-Key": "k" * LONGEST_KEY}
    assert boss.ask("POST", "/queues/orders/messages", b"x", longest).status == 201
    beyond = {"Idempotency-Key": "k" * (LONGEST_KEY + 1)}
    assert boss.ask("POST", "/queues/orders/messages", b"x", beyond).status == 400


def test_a_body_that_is_too_large_is_refused_before_it_is_read(
    running: PrivateQueueManager,
) -> None:
    line = "POST /api/v1/queues/orders/messages"
    assert status_of(raw(running, head(line, "Content-Length: 99999999999"))) == 413
    assert status_of(raw(running, head(line, "Content-Encoding: gzip", "Content-Length: 1"))) == 415


def test_whoever_sends_too_much_is_told_how_much_is_taken(boss: Program) -> None:
    """A body of 5 MB is read by nobody, and still the sender learns why (RFC 9457)."""
    told = boss.ask("POST", "/queues/orders/messages", bytes(5_000_000))
    assert (told.status, told.code) == (413, "MQ_ERROR_INSUFFICIENT_RESOURCES")
    said = "the body has 5,000,000 octets, and 4,325,376 are taken at most"
    assert told.value["detail"] == said


def test_a_message_that_no_packet_holds_is_too_large_and_not_to_be_sent_again(
    boss: Program,
) -> None:
    for size in (4 << 20, (4 << 20) - 100, (4 << 20) + 1000):
        told = boss.ask("POST", "/queues/orders/messages", b"x" * size)
        assert (told.status, told.code) == (413, "MQ_ERROR_INSUFFICIENT_RESOURCES")
        assert "Retry-After" not in told.headers


def test_a_label_of_a_queue_has_no_null_characters(boss: Program) -> None:
    assert boss.ask("POST", "/queues", {"name": "nulls", "label": "a\0b"}).status == 400
    assert boss.ask("PATCH", "/queues/orders", {"label": "a\0b"}).status == 400
    assert boss.ask("GET", "/queues/orders").value["label"] == ""


@pytest.mark.parametrize("of", ["queues/orders", "queue-manager"])
def test_permissions_that_say_nothing_are_refused(boss: Program, of: str) -> None:
    assert boss.ask("PUT", f"/{of}/permissions", {"sddl": " "}).status == 400


@pytest.mark.parametrize(
    "name",
    [
        *("\uff42oss", "BO\u017f\u017f", "everyone", "System", "S-1-5-18"),
        *("\uff25veryone", "\u017fystem", "\uff33-1-5-18"),
    ],
)
def test_no_account_is_written_as_another_one_or_as_everyone(boss: Program, name: str) -> None:
    told = boss.ask("POST", "/accounts", {"name": name, "password": "secret"})
    assert told.status in (400, 409)
    assert [each["name"] for each in boss.ask("GET", "/accounts").value["accounts"]] == ["boss"]


@pytest.mark.parametrize(
    "headers",
    [
        ("Content-Length: 5", "Transfer-Encoding: chunked"),
        ("Content-Length: 5", "Content-Length: 6"),
        ("Content-Length: +5",),
        ("Transfer-Encoding: chunked, identity",),
        ("Transfer-Encoding: xchunked",),
        ("X" * 9000 + ": 1",),
        tuple(f"X-{n}: 1" for n in range(70)),
    ],
)
def test_requests_that_two_readers_would_read_differently_are_refused(
    running: PrivateQueueManager, headers: tuple[str, ...]
) -> None:
    smuggled = head("DELETE /api/v1/queues/orders")
    answer = raw(
        running, head("POST /api/v1/queues/x/messages", *headers) + b"0\r\n\r\n" + smuggled
    )
    assert status_of(answer) in (400, 413, 415, 431, 501)
    assert answer.count(b"HTTP/1.1") == 1
    assert status_of(raw(running, head("GET /api/v1/queues/orders"))) == 200


@pytest.mark.parametrize(
    "authorization",
    [
        "",
        "Basic",
        "Basic *",
        "Basic " + base64.b64encode(b"boss").decode(),
        "Bearer x",
        "Basic /w==",
    ],
)
def test_a_logon_that_is_none_is_refused(running: PrivateQueueManager, authorization: str) -> None:
    program = Program(running.endpoint("console"))
    told = program.ask("GET", "/leases", headers={"Authorization": authorization})
    assert told.status == 401
    assert told.headers["WWW-Authenticate"].startswith("Basic ")


def test_guesses_are_slowed_down_and_told(running: PrivateQueueManager) -> None:
    guesser = Program(running.endpoint("console"), "victim", "wrong")
    statuses = [guesser.ask("GET", "/leases").status for _ in range(8)]
    assert statuses[:6] == [401] * 6
    assert statuses[-1] == 429
    assert int(guesser.ask("GET", "/leases").headers["Retry-After"]) > 0
    assert "a program could not log on" in running.log
    assert "wrong" not in [word.strip('",') for word in running.log.split() if "secret" in word]


def test_what_a_message_says_stays_text(boss: Program) -> None:
    payload = "<script>alert(1)</script>"
    boss.ask("POST", "/queues", {"name": "texts", "label": payload})
    assert boss.ask("GET", "/queues/texts").value["label"] == payload
    boss.ask("POST", "/queues/texts/messages", payload.encode(), {"Rpcqm-Label": payload})
    told = boss.ask("GET", "/queues/texts/messages")
    assert told.value["messages"][0]["label"] == payload
    assert told.headers["Content-Type"] == "application/json"
    body = boss.ask("GET", f"/queues/texts/messages/{told.value['messages'][0]['lookup_id']}/body")
    assert body.headers["Content-Type"] == "application/octet-stream"


def test_it_is_served_over_tls_at_the_next_free_port(tmp_path: Path) -> None:
    certificate, key = write_tls_files(tmp_path)
    settings = f'[console]\ncertificate = "{certificate}"\nkey = "{key}"\n'
    with private_queue_manager(CONSOLE, settings) as running:
        host, port = running.endpoint("console")
        fetched = subprocess.run(
            ["curl", "--silent", "--cacert", certificate, f"https://localhost:{port}/healthz"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert (host, fetched.stdout) == ("127.0.0.1", "ok\n")


def test_nothing_of_it_is_loaded_before_somebody_asks() -> None:
    loaded = subprocess.run(
        [sys.executable, "-c", LOADED], capture_output=True, text=True, check=True
    )
    assert loaded.stdout == "False\n"


def test_a_queue_manager_loads_none_of_it_until_somebody_connects() -> None:
    with private_queue_manager(CONSOLE, environment={"PYTHONPROFILEIMPORTTIME": "1"}) as started:
        started.run("queue", "create", "orders")
        started.run("send", "orders", "--body", "hello")
        before = loaded_by(started)
        assert "structlog" in before
        assert not before & LAZY
        assert Program(started.endpoint("console")).ask("GET", "/queues").status == 401
        assert loaded_by(started) & LAZY == {"aiohttp", "pydantic"}


def loaded_by(started: PrivateQueueManager) -> set[str]:
    """The packages that it has imported, which Python itself tells."""
    lines = (line for line in started.log.splitlines() if line.startswith("import time:"))
    return {line.rpartition("|")[2].strip().partition(".")[0] for line in lines}


def test_the_description_is_openapi_and_names_everything_once(boss: Program) -> None:
    document = json.loads(boss.ask("GET", "/openapi.json").body)
    assert document["openapi"] == "3.1.0"
    names = [o["operationId"] for path in document["paths"].values() for o in path.values()]
    assert len(names) == len(set(names))
    for operation in (o for path in document["paths"].values() for o in path.values()):
        assert operation["summary"]
        assert {"401", "403"} <= operation["responses"].keys()


def test_the_description_has_what_is_answered_and_nothing_else_about_keys(boss: Program) -> None:
    paths = boss.ask("GET", "/openapi.json").value["paths"]
    operations = [each for methods in paths.values() for each in methods.values()]
    keyed = [
        "422" in each["responses"]
        for each in operations
        if any(known["name"] == "Idempotency-Key" for known in each["parameters"])
    ]
    assert keyed == [True] * 3
    assert sum("422" in each["responses"] for each in operations) == 3
    assert all("WWW-Authenticate" in each["responses"]["401"]["headers"] for each in operations)


def test_the_description_is_one_that_makers_of_clients_for_go_and_java_understand(
    boss: Program,
) -> None:
    """In Go `NewX` makes an `X`; octets without a type become objects, which no client can send.

    In Java choices and titles become classes, some of which do not compile.
    """
    document = boss.ask("GET", "/openapi.json").value
    assert b'"anyOf"' not in boss.ask("GET", "/openapi.json").body
    quota = document["components"]["schemas"]["QueueDraft"]["properties"]["quota"]
    assert quota == {"default": None, "maximum": 0xFFFF_FFFF, "minimum": 0} | {
        "type": ["integer", "null"]
    }
    privacy = document["components"]["schemas"]["QueueChanges"]["properties"]["privacy"]
    assert privacy["enum"] == ["none", "optional", "body", None]
    parameters = [
        each["schema"]
        for methods in document["paths"].values()
        for operation in methods.values()
        for each in operation["parameters"]
    ]
    assert all(isinstance(each["type"], str) for each in parameters)
    assert not [each for each in parameters if None in each.get("enum", ())]
    assert not [each for each in document["components"]["schemas"] if each.startswith("New")]
    octets = [
        content["application/octet-stream"]["schema"]
        for methods in document["paths"].values()
        for operation in methods.values()
        for each in (operation.get("requestBody", {}), *operation["responses"].values())
        if "application/octet-stream" in (content := each.get("content", {}))
    ]
    assert octets == [{"type": "string", "format": "binary"}] * 4
