"""`rpcqm send`, `receive`, `peek` and `move` against a real server."""

import io
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.testing import PrivateQueueManager
from tests.support.rpc.readers import CallCounter

Command = Callable[..., Any]
IDENTIFIER = re.compile(r"\{[0-9a-f-]{36}\}\\[0-9]+")
BINARY = bytes(range(256)) * 3


def messages(outcome: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in outcome.lines]


def count(run: Command, queue: str) -> int:
    found = json.loads(run("queue", "show", queue, "--json").output)["messages"]
    assert isinstance(found, int)
    return found


def test_a_message_is_sent_looked_at_and_received(run: Command, queue: str) -> None:
    sent = run("send", queue, "--body", "two apples", "--label", "fruit").text.strip()
    assert IDENTIFIER.fullmatch(sent)
    (peeked,) = messages(run("peek", queue, "--format", "json"))
    assert peeked["id"] == sent
    assert (peeked["body"], peeked["label"]) == ("two apples", "fruit")
    heading, row = run("peek", queue).lines
    assert heading.split() == ["LOOKUP", "ID", "ARRIVED", "PRI", "SIZE", "LABEL", "TYPE", "BODY"]
    assert row.startswith(peeked["lookup_id"])
    assert row.endswith("two apples")
    assert run("receive", queue, "--format", "body").output == b"two apples"
    assert count(run, queue) == 0


def test_every_property_of_a_message_arrives(run: Command, queue: str, name: str) -> None:
    correlation = "{00112233-4455-6677-8899-aabbccddeeff}\\42"
    run(
        *("send", queue, "--body", "bill", "--label", "März", "--priority", "6"),
        *("--ttbr", "1000", "--ttrq", "500", "--correlation-id", correlation),
        *("--response-queue", "answers", "--admin-queue", "acks"),
        *("--ack", "no-receive,receive", "--ack", "arrival"),
    )
    (message,) = messages(run("receive", queue, "--format", "json"))
    assert message["label"] == "März"
    assert message["priority"] == 6
    assert message["ttbr"] == 1000
    assert message["correlation_id"] == correlation
    assert message["response_queue"].casefold().endswith(r"\private$\answers")
    assert message["admin_queue"].casefold().endswith(r"\private$\acks")
    assert message["acknowledgements"] == ["arrival", "receive", "no-receive"]
    assert message["class"] == "NORMAL"
    assert message["delivery"] == "recoverable"
    assert message["transactional"] is False
    assert message["sent"] <= message["arrived"]


@pytest.mark.parametrize("ordinal", [7, 42, 4294967295])
def test_a_correlation_identifier_may_have_any_form(run: Command, queue: str, ordinal: int) -> None:
    named = rf"{{00112233-4455-6677-8899-aabbccddeeff}}\{ordinal}"
    digits = MessageIdentifier.parse(named).encode().hex()
    for form in (named, named.replace("{", "").replace("}", ""), digits, digits.upper()):
        run("send", queue, "--correlation-id", form)
        (message,) = messages(run("receive", queue, "--format", "json"))
        assert message["correlation_id"] == named


def test_a_dead_letter_goes_to_the_queue_that_the_sender_has_chosen(
    run: Command, attempt: Command, queue: str
) -> None:
    letters = f"{queue}-letters"
    run("queue", "create", letters)
    words = ("send", queue, "--body", "late", "--ttbr", "0")
    run(*words, "--dead-letter-queue", letters)
    (found,) = messages(run("receive", letters, "--timeout", "20000", "--format", "json"))
    assert found["body"] == "late"
    assert "MQ_ERROR_QUEUE_NOT_FOUND" in attempt(*words, "--dead-letter-queue", "missing").errors


