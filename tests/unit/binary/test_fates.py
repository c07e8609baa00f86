"""What becomes of messages in the end, whatever stands in the way of telling it."""

from collections.abc import Iterator

import pytest

from rpcqm.binary.connection.peer_connection import NextHop
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.message import MessageAttributes
from rpcqm.codec.types.mqvalues import QueueAccessType, QueueShareMode
from tests.support.binary.binary_network import Node
from tests.support.binary.binary_pair import ORDERS, STREAM, Exchanging, exchanging

CAROL = "DIRECT=OS:carol\\private$\\orders"
OTHER = "DIRECT=OS:bob\\private$\\other"


@pytest.fixture
def pair() -> Iterator[Exchanging]:
    with exchanging() as pair:
        yield pair


def deliver(pair: Exchanging, count: int = 1) -> None:
    """Bob gets transactional messages that ask for a final acknowledgement, and is full then."""
    for number in range(count):
        body = b"%d" % number
        pair.send(STREAM, body, transactional=True, negative_journaling_requested=True)
    pair.settle(20)
    fill(pair.bob)


def fill(node: Node) -> None:
    """There is no room for a single byte more."""
    node.engine.queue_manager.queue_manager_quota = 0


# A full queue manager can be emptied


@pytest.mark.conformance("MQDMPR-event-message_position_deleted", "MQQB-rule-3.1.7.2.2")
def test_a_full_queue_manager_is_emptied_by_receiving(pair: Exchanging) -> None:
    deliver(pair)
    assert pair.bob.receive("stream") == b"0"
    assert pair.stream.message_count == 0


def test_a_full_queue_manager_is_emptied_by_a_purge(pair: Exchanging) -> None:
    deliver(pair, 3)
    pair.bob.engine.queues.purge_queue(pair.stream)
    pair.settle()
    assert pair.stream.message_count == 0


def test_what_expires_in_one_queue_of_a_full_queue_manager_stops_no_other(
    pair: Exchanging,
) -> None:
    for to, transactional in ((STREAM, True), (ORDERS, False)):
        pair.send(
            to,
            transactional=transactional,
            time_to_be_received=60,
            negative_journaling_requested=transactional,
        )
    pair.settle(20)
    assert (pair.stream.message_count, pair.orders.message_count) == (1, 1)
    fill(pair.bob)
    pair.settle(120)
    assert (pair.stream.message_count, pair.orders.message_count) == (0, 0)


def test_a_queue_of_a_full_queue_manager_can_be_deleted_for_good(pair: Exchanging) -> None:
    deliver(pair)
    pair.bob.engine.queues.delete_queue(pair.stream)
    pair.settle()
    pair.bob.restart()
    assert pair.bob.engine.registry.find_by_path(".\\private$\\stream") is None


def test_a_transaction_of_a_full_queue_manager_receives(pair: Exchanging) -> None:
    deliver(pair)
    assert pair.bob.receive("stream", transactional=True) == b"0"
    assert pair.stream.message_count == 0


# Copies of one message


def two_copies(pair: Exchanging) -> None:
    pair.bob.create("other", transactional=True)
    pair.send(f"{STREAM},{OTHER}", transactional=True, negative_journaling_requested=True)
    pair.settle(20)
    assert pair.alice.unsent == 2


@pytest.mark.conformance("MQQB-rule-3.1.5.7")
@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize(("first", "second"), [("other", "stream"), ("stream", "other")])
def test_each_copy_of_a_transactional_message_has_its_own_end(
    pair: Exchanging, restarted: bool, first: str, second: str
) -> None:
    two_copies(pair)
    if restarted:
        pair.alice.kill()
        pair.settle()
        pair.alice.start()
    pair.bob.engine.queues.delete_queue(pair.bob.find(first))
    pair.settle(20)
    names = {"other": OTHER, "stream": STREAM}
    assert pair.alice.outgoing(names[first]).message_count == 0
    assert pair.alice.outgoing(names[second]).message_count == 1
    assert pair.alice.bodies("system$;deadxact") == [b"content"]
    pair.bob.receive(second)
    pair.settle(20)
    assert pair.alice.unsent == 0
    assert pair.alice.bodies("system$;deadxact") == [b"content"]


def test_what_an_older_version_has_kept_of_a_waiting_message_is_enough(pair: Exchanging) -> None:
    pair.send(STREAM, transactional=True, negative_journaling_requested=True)
    pair.settle(20)
    streams = pair.alice.engine.protocol_records
    streams.write({key: b"" for key, _ in streams.records(b"await final:")})
    pair.alice.restart()
    pair.bob.engine.queues.purge_queue(pair.stream)
    pair.settle(20)
    assert pair.alice.bodies("system$;deadxact") == [b"content"]
    assert pair.alice.unsent == 0


# For another machine


@pytest.mark.conformance("MQQB-rule-3.1.5.8.2")
def test_a_message_for_another_machine_comes_back_from_who_does_not_route(
    pair: Exchanging,
) -> None:
    elsewhere(pair)
    pair.settle(20)
    assert pair.alice.unsent == 0
    assert pair.alice.bodies("system$;deadxact") == [b"content"]


def elsewhere(pair: Exchanging) -> None:
    """Alice sends to Bob's address what is for a queue manager that Bob is not."""
    readdress = pair.alice.engine.composer.compose

    def compose(descriptor, attributes, identity, transaction=None, sign=None):  # type: ignore[no-untyped-def]
        message = readdress(descriptor, attributes, identity, transaction, sign)
        message.packet = message.packet[:32] + bytes(range(16)) + message.packet[48:]
        return message

    pair.alice.engine.composer.compose = compose  # type: ignore[method-assign,assignment]
    pair.send(STREAM, transactional=True, negative_journaling_requested=True)


@pytest.mark.conformance("MQDMPR-event-enqueue_message_to_an_open_queue")
def test_a_copy_for_a_direct_name_goes_there_whatever_was_named_before(pair: Exchanging) -> None:
    carol = pair.simulation.node("carol")
    carol.create()
    identifier = pair.bob.engine.queue_manager.identifier
    pair.alice.protocol.places.peers[str(identifier)] = [NextHop(pair.bob.address)]
    private = f"PRIVATE={identifier}\\{pair.orders.private_queue_number:08x}"
    opening, messages = pair.alice.engine.opening, pair.alice.engine.messages
    descriptor = opening.open_queue(
        FormatName.parse(private), QueueAccessType.SEND_ACCESS, QueueShareMode.DENY_NONE
    )
    opening.add_destination(descriptor, FormatName.parse(CAROL))
    attributes = MessageAttributes(body=b"content", delivery_guarantee=1)
    message = pair.alice.engine.composer.compose(descriptor, attributes, None)
    messages.enqueue_message_to_an_open_queue(descriptor, message)
    pair.settle(20)
    assert pair.bob.bodies() == carol.bodies() == [b"content"]


# What must not fail


def test_a_line_that_fails_while_it_sends_leaves_nothing_standing(
    pair: Exchanging, monkeypatch: pytest.MonkeyPatch
) -> None:
    send = pair.alice.protocol.security.outgoing_packet
    failures = [ValueError("once"), ValueError("twice")]

    def fail_twice(name, message):  # type: ignore[no-untyped-def]
        if failures:
            raise failures.pop()
        return send(name, message)

    monkeypatch.setattr(pair.alice.protocol.security, "outgoing_packet", fail_twice)
    pair.alice.send(ORDERS, b"content")
    for _ in range(20):
        try:
            pair.settle(1)
        except ValueError:
            continue
    assert pair.bob.bodies("orders") == [b"content"]
    assert pair.alice.unsent == 0
