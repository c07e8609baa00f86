"""The shapes of answers at /api/v1: names that can be asked for, bodies, and codes of refusals."""

import base64
import json
from collections.abc import Iterator
from urllib.parse import quote

import pytest

from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.api.programs import Program
from tests.support.codec import dotnet

AWAY = r"DIRECT=OS:nowhere.invalid\private$\x"
OCTETS = bytes(range(20))
LONGEST = 4 << 20
STATUSES = {401, 403, 404, 405, 409, 410, 413, 415, 417, 422, 429, 501, 503}
"""Those of refusals, but for 400 and what a running queue manager never answers."""


@pytest.fixture(scope="module")
def running() -> Iterator[PrivateQueueManager]:
    with private_queue_manager(("--console-port", "0")) as queue_manager:
        words = ("user", "add", "boss", "--group", "administrators", "--password-stdin")
        queue_manager.run(*words, input="secret\n")
        queue_manager.run("user", "add", "nobody", "--password-stdin", input="secret\n")
        program = Program(queue_manager.endpoint("console"), "boss")
        assert program.ask("POST", "/queues", {"name": "orders", "journal": True}).status == 201
        program.close()
        yield queue_manager


@pytest.fixture
def boss(running: PrivateQueueManager) -> Iterator[Program]:
    program = Program(running.endpoint("console"), "boss")
    yield program
    program.ask("DELETE", "/queues/orders/messages")
    program.close()


def sent(boss: Program, body: bytes, body_type: int) -> str:
    """The path of a message that was sent."""
    headers = {"Rpcqm-Body-Type": str(body_type)}
    assert boss.ask("POST", "/queues/orders/messages", body, headers).status == 201
    (message,) = boss.ask("GET", "/queues/orders/messages").value["messages"]
    return f"/queues/orders/messages/{message['lookup_id']}"


@pytest.mark.parametrize(
    ("body", "body_type", "kind", "value"),
    [
        ('<?xml version="1.0"?><string>héllo</string>'.encode(), 0, "xml", "héllo"),
        ("héllo\0".encode("utf-16-le"), 8, "text", "héllo"),
        ((2**31 - 1).to_bytes(4, "little"), 3, "int", 2**31 - 1),
        (dotnet.body(b"\x06" + dotnet.number(1) + dotnet.text("hello")), 768, "dotnet", "hello"),
    ],
)
def test_a_body_is_told_as_it_is_or_decoded(
    boss: Program, body: bytes, body_type: int, kind: str, value: object
) -> None:
    path = sent(boss, body, body_type)
    plain = boss.ask("GET", f"{path}/body")
    assert (plain.body, plain.headers["Content-Type"]) == (body, "application/octet-stream")
    assert boss.ask("GET", f"{path}/body?decode=false").body == body
    decoded = boss.ask("GET", f"{path}/body?decode=true")
    assert decoded.headers["Content-Type"] == "application/json"
    assert (decoded.value["value_type"], decoded.value["value"]) == (kind, value)
    assert base64.b64decode(decoded.value["body_base64"]) == body


def test_a_document_that_says_another_encoding_is_told_with_a_note(boss: Program) -> None:
    document = '<?xml version="1.0" encoding="utf-8"?><string>hi</string>'
    path = sent(boss, document.encode("utf-16"), 0)
    told = boss.ask("GET", f"{path}/body?decode=true").value
    assert (told["value_type"], told["value"], told["body"]) == ("xml", "hi", document)
    assert told["value_note"] == "the document says utf-8 and is UTF-16"
    assert "value_note" not in boss.ask("GET", f"{path}?decode=false").value
    (given,) = boss.ask("POST", "/queues/orders/receive?lease=0").value["messages"]
    assert (given["value"], given["value_note"]) == ("hi", told["value_note"])