def test_acknowledgements_come_to_the_administration_queue(
    run: Command, queue: str, name: str
) -> None:
    acks = f"{queue}-acks"
    run("queue", "create", acks)
    wanted = ("--ack", "arrival,full-receive", "--admin-queue", acks)
    received = run("send", queue, "--body", "x", *wanted).text.strip()
    run("receive", queue)
    expired = run("send", queue, "--body", "y", "--ttbr", "0", *wanted).text.strip()
    found = [
        (message["class"], message["correlation_id"])
        for message in messages(run("receive", acks, "--all", "--format", "json"))
    ]
    assert found[:2] == [("ACK_REACH_QUEUE", received), ("ACK_RECEIVE", received)]
    assert ("NACK_RECEIVE_TIMEOUT", expired) in found[2:]


def test_express_messages_say_so(run: Command, queue: str) -> None:
    run("send", queue, "--body", "x", "--express")
    (message,) = messages(run("receive", queue, "--format", "json"))
    assert message["delivery"] == "express"


def test_a_binary_body_arrives_as_it_was(
    run: Command, queue: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "body").write_bytes(BINARY)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(BINARY)))
    run("send", queue, "--file", str(tmp_path / "body"))
    run("send", queue, "-")
    assert run("receive", queue, "--format", "body").output == BINARY
    (message,) = messages(run("peek", queue, "--format", "json"))
    assert "body" not in message
    assert run("receive", queue, "--format", "body").output == BINARY


def test_a_large_body_arrives_as_it_was(run: Command, queue: str, tmp_path: Path) -> None:
    body = os.urandom(3_900_000)
    (tmp_path / "body").write_bytes(body)
    run("send", queue, "--file", str(tmp_path / "body"))
    assert run("peek", queue).lines[1].endswith("…")
    assert run("receive", queue, "--format", "body").output == body


def test_a_body_that_is_too_large_is_refused(refused: Command, queue: str, tmp_path: Path) -> None:
    for size in (5_000_000, 4_194_304):
        (tmp_path / "body").write_bytes(bytes(size))
        outcome = refused("send", queue, "--file", str(tmp_path / "body"))
        assert outcome.errors == (
            f"rpcqm: Cannot send to `{queue}`: the body has {size:,} bytes; a message with its "
            "headers has at most 4,194,304 (MQ_ERROR_INSUFFICIENT_RESOURCES).\n"
        )


def test_an_empty_message_is_a_message(run: Command, queue: str) -> None:
    run("send", queue)
    (message,) = messages(run("receive", queue, "--format", "json"))
    assert (message["body"], message["body_size"], message["label"]) == ("", 0, "")


def test_higher_priorities_are_received_first(run: Command, queue: str) -> None:
    for priority in ("0", "7", "3", "5"):
        run("send", queue, "--body", priority, "--priority", priority)
    received = messages(run("receive", queue, "--all", "--format", "json"))
    assert [message["body"] for message in received] == ["7", "5", "3", "0"]


def test_many_messages_each_have_an_identifier(run: Command, queue: str) -> None:
    sent = run("send", queue, "--body", "x", "--count", "150").lines
    assert len(set(sent)) == 150
    first = messages(run("receive", queue, "--count", "100", "--format", "json"))
    rest = messages(run("receive", queue, "--all", "--format", "json"))
    assert [message["id"] for message in first + rest] == sent


@pytest.mark.parametrize("command", ["receive", "peek"])
@pytest.mark.parametrize("which", [(), ("--all",), ("--count", "3"), ("--timeout", "1")])
def test_an_empty_queue_has_an_exit_status_of_its_own(
    run: Command, nothing_came: Command, queue: str, command: str, which: tuple[str, ...]
) -> None:
    assert nothing_came(command, queue, *which).output == b""
    run("send", queue, "--body", "x", "--count", "3")
    assert len(run(command, queue, *which, "--format", "json").lines) >= 1


def test_fewer_messages_than_asked_for_are_received_and_told(
    run: Command, attempt: Command, nothing_came: Command, queue: str
) -> None:
    run("send", queue, "--body", "x", "--count", "2")
    outcome = attempt("receive", queue, "--count", "3", "--format", "json")
    assert (outcome.status, len(outcome.lines)) == (0, 2)
    assert outcome.errors == "rpcqm: Only 2 messages of 3 came in time.\n"
    nothing_came("receive", queue, "--count", "3")


