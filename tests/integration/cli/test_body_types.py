"""Types of bodies from `rpcqm send` to `receive`, `peek` and the client library."""

import base64
import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rpcqm.client import bodies, mq
from rpcqm.client.target import LocalServer
from rpcqm.testing import PrivateQueueManager
from tests.support.codec import dotnet
from tests.support.codec.dotnet import END, HEADER, number

Command = Callable[..., Any]
UNTYPED, TEXT = 0, 8


def peeked(run: Command, queue: str) -> dict[str, Any]:
    (line,) = run("peek", queue, "--json").lines
    found = json.loads(line)
    assert isinstance(found, dict)
    return found


def received(queue_manager: PrivateQueueManager, queue: str) -> mq.BlockingMessage:
    with mq.open(queue, LocalServer(queue_manager.socket)) as opened:
        message = opened.receive_one(0)
        assert message is not None
        return message


def test_the_body_of_an_option_is_text(
    run: Command, queue: str, queue_manager: PrivateQueueManager
) -> None:
    run("send", queue, "--body", "zwei Äpfel")
    told = peeked(run, queue)
    assert (told["value_type"], told["value"]) == ("text", "zwei Äpfel")
    assert (told["body"], told["body_type"], told["body_size"]) == ("zwei Äpfel", TEXT, 20)
    assert base64.b64decode(told["body_base64"]).decode("utf-16-le") == "zwei Äpfel"
    assert run("peek", queue, "--format", "body").output == "zwei Äpfel".encode()
    assert received(queue_manager, queue).value == "zwei Äpfel"


def test_files_and_standard_input_have_no_type_unless_one_is_given(
    run: Command, queue: str, queue_manager: PrivateQueueManager, tmp_path: Path
) -> None:
    (tmp_path / "order").write_bytes(b"of the file")
    run("send", queue, "--file", str(tmp_path / "order"))
    told = peeked(run, queue)
    assert (told["value_type"], told["body_type"], told["body"]) == ("bytes", 0, "of the file")
    assert told["value"] == told["body_base64"] == base64.b64encode(b"of the file").decode()
    assert received(queue_manager, queue).value == b"of the file"
    queue_manager.run("send", queue, input="of the pipe")
    assert received(queue_manager, queue).value == b"of the pipe"
    run("send", queue, "--file", str(tmp_path / "order"), "--type", "text")
    assert received(queue_manager, queue).value == "of the file"
    queue_manager.run("send", queue, "--type", "int", input="42\n")
    assert received(queue_manager, queue).value == 42


@pytest.mark.parametrize(
    ("kind", "written", "value", "shown"),
    [
        ("int", "42", 42, "42"),
        ("long", "42", 42, "42"),
        ("double", "1.5", 1.5, "1.5"),
        ("bool", "true", True, "True"),
        ("date", "2026-11-22T12:30:00", "2026-11-22T12:30:00", "2026-11-22 12:30:00"),
        ("currency", "12.34", "12.3400", "12.3400"),
        ("json", '{"a": [1]}', {"a": [1]}, '{"a": [1]}'),
        ("xml", "<long>42</long>", 42, "<long>42</long>"),
        ("bytes", "abc", "YWJj", "abc"),
        ("null", "", None, ""),
    ],
)
def test_a_value_is_shown_as_its_type_says(
    run: Command, queue: str, kind: str, written: str, value: object, shown: str
) -> None:
    run("send", queue, "--type", kind, "--body", written)
    told = peeked(run, queue)
    assert (told["value_type"], told["value"]) == (kind, value)
    assert ("body" in told) == (kind in ("json", "xml", "bytes"))
    assert base64.b64decode(told["body_base64"]) is not None
    row = run("peek", queue).lines[1]
    assert row.endswith(f"  {kind:<8}  {shown}".rstrip())


def test_text_for_the_xml_formatter_is_a_string_of_it(
    run: Command, queue: str, queue_manager: PrivateQueueManager
) -> None:
    run("send", queue, "--type", "xml", "--body", "two apples")
    assert peeked(run, queue)["value"] == "two apples"
    assert bodies.value_of_xml(received(queue_manager, queue).xml) == "two apples"


