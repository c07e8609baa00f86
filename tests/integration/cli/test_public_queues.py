"""Public queues from the command line, with a directory file."""

import io
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from rpcqm.client.names import format_name
from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.qm.directories import OWN_QUEUE, THEIR_QUEUE, write_directory

OWN, THEIRS = f"PUBLIC={OWN_QUEUE}", f"PUBLIC={THEIR_QUEUE}"

Command = Callable[..., Any]


@pytest.fixture(scope="module")
def queue_manager() -> Iterator[PrivateQueueManager]:
    """In place of the one of the other tests."""
    with TemporaryDirectory(prefix="rpcqm-public-") as directory:
        file = write_directory(Path(directory))
        configuration = f'name = "WORKSTATION"\ndirectory_file = "{file}"\n[storage]\nreserve = 1\n'
        with private_queue_manager(configuration=configuration) as queue_manager:
            yield queue_manager


@pytest.fixture
def network(
    run: Command, queue_manager: PrivateQueueManager, monkeypatch: pytest.MonkeyPatch
) -> tuple[str, ...]:
    """Options to ask over the network, as an administrator."""
    monkeypatch.setattr("sys.stdin", io.StringIO("secret\n"))
    run("user", "add", "ops", "--group", "administrators", "--password-stdin")
    monkeypatch.setenv("RPCQM_PASSWORD", "secret")
    host, port = queue_manager.endpoint("epm")
    return ("--server", f"{host}:{port}", "--user", "ops")


def listed(run: Command, *more: str) -> dict[str, Any]:
    found = json.loads(run("queue", "list", "--json", *more).output)
    return {queue["format_name"]: queue for queue in found}


def test_public_queues_are_listed_with_their_kind(run: Command) -> None:
    run("queue", "create", "inner")
    run("send", r".\reports", "--body", "x")
    (private,) = [queue for name, queue in listed(run).items() if "inner" in name]
    own = listed(run)[OWN]
    assert (private["type"], own["type"]) == ("PRIVATE", "PUBLIC")
    assert (own["path_name"], own["messages"]) == (r"WORKSTATION\reports", 1)
    table = run("queue", "list").text
    assert re.search(r"(?m)^WORKSTATION\\reports +public +1 ", table)
    assert re.search(r"(?m)^WORKSTATION\\private\$\\inner +private +0 ", table)


def test_over_the_network_public_queues_that_are_open_are_listed(
    run: Command, network: tuple[str, ...], queue_manager: PrivateQueueManager
) -> None:
    assert OWN not in listed(run, *network)
    with queue_manager.client() as client, client.open_reader(format_name(OWN), peek_only=True):
        own = listed(run, *network)[OWN]
    assert (own["type"], own["path_name"]) == ("PUBLIC", r"WORKSTATION\reports")


def test_the_directory_tells_of_all_machines(run: Command) -> None:
    found = listed(run, "--directory")
    assert (found[OWN]["here"], found[THEIRS]["here"]) == (True, False)
    assert found[OWN]["label"] == "Reports"
    assert THEIRS not in listed(run)
    lines = run("queue", "list", "--directory").lines
    assert lines[0].split() == ["QUEUE", "FORMAT", "NAME", "HERE", "LABEL"]


def test_a_public_queue_is_created_changed_shown_and_deleted(run: Command) -> None:
    options = ("--label", "Offers", "--journal", "--quota", "64", "--transactional")
    assert run("queue", "create", r".\offers", *options).text == ".\\offers\n"
    run("queue", "set", r".\offers", "--label", "Bids")
    shown = json.loads(run("queue", "show", r".\offers", "--json").output)
    assert {key: shown[key] for key in ("type", "label", "quota", "transactional")} == {
        "type": "PUBLIC",
        "label": "Bids",
        "quota": 64,
        "transactional": True,
    }
    known = listed(run, "--directory")[shown["format_name"]]
    assert (known["label"], known["fixed"]) == ("Bids", False)
    run("queue", "delete", shown["format_name"])
    assert shown["format_name"] not in listed(run, "--directory")


def test_a_queue_of_the_file_is_deleted_there_first(refused: Command) -> None:
    assert refused("queue", "delete", r".\reports").errors == (
        "rpcqm: Cannot delete `.\\reports`: the directory file lists it; take it out there first.\n"
    )


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("create", r".\reports"), "(MQ_ERROR_QUEUE_EXISTS)"),
        (("create", r"SERVER\new"), "(MQ_ERROR_ILLEGAL_QUEUE_PATHNAME)"),
        (("create", r".\new", "--server", "h"), "on their own machine, not over the network."),
    ],
)
def test_what_cannot_be_is_one_sentence(refused: Command, words: tuple[str, ...], why: str) -> None:
    outcome = refused("queue", *words)
    assert outcome.output == b""
    assert why in outcome.errors


def test_another_machine_does_not_tell_its_directory(attempt: Command) -> None:
    outcome = attempt("queue", "list", "--directory", "--server", "h")
    assert outcome.status == 2
    assert "do not go together" in outcome.errors


@pytest.mark.parametrize(("said", "refused"), [("", True), ("quota = 4096", False)])
def test_the_quota_is_the_directorys_or_else_the_configurations(
    tmp_path: Path, said: str, refused: bool
) -> None:
    """Also after a restart."""
    file = write_directory(tmp_path)
    file.write_text(file.read_text().replace("quota = 4096", said))
    configuration = (
        f'name = "WORKSTATION"\ndirectory_file = "{file}"\n[storage]\nreserve = 1\nquota = 64\n'
    )
    with private_queue_manager(configuration=configuration) as manager:
        for _ in range(2):
            sent = manager.run("send", r".\reports", "--body", "x" * 70_000, check=False)
            assert (sent.returncode == 1) == refused, sent.stderr
            manager.restart()