def test_a_message_is_taken_by_its_lookup_identifier(
    run: Command, refused: Command, queue: str
) -> None:
    run("send", queue, "--body", "first")
    run("send", queue, "--body", "second")
    _, second = messages(run("peek", queue, "--all", "--format", "json"))
    lookup = ("--lookup-id", second["lookup_id"], "--format", "body")
    assert run("peek", queue, *lookup).output == b"second"
    assert run("receive", queue, *lookup).output == b"second"
    assert "(MQ_ERROR_MESSAGE_NOT_FOUND)" in refused("receive", queue, *lookup).errors
    assert run("receive", queue, "--format", "body").output == b"first"


def test_peek_shows_as_many_as_asked_for(run: Command, queue: str) -> None:
    run("send", queue, "--body", "x", "--count", "5")
    assert len(messages(run("peek", queue, "--count", "3", "--format", "json"))) == 3
    assert len(messages(run("peek", queue, "--count", "9", "--format", "json"))) == 5
    assert count(run, queue) == 5


def test_files_hold_what_the_format_says(run: Command, queue: str, tmp_path: Path) -> None:
    run("send", queue, "--body", "hello", "--count", "4")
    (lookup,) = {m["lookup_id"] for m in messages(run("peek", queue, "--format", "json"))}
    for file_format, extension in (("json", "json"), ("hex", "hex"), ("table", "txt")):
        (path,) = run(
            "receive", queue, "--output", str(tmp_path / "in"), "--format", file_format
        ).lines
        assert path.endswith(f".{extension}")
        assert "hello" in Path(path).read_text() or file_format == "hex"
    (body,) = run("receive", queue, "--output", str(tmp_path / "in")).lines
    assert Path(body).read_bytes() == b"hello"
    assert (tmp_path / "in" / f"{lookup}.json").exists()
    assert len(list((tmp_path / "in").iterdir())) == 4


def test_hexadecimal_shows_offsets_bytes_and_text(run: Command, queue: str) -> None:
    run("send", queue, "--type", "bytes", "--body", "0123456789abcdefXYZ\n")
    assert run("receive", queue, "--format", "hex").text == (
        "00000000  30 31 32 33 34 35 36 37  38 39 61 62 63 64 65 66  |0123456789abcdef|\n"
        "00000010  58 59 5a 0a                                       |XYZ.|\n"
    )


def test_a_message_that_cannot_be_written_stays(
    run: Command, refused: Command, queue: str, tmp_path: Path
) -> None:
    run("send", queue, "--body", "precious")
    (lookup,) = [m["lookup_id"] for m in messages(run("peek", queue, "--format", "json"))]
    (tmp_path / f"{lookup}.body").mkdir()
    outcome = refused("receive", queue, "--output", str(tmp_path))
    assert "it is no ordinary file; the message stays in the queue." in outcome.errors
    assert run("receive", queue, "--format", "body").output == b"precious"


def test_an_output_directory_that_cannot_be_made_is_one_sentence(
    run: Command, refused: Command, queue: str, tmp_path: Path
) -> None:
    run("send", queue, "--body", "precious")
    (tmp_path / "file").touch()
    outcome = refused("receive", queue, "--output", str(tmp_path / "file"))
    sentence = f"{tmp_path}/file cannot be made a directory: File exists."
    assert outcome.errors == f"rpcqm: {sentence}\n"
    assert run("receive", queue, "--format", "body").output == b"precious"


def test_a_message_stays_when_its_reader_goes_away(
    run: Command, queue: str, queue_manager: PrivateQueueManager
) -> None:
    run("send", queue, "--body", "precious")
    reading, writing = os.pipe()
    os.close(reading)
    try:
        outcome = queue_manager.run(
            *("receive", queue),
            check=False,
            capture_output=False,
            stdout=writing,
            stderr=subprocess.PIPE,
        )
    finally:
        os.close(writing)
    assert (outcome.returncode, outcome.stderr) == (0, "")
    assert run("receive", queue, "--format", "body").output == b"precious"


