"""`rpcqm explain` of messages: where they are, and what happened to them."""

import json
from collections.abc import Callable
from typing import Any

import pytest

Command = Callable[..., Any]


@pytest.fixture
def sent(run: Command, queue: str) -> str:
    """The identifier of a message in a queue with a trail, among others."""
    run("queue", "set", queue, "--trail")
    run("send", queue, "--body", "another")
    identifier: str = run("send", queue, "--body", "x", "--label", "fruit").text.strip()
    return identifier


def test_a_message_is_found_where_it_is(run: Command, queue: str, sent: str) -> None:
    told = json.loads(run("explain", sent, "--json").output)
    ((place,), (event,)) = told["places"], told["events"]
    assert told["id"] == sent
    assert place["queue"].endswith(queue)
    assert place["label"] == "fruit"
    assert (event["happening"], event["lookup_id"]) == ("arrived", place["lookup_id"])
    run("move", queue, f"{queue};late", "--lookup-id", place["lookup_id"])
    assert f"{queue};late, lookup id {place['lookup_id']}, since" in run("explain", sent).lines[0]


def test_what_happened_to_a_message_is_told(run: Command, queue: str, sent: str) -> None:
    run("queue", "set", queue, "--journal")
    run("receive", queue, "--all")
    lines = run("explain", sent.strip("{").replace("}", "")).lines
    assert lines[0].split(",")[0].endswith(f"{queue};JOURNAL")
    assert [line.split("  ")[1].strip() for line in lines[3:]][-2:] == ["received", "kept"]
    run("purge", f"{queue};JOURNAL")
    assert run("explain", sent).lines[0] == "It is in no queue any more, or somebody is reading it."


def test_a_trail_can_be_seen_and_ended(run: Command, refused: Command, queue: str) -> None:
    assert json.loads(run("queue", "show", queue, "--json").output)["trail"] is False
    run("queue", "set", queue, "--trail")
    assert "Event trail     yes" in run("queue", "show", queue).lines
    run("queue", "set", queue, "--no-trail")
    identifier = run("send", queue, "--body", "x").text.strip()
    assert json.loads(run("explain", identifier, "--json").output)["events"] == []
    run("purge", queue)
    assert "no event trail tells of it" in refused("explain", identifier).errors
