"""`rpcqm open`: who has a queue open, and ending that."""

import json

from rpcqm.cli.output import told_time
from rpcqm.client.names import format_name
from rpcqm.testing import PrivateQueueManager
from tests.integration.cli.conftest import Command


def test_a_reader_is_seen_and_ended(
    run: Command, refused: Command, queue: str, queue_manager: PrivateQueueManager
) -> None:
    with queue_manager.client() as client, client.open_reader(format_name(queue)):
        (row,) = json.loads(run("open", "list", queue, "--json").output)
        assert (row["queues"], row["access"], row["address"]) == ([queue], "receive", "local")
        lines = run("open", "list", queue).lines
        assert lines[0].split()[:3] == ["ID", "QUEUE", "HELD"]
        assert lines[1].split()[:2] == [row["id"], queue]
        assert f" {told_time(row['since'])} " in lines[1], "times are told as everywhere"
        assert run("open", "end", row["id"]).text == f"{row['id']} has ended.\n"
        assert json.loads(run("open", "list", queue, "--json").output) == []
        said = refused("open", "end", row["id"]).errors
        assert said.startswith(f"rpcqm: `{row['id']}` is not open, or not any more;")


def test_connections_are_told(run: Command) -> None:
    rows = json.loads(run("open", "connections", "--json").output)
    assert "local" in {each["door"] for each in rows}
    assert run("open", "connections").lines[0].split() == [
        *("ID", "BY", "FROM", "LOGGED", "ON", "SINCE", "HANDLES")
    ]


def test_rows_are_as_many_as_wanted(
    attempt: Command, queue: str, queue_manager: PrivateQueueManager
) -> None:
    name = format_name(queue)
    with queue_manager.client() as client, client.open_reader(name), client.open_reader(name):
        told = attempt("open", "list", queue, "--limit", "1")
    assert len(told.lines) == 2
    assert told.errors == "There are more than 1; --limit shows more.\n"