def test_a_list_ends_quietly_when_its_reader_goes_away(
    queue_manager: PrivateQueueManager,
) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        outcome = queue_manager.run(
            *("queue", "list"),
            check=False,
            capture_output=False,
            stdout=writing,
            stderr=subprocess.PIPE,
        )
    finally:
        os.close(writing)
    assert (outcome.returncode, outcome.stderr) == (0, "")


def waiting_receiver(queue_manager: PrivateQueueManager, queue: str) -> "subprocess.Popen[bytes]":
    calls = CallCounter(queue_manager)
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "rpcqm", "receive", queue, "--format", "body"),
            *("--timeout", "infinite", "--data-dir", str(queue_manager.data_dir)),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    calls.await_calls(2)  # R_OpenQueue and R_StartReceive
    return process


def test_a_waiting_receiver_gets_the_next_message(
    run: Command, queue: str, queue_manager: PrivateQueueManager
) -> None:
    process = waiting_receiver(queue_manager, queue)
    run("send", queue, "--body", "at last")
    output, errors = process.communicate(timeout=30)
    assert (process.returncode, output, errors) == (0, b"at last", b"")
    assert count(run, queue) == 0


def test_an_interrupted_receiver_takes_nothing(
    run: Command, queue: str, queue_manager: PrivateQueueManager
) -> None:
    process = waiting_receiver(queue_manager, queue)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=30)
    assert (process.returncode, output, errors) == (130, b"", b"")
    run("send", queue, "--body", "for somebody else")
    assert run("receive", queue, "--format", "body").output == b"for somebody else"


def test_messages_of_a_transaction_arrive_together(run: Command, name: str) -> None:
    run("queue", "create", name, "--transactional")
    sent = run("send", name, "--body", "x", "--transactional", "--count", "20").lines
    received = messages(run("receive", name, "--all", "--format", "json"))
    assert [message["id"] for message in received] == sent
    assert all(message["transactional"] for message in received)
    assert {message["delivery"] for message in received} == {"recoverable"}


def test_a_queue_takes_messages_of_its_own_kind_only(
    run: Command, refused: Command, queue: str
) -> None:
    transactional = f"{queue}-x"
    run("queue", "create", transactional, "--transactional")
    assert "(MQ_ERROR_TRANSACTION_USAGE)" in refused("send", transactional).errors
    assert "(MQ_ERROR_TRANSACTION_USAGE)" in refused("send", queue, "--transactional").errors
    assert count(run, queue) == count(run, transactional) == 0


def test_messages_move_to_a_subqueue_and_back(run: Command, queue: str) -> None:
    run("send", queue, "--body", "x", "--count", "5")
    assert run("move", queue, f"{queue};late").text == "Moved 1 message.\n"
    assert count(run, queue) == 4
    lookups = [m["lookup_id"] for m in messages(run("peek", queue, "--all", "--format", "json"))]
    run("move", queue, f"{queue};late", "--lookup-id", lookups[2])
    assert run("move", f"{queue};late", f"{queue};later", "--all").text == "Moved 2 messages.\n"
    (moved, _) = messages(run("peek", f"{queue};later", "--all", "--format", "json"))
    assert moved["move_count"] == 2
    assert run("move", f"{queue};later", queue, "--all").text == "Moved 2 messages.\n"
    assert count(run, queue) == 5
    assert run("move", f"{queue};later", queue, "--all").text == "Moved 0 messages.\n"


def test_moving_nothing_is_told(refused: Command, nothing_came: Command, queue: str) -> None:
    nothing_came("move", queue, f"{queue};late")
    outcome = refused("move", queue, f"{queue};late", "--lookup-id", "7")
    assert "(MQ_ERROR_MESSAGE_NOT_FOUND)" in outcome.errors


@pytest.mark.parametrize("words", [["send"], ["receive"], ["peek"], ["purge"]], ids=str)
def test_a_queue_that_is_not_there_is_refused(
    refused: Command, name: str, words: list[str]
) -> None:
    assert "(MQ_ERROR_QUEUE_NOT_FOUND)" in refused(*words, name).errors
