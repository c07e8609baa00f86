"""docs/json.md names every member that commands print, and no other."""

import json
import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from rpcqm.client.mq import DATA_DIR
from rpcqm.testing import private_queue_manager
from tests.support.cli.command_server import quick_commands
from tests.support.cli.documents import ROOT

PAGE = (ROOT / "docs" / "json.md").read_text("utf-8")
ELSEWHERE = r"DIRECT=OS:nowhere.invalid\private$\orders"


def described(heading: str) -> set[str]:
    """The members in the table below a heading."""
    section = PAGE.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    cells = re.findall(r"(?m)^\| (`[^|]+`) \|", section)
    return {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}


def inner(heading: str, member: str) -> set[str]:
    """The members of the objects inside a member."""
    section = PAGE.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    (row,) = re.findall(rf"(?m)^\| `{member}` \| array \| ([^|]*)\|$", section)
    return set(re.findall(r"`(\w+)`", row.partition("objects with")[2]))


@dataclass
class Commands:
    """Commands for one queue manager."""

    data_dir: Path
    tools: Path

    def run(self, *words: str, stdin: str | None = None) -> str:
        """What a command prints; one that fails has printed what is looked at all the same."""
        return subprocess.run(
            [self.tools / "rpcqm", *words],
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            text=True,
            env=os.environ | {DATA_DIR: str(self.data_dir)},
            timeout=60,
            check=False,
        ).stdout


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commands]:
    with (
        quick_commands(tmp_path_factory.mktemp("tools")) as tools,
        private_queue_manager(configuration="[storage]\nreserve = 1\n") as queue_manager,
    ):
        commands = Commands(queue_manager.data_dir, tools)
        commands.run("queue", "create", "orders")
        commands.run("queue", "set", "orders", "--trail")
        commands.run("user", "add", "alice", "--password-stdin", stdin="correct horse\n")
        commands.run("token", "create", "shop", "--account", "alice")
        commands.run("send", ELSEWHERE, "--body", "x")
        yield commands


def printed(commands: Commands, *words: str) -> list[dict[str, object]]:
    """The objects that a command prints."""
    output = commands.run(*words, "--json")
    found = [json.loads(line) for line in output.splitlines()] if words[0] in _LINES else None
    shown = json.loads(output) if found is None else found
    assert shown, words
    return shown if isinstance(shown, list) else [shown]


_LINES = ("peek", "find")
"""Commands that print an object on each line."""


def members(objects: list[dict[str, object]]) -> set[str]:
    return {name for each in objects for name in each}


@pytest.mark.parametrize(
    ("heading", "words"),
    [
        ("rpcqm queue list", ["queue", "list"]),
        ("rpcqm user list", ["user", "list"]),
        ("rpcqm token list", ["token", "list"]),
        ("rpcqm doctor", ["doctor"]),
        ("rpcqm explain CODE", ["explain", "MQ_ERROR_ACCESS_DENIED"]),
        ("rpcqm queue acl show, rpcqm machine acl show", ["queue", "acl", "show", "orders"]),
        ("rpcqm queue acl show, rpcqm machine acl show", ["machine", "acl", "show"]),
        ("rpcqm queue list --outgoing, rpcqm explain QUEUE", ["queue", "list", "--outgoing"]),
        ("rpcqm queue list --outgoing, rpcqm explain QUEUE", ["explain", ELSEWHERE]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_page_has_the_members_that_a_command_prints(
    served: Commands, heading: str, words: list[str]
) -> None:
    assert members(printed(served, *words)) == described(heading)


def test_the_page_has_the_members_of_a_queue_that_is_shown(served: Commands) -> None:
    shown = members(printed(served, "queue", "show", "orders"))
    assert shown == described("rpcqm queue list") | described("rpcqm queue show")


def test_the_page_has_the_members_of_messages_and_of_what_became_of_them(
    served: Commands,
) -> None:
    served.run("send", "orders", "--file", "-", stdin="two apples")
    identifier = served.run("send", "orders", "--body", "two apples").strip()
    body = served.data_dir / "octets"
    body.write_bytes(b"\xff\xfe\xfd")
    served.run("send", "orders", "--file", str(body))
    messages = printed(served, "peek", "orders", "--all")
    assert members(messages) == described("rpcqm peek, rpcqm receive")
    found = printed(served, "find", "orders", "--regex", "apples|^$", "--json")
    assert members(found) == described("rpcqm find") | described("rpcqm peek, rpcqm receive")
    (told,) = printed(served, "explain", identifier)
    assert set(told) == described("rpcqm explain ID")
    for member in ("places", "events"):
        objects = told[member]
        assert isinstance(objects, list)
        assert members(objects) == inner("rpcqm explain ID", member)


def test_the_page_has_the_members_of_the_overview(served: Commands) -> None:
    served.run("send", "orders", "--body", "x", "--ttbr", "0", "--dead-letter")
    heading = "rpcqm status --overview"
    (told,) = printed(served, "status", "--overview")
    assert set(told) == described(heading)
    attention = told["attention"]
    assert isinstance(attention, list)
    assert members(attention) == inner(heading, "attention")


def test_the_page_has_the_members_of_dead_letters(served: Commands) -> None:
    served.run("send", "orders", "--body", "x", "--ttbr", "0", "--dead-letter")
    served.run("queue", "create", "short")
    served.run("send", "short", "--body", "x", "--dead-letter")
    served.run("queue", "delete", "short")
    letters = printed(served, "dead-letter", "list")
    listed = described("rpcqm dead-letter list")
    assert members(letters) == listed
    (letter,) = printed(served, "dead-letter", "inspect", str(letters[0]["lookup_id"]))
    both = listed | described("rpcqm peek, rpcqm receive")
    assert listed <= set(letter) <= both
