"""`rpcqm move`, `copy` and `resend` to any queue, of messages that are chosen in any way."""

import json
from typing import Any

import pytest

from rpcqm.testing import PrivateQueueManager
from tests.integration.cli.conftest import Command, Outcome


def told(attempt: Command, queue: str) -> list[dict[str, Any]]:
    """The messages of a queue, which may have none."""
    return [json.loads(line) for line in attempt("peek", queue, "--all", "--format", "json").lines]


def labels(attempt: Command, queue: str) -> list[str]:
    return [str(each["label"]) for each in told(attempt, queue)]


@pytest.fixture
def other(run: Command, queue: str) -> str:
    name = f"{queue}-other"
    run("queue", "create", name)
    for label in ("eu-1", "us-2", "eu-3"):
        run("send", queue, "--body", f"body of {label}", "--label", label)
    return name


def test_messages_move_to_another_queue(
    run: Command, attempt: Command, queue: str, other: str
) -> None:
    assert run("move", queue, other).text == "Moved 1 message.\n"
    assert run("move", queue, other, "--all").text == "Moved 2 messages.\n"
    assert (labels(attempt, queue), labels(attempt, other)) == ([], ["eu-1", "us-2", "eu-3"])


def test_a_filter_says_which_messages_are_meant(
    run: Command, attempt: Command, queue: str, other: str
) -> None:
    assert run("copy", queue, other, "--body", "of eu").text == "Copied 2 messages.\n"
    assert run("move", queue, other, "--label", "US*", "--ignore-case").text == "Moved 1 message.\n"
    assert (labels(attempt, queue), labels(attempt, other)) == (
        ["eu-1", "eu-3"],
        ["eu-1", "eu-3", "us-2"],
    )
    assert run("move", queue, other, "--since", "1h", "--priority", "7").text == (
        "Moved 0 messages.\n"
    )


def test_identifiers_say_which_messages_are_meant(
    run: Command, attempt: Command, refused: Command, queue: str, other: str
) -> None:
    first, _, last = (str(each["lookup_id"]) for each in told(attempt, queue))
    words = ("--lookup-id", first, "--lookup-id", last)
    assert run("move", queue, other, *words).text == "Moved 2 messages.\n"
    assert labels(attempt, other) == ["eu-1", "eu-3"]
    gone = refused("move", queue, other, "--lookup-id", first)
    assert "(MQ_ERROR_MESSAGE_NOT_FOUND)" in gone.errors


def test_a_message_is_sent_again_with_changes(
    run: Command, attempt: Command, queue: str, other: str
) -> None:
    (first, *_) = told(attempt, queue)
    changes = (
        *("--set-label", "new", "--set-body", "other", "--set-priority", "6"),
        *("--set-ttbr", "1h", "--set-correlation-id", "01" * 20, "--set-dead-letter", "no"),
        *("--set-response-queue", "answers", "--set-application-tag", "7"),
    )
    words = ("--lookup-id", str(first["lookup_id"]), "--to", other, *changes)
    assert run("resend", queue, *words, "--keep").text == "Sent again 1 message.\n"
    (new,) = told(attempt, other)
    assert (new["label"], new["body"], new["priority"]) == ("new", "other", 6)
    assert (new["ttbr"], new["application_tag"]) == (3600, 7)
    assert new["response_queue"].endswith("answers")
    assert len(told(attempt, queue)) == 3
    assert run("resend", queue, *words[:2], "--set-ttbr", "forever").text == (
        "Sent again 1 message.\n"
    )
    assert labels(attempt, queue) == ["us-2", "eu-3", "eu-1"], "to where it was for, at its end"


