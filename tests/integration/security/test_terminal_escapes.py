"""Texts of strangers in what commands print: nothing moves a cursor, hides, or turns a line."""

import json
import os
import pty
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rpcqm.client import mq
from rpcqm.testing import PrivateQueueManager, private_queue_manager

STRANGE = {
    "escape": "\x1b[2J",
    "carriage return": "\r",
    "delete": "\x7f",
    "csi of the second set": "\x9b2J",
    "next line": "\x85",
    "line separator": "\u2028",
    "paragraph separator": "\u2029",
    "right to left override": "\u202e",
    "isolate": "\u2066",
    "mark": "\u200f",
    "no width": "\u200b",
    "tag": "\U000e0041",
}
TEXT = "a" + "b".join(STRANGE.values()) + "c"
NAME = TEXT.replace("\r", "")
"""What a queue may be called; a carriage return is in no name."""
CONFIGURATION = "[storage]\nreserve = 1\n"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("recorded") / "served.pcapng"


@pytest.fixture(scope="module")
def queue_manager(recorded: Path) -> Iterator[PrivateQueueManager]:
    """One with a message whose label, body and tag were made by somebody else."""
    options = ("--capture", str(recorded))
    with private_queue_manager(options, CONFIGURATION) as queue_manager:
        queue_manager.run("queue", "create", "orders", "--label", TEXT)
        queue_manager.run("queue", "create", NAME)
        queue_manager.run("queue", "set", NAME, "--trail")
        queue_manager.run("send", NAME, "--body", "x")
        with mq.open("orders", queue_manager) as queue:
            queue.send(TEXT, label=TEXT)
        yield queue_manager


def strange(text: str) -> set[str]:
    """What a terminal would act on."""
    return {c for c in text if not c.isprintable() and c != "\n"}


def on_a_terminal(queue_manager: PrivateQueueManager, *words: str) -> str:
    """What a command writes to a terminal of its own."""
    ours, theirs = pty.openpty()
    environment = os.environ | {"RPCQM_DATA_DIR": str(queue_manager.data_dir)}
    process = subprocess.Popen(
        [sys.executable, "-m", "rpcqm", *words],
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        env=environment,
    )
    os.close(theirs)
    written = b""
    try:
        while piece := os.read(ours, 4096):
            written += piece
    except OSError:
        pass  # the other end is closed
    finally:
        os.close(ours)
    assert process.wait() == 0
    return written.decode().replace("\r\n", "\n")


@pytest.mark.parametrize("form", ["table", "json", "body", "hex"])
def test_messages_are_shown_on_a_terminal_without_what_moves_it(
    queue_manager: PrivateQueueManager, form: str
) -> None:
    written = on_a_terminal(queue_manager, "peek", "orders", "--format", form)
    assert written
    assert strange(written) == set()


def test_the_whole_text_of_a_body_goes_to_a_file(
    queue_manager: PrivateQueueManager, tmp_path: Path
) -> None:
    with (tmp_path / "body").open("wb") as file:
        queue_manager.run("peek", "orders", "--format", "body", capture_output=False, stdout=file)
    assert (tmp_path / "body").read_bytes() == TEXT.encode()


@pytest.mark.parametrize(
    "words",
    [
        ("peek", "orders", "--format", "json"),
        ("peek", "orders", "--format", "table"),
        ("queue", "list", "--json"),
        ("queue", "list"),
        ("queue", "show", "orders"),
        ("queue", "show", "orders", "--json"),
        ("queue", "show", NAME),
        ("queue", "show", NAME, "--json"),
        ("queue", "acl", "show", NAME),
        ("queue", "acl", "grant", NAME, "guests", "send"),
        ("queue", "acl", "owner", NAME, "administrators"),
        ("queue", "create", f"{NAME}2"),
        ("peek", NAME, "--format", "json"),
        ("status",),
        ("status", "--json"),
        ("status", "--overview"),
        ("top", "--once"),
        ("doctor",),
        ("doctor", "--json"),
    ],
)
def test_nothing_strange_is_printed(
    queue_manager: PrivateQueueManager, words: tuple[str, ...]
) -> None:
    written = queue_manager.run(*words, check=False).stdout
    assert strange(written) == set()
    assert written


