"""Two queue managers with one identity, as a receiver sees them (G492, G493)."""

import json
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from rpcqm.codec.packet.types import TxSequenceID
from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.binary.binary_stranger import BinaryStranger
from tests.support.ports import reserved_port
from tests.support.waiting import PATIENCE

EVENT = "two queue managers have one identity"
BOTH_ALIVE = "both addresses are alive"
OTHER_CONTENT = "an identifier came back with other content"
DAY = 86_400_000
ORDERS = "DIRECT=TCP:127.0.0.1\\private$\\orders"


@pytest.fixture
def receiver() -> Iterator[PrivateQueueManager]:
    with private_queue_manager() as made:
        made.run("queue", "create", "orders")
        yield made


@pytest.fixture
def guid() -> UUID:
    return uuid4()


def lines(receiver: PrivateQueueManager) -> list[dict[str, Any]]:
    """What the log says of identities."""
    read = (json.loads(line) for line in receiver.log.splitlines() if line[:1] == "{")
    return [line for line in read if line["event"] == EVENT]


def attention(receiver: PrivateQueueManager) -> list[str]:
    """What operators are told of identities."""
    told = json.loads(receiver.run("status", "--overview", "--json").stdout)["attention"]
    return [each["text"] for each in told if each["code"] == "identity_shared"]


def speak(stranger: BinaryStranger, number: int, **more: Any) -> None:
    """Let a message arrive, and wait until it has been dealt with."""
    stranger.deliver(ORDERS, number, **more)


def test_copies_that_both_send_are_noticed_by_their_receiver(tmp_path: Path) -> None:
    """Messages of the second one are dropped as before, and everybody is told of it."""
    port = reserved_port()
    sending = f'name = "sender"\n[binary]\npeers = "other=127.0.0.1:{port}"\n'
    with ExitStack() as stack:
        receiver = PrivateQueueManager(tmp_path / "other", ("--binary-port", str(port)))
        original = PrivateQueueManager(tmp_path / "original", configuration=sending)
        copy = PrivateQueueManager(tmp_path / "copy", configuration=sending)
        for each in (receiver, original, copy):
            stack.callback(each.stop)
        receiver.start().run("queue", "create", "orders")
        receiver.run("queue", "create", "stream", "--transactional")
        send_some(original.start(), "original", 1)
        await_messages(receiver, 1)
        original.stop()
        shutil.copytree(original.data_dir, copy.data_dir)
        copy.run("identity", "moved")
        send_some(original.start(), "original", 10)
        await_messages(receiver, 11)
        assert lines(receiver) == []
        send_some(copy.start(), "copy", 10)
        end = time.monotonic() + PATIENCE
        while not attention(receiver):
            assert time.monotonic() < end, receiver.log
        (line,) = lines(receiver)
        identity = json.loads(original.ready_path.read_text())["id"]
        assert line["queue_manager"] == identity
        assert line["addresses"] == ["127.0.0.1", "127.0.0.1"]
        assert line["reason"] == OTHER_CONTENT
        assert attention(receiver) == [
            f"Two queue managers have the identity {identity}, both at 127.0.0.1: messages of one "
            "are dropped as duplicates of the other's."
        ]
        doctor = receiver.run("doctor", check=False)
        assert doctor.returncode == 1
        assert f"Two queue managers have the identity {identity}" in doctor.stdout
        assert bodies(receiver, "orders") == ["original"] * 22


def send_some(sender: PrivateQueueManager, body: str, count: int) -> None:
    """So many of each kind: express, recoverable, transactional."""
    for options in (["--express"], [], ["--transactional"]):
        queue = "stream" if "--transactional" in options else "orders"
        name = f"DIRECT=OS:other\\private$\\{queue}"
        sender.run("send", name, "--body", body, "--count", str(count), *options)


def bodies(receiver: PrivateQueueManager, queue: str) -> list[str]:
    printed = receiver.run("peek", queue, "--all", "--json", check=False).stdout
    return [str(json.loads(line)["body"]) for line in printed.splitlines()]


def await_messages(receiver: PrivateQueueManager, count: int) -> None:
    """Until so many messages of each kind are there, all of the first one."""
    end = time.monotonic() + PATIENCE
    wanted = ["original"] * 2 * count, ["original"] * count
    while (found := (bodies(receiver, "orders"), bodies(receiver, "stream"))) != wanted:
        assert time.monotonic() < end, (*map(Counter, found), receiver.log)


def test_one_identity_at_two_addresses_that_both_live_is_reported_once(
    receiver: PrivateQueueManager, guid: UUID
) -> None:
    address = receiver.endpoint("binary")
    with (
        BinaryStranger(address, guid, "127.0.0.2", up=DAY) as first,
        BinaryStranger(address, guid, "127.0.0.3", up=2 * DAY) as second,
    ):
        speak(second, 1)
        assert lines(receiver) == []  # the first one may have become the second one
        speak(first, 2)
        (line,) = lines(receiver)
        assert (line["queue_manager"], line["reason"]) == (str(guid), BOTH_ALIVE)
        assert line["addresses"] == ["127.0.0.2", "127.0.0.3"]
        with BinaryStranger(address, guid, "127.0.0.3", up=2 * DAY + 100):
            speak(first, 3)
        assert len(lines(receiver)) == 1
    (text,) = attention(receiver)
    assert f"{guid}, at 127.0.0.2 and at 127.0.0.3" in text
    receiver.restart()
    assert attention(receiver) == []