@pytest.mark.parametrize(
    ("kind", "written", "element", "value"),
    [
        ("xml:int", "42", b"<int>42</int>", 42),
        ("XML:UNSIGNEDBYTE", "255", b"<unsignedByte>255</unsignedByte>", 255),
        ("xml:float", "INF", b"<float>INF</float>", "inf"),
        ("xml:decimal", "0.0000001", b"<decimal>0.0000001</decimal>", "0.0000001"),
        ("xml:boolean", "1", b"<boolean>true</boolean>", True),
        ("xml:string", "a\x1db", b"<string>a&#x1D;b</string>", "a\x1db"),
        ("xml:char", "A", b"<char>65</char>", "A"),
        ("xml:dateTime", "2026-11-27", b"<dateTime>2026-11-27T00:00:00</dateTime>", None),
        ("xml:base64Binary", "abc", b"<base64Binary>YWJj</base64Binary>", "YWJj"),
        ("xml", "a\x1db", b"<string>a&#x1D;b</string>", "a\x1db"),
        ("xml", "<string>a&#x1D;b</string>", b"<string>a&#x1D;b</string>", "a\x1db"),
    ],
)
def test_a_value_is_sent_as_the_type_that_a_reader_of_xml_asks_for(
    run: Command,
    queue: str,
    queue_manager: PrivateQueueManager,
    kind: str,
    written: str,
    element: bytes,
    value: object,
) -> None:
    run("send", queue, "--type", kind, "--body", written)
    told = peeked(run, queue)
    assert told["value_type"] == "xml"
    assert value is None or told["value"] == value
    message = received(queue_manager, queue)
    assert message.body.removeprefix(b'<?xml version="1.0"?>') == element
    assert message.xml.tag == element[1:].partition(b">")[0].decode()


@pytest.mark.parametrize(
    ("body", "kind", "line"),
    [
        (
            b'<?xml version="1.0" encoding="utf-16"?><a>hi</a>',
            "xml",
            '(the document says utf-16 and is UTF-8) <?xml version="1.0" encoding="utf-16"?>'
            "<a>hi</a>",
        ),
        ("<a>é</a>".encode("utf-16"), "xml", "<a>é</a>"),
        (
            "<?xml version='1.0' encoding='iso-8859-1'?><a>é</a>".encode("latin-1"),
            "xml",
            "<?xml version='1.0' encoding='iso-8859-1'?><a>é</a>",
        ),
        ("crème brûlée".encode("latin-1"), "bytes", "(Windows-1252) crème brûlée"),
        ("prix: 5 €".encode("cp1252"), "bytes", "(Windows-1252) prix: 5 €"),
        ("two apples\0".encode("utf-16-le"), "bytes", "(UTF-16) two apples"),
        ("漢字".encode("utf-16"), "bytes", "(UTF-16) 漢字"),
        (bytes(range(250, 256)), "bytes", "fa fb fc fd fe ff"),
        (b"\1\0\2\0", "bytes", "01 00 02 00"),
        (b"ab\xe9\0", "bytes", "61 62 e9 00"),
        (b'\xef\xbb\xbf{"a":1}', "json", '{"a":1}'),
        ('{"a":1}'.encode("utf-16-le"), "json", '{"a":1}'),
        (b'{"a":1}\0', "json", '{"a":1}'),
    ],
)
def test_text_is_shown_as_text_whatever_its_encoding(
    run: Command, queue: str, queue_manager: PrivateQueueManager, body: bytes, kind: str, line: str
) -> None:
    with mq.open(queue, LocalServer(queue_manager.socket)) as opened:
        opened.send(body)
    assert peeked(run, queue)["value_type"] == kind
    assert run("peek", queue).lines[1].endswith(f"  {kind:<8}  {line}")


def test_octets_that_are_not_of_their_type_are_shown_with_the_reason(
    run: Command, queue: str, queue_manager: PrivateQueueManager
) -> None:
    body = dotnet.body(dotnet.array(1, 1, dotnet.reference(1)))
    with mq.open(queue, LocalServer(queue_manager.socket)) as opened:
        opened.send(body, body_type=768)
    shown = run("peek", queue).lines[1]
    assert shown.endswith(f"bytes     (an array holds itself) {body.hex(' ')}")


def test_json_is_sent_without_a_byte_order_mark_and_in_utf_8(
    run: Command, queue: str, queue_manager: PrivateQueueManager, tmp_path: Path
) -> None:
    """As editors and PowerShell on Windows write it."""
    for octets in (b'\xef\xbb\xbf{"a":1}', '{"a":1}'.encode("utf-16")):
        (tmp_path / "order.json").write_bytes(octets)
        run("send", queue, "--file", str(tmp_path / "order.json"), "--type", "json")
        assert received(queue_manager, queue).body == b'{"a":1}'


