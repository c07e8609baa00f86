"""A flood of one address costs nobody else what is remembered of its messages (G184, G185)."""

from dataclasses import replace
from itertools import count
from pathlib import Path
from uuid import UUID

import pytest

from rpcqm.srmp.connection import incoming_streams
from tests.support.srmp.srmp_door import ORDER_QUEUE, PEER, SENDER, SRMP, STREAM, Door, msmq
from tests.support.srmp.srmp_text import Elements, durable, in_stream, message

FLOODER = "203.0.113.66"
IDENTIFIERS = count(1000)


def send(
    door: Door, number: int, peer: str = PEER, stream: int = 7, guid: str = SENDER, start: str = ""
) -> int:
    """A message of a stream; its body is its number."""
    elements = Elements(
        ordinal=next(IDENTIFIERS),
        guid=guid,
        services=durable(),
        stream=in_stream(guid, number, start, None, stream),
        msmq=msmq(source=guid, priority=0),
    )
    return door.post(message(STREAM, b"%d" % number, elements), peer)


def flood(door: Door, streams: int) -> None:
    """First messages of streams, each of a queue manager of its own."""
    for each in range(streams):
        assert send(door, 1, FLOODER, guid=str(UUID(int=each + 1)), start=ORDER_QUEUE) == 200


@pytest.mark.conformance("MQSRM-element-Stream")
@pytest.mark.bound("srmp.streams")
def test_a_flood_of_streams_ends_nobody_elses(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(incoming_streams, "STREAMS", 3)
    assert send(door, 1, start=ORDER_QUEUE) == 200
    for streams, known in ((2, 3), (5, 3)):
        flood(door, streams)
        shown = door.queue("stream").incoming_transactional_transfer_info_collection
        records = door.engine.protocol_records.records(incoming_streams.PREFIX)
        assert (len(shown), len(list(records))) == (known, known)
    door.restart()
    assert len(door.queue("stream").incoming_transactional_transfer_info_collection) == 3
    flood(door, 5)
    assert send(door, 2) == 200
    assert door.contents("stream")[-1] == b"2"


@pytest.mark.bound("srmp.streams")
def test_of_two_who_have_few_the_oldest_stream_is_forgotten(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(incoming_streams, "STREAMS", 2)
    others = [str(UUID(int=each)) for each in (1, 2)]
    assert send(door, 1, start=ORDER_QUEUE) == 200
    for guid in others:
        assert send(door, 1, guid=guid, start=ORDER_QUEUE) == 200
    for guid, taken in ((SENDER, False), (others[0], True), (others[1], True)):
        before = len(door.contents("stream"))
        assert send(door, 2, guid=guid) == 200
        assert len(door.contents("stream")) - before == taken


@pytest.mark.conformance("MQSRM-rule-3.1.5.1.11")
@pytest.mark.bound("srmp.history")
@pytest.mark.parametrize("restarted", [False, True])
def test_a_flood_of_messages_makes_nobody_elses_duplicates_new(
    directory: Path, restarted: bool
) -> None:
    door = Door(directory, replace(SRMP, history_size=3))

    def post(ordinal: int, peer: str) -> int:
        elements = Elements(ordinal=ordinal, services=durable(), msmq=msmq())
        to = STREAM.replace("stream", "orders")
        return door.post(message(to, b"%d" % ordinal, elements), peer)

    assert post(1, PEER) == 200
    for ordinal in range(2, 9):
        assert post(ordinal, FLOODER) == 200
    if restarted:
        door.restart()
        assert post(9, FLOODER) == 200
    assert post(1, PEER) == 200
    assert door.contents().count(b"1") == 1
    assert post(2, FLOODER) == 200
    assert door.contents().count(b"2") == 2
    door.stop()


@pytest.mark.conformance("MQSRM-rule-3.1.5.1.6.3")
def test_who_does_not_know_a_stream_keeps_no_receipt_from_its_sender(door: Door) -> None:
    """Receipts go only to the host of whoever sends; a message of no stream changes no sender."""
    send(door, 1, start=ORDER_QUEUE)
    for _ in range(4):
        door.advance(SRMP.receipt_coalescing // 2)
        send(door, 2, FLOODER, stream=8)
    assert [each.stream_receipt for each in door.receipts if each.stream_receipt is not None]


@pytest.mark.bound("srmp.stream_url")
@pytest.mark.parametrize("length", [2_048, 2_049])
def test_urls_of_a_stream_are_kept_up_to_a_length(door: Door, length: int) -> None:
    """Strangers choose that for receipts."""
    assert send(door, 1, start=ORDER_QUEUE.ljust(length, "x")) == (200 if length == 2_048 else 400)
    kept = list(door.engine.protocol_records.records(incoming_streams.PREFIX))
    assert len(kept) == (length == 2_048)


def test_of_streams_that_are_not_kept_nothing_is_written(door: Door) -> None:
    """Nor of one that has the numbers which mean no stream: nobody would remove it again."""
    assert send(door, 5, stream=0, guid=str(UUID(int=0))) == 200
    assert door.contents("stream") == []
    assert list(door.engine.protocol_records.records(incoming_streams._REJECTED_PREFIX)) == []
