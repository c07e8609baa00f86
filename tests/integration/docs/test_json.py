"""docs/json.md names every member that commands print, and no other."""

import json
import re
from collections.abc import Iterator

import pytest

from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.documents import ROOT

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


@pytest.fixture(scope="module")
def served() -> Iterator[PrivateQueueManager]:
    with private_queue_manager(configuration="[storage]\nreserve = 1\n") as queue_manager:
        queue_manager.run("queue", "create", "orders")
        queue_manager.run("queue", "set", "orders", "--trail")
        queue_manager.run("user", "add", "alice", "--password-stdin", input="correct horse\n")
        queue_manager.run("send", ELSEWHERE, "--body", "x")
        yield queue_manager


def printed(queue_manager: PrivateQueueManager, *words: str) -> list[dict[str, object]]:
    """The objects that a command prints."""
    output = queue_manager.run(*words, "--json", check=False).stdout
    found = [json.loads(line) for line in output.splitlines()] if words[0] == "peek" else None
    shown = json.loads(output) if found is None else found
    assert shown, words
    return shown if isinstance(shown, list) else [shown]


def members(objects: list[dict[str, object]]) -> set[str]:
    return {name for each in objects for name in each}


@pytest.mark.parametrize(
    ("heading", "words"),
    [
        ("rpcqm queue list", ["queue", "list"]),
        ("rpcqm user list", ["user", "list"]),
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
    served: PrivateQueueManager, heading: str, words: list[str]
) -> None:
    assert members(printed(served, *words)) == described(heading)


def test_the_page_has_the_members_of_a_queue_that_is_shown(served: PrivateQueueManager) -> None:
    shown = members(printed(served, "queue", "show", "orders"))
    assert shown == described("rpcqm queue list") | described("rpcqm queue show")


def test_the_page_has_the_members_of_messages_and_of_what_became_of_them(
    served: PrivateQueueManager,
) -> None:
    served.run("send", "orders", "--file", "-", input="two apples")
    identifier = served.run("send", "orders", "--body", "two apples").stdout.strip()
    body = served.data_dir / "octets"
    body.write_bytes(b"\xff\xfe\xfd")
    served.run("send", "orders", "--file", str(body))
    messages = printed(served, "peek", "orders", "--all")
    assert members(messages) == described("rpcqm peek, rpcqm receive")
    (told,) = printed(served, "explain", identifier)
    assert set(told) == described("rpcqm explain ID")
    for member in ("places", "events"):
        objects = told[member]
        assert isinstance(objects, list)
        assert members(objects) == inner("rpcqm explain ID", member)


def test_the_page_has_the_members_of_dead_letters(served: PrivateQueueManager) -> None:
    served.run("send", "orders", "--body", "x", "--ttbr", "0", "--dead-letter", check=False)
    served.run("queue", "create", "short")
    served.run("send", "short", "--body", "x", "--dead-letter")
    served.run("queue", "delete", "short")
    letters = printed(served, "dead-letter", "list")
    listed = described("rpcqm dead-letter list")
    assert members(letters) == listed
    (letter,) = printed(served, "dead-letter", "inspect", str(letters[0]["lookup_id"]))
    both = listed | described("rpcqm peek, rpcqm receive")
    assert listed <= set(letter) <= both