def test_json_says_the_same_with_escapes(queue_manager: PrivateQueueManager) -> None:
    line = queue_manager.run("peek", "orders", "--format", "json").stdout
    assert json.loads(line)["label"] == json.loads(line)["body"] == TEXT
    assert "\\u202e" in line
    assert "\\udb40\\udc41" in line


def test_a_file_for_people_holds_nothing_strange(
    queue_manager: PrivateQueueManager, tmp_path: Path
) -> None:
    words = ("peek", "orders", "--output", str(tmp_path), "--format", "table")
    path = Path(queue_manager.run(*words).stdout.strip())
    assert strange(path.read_text("utf-8")) == set()
    assert "label: a" in path.read_text("utf-8")


@pytest.mark.parametrize("command", ["explain", "trace"])
@pytest.mark.parametrize("form", [(), ("--json",)])
def test_where_a_message_is_is_told_without(
    queue_manager: PrivateQueueManager, command: str, form: tuple[str, ...]
) -> None:
    line = queue_manager.run("peek", "orders", "--format", "json").stdout
    written = queue_manager.run(command, json.loads(line)["id"], *form).stdout
    assert strange(written) == set()


@pytest.mark.parametrize("form", [(), ("--full",), ("--json",)])
def test_captures_are_shown_without(
    queue_manager: PrivateQueueManager, recorded: Path, form: tuple[str, ...]
) -> None:
    written = queue_manager.run("capture", "show", str(recorded), *form).stdout
    assert strange(written) == set()
    exported = queue_manager.run("capture", "export", str(recorded)).stdout
    assert strange(exported) == set()
    assert "\\u202e" in exported


@pytest.mark.parametrize("code", list(STRANGE))
def test_config_check_quotes_without(tmp_path: Path, code: str) -> None:
    text = "".join(f"\\U{ord(c):08x}" for c in STRANGE[code])
    path = tmp_path / "rpcqm.toml"
    path.write_text(f'host = 1\n"a{text}b" = 2\n[limits]\n"x{text}" = "{text}"\n', "utf-8")
    outcome = PrivateQueueManager(tmp_path / "data").run("config", "check", str(path), check=False)
    assert outcome.returncode == 1
    assert strange(outcome.stderr) == set()
    assert outcome.stderr.count("\n") == 4


def test_a_mistake_in_what_was_typed_is_quoted_without(queue_manager: PrivateQueueManager) -> None:
    for words in (("explain", f"no{TEXT}"), ("peek", f"no{TEXT}"), (f"no{TEXT}",)):
        outcome = queue_manager.run(*words, check=False)
        assert outcome.returncode in (1, 2)
        assert strange(outcome.stderr) == set()


def test_a_command_that_is_told_is_one_word_for_each_name(
    queue_manager: PrivateQueueManager,
) -> None:
    """Who sends chooses the name of a queue elsewhere; who reads on copies the command."""
    name = r"DIRECT=OS:nowhere.invalid\private$\a b&reboot'$(x)"
    identifier = queue_manager.run("send", name, "--body", "x").stdout.strip()
    told = queue_manager.run("explain", identifier).stdout
    (command,) = re.findall("`(rpcqm explain [^`]*)`", told)
    assert shlex.split(command) == ["rpcqm", "explain", name]


def test_the_command_that_takes_a_right_back_is_for_the_same_queue(
    queue_manager: PrivateQueueManager,
) -> None:
    """Its name may be like the word of the command, and more than one word of a shell."""
    name = "a grant b'$(x)"
    queue_manager.run("queue", "create", name)
    told = queue_manager.run("queue", "acl", "grant", name, "guests", "send").stdout
    (command, *_) = re.findall("`(rpcqm queue acl [^`]*)`", told)
    assert shlex.split(command)[:5] == ["rpcqm", "queue", "acl", "revoke", name]
