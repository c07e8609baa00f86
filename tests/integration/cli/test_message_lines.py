"""A file's lines as messages, and messages as JSON lines and CSV (G658)."""

import csv
import io
import json
from pathlib import Path

import pytest

from rpcqm.cli.send import IN_FLIGHT
from rpcqm.testing import PrivateQueueManager
from tests.integration.cli.conftest import Command

HOSTILE = ("=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "'quoted", '=HYPERLINK("http://x","y")', "\n=1")
WIDE = ("\uff1d1", "\uff0b1", "\uff0d1", "\uff20x")


def bodies(run: Command, queue: str) -> list[str]:
    told = run("receive", queue, "--all", "--format", "json").lines
    return [json.loads(line)["body"] for line in told]


@pytest.mark.parametrize("words", [(), ("--transactional",)])
def test_each_line_of_a_file_is_a_message(
    run: Command, name: str, tmp_path: Path, words: tuple[str, ...]
) -> None:
    run("queue", "create", name, *words)
    file = tmp_path / "lines"
    file.write_bytes("one\r\n\nd\u00e9j\u00e0 vu\nlast".encode())
    printed = run("send", name, "--lines", str(file), "--label", "L", *words).lines
    assert len(printed) == 4
    assert bodies(run, name) == ["one", "", "d\u00e9j\u00e0 vu", "last"]


@pytest.mark.parametrize("kind", ["json", "csv"])
def test_messages_come_back_as_they_went_out(
    run: Command, queue: str, tmp_path: Path, kind: str
) -> None:
    for number, text in enumerate((*HOSTILE, *WIDE)):
        run("send", queue, f"--body={text}", f"--label={text}", "--priority", str(number % 8))
    (tmp_path / "octets").write_bytes(bytes(range(256)))
    run("send", queue, "--file", str(tmp_path / "octets"), "--label", "octets")
    before = [json.loads(line) for line in run("peek", queue, "--all", "--json").lines]
    file = tmp_path / "lines"
    file.write_bytes(run("receive", queue, "--all", "--format", kind).output)
    run("send", queue, "--lines", str(file), "--lines-as", kind)
    after = [json.loads(line) for line in run("receive", queue, "--all", "--json").lines]
    kept = ("label", "priority", "body_base64", "correlation_id")
    assert [[each[name] for name in kept] for each in after] == [
        [each[name] for name in kept] for each in before
    ]


def test_no_cell_of_a_table_is_a_formula(run: Command, queue: str) -> None:
    for text in (*HOSTILE, *WIDE, "plain", "two\nlines", "esc\x1b[31m"):
        run("send", queue, f"--body={text}", f"--label={text}")
    told = run("receive", queue, "--all", "--format", "csv").output.decode()
    assert "\x1b" not in told
    rows = list(csv.DictReader(io.StringIO(told, newline="")))
    assert len(rows) == len(HOSTILE) + len(WIDE) + 3
    cells = [cell for row in rows for cell in row.values()]
    assert not [
        cell
        for cell in cells
        if cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n", *"\uff1d\uff0b\uff0d\uff20"))
    ]
    assert [row["body"] for row in rows][-3:] == ["plain", "two\nlines", ""]


WRONG = {
    ("json", b'{"body": "a"}\nno\n'): "2: the line is no JSON object",
    ("json", b'{"body": "a"}\n{"body": 3}\n'): "2: `body` is no text",
    ("json", b'{"body": "a", "priority": 9}\n'): "1: `priority` is no number from 0 to 7",
    ("json", b'{"body_base64": "*"}\n'): "1: ",
    ("csv", b"label\nx\n"): "1: the first row names no column `body`",
    ("csv", b'body\nx\n"y\n'): "it is no CSV",
    ("json", b'{"body": "a"}\n' * 2 * IN_FLIGHT + b"no\n"): f"{2 * IN_FLIGHT + 1}: the line is no",
}
"""Files and what is said of them; before the last wrong line are more than are sent at a time."""


@pytest.mark.parametrize(("kind", "text"), WRONG)
def test_nothing_of_a_wrong_file_is_sent(
    attempt: Command, run: Command, queue: str, tmp_path: Path, kind: str, text: bytes
) -> None:
    file = tmp_path / "lines"
    file.write_bytes(text)
    told = attempt("send", queue, "--lines", str(file), "--lines-as", kind)
    assert (told.status, told.errors.count("\n")) == (2, 1)
    assert WRONG[kind, text] in told.errors
    assert attempt("peek", queue).status == 4


def test_lines_are_read_from_standard_input(
    queue_manager: PrivateQueueManager, run: Command, queue: str
) -> None:
    queue_manager.run("send", queue, "--lines", "-", "--type", "int", input="1\n2\n")
    told = run("receive", queue, "--all", "--json").lines
    assert [json.loads(line)["value"] for line in told] == [1, 2]
