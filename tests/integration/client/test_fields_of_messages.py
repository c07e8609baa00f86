"""What programs give for the fields of a message, and what they do with a closed queue."""

import asyncio
import datetime
from collections.abc import Iterator

import pytest

from rpcqm.client import mq
from rpcqm.client.names import format_name
from rpcqm.client.outgoing import OutgoingMessage
from rpcqm.client.target import LocalServer
from rpcqm.codec.packet.enums import AcknowledgementsRequested, PrivacyLevel
from rpcqm.codec.packet.types import NULL_IDENTIFIER, MessageIdentifier
from rpcqm.codec.types.mqvalues import INFINITE
from rpcqm.testing import PrivateQueueManager, private_queue_manager

CONFIGURATION = "[storage]\nreserve = 1\n"
IDENTIFIER = MessageIdentifier.parse(r"{00112233-4455-6677-8899-aabbccddeeff}\7")
ANSWERS = format_name("answers")


@pytest.fixture(scope="module")
def queue_manager() -> Iterator[PrivateQueueManager]:
    with private_queue_manager(configuration=CONFIGURATION) as queue_manager:
        queue_manager.run("queue", "create", "orders")
        yield queue_manager


@pytest.fixture
def queue(queue_manager: PrivateQueueManager) -> Iterator[mq.Queue]:
    with mq.open("orders", LocalServer(queue_manager.socket)) as queue:
        yield queue
        queue.purge()


@pytest.mark.parametrize(
    ("name", "given", "received"),
    [
        ("response_queue", "answers", ANSWERS),
        ("response_queue", r".\private$\answers", ANSWERS),
        ("response_queue", ANSWERS, ANSWERS),
        ("response_queue", None, None),
        ("administration_queue", "answers", ANSWERS),
        ("correlation_identifier", str(IDENTIFIER), IDENTIFIER),
        ("correlation_identifier", IDENTIFIER.encode().hex(), IDENTIFIER),
        ("correlation_identifier", IDENTIFIER.encode(), IDENTIFIER),
        ("correlation_identifier", None, NULL_IDENTIFIER),
        ("time_to_be_received", 90, 90),
        ("time_to_be_received", 90.0, 90),
        ("time_to_be_received", datetime.timedelta(minutes=2), 120),
        ("time_to_be_received", None, INFINITE),
        ("time_to_reach_queue", datetime.timedelta(hours=1), 3600),
        ("label", "ä" * 249, "ä" * 249),
        ("priority", 7, 7),
        ("recoverable", False, False),
        ("extension", bytearray(b"more"), b"more"),
        ("acknowledgements", 5, AcknowledgementsRequested.ACK_FULL_REACH_QUEUE),
    ],
)
def test_a_field_is_what_was_meant(
    queue: mq.Queue, name: str, given: object, received: object
) -> None:
    queue.send("x", **{name: given})
    message = queue.receive_one(0)
    assert message is not None
    assert getattr(message, name) == received


WRONG: list[tuple[str, object, type[Exception], str]] = [
    ("response_queue", 7, TypeError, "response_queue takes the name of a queue, not a int"),
    ("response_queue", "a\\b\\c", ValueError, r"response_queue is `a\b\c`, which names no queue"),
    ("correlation_identifier", "abc", ValueError, "correlation_identifier: `abc` is neither"),
    ("correlation_identifier", b"abc", ValueError, "correlation_identifier: `616263` is neither"),
    ("correlation_identifier", 7, TypeError, "correlation_identifier takes a message identifier"),
    ("time_to_be_received", 1.5, ValueError, "time_to_be_received takes whole seconds"),
    ("time_to_be_received", -1, ValueError, "time_to_be_received takes whole seconds"),
    ("time_to_be_received", "soon", TypeError, "time_to_be_received takes whole seconds"),
    (
        "time_to_reach_queue",
        datetime.timedelta(milliseconds=1500),
        ValueError,
        "time_to_reach_queue takes whole seconds",
    ),
    ("label", "l" * 300, ValueError, "label has 300 characters; a message has room for 249"),
    ("label", "ä" * 250, ValueError, "label has 250 characters; a message has room for 249"),
    ("label", "😀" * 125, ValueError, "label has 250 characters; a message has room for 249"),
    ("label", b"x", TypeError, "label takes text, not a bytes"),
    ("priority", 8, ValueError, "priority takes a whole number from 0 to 7, not 8"),
    ("priority", "high", TypeError, "priority takes a whole number from 0 to 7, not a str"),
    ("application_tag", 1 << 32, ValueError, "application_tag takes a whole number"),
    ("recoverable", "no", TypeError, "recoverable takes True or False, not a str"),
    ("extension", "text", TypeError, "extension takes bytes, not a str"),
    ("extension", bytes(4_194_304), ValueError, "body and extension have 4,194,306 bytes"),
    ("acknowledgements", "all", TypeError, "acknowledgements takes AcknowledgementsRequested"),
    ("privacy", 2, ValueError, "privacy takes PrivacyLevel, not 2"),
    ("connector_type", "x", TypeError, "connector_type takes a UUID, not a str"),
    ("lable", "x", TypeError, "lable is no field of a message; did you mean label?"),
]


