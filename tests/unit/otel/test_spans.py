"""Spans of messages, and their bounds."""

from collections.abc import Callable
from pathlib import Path
from typing import cast
from uuid import UUID

import pytest

from rpcqm.adm.message import Message
from rpcqm.adm.queue import OutgoingQueue, Queue
from rpcqm.base.clock import SystemClock
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.attributes import MessageAttributes
from rpcqm.codec.packet.builder import build_user_message
from rpcqm.codec.packet.enums import MessageClass
from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.config import ConfigurationError
from rpcqm.config.otel_files import check_otel, read_headers
from rpcqm.config.otel_section import MOST_HEADERS, OtelSection
from rpcqm.otel import spans
from rpcqm.otel.exporting import Collector, SpanExport
from rpcqm.otel.spans import MessageSpans, Span, root_of, trace_of
from rpcqm.store.transaction import StoreTransaction

OWN = UUID("01234567-89ab-cdef-0123-456789abcdef")


class Taken:
    def __init__(self) -> None:
        self.spans: list[Span] = []

    def take(self, span: Span) -> None:
        self.spans.append(span)


def test_trace_and_root_follow_from_the_identifier() -> None:
    octets = OWN.bytes_le + bytes(4)
    assert trace_of(octets) == trace_of(bytes(octets)) != trace_of(octets[:-1] + b"\1")
    assert 0 < root_of(octets) < 1 << 64


def test_what_cannot_be_traced_is_left_alone() -> None:
    taken = Taken()
    watch = MessageSpans(taken, OWN, 1000)
    watch.arrived(Queue(), Message(b"no packet"), 0)
    watch.arrived_together(Queue(), [b""], 0)
    assert watch.failures <= 2
    assert len(taken.spans) <= 2


class Commit:
    """A change of the store, whose end a test chooses."""

    def __init__(self) -> None:
        self.after: list[Callable[[], None]] = []

    def call_after(self, call: Callable[[], None]) -> None:
        self.after.append(call)

    def end(self) -> None:
        for call in self.after:
            call()


def message_of(guid: UUID, ordinal: int, extension: bytes = b"") -> Message:
    attributes = MessageAttributes(
        identifier=MessageIdentifier(guid, ordinal),
        destination_queue_format_name=FormatName.parse("DIRECT=OS:a\\private$\\b"),
        extension=extension,
    )
    message = Message(build_user_message(attributes))
    message.lookup_identifier = ordinal
    return message


def watching(per_thousand: int = 1000) -> tuple[MessageSpans, Taken]:
    taken = Taken()
    return MessageSpans(taken, OWN, per_thousand), taken


def end(watch: MessageSpans, queue: Queue, key: int) -> Commit:
    change = Commit()
    reason = MessageClass.MQMSG_CLASS_ACK_RECEIVE
    watch.deleted(cast(StoreTransaction, change), queue, key, reason)
    return change


def test_what_is_removed_at_once_is_told_when_that_is_durable() -> None:
    watch, taken = watching()
    queue, message = Queue(), message_of(OWN, 1)
    watch.received(queue, message, 0, settles=False)
    change = end(watch, queue, 1)
    assert taken.spans == []
    change.end()
    assert [each.attributes["messaging.operation.name"] for each in taken.spans] == ["receive"]
    change.end()
    assert len(taken.spans) == 1


def test_what_was_to_be_removed_at_once_and_was_not_is_not_told() -> None:
    watch, taken = watching()
    queue = Queue()
    watch.received(queue, message_of(OWN, 1), 0, settles=False)
    watch.released(queue, 1)
    end(watch, queue, 1).end()
    assert taken.spans == []


def test_what_is_read_from_an_outgoing_queue_is_settled() -> None:
    watch, taken = watching()
    queue = OutgoingQueue()
    watch.received(queue, message_of(OWN, 1), 0)
    end(watch, queue, 1).end()
    receive, settle = taken.spans
    assert settle.parent == receive.span
    assert settle.attributes["rpcqm.outcome"] == "complete"


@pytest.mark.bound("traces.at_once")
@pytest.mark.parametrize("guid", [OWN, UUID(int=7)])
def test_who_chooses_identifiers_does_not_choose_how_much_is_told(guid: UUID) -> None:
    watch, taken = watching(10)
    queue, chosen = Queue(), bytes(4)
    threshold = (10 << 56) // 1000
    for ordinal in range(10_000):
        octets = guid.bytes_le + ordinal.to_bytes(4, "little")
        if trace_of(octets) & ((1 << 56) - 1) < threshold:
            chosen = octets
            break
    message = message_of(guid, int.from_bytes(chosen[16:], "little"))
    events = 3 * spans.MOST_AT_ONCE
    for _ in range(events):
        watch.arrived(queue, message, 0)
    most = spans.MOST_AT_ONCE + 2 * events * 10 // 1000
    assert most - 2 <= len(taken.spans) <= most + 2