def test_a_full_queue_takes_what_fits_and_the_rest_stays(
    run: Command, attempt: Command, refused: Command, queue: str, other: str
) -> None:
    run("queue", "set", other, "--quota", "1")
    run("send", queue, "--body", "x" * 300, "--count", "4")
    outcome = refused("move", queue, other, "--all")
    assert f"`{other}` is at its quota of 1 KB (MQ_ERROR_INSUFFICIENT_RESOURCES)" in outcome.errors
    moved = len(told(attempt, other))
    assert outcome.errors.startswith(f"rpcqm: Moved {moved} message")
    assert f"{7 - moved} stay: " in outcome.errors
    assert moved + len(told(attempt, queue)) == 7


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("move", "Q", "Q"), "the messages are in that queue already"),
        (("move", "Q", "Q-other;late"), "(STATUS_INVALID_PARAMETER)"),
        (("copy", "Q", "Q;late"), "(MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION)"),
        (("move", "Q", "Q-missing"), "(MQ_ERROR_QUEUE_NOT_FOUND)"),
        (("resend", "Q", "--all", "--set-label", "x" * 300), "(MQ_ERROR_LABEL_TOO_LONG)"),
    ],
)
def test_what_is_not_possible_is_one_sentence_and_nothing_is_done(
    refused: Command,
    run: Command,
    attempt: Command,
    queue: str,
    other: str,
    words: tuple[str, ...],
    sentence: str,
) -> None:
    outcome = refused(*(word.replace("Q", queue) for word in words))
    assert sentence in outcome.errors
    assert outcome.errors.count("\n") == 1
    assert labels(attempt, queue) == ["eu-1", "us-2", "eu-3"]


@pytest.mark.parametrize(
    "words",
    [
        ("move", "Q", "Q-other", "--all", "--lookup-id", "5"),
        ("move", "Q", "Q-other", "--lookup-id", "5", "--label", "x"),
        ("move", "Q", "Q-other", "--ignore-case"),
        ("move", "Q", "Q-other", "--since", "soon"),
        ("resend", "Q", "--set-type", "json"),
        ("resend", "Q", "--set-type", "json", "--set-body", "{"),
        ("resend", "Q", "--set-priority", "8"),
    ],
)
def test_what_cannot_be_meant_is_wrong_usage(
    attempt: Command, queue: str, words: tuple[str, ...]
) -> None:
    assert attempt(*(word.replace("Q", queue) for word in words)).status == 2


def test_journals_dead_letters_and_subqueues_are_sources(
    run: Command, attempt: Command, queue: str, other: str
) -> None:
    run("queue", "set", queue, "--journal")
    run("receive", queue)
    assert run("move", f"{queue};journal", other, "--all").text == "Moved 1 message.\n"
    run("move", queue, f"{queue};bad", "--all")
    assert run("copy", f"{queue};bad", other, "--all").text == "Copied 2 messages.\n"
    assert run("resend", f"{queue};bad", "--all").text == "Sent again 2 messages.\n"
    assert labels(attempt, queue) == ["us-2", "eu-3"]
    assert labels(attempt, other) == ["eu-1", "us-2", "eu-3"]


def test_an_order_has_one_line_of_the_log(
    run: Command, queue: str, other: str, queue_manager: PrivateQueueManager
) -> None:
    before = len(queue_manager.log)
    run("move", queue, f"{queue};late", "--all")
    run("move", f"{queue};late", other, "--all")
    lines = [line for line in queue_manager.log[before:].splitlines() if "operator acts" in line]
    assert len(lines) == 2
    assert all("move messages" in line and '"messages": 3' in line for line in lines), lines


def test_to_elsewhere_they_wait_until_they_can_go(
    run: Command, attempt: Command, queue: str, other: str
) -> None:
    away = r"DIRECT=OS:nowhere.invalid\private$\far"
    assert run("move", queue, away, "--all").text == "Moved 3 messages.\n"
    assert labels(attempt, queue) == []
    waiting: Outcome = run("dead-letter", "list", "--queue", away, "--json")
    assert len(json.loads(waiting.output)) == 3
    assert run("move", away, other, "--all").text == "Moved 3 messages.\n"
    assert labels(attempt, other) == ["eu-1", "us-2", "eu-3"]