@pytest.mark.parametrize(
    ("name", "given", "error", "words"), WRONG, ids=[f"{row[0]}-{row[3][:40]}" for row in WRONG]
)
def test_what_a_field_cannot_be_is_refused_by_its_name(
    queue: mq.Queue, name: str, given: object, error: type[Exception], words: str
) -> None:
    with pytest.raises(error) as caught:
        queue.send("x", **{name: given})
    assert str(caught.value).startswith(words)
    assert "\n" not in str(caught.value)
    assert queue.peek(0) is None


def test_a_whole_message_is_looked_at_too(queue: mq.Queue) -> None:
    queue.send(OutgoingMessage(b"x", privacy=PrivacyLevel.NONE, time_to_be_received=5))
    message = queue.receive_one(0)
    assert message is not None
    assert message.time_to_be_received == 5
    with pytest.raises(ValueError, match=r"^label has 300 characters"):
        queue.send(OutgoingMessage(b"x", label="l" * 300))
    with pytest.raises(TypeError, match="has its fields already"):
        queue.send(OutgoingMessage(b"x"), label="x")


@pytest.mark.parametrize("size", [4_194_304, 5_000_000])
def test_a_body_that_is_too_big_is_refused_before_it_is_sent(queue: mq.Queue, size: int) -> None:
    with pytest.raises(ValueError, match=rf"^body has {size:,} bytes; a message with its headers"):
        queue.send(bytes(size))
    queue.send(bytes(4_194_000))
    message = queue.receive_one(0)
    assert message is not None
    assert len(message.body) == 4_194_000


def test_a_datetime_with_a_zone_is_refused(queue: mq.Queue) -> None:
    moment = datetime.datetime(2026, 11, 22, 12, tzinfo=datetime.UTC)
    with pytest.raises(ValueError, match="the body is a datetime with a time zone"):
        queue.send(moment)
    queue.send(moment.replace(tzinfo=None))
    message = queue.receive_one(0)
    assert message is not None
    assert message.value == moment.replace(tzinfo=None)


def test_a_closed_queue_says_that_it_is_closed(queue_manager: PrivateQueueManager) -> None:
    with mq.open("orders", LocalServer(queue_manager.socket)) as queue:
        queue.send("x")
        message = queue.receive_one(0)
    assert message is not None
    for use in (
        lambda: queue.send("x"),
        lambda: queue.receive_one(0),
        lambda: queue.peek(0),
        lambda: next(queue.browse()),
        lambda: queue.purge(),
        lambda: queue.transaction().__enter__(),
        message.release,
    ):
        with pytest.raises(ValueError, match=r"closed: its `with` block has ended$"):
            use()


def test_a_closed_queue_with_an_event_loop_says_so_too(queue_manager: PrivateQueueManager) -> None:
    async def use() -> None:
        async with mq.open_async("orders", LocalServer(queue_manager.socket)) as queue:
            await queue.send("x")
        for call in (queue.send("x"), queue.receive_one(0), queue.peek(0), queue.purge()):
            with pytest.raises(ValueError, match=r"^the queue is closed: its `with` block"):
                await call
        for block in (queue, queue.transaction()):
            with pytest.raises(ValueError, match=r"^the queue is closed: its `with` block"):
                await block.__aenter__()

    asyncio.run(use())