def test_those_that_nobody_has_chosen_are_told_in_their_share() -> None:
    watch, taken = watching(10)
    queue, guid = Queue(), UUID(int=7)
    told = [
        trace_of(guid.bytes_le + each.to_bytes(4, "little")) & ((1 << 56) - 1) < (10 << 56) // 1000
        for each in range(3_000)
    ]
    for ordinal in range(3_000):
        watch.arrived(queue, message_of(guid, ordinal), 0)
    assert len(taken.spans) == sum(told) > 0


@pytest.mark.bound("traces.roots")
def test_of_those_that_were_sent_the_oldest_is_forgotten() -> None:
    roots = spans._Roots()
    assert roots.first(b"0")
    assert not roots.first(b"0")
    for number in range(spans.MOST_ROOTS):
        assert roots.first(b"%d" % (number + 1))
    assert roots.first(b"0")
    assert len(roots.known) == spans.MOST_ROOTS


def test_what_comes_back_over_the_network_arrives() -> None:
    watch, taken = watching()
    message = message_of(OWN, 1)
    watch.arrived(OutgoingQueue(), message, 0)
    watch.arrived(Queue(), message, 0)
    send, arrive = taken.spans
    assert (send.name.split()[0], arrive.name.split()[0]) == ("send", "arrive")
    assert arrive.parent == send.span != arrive.span


def test_what_goes_out_is_sent_though_somebody_has_used_its_identifier() -> None:
    watch, taken = watching()
    message = message_of(OWN, 1)
    watch.arrived(Queue(), message, 0)
    watch.arrived(OutgoingQueue(), message, 0)
    first, second = taken.spans
    assert first.name.split()[0] == second.name.split()[0] == "send"
    assert second.parent == first.span


def private(file: Path) -> Path:
    """An empty file that nobody else may read."""
    file.touch(0o600)
    return file


@pytest.mark.bound("traces.headers")
def test_a_file_of_headers_has_so_many_lines(tmp_path: Path) -> None:
    file = private(tmp_path / "headers")
    file.write_text("".join(f"x-{number}: y\n" for number in range(MOST_HEADERS)))
    assert len(read_headers(file)) == MOST_HEADERS
    file.write_text(file.read_text() + "x-more: y\n")
    with pytest.raises(ConfigurationError, match=r"more than 64 lines"):
        read_headers(file)


def test_a_line_that_is_no_header_is_told_without_its_text(tmp_path: Path) -> None:
    file = private(tmp_path / "headers")
    file.write_text("Authorization Bearer hush\n")
    with pytest.raises(ConfigurationError) as refused:
        read_headers(file)
    assert "line 1" in str(refused.value)
    assert "hush" not in str(refused.value)


def test_a_file_of_headers_that_others_may_read_is_refused(tmp_path: Path) -> None:
    file = private(tmp_path / "headers")
    file.write_text("Authorization: Bearer hush\n")
    assert read_headers(file) == {"Authorization": "Bearer hush"}
    file.chmod(0o640)
    with pytest.raises(ConfigurationError, match="chmod 600"):
        read_headers(file)


def test_what_is_put_aside_in_a_file_of_headers_is_not_sent(tmp_path: Path) -> None:
    file = private(tmp_path / "headers")
    file.write_text("#Authorization: Bearer old\n  # why\n\n x-tenant: a\n")
    assert read_headers(file) == {"x-tenant": "a"}


def test_a_missing_extra_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rpcqm.config.otel_files.NEEDED", ("no_such_module_here",))
    (mistake,) = check_otel(OtelSection(endpoint="http://localhost:4318/v1/traces"))
    assert "rpcqm[otel]" in str(mistake)
    assert not check_otel(OtelSection())


@pytest.mark.bound("traces.open")
def test_of_those_that_wait_the_oldest_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = spans._OpenSpans()
    queue = Queue()
    entry = spans._Open(spans._Traced(b"", 0, "orders", None), 0)
    for key in range(spans.MOST_OPEN):
        waiting.put(queue, key, entry)
    assert len(waiting.entries) == spans.MOST_OPEN
    assert waiting.pop(queue, 0) is entry
    waiting.put(queue, 0, entry)
    waiting.put(queue, spans.MOST_OPEN, entry)
    assert len(waiting.entries) == spans.MOST_OPEN
    assert waiting.pop(queue, 1) is None
    waiting.put(queue, 2, entry)  # is the newest now
    waiting.put(queue, 1, entry)
    waiting.put(queue, spans.MOST_OPEN + 1, entry)
    assert waiting.pop(queue, 2) is entry
    assert waiting.pop(queue, 3) is None


@pytest.mark.bound("otel.waiting_spans")
def test_spans_beyond_those_that_may_wait_are_lost_and_counted() -> None:
    export = SpanExport(Collector("http://127.0.0.1:9/v1/traces", {}, 60, 4), {}, SystemClock())
    span = Span("send q", "PRODUCER", 1, 1, None, 0, 0, {})
    export._given = export._exporter.taken  # nothing waits
    export._processor.shutdown()  # nobody takes any more
    for _ in range(4):
        export.take(span)
    assert export.lost == 0
    export.take(span)
    assert export.lost == 1