@pytest.mark.parametrize(
    ("up", "address"),
    [
        pytest.param(DAY + 5_000, "127.0.0.3", id="a host with several addresses"),
        pytest.param((1 << 32) - 4_000, "127.0.0.3", id="the count of whose time begins anew"),
        pytest.param(0, "127.0.0.3", id="somebody who says nothing of its system"),
        pytest.param(2 * DAY, "127.0.0.2", id="two behind one address"),
    ],
)
def test_a_queue_manager_may_have_several_addresses(
    receiver: PrivateQueueManager, guid: UUID, up: int, address: str
) -> None:
    since = DAY if up < 1 << 31 else 4_000
    with (
        BinaryStranger(receiver.endpoint("binary"), guid, "127.0.0.2", up=since) as first,
        BinaryStranger(receiver.endpoint("binary"), guid, address, up=up) as second,
    ):
        for number, stranger in enumerate((second, first, second, first), 1):
            speak(stranger, number)
    assert lines(receiver) == []
    assert attention(receiver) == []


def test_a_queue_manager_may_come_back_from_another_address_after_a_restart(
    receiver: PrivateQueueManager, guid: UUID
) -> None:
    """The session of before is open here for a while, and nobody speaks by it any more."""
    address = receiver.endpoint("binary")
    with BinaryStranger(address, guid, "127.0.0.2", up=DAY) as before:
        speak(before, 1)
        with BinaryStranger(address, guid, "127.0.0.3", up=1_000) as after:
            for number in (2, 3):
                speak(after, number)
            assert lines(receiver) == []
    with BinaryStranger(address, guid, "127.0.0.2", up=2_000) as back:
        speak(back, 4)
    assert lines(receiver) == []


def test_somebody_else_with_our_own_identity_is_reported_at_once(
    receiver: PrivateQueueManager,
) -> None:
    own = UUID(json.loads(receiver.ready_path.read_text())["id"])
    with BinaryStranger(receiver.endpoint("binary"), own, "127.0.0.2", up=DAY) as other:
        speak(other, 1)
    (line,) = lines(receiver)
    assert line["queue_manager"] == str(own)
    assert line["addresses"] == ["127.0.0.2", "here"]


def test_a_queue_manager_that_sends_to_itself_is_nobody_else(tmp_path: Path) -> None:
    port = reserved_port()
    settings = f'name = "self"\n[binary]\npeers = "mirror=127.0.0.1:{port}"\n'
    with private_queue_manager(
        ("--binary-port", str(port)), settings, data_dir=tmp_path / "data"
    ) as made:
        made.run("queue", "create", "orders")
        made.run("send", "DIRECT=OS:mirror\\private$\\orders", "--body", "original")
        end = time.monotonic() + PATIENCE
        while bodies(made, "orders") != ["original"]:
            assert time.monotonic() < end, made.log
        assert lines(made) == []


@pytest.mark.parametrize("many", [1, 40], ids=["alone", "together with others"])
def test_an_identifier_that_comes_back_with_other_content_is_reported(
    receiver: PrivateQueueManager, guid: UUID, many: int
) -> None:
    """What comes again is dropped, whatever is in it; the same message is no reason to speak."""
    sent = int(time.time())
    address = receiver.endpoint("binary")

    def send(body: bytes, source: str, **more: Any) -> None:
        with BinaryStranger(address, guid, source) as stranger:
            stranger.send_together(ORDERS, many, body=body, **{"sent_time": sent} | more)

    send(b"one", "127.0.0.2")
    send(b"one", "127.0.0.3")
    assert lines(receiver) == []
    send(b"two", "127.0.0.3")
    (line,) = lines(receiver)
    assert line["addresses"] == ["127.0.0.2", "127.0.0.3"]
    assert line["reason"] == OTHER_CONTENT
    send(b"one", "127.0.0.4", sent_time=sent - 1)
    assert [each["addresses"][1] for each in lines(receiver)] == ["127.0.0.3", "127.0.0.4"]
    count = receiver.run("queue", "list", "--json").stdout
    assert [each["messages"] for each in json.loads(count)] == [many]


def test_a_copy_whose_transactional_messages_are_taken_in_a_sequence_of_their_own_is_noticed(
    receiver: PrivateQueueManager, guid: UUID
) -> None:
    """Nothing is dropped then, but the identifiers have come before."""
    receiver.run("queue", "create", "stream", "--transactional")
    name = ORDERS.replace("orders", "stream")

    def send(sequence: int, body: bytes, source: str) -> None:
        more = {
            "transactional_message_sequence_identifier": TxSequenceID(1, sequence),
            "transaction_sequence_number": 1,
            "transaction_identifier": 1,
        }
        with BinaryStranger(receiver.endpoint("binary"), guid, source) as stranger:
            stranger.send_together(name, 1, body=body, sent_time=int(time.time()), **more)

    send(1_000, b"one", "127.0.0.2")
    send(2_000, b"two", "127.0.0.3")
    assert [line["addresses"] for line in lines(receiver)] == [["127.0.0.2", "127.0.0.3"]]
    assert bodies(receiver, "stream") == ["one", "two"]