def test_an_object_of_dotnet_has_its_members(
    run: Command, queue: str, queue_manager: PrivateQueueManager
) -> None:
    body = HEADER + b"\x06" + number(1) + dotnet.text("from .NET") + END
    with mq.open(queue, LocalServer(queue_manager.socket)) as opened:
        opened.send(body, body_type=768)
    told = peeked(run, queue)
    assert (told["value_type"], told["value"]) == ("dotnet", "from .NET")


def test_what_is_not_of_the_type_is_wrong_usage(attempt: Command, queue: str) -> None:
    for kind, written, words in (
        ("json", "{a", "--type json: the body is no JSON"),
        ("int", "x", "--type int: `x` is no whole number."),
        ("xml:int", "2147483648", "--type xml:int: `2147483648` is no int."),
        ("xml:char", "ab", "--type xml:char: 'ab' is no single character of .NET."),
        ("xml:decimal", "1E+3", "--type xml:decimal: `1E+3` is no decimal."),
        ("nul", "x", "`nul` is no type of body; did you mean `null`?"),
    ):
        outcome = attempt("send", queue, "--type", kind, "--body", written)
        assert outcome.status == 2
        assert words in outcome.errors
        assert outcome.output == b""


def test_a_body_that_is_no_utf_8_stays_octets(
    run: Command, queue: str, queue_manager: PrivateQueueManager
) -> None:
    run("send", queue, "--body", os.fsdecode(b"\xff\xfe"))
    assert received(queue_manager, queue).value == b"\xff\xfe"


def test_null_reads_no_pipe(run: Command, queue: str, queue_manager: PrivateQueueManager) -> None:
    queue_manager.run("send", queue, "--type", "null", input="not this")
    assert peeked(run, queue)["value_type"] == "null"


@pytest.mark.parametrize(
    ("option", "separator"),
    [(("--null",), b"\0"), (("--separator", r"\n"), b"\n"), (("--separator", r"|\t\\"), b"|\t\\")],
)
def test_a_separator_follows_each_body(
    run: Command, queue: str, option: tuple[str, ...], separator: bytes
) -> None:
    for body in ("one", "two\nlines", ""):
        run("send", queue, "--body", body)
    for command in ("peek", "receive"):
        found = run(command, queue, "--all", "--format", "body", *option).output
        assert found == b"".join(body + separator for body in (b"one", b"two\nlines", b""))


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--null",), "--separator and --null are for --format body without --output."),
        (("--json", "--separator", ","), "--separator and --null are for --format body"),
        (("--format", "body", "--separator", r"\x"), r"`\x` is none of \n"),
        (("--format", "body", "--separator", ",", "--null"), "do not go together"),
    ],
)
def test_a_separator_without_bodies_is_wrong_usage(
    attempt: Command, queue: str, words: tuple[str, ...], told: str
) -> None:
    outcome = attempt("peek", queue, *words)
    assert outcome.status == 2
    assert told in outcome.errors


def test_the_class_of_an_acknowledgement_is_shown(run: Command, queue: str) -> None:
    acks = f"{queue}-acks"
    run("queue", "create", acks)
    run("send", queue, "--body", "x", "--ack", "arrival", "--admin-queue", acks)
    assert run("peek", acks).lines[1].endswith("  ACK_REACH_QUEUE")


def on_a_terminal(queue_manager: PrivateQueueManager, columns: int, *words: str) -> list[str]:
    master, terminal = pty.openpty()
    try:
        subprocess.run(
            [sys.executable, "-m", "rpcqm", *words, "--data-dir", str(queue_manager.data_dir)],
            stdout=terminal,
            env=os.environ | {"COLUMNS": str(columns)},
            check=True,
            timeout=60,
        )
        return os.read(master, 100_000).decode().splitlines()
    finally:
        os.close(terminal)
        os.close(master)


@pytest.mark.parametrize("columns", [80, 119, 120, 200])
def test_a_terminal_is_filled_by_the_body(
    run: Command, queue: str, queue_manager: PrivateQueueManager, columns: int
) -> None:
    run("send", queue, "--body", "a long body " * 40, "--label", "a label that is quite long")
    heading, row = on_a_terminal(queue_manager, columns, "peek", queue)
    assert heading.split()[-2:] == ["TYPE", "BODY"]
    assert (len(row), row[-1]) == (columns, "…")
    assert "a label that" in row or "a label tha…" in row
    shown = row[row.index("text      a long body") + 10 :]
    assert len(shown) >= 24
