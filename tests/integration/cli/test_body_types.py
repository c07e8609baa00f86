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
from tests.support import dotnet
from tests.support.dotnet import END, HEADER, number

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
