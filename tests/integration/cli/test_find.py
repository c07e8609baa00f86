"""`rpcqm find`: what it finds, says and refuses."""

import json
import os
import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from rpcqm.base.errors import FaultStatus, RpcFault
from rpcqm.cli import find
from rpcqm.client.maintenance import MaintenanceClient
from rpcqm.client.remote_read import QueueReader
from rpcqm.testing import PrivateQueueManager

Command = Callable[..., Any]


@pytest.fixture
def orders(run: Command, name: str) -> str:
    """A queue with some messages."""
    run("queue", "create", name)
    for label, body in (("order 1", "Müller"), ("bill 1", "Meier"), ("order 2", "Müller & Co")):
        run("send", name, "--label", label, "--body", body)
    return name


def test_messages_are_found_in_a_queue(attempt: Command, orders: str) -> None:
    told = attempt("find", orders, "--label", "order*")
    assert (told.status, told.errors) == (0, "")
    heading, *lines = told.lines
    assert heading.split() == ["LOOKUP", "ID", "ARRIVED", "PRI", "SIZE", "LABEL", "BODY"]
    assert [line.split("order ")[1].split() for line in lines] == [
        ["1", "Müller"],
        ["2", "Müller", "&", "Co"],
    ]
    (line,) = attempt("find", orders, "--body", "& CO", "--ignore-case", "--json").lines
    message = json.loads(line)
    assert (message["queue"], message["body"]) == (orders, "Müller & Co")
    ((key, place),) = [(message["lookup_id"], message["queue"])]
    assert json.loads(attempt("peek", place, "--lookup-id", key, "--json").text)["label"] == (
        "order 2"
    )


def test_all_queues_are_searched(attempt: Command, run: Command, orders: str) -> None:
    run("queue", "create", f"{orders}-more", "--journal")
    run("send", f"{orders}-more", "--label", f"only {orders}", "--body", "x")
    run("receive", f"{orders}-more")
    told = attempt("find", "--all", "--label", f"only {orders}")
    assert told.status == 0
    assert told.lines[0].split()[0] == "QUEUE"
    (line,) = told.lines[1:]
    assert line.split()[0].casefold() == f"{orders}-more;journal"
    both = attempt("find", orders, f"{orders}-more;journal", "--since", "1h", "--json").lines
    assert [json.loads(line)["label"] for line in both][-1] == f"only {orders}"


def test_a_limit_ends_a_search_and_says_how_to_go_on(attempt: Command, orders: str) -> None:
    told = attempt("find", orders, "--regex", "order|bill", "--limit", "2", "--json")
    keys = [json.loads(line)["lookup_id"] for line in told.lines]
    assert told.errors.splitlines() == [
        "2 messages found, 2 looked at.",
        f"The search goes on with `{orders} --after {keys[1]}`.",
    ]
    rest = attempt("find", orders, "--regex", "order|bill", "--after", keys[1], "--json")
    assert [json.loads(line)["label"] for line in rest.lines] == ["order 2"]
    first = attempt("find", "--all", "--label", "order [12]", "--limit", "1", "--json")
    place = first.errors.partition("--after ")[2].partition("`")[0]
    assert attempt("find", "--all", "--label", "order [12]", "--after", place, "--json").lines


