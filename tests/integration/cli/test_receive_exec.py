"""`rpcqm receive --transactional --exec`: a message leaves its queue when a command is done."""

import json
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rpcqm.client import mq
from rpcqm.testing import PrivateQueueManager
from tests.integration.cli.conftest import Command

RPCQM = f"{shlex.quote(sys.executable)} -m rpcqm"


@pytest.fixture
def names(run: Command, name: str) -> tuple[str, str]:
    """Two empty transactional queues."""
    names = (name, f"{name}-out")
    for each in names:
        run("queue", "create", each, "--transactional")
    return names


def held(attempt: Command, queue: str) -> list[tuple[str, int]]:
    lines = attempt("peek", queue, "--all", "--json").lines
    return [(json.loads(line)["body"], json.loads(line)["abort_count"]) for line in lines]


def test_a_command_that_ends_with_0_commits_what_it_has_received_and_sent(
    attempt: Command, run: Command, names: tuple[str, str]
) -> None:
    orders, bills = names
    run("send", orders, "--transactional", "--body", "hat", "--label", "order 1")
    command = f'{RPCQM} send {bills} --transactional --file - --label "bill of $RPCQM_LABEL"'
    run("receive", orders, "--transactional", "--exec", command)
    assert held(attempt, orders) == []
    (bill,) = run("peek", bills, "--all", "--json").lines
    assert (json.loads(bill)["body"], json.loads(bill)["label"]) == ("hat", "bill of order 1")


def test_a_command_that_fails_keeps_the_message_and_sends_nothing(
    attempt: Command, run: Command, refused: Command, names: tuple[str, str]
) -> None:
    orders, bills = names
    for body in ("one", "two"):
        run("send", orders, "--transactional", "--body", body)
    command = f"{RPCQM} send {bills} --transactional --file - && exit 7"
    outcome = refused("receive", orders, "--transactional", "--all", "--exec", command)
    assert f"ended with exit status 7; nothing was received from `{orders}`" in outcome.errors
    assert held(attempt, bills) == []
    assert held(attempt, orders) == [("one", 1), ("two", 0)]


def test_all_messages_go_to_the_command_one_by_one(
    attempt: Command, run: Command, queue: str, tmp_path: Path
) -> None:
    for body in ("one", "two"):
        run("send", queue, "--body", body)
    run("receive", queue, "--all", "--exec", f"cat >> {tmp_path}/all; echo >> {tmp_path}/all")
    assert (tmp_path / "all").read_text() == "one\ntwo\n"
    assert held(attempt, queue) == []


def test_without_a_command_a_message_is_printed_in_its_transaction(
    attempt: Command, run: Command, names: tuple[str, str]
) -> None:
    run("send", names[0], "--transactional", "--body", "one")
    assert run("receive", names[0], "--transactional", "--format", "body").output == b"one"
    assert held(attempt, names[0]) == []


def test_an_interrupted_command_gives_its_message_back(
    attempt: Command, queue_manager: PrivateQueueManager, run: Command, names: tuple[str, str]
) -> None:
    orders, _ = names
    run("send", orders, "--transactional", "--body", "one")
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "rpcqm", "receive", orders, "--transactional"),
            *("--exec", "echo ready; exec sleep 60", "--data-dir", str(queue_manager.data_dir)),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
    assert held(attempt, orders) == [("one", 1)]


def test_an_ordinary_queue_is_refused_with_advice(
    attempt: Command, refused: Command, run: Command, queue: str
) -> None:
    run("send", queue, "--body", "one")
    outcome = refused("receive", queue, "--transactional", "--exec", "true")
    assert "use transactions with transactional queues, and only there" in outcome.errors
    assert held(attempt, queue) == [("one", 0)]


def test_what_is_given_to_a_command_is_not_printed(attempt: Command, queue: str) -> None:
    outcome = attempt("receive", queue, "--exec", "true", "--format", "json")
    assert outcome.status == 2
    assert "--exec prints no message" in outcome.errors


def test_the_answer_to_a_message_is_received_by_its_correlation(
    run: Command, attempt: Command, queue: str
) -> None:
    question = run("send", queue, "--body", "question").text.strip()
    run("send", queue, "--body", "answer", "--correlation-id", question)
    taken = run("receive", queue, "--correlation-id", question, "--format", "body")
    assert taken.output == b"answer"
    assert attempt("receive", queue, "--correlation-id", question).status == 4
    assert attempt("receive", queue, "--correlation-id", question, "--all").status == 2
    assert held(attempt, queue) == [("question", 0)]


def test_a_label_that_no_environment_can_have_reaches_the_command_as_far_as_it_can(
    queue_manager: PrivateQueueManager, run: Command, attempt: Command, queue: str, tmp_path: Path
) -> None:
    """Half of a character of UTF-16, from whoever may send, would keep its message for ever."""
    with mq.open(queue, queue_manager) as opened:
        opened.send(b"one", label="a\ud800b")
    run("receive", queue, "--exec", f'printf %s "$RPCQM_LABEL" > {tmp_path}/label')
    assert (tmp_path / "label").read_text("utf-8") == "a\N{REPLACEMENT CHARACTER}b"
    assert held(attempt, queue) == []
