"""`rpcqm dead-letter`: list, inspect, resend."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

Command = Callable[..., Any]


@pytest.fixture
def letter(run: Command, queue: str) -> Iterator[str]:
    """The lookup identifier of a message that was purged, in the system's dead-letter queue."""
    run("send", queue, "--body", "precious", "--label", "fruit", "--dead-letter")
    run("purge", queue)
    (found,) = json.loads(run("dead-letter", "list", "--json").output)
    yield found["lookup_id"]
    run("purge", "DeadLetter$")


def test_dead_letters_are_listed_with_what_they_were_for(
    run: Command, queue: str, letter: str
) -> None:
    heading, line = run("dead-letter", "list").lines
    assert heading.split("  ")[0] == "LOOKUP ID"
    assert line.startswith(letter)
    assert line.endswith("fruit")
    assert rf".\private$\{queue}" in line


def test_everything_is_told_of_one(run: Command, queue: str, letter: str) -> None:
    told = json.loads(run("dead-letter", "inspect", letter, "--json").output)
    assert told["queue"] == "DeadLetter$"
    assert told["destination"] == rf"DIRECT=OS:.\private$\{queue}"
    assert told["class"] == "NACK_Q_PURGED"
    assert told["reason"] == "the queue was purged before the message was received"
    assert (told["body"], told["label"]) == ("precious", "fruit")
    assert "Body " in run("dead-letter", "inspect", letter).text


def test_what_was_in_a_queue_that_is_deleted_can_be_sent_elsewhere(run: Command, name: str) -> None:
    run("queue", "create", name)
    run("send", name, "--body", "precious", "--count", "3", "--dead-letter")
    run("queue", "delete", name)
    letters = json.loads(run("dead-letter", "list", "--json").output)
    assert [each["class"] for each in letters] == ["NACK_Q_DELETED"] * 3
    assert letters[0]["reason"] == "the queue was deleted before the message was received"
    other = f"{name}-other"
    run("queue", "create", other)
    assert run("dead-letter", "resend", "--all", "--to", other).text == "Resent 3 messages.\n"
    assert run("receive", other, "--format", "body").output == b"precious"


def test_one_is_sent_again(run: Command, queue: str, letter: str) -> None:
    before = json.loads(run("dead-letter", "inspect", letter, "--json").output)
    assert run("dead-letter", "resend", letter).text == "Resent 1 message.\n"
    (message,) = [json.loads(x) for x in run("peek", queue, "--format", "json").lines]
    for key in ("body", "label", "priority", "delivery", "body_type", "application_tag"):
        assert message[key] == before[key]
    assert message["id"] != before["id"]
    assert json.loads(run("dead-letter", "list", "--json").output) == []


def test_all_are_sent_to_another_queue(run: Command, queue: str, letter: str) -> None:
    other = f"{queue}-other"
    run("queue", "create", other)
    run("send", queue, "--body", "second", "--dead-letter")
    run("purge", queue)
    assert run("dead-letter", "resend", "--all", "--to", other).text == "Resent 2 messages.\n"
    assert len(run("peek", other, "--all", "--format", "json").lines) == 2
    assert letter not in run("dead-letter", "list").text


def test_one_that_cannot_be_sent_stays(run: Command, refused: Command, letter: str) -> None:
    outcome = refused("dead-letter", "resend", letter, "--to", "no-such-queue")
    assert "(MQ_ERROR_QUEUE_NOT_FOUND)" in outcome.errors
    assert letter in run("dead-letter", "list").text


def test_a_full_queue_holds_up_no_letters_for_others(
    run: Command, refused: Command, queue: str
) -> None:
    tiny = f"{queue}-tiny"
    run("queue", "create", tiny, "--quota", "1")
    body = "x" * 300
    for name in (tiny, tiny, queue):
        run("send", name, "--body", body, "--dead-letter")
        run("purge", name)
    run("send", tiny, "--body", body)
    outcome = refused("dead-letter", "resend", "--all")
    assert outcome.errors == (
        f"rpcqm: 1 resent; 2 stay: `{tiny}` is at its quota of 1 KB "
        "(MQ_ERROR_INSUFFICIENT_RESOURCES).\n"
    )
    assert len(run("peek", queue, "--all", "--json").lines) == 1
    assert len(json.loads(run("dead-letter", "list", "--json").output)) == 2
    outcome = refused("dead-letter", "resend", "--all", "--to", "no-such-queue")
    assert "0 resent; 2 stay:" in outcome.errors
    run("purge", tiny)
    outcome = refused("dead-letter", "resend", "--all")
    assert "1 resent; 1 stays:" in outcome.errors
    run("purge", "DeadLetter$")


def test_a_transactional_one_is_sent_in_a_transaction(run: Command, name: str) -> None:
    run("queue", "create", name, "--transactional")
    run("send", name, "--body", "exact", "--transactional", "--dead-letter")
    run("purge", name)
    (found,) = json.loads(run("dead-letter", "list", "--json").output)
    assert found["queue"] == "XactDeadLetter$"
    run("dead-letter", "resend", found["lookup_id"])
    assert run("receive", name, "--format", "body").output == b"exact"


def test_what_is_not_there_is_one_sentence(refused: Command, attempt: Command) -> None:
    assert "There is no dead letter 7;" in refused("dead-letter", "inspect", "7").errors
    assert attempt("dead-letter", "resend").status == 2
    assert attempt("dead-letter", "resend", "7", "--all").status == 2


def test_a_copy_stays_in_the_journal_of_this_computer(run: Command, queue: str) -> None:
    run("send", queue, "--body", "kept", "--journal")
    assert run("receive", "Journal$", "--format", "body").output == b"kept"


def test_one_that_came_too_late_gets_more_time(run: Command, queue: str) -> None:
    run("send", queue, "--body", "late", "--dead-letter", "--ttbr", "0")
    (letter,) = json.loads(run("dead-letter", "list", "--json").output)
    assert letter["reason"] == "the message was not received in time"
    assert letter["likely_reason"] == "not received in time"
    run("dead-letter", "resend", letter["lookup_id"], "--ttbr", "3600")
    (message,) = [json.loads(x) for x in run("receive", queue, "--json").lines]
    assert (message["body"], message["ttbr"]) == ("late", 3600)


def test_people_read_no_json(run: Command, letter: str) -> None:
    lines = dict(line.split("  ", 1) for line in run("dead-letter", "inspect", letter).lines)
    assert lines["Lookup id"].strip() == letter
    assert lines["Transactional"].strip() == "no"
    assert not any("[]" in value for value in lines.values())