def test_ctrl_c_says_how_many_were_looked_at(
    attempt: Command, orders: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = MaintenanceClient.search
    monkeypatch.setattr(find, "PAGE", 1)

    async def interrupt(self: MaintenanceClient, *words: Any, **more: Any) -> Any:
        if words[2] is not None:
            os.kill(os.getpid(), signal.SIGINT)
        return await asked(self, *words, **more)

    monkeypatch.setattr(MaintenanceClient, "search", interrupt)
    told = attempt("find", orders, "--label", "order*", "--json")
    (line,) = told.lines
    assert told.status == 130
    assert told.errors.splitlines() == [
        "1 message found, 1 looked at.",
        f"The search goes on with `{orders} --after {json.loads(line)['lookup_id']}`.",
    ]


def test_what_was_not_read_whole_is_told(
    attempt: Command, run: Command, queue: str, tmp_path: Any
) -> None:
    body = tmp_path / "long"
    body.write_bytes(b"<a>&#77;</a>" + b" " * 300_000)
    run("send", queue, "--file", str(body))
    told = attempt("find", queue, "--body", "M")
    key = json.loads(attempt("peek", queue, "--json").text)["lookup_id"]
    assert told.status == 4
    assert told.errors.splitlines()[1:] == [
        "1 of these may match, but were not read whole, because their bodies have over 256 KiB or "
        f"too many values: {key} in {queue}",
        "rpcqm: Nothing meets the conditions; 1 message looked at.",
    ]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "There is no condition; `rpcqm find --help` lists them, and `rpcqm peek QUEUE"),
        (("--ignore-case",), "--ignore-case needs --label, --body or --regex beside it."),
        (("--all", "--label", "x"), "Name one queue or several, or give --all for every queue."),
        (("--label", "["), "--label: there is a [ without its ]; write [[] for the character."),
        (("--size-min", "ten"), "--size-min: `ten` is no number with a unit"),
        (("--since", "1h", "--until", "2h"), "--since is beyond --until, so"),
        (("--regex", "("), "--regex: that is no regular expression of RE2: missing ): (."),
        (("--sender", "mallory"), "--sender: `mallory` is neither an account here nor a SID"),
        (("--label", "x", "--after", "y"), "`y` is no lookup identifier, behind which a search"),
        (("--label", "x" * 1001), "--label has 1,001 characters, a condition has at most 1,000."),
        (("--colour", "red"), "There is no option --colour"),
    ],
)
def test_a_wrong_search_has_one_sentence(
    attempt: Command, queue: str, words: tuple[str, ...], sentence: str
) -> None:
    told = attempt("find", queue, *words)
    assert told.status == 2
    assert told.errors.startswith(f"rpcqm: {sentence}")
    assert told.errors.count("\n") == 1


def test_no_queue_and_none_of_that_name_have_one_sentence(
    attempt: Command, refused: Command
) -> None:
    assert attempt("find", "--label", "x").errors == (
        "rpcqm: Name one queue or several, or give --all for every queue.\n"
    )
    assert "there is no such queue" in refused("find", "nowhere-at-all", "--label", "x").errors


@pytest.fixture
def over_network(
    queue_manager: PrivateQueueManager, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[str, ...]]:
    """Options that lead to the same queue manager as if it were elsewhere."""
    queue_manager.run(
        "user", "add", "finder", "--group", "administrators", "--password-stdin", input="secret\n"
    )
    host, port = queue_manager.endpoint("epm")
    monkeypatch.setenv("RPCQM_PASSWORD", "secret")
    monkeypatch.delenv("RPCQM_DATA_DIR")
    yield ("--server", f"{host}:{port}", "--user", "finder")
    queue_manager.run("user", "remove", "finder")


@pytest.mark.parametrize("way", ["its own search", "fetching"])
def test_another_queue_manager_is_searched(
    way: str,
    monkeypatch: pytest.MonkeyPatch,
    attempt: Command,
    orders: str,
    over_network: tuple[str, ...],
) -> None:
    """It makes the search itself where it can; from others every message is fetched."""
    fetched: list[str] = []
    if way == "fetching":

        async def no_search(*_: object, **__: object) -> None:
            raise RpcFault(FaultStatus.nca_s_unk_if)

        monkeypatch.setattr(MaintenanceClient, "search", no_search)
    browse = QueueReader.browse

    def counted(self: QueueReader, *given: Any, **more: Any) -> Any:
        fetched.append(way)
        return browse(self, *given, **more)

    monkeypatch.setattr(QueueReader, "browse", counted)
    told = attempt("find", orders, "--body", "Müller", "--limit", "1", "--json", *over_network)
    assert (told.status, [json.loads(line)["label"] for line in told.lines]) == (0, ["order 1"])
    key = json.loads(told.lines[0])["lookup_id"]
    assert told.errors.splitlines()[1] == (f"The search goes on with `{orders} --after {key}`.")
    rest = attempt("find", orders, "--body", "Müller", "--after", key, "--json", *over_network)
    assert [json.loads(line)["label"] for line in rest.lines] == ["order 2"]
    everywhere = attempt("find", "--all", "--label", "bill*", "--json", *over_network)
    assert orders in {json.loads(line)["queue"].rpartition("\\")[2] for line in everywhere.lines}
    named = attempt("find", orders, "--sender", "alice", *over_network)
    assert (named.status, bool(fetched)) == (2, way == "fetching")