def test_messages_are_told_with_values_unless_these_are_not_to_be_decoded(boss: Program) -> None:
    path = sent(boss, b"<string>x</string>", 0)
    page = path.rpartition("/")[0]
    for asked, of in (("", "xml"), ("?decode=true", "xml"), ("?decode=false", "bytes")):
        one = boss.ask("GET", f"{path}{asked}").value
        (same,) = boss.ask("GET", f"{page}{asked}").value["messages"]
        assert one == same
        assert (one["value_type"], one["body"]) == (of, "<string>x</string>")
        assert one["value"] == ("x" if of == "xml" else one["body_base64"])


def test_an_answer_to_what_has_no_identifier_like_ours_is_sent_and_received(boss: Program) -> None:
    """Programs of .NET set CorrelationId to any 20 octets."""
    digits = OCTETS.hex()
    headers = {"Rpcqm-Correlation-Id": digits}
    boss.ask("POST", "/queues/orders/messages", b"other")
    assert boss.ask("POST", "/queues/orders/messages", b"answer", headers).status == 201
    many = {"messages": [{"correlation_id": digits, "body_base64": "eA=="}]}
    assert boss.ask("POST", "/queues/orders/messages/batch", many).status == 201
    path = f"/queues/orders/receive?lease=0&correlation_id={digits.upper()}"
    (first,) = boss.ask("POST", path).value["messages"]
    (second,) = boss.ask("POST", path).value["messages"]
    assert (first["body"], second["body"]) == ("answer", "x")
    again = f"/queues/orders/receive?lease=0&correlation_id={quote(first['correlation_id'])}"
    assert boss.ask("POST", again).value["messages"] == []
    for wrong in (digits[1:], digits + "0", "x" * 40, " ".join(digits[:14])):
        told = boss.ask("POST", "/queues/orders/messages", b"", {"Rpcqm-Correlation-Id": wrong})
        assert (told.status, told.code) == (400, "MQ_ERROR_INVALID_PARAMETER")


@pytest.mark.parametrize("queue", ["DeadLetter$", "XactDeadLetter$", "Journal$", "orders;JOURNAL"])
def test_a_queue_can_be_asked_for_by_the_name_that_is_told(boss: Program, queue: str) -> None:
    told = boss.ask("GET", f"/queues/{quote(queue)}").value
    assert told.get("name") == queue, told
    direct = quote(told["format_name"])
    assert boss.ask("GET", f"/queues/-?queue={direct}").value["name"] == queue


def test_a_queue_to_elsewhere_is_called_by_its_format_name(boss: Program) -> None:
    boss.ask("POST", f"/queues/-/messages?queue={quote(AWAY)}", b"x")
    told = boss.ask("GET", f"/queues/-?queue={quote(AWAY)}").value
    assert told["name"] == told["format_name"] == AWAY
    assert boss.ask("GET", f"/queues/{quote(AWAY, safe='')}").value["name"] == AWAY


def refusals(running: PrivateQueueManager) -> Iterator[tuple[int, str]]:
    """The statuses and codes of what is refused for many reasons."""
    boss = Program(running.endpoint("console"), "boss")
    nobody = Program(running.endpoint("console"), "nobody")
    key = {"Idempotency-Key": "one"}
    boss.ask("POST", "/queues/orders/messages", b"x", key)
    asked = (
        Program(running.endpoint("console")).ask("GET", "/leases"),
        nobody.ask("GET", "/queues"),
        boss.ask("GET", "/nothing"),
        boss.ask("GET", "/queues/nothing"),
        boss.ask("GET", "/queues/orders/messages/1"),
        boss.ask("DELETE", "/accounts/nothing"),
        boss.ask("DELETE", "/tokens/nothing"),
        boss.ask("PUT", "/leases"),
        boss.ask("OPTIONS", "/leases"),
        boss.ask("POST", "/queues", {"name": "orders"}),
        boss.ask("POST", "/accounts", {"name": "boss", "password": "x"}),
        boss.ask("POST", "/leases/x/complete"),
        boss.ask("POST", "/queues/orders/messages", b"y", key),
        boss.ask("POST", "/queues/orders/messages", bytes(LONGEST)),
        boss.ask("POST", "/queues", {"name": r".\public"}),
    )
    yield from ((each.status, each.code) for each in asked)
    for headers in (
        {"Content-Encoding": "gzip"},
        {"Expect": "nothing"},
        {"Transfer-Encoding": "gzip, chunked"},
    ):
        other = Program(running.endpoint("console"), "boss")
        told = other.ask("POST", "/queues/orders/messages", b"1\r\nx\r\n0\r\n\r\n", headers)
        yield told.status, told.code
    guesser = Program(running.endpoint("console"), "guesser", "wrong")
    guesses = (guesser.ask("GET", "/leases") for _ in range(8))
    yield from ((each.status, each.code) for each in guesses)


