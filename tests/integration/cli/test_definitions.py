"""Definitions are exported, compared with what is here, and made so (G655)."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from rpcqm.testing import PrivateQueueManager, private_queue_manager

CONFIGURATION = "[storage]\nreserve = 1\n"


@pytest.fixture(scope="module")
def machine() -> Iterator[PrivateQueueManager]:
    with private_queue_manager(configuration=CONFIGURATION) as machine:
        machine.run("user", "add", "alice", "--password-stdin", input="secret\n")
        machine.run("user", "add", "eve", "--read-only", "--password-stdin", input="secret\n")
        create = ("--transactional", "--label", 'The "best" \u20ac', "--max-deliveries", "5")
        machine.run("queue", "create", "bills", "--journal", "--quota", "100", *create)
        machine.run("queue", "create", "orders", "--trail")
        machine.run("queue", "acl", "grant", "orders", "alice", "send", "peek")
        machine.run("queue", "acl", "deny", "orders", "anonymous", "full")
        machine.run("queue", "create", "odd", "--sddl", "O:BAD:(A;;0xf003f;;;BA)(D;;0x4;;;WD)")
        machine.run("machine", "acl", "grant", "alice", "peek-dead-letter")
        machine.run("trigger", "add", "forward", "orders", "--send-to", "bills", "--label", "x*")
        yield machine


@pytest.fixture(scope="module")
def exported(machine: PrivateQueueManager) -> str:
    return str(machine.run("export", "--definitions").stdout)


@pytest.fixture
def other() -> Iterator[PrivateQueueManager]:
    with private_queue_manager(configuration=CONFIGURATION) as other:
        yield other


def applied(machine: PrivateQueueManager, file: Path, *words: str, status: int = 0) -> list[str]:
    done = machine.run("apply", str(file), *words, check=False)
    assert done.returncode == status, (done.stdout, done.stderr)
    return str(done.stdout).splitlines()


def test_another_queue_manager_becomes_the_same_in_one_go(
    machine: PrivateQueueManager, exported: str, other: PrivateQueueManager, tmp_path: Path
) -> None:
    file = tmp_path / "definitions.toml"
    machine.run("export", "--definitions", str(file))
    assert file.read_text("utf-8") == exported
    planned = applied(other, file, "--plan", status=5)
    assert planned[-1] == f"{len(planned) - 1} changes to make; nothing was changed."
    assert applied(other, file, "--plan", status=5) == planned
    made = applied(other, file)
    assert made[-1].endswith("changes made, 0 left.")
    assert applied(other, file, "--plan") == ["Nothing to do: everything is as the file says."]
    assert applied(other, file) == ["Nothing to do: everything is as the file says."]
    other.restart()
    assert str(other.run("export", "--definitions").stdout) == exported
    shown = json.loads(str(other.run("queue", "show", "bills", "--json").stdout))
    assert (shown["label"], shown["quota"], shown["transactional"]) == (
        'The "best" \u20ac',
        100,
        True,
    )
    logon = (*("queue", "list", "--server", "{}:{}".format(*other.endpoint("epm"))),)
    refused = other.run(
        *logon, "--user", "alice", "--password-stdin", check=False, input="secret\n"
    )
    assert refused.returncode == 1, "an account that is made so has no password"


def test_what_was_changed_by_hand_is_shown_and_put_right(
    machine: PrivateQueueManager, exported: str, tmp_path: Path
) -> None:
    file = tmp_path / "definitions.toml"
    file.write_text(exported, "utf-8")
    assert applied(machine, file, "--plan", "--prune") == [
        "Nothing to do: everything is as the file says."
    ]
    machine.run("queue", "set", "orders", "--label", "by hand", "--no-trail")
    machine.run("queue", "acl", "revoke", "orders", "alice", "send")
    machine.run("queue", "create", "extra")
    machine.run("queue", "create", "full")
    machine.run("send", "full", "--body", "x")
    machine.run("user", "add", "bob", "--password-stdin", input="secret\n")
    drift = applied(machine, file, "--plan", status=5)
    assert drift[:-1] == [
        "would: change label of the queue orders from 'by hand' to ''",
        "would: change trail of the queue orders from no to yes",
        "would: alice may peek, send with the queue orders",
    ]
    pruned = applied(machine, file, "--prune", status=1)
    assert pruned[3:-1] == [
        "done: delete the queue extra",
        "left: the queue full is not wanted, and stays with its messages; not done",
        "done: remove the account bob",
    ]
    machine.run("purge", "full")
    assert applied(machine, file, "--prune")[0] == "done: delete the queue full"
    assert str(machine.run("export", "--definitions").stdout) == exported


def test_one_step_that_fails_leaves_the_others_to_be_done(
    machine: PrivateQueueManager, tmp_path: Path
) -> None:
    file = tmp_path / "definitions.toml"
    file.write_text(
        'version = 1\n[[queue]]\nname = "a1"\nallow.nobody-here = ["full"]\n'
        '[[queue]]\nname = "a2"\n[[queue]]\nname = "bills"\ntransactional = false\n',
        "utf-8",
    )
    told = applied(machine, file, status=1)
    assert told == [
        "left: create the queue a1; not done, because there is no account nobody-here here",
        "done: create the queue a2",
        "left: the queue bills is transactional: that is chosen when a queue is created; not done",
        "1 change made, 2 left.",
    ]
    machine.run("queue", "delete", "a2")


WRONG = {
    "# nothing\n": (1, "reads, and the file has no version"),
    'version = 1\n[[trigger]]\nname = "t"\nqueue = "q"\nxpath = "//["\nprogram = ["/bin/true"]\n': (
        2,
        "'//[' is no XPath: Invalid expression",
    ),
    "version = 2\n": (1, "`version = 1` is what this version of rpcqm reads, not 2"),
    "version = 1\nqueue = 3\n": (2, "`queue` is written as [[queue]]"),
    "version = 1\n[[queue\n": (2, ""),
    'version = 1\n\n[[queue]]\nname = "a"\nqouta = 3\n': (5, "`qouta` is unknown"),
    'version = 1\n[[queue]]\nname = "a"\nquota = "much"\n': (4, "`quota` is a number of KB"),
    'version = 1\n[[queue]]\nname = "a;b"\n': (3, "no queue of applications"),
    'version = 1\n[[queue]]\nname = "a"\n[[queue]]\nname = "A"\n': (5, "`A` is there twice"),
    'version = 1\n[[queue]]\nname = "a"\nallow.bob = ["fly"]\n': (4, "`fly`, of bob, is no right"),
    'version = 1\n[[account]]\ngroups = ["users"]\n': (2, "has a `name`"),
    'version = 1\n[[trigger]]\nname = "t"\n': (2, "the rule has no queue"),
    "version = 1\n[machine]\nallow = 3\n": (3, "`allow` is written as"),
}


@pytest.mark.parametrize("text", WRONG)
def test_a_wrong_file_is_told_in_one_sentence_with_the_line(
    machine: PrivateQueueManager, tmp_path: Path, text: str
) -> None:
    line, what = WRONG[text]
    file = tmp_path / "definitions.toml"
    file.write_text(text, "utf-8")
    done = machine.run("apply", str(file), check=False)
    assert done.returncode == 2, done.stderr
    assert str(done.stderr).startswith(f"rpcqm: {file}:{line}: ")
    assert what in str(done.stderr)
    assert str(done.stderr).count("\n") == 1


def test_what_is_to_be_exported_has_to_be_said(machine: PrivateQueueManager) -> None:
    done = machine.run("export", check=False)
    assert (done.returncode, "say --definitions" in done.stderr) == (2, True)
