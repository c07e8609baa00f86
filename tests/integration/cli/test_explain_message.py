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
    *_, received, kept, _, state = lines
    assert [line.split("  ")[1].strip() for line in (received, kept)] == ["received", "kept"]
    assert state.startswith("The event trail of ")
    assert state.endswith(f"{queue} is on.")
    run("purge", f"{queue};JOURNAL")
    assert run("explain", sent).lines[0] == "It is in no queue any more."


def test_a_trail_can_be_seen_and_ended(run: Command, refused: Command, queue: str) -> None:
    assert json.loads(run("queue", "show", queue, "--json").output)["trail"] is False
    run("queue", "set", queue, "--trail")
    assert "Event trail     yes" in run("queue", "show", queue).lines
    run("queue", "set", queue, "--no-trail")
    identifier = run("send", queue, "--body", "x").text.strip()
    told = json.loads(run("explain", identifier, "--json").output)
    assert told["events"] == []
    assert list(told["trails"].values()) == [False]
    assert f"{queue} is off" in run("explain", identifier).lines[-1]
    run("purge", queue)
    assert "no event trail tells of it" in refused("explain", identifier).errors


def test_a_message_on_its_way_is_told_of_by_explain_and_by_trace(run: Command, name: str) -> None:
    there = rf"DIRECT=OS:nowhere.invalid\private$\{name}"
    identifier = run("send", there, "--body", "x").text.strip()
    sentence = run("explain", identifier).lines[0]
    assert sentence.startswith(f"It is on its way to {there}, lookup id ")
    assert sentence.endswith(f"`rpcqm explain '{there}'` tells how that goes.")
    assert run("trace", identifier).lines[0] == sentence


def test_explain_tells_of_a_queue_elsewhere_too_and_trace_is_its_earlier_spelling(
    run: Command, refused: Command, name: str
) -> None:
    there = rf"DIRECT=OS:nowhere.invalid\private$\{name}"
    assert "Nothing was sent from here" in refused("explain", there).errors
    run("send", there, "--body", "x", "--count", "2")
    told = json.loads(run("explain", there, "--json").output)
    assert (told["format_name"], told["messages"]) == (there, 2)
    assert json.loads(run("trace", there, "--json").output)["messages"] == 2


def test_a_message_that_nobody_knows_is_one_sentence(refused: Command) -> None:
    error = refused("explain", r"{00000000-0000-0000-0000-000000000001}\5").errors
    assert error == (
        r"rpcqm: {00000000-0000-0000-0000-000000000001}\5 is in no queue here, and no event trail "
        "tells of it; `rpcqm queue set QUEUE --trail` begins one.\n"
    )


def test_dead_letter_queues_have_one_name_and_the_advice_fits_them(
    run: Command, refused: Command, queue: str
) -> None:
    run("queue", "set", queue, "--trail")
    identifier = run("send", queue, "--body", "x", "--dead-letter").text.strip()
    run("purge", queue)
    lines = run("explain", identifier).lines
    assert lines[0].startswith("It is in DeadLetter$, lookup id ")
    assert any(line.split()[-2:] == [told_path(run, queue), "DeadLetter$"] for line in lines)
    assert any("`rpcqm queue set 'DeadLetter$' --trail` begins it" in line for line in lines)
    told = json.loads(run("explain", identifier, "--json").output)
    assert [place["queue"] for place in told["places"]] == ["DeadLetter$"]
    run("queue", "set", "DeadLetter$", "--trail")
    assert "The event trail of DeadLetter$ is on." in run("explain", identifier).lines
    run("queue", "set", "DeadLetter$", "--no-trail")
    letters = json.loads(run("dead-letter", "list", "--json").output)
    assert ("DeadLetter$", identifier) in [(each["queue"], each["id"]) for each in letters]
    assert "Path name       DeadLetter$" in run("queue", "show", "DeadLetter$").lines
    assert "`rpcqm machine acl show` tells" in refused("queue", "delete", "DeadLetter$").errors


def told_path(run: Command, queue: str) -> str:
    shown: str = json.loads(run("queue", "show", queue, "--json").output)["path_name"]
    return shown