def test_the_table_that_explain_prints_has_every_refusal(running: PrivateQueueManager) -> None:
    listed = json.loads(running.run("explain", "statuses", "--json").stdout)
    known = {(each["http_status"], each["code"]) for each in listed}
    seen = set(refusals(running))
    assert {status for status, _ in seen} >= {
        401,
        403,
        404,
        405,
        409,
        410,
        413,
        415,
        417,
        422,
        429,
        501,
        503,
    }
    assert seen <= known
    printed = running.run("explain", "statuses").stdout
    assert "400 Bad Request" in printed
    assert all(str(status) in printed and code in printed for status, code in seen)


HEADERS = {"rbs2-msg-id": "7", "rbs2-return-address": None}
LIST_OF_HEADERS = (
    b'<?xml version="1.0"?><ArrayOfHeaderInfo><HeaderInfo><Key>NServiceBus.MessageId</Key>'
    b"<Value>7</Value></HeaderInfo></ArrayOfHeaderInfo>\0"
)


@pytest.mark.parametrize(
    ("extension", "more"),
    [
        (json.dumps(HEADERS).encode(), {"headers": HEADERS}),
        (LIST_OF_HEADERS, {"headers": {"NServiceBus.MessageId": "7"}}),
        (b"plain", {}),
        (b"\x01\x02", None),
    ],
    ids=["Rebus", "NServiceBus", "text", "octets"],
)
def test_the_extension_of_a_message_is_told_with_what_it_says(
    running: PrivateQueueManager,
    boss: Program,
    extension: bytes,
    more: dict[str, object] | None,
) -> None:
    boss.ask("POST", "/queues", {"name": "extended"})
    octets = base64.b64encode(extension).decode()
    headers = {"Rpcqm-Extension-Base64": quote(octets)}
    assert boss.ask("POST", "/queues/extended/messages", b"x", headers).status == 201
    expected: dict[str, object] = {"extension_base64": octets}
    if more is not None:
        expected |= {"extension": extension.decode().rstrip("\0"), **more}

    def of_extension(message: dict[str, object]) -> dict[str, object]:
        return {name: message[name] for name in EXTENSION if name in message}

    (undecoded,) = boss.ask("GET", "/queues/extended/messages?decode=false").value["messages"]
    assert of_extension(undecoded) == {"extension_base64": octets}
    (message,) = boss.ask("GET", "/queues/extended/messages").value["messages"]
    assert of_extension(message) == expected
    by_command = json.loads(running.run("peek", "extended", "--json").stdout)
    assert of_extension(by_command) == expected
    path = f"/queues/extended/messages/{message['lookup_id']}"
    assert of_extension(boss.ask("GET", path).value) == expected
    (received,) = boss.ask("POST", "/queues/extended/receive?lease=0").value["messages"]
    assert of_extension(received) == expected


EXTENSION = ("extension_base64", "extension", "headers")


def test_a_message_without_an_extension_tells_of_none(boss: Program) -> None:
    path = sent(boss, b"x", 0)
    assert not set(boss.ask("GET", path).value) & set(EXTENSION)
