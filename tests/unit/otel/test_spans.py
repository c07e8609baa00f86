"""Spans of messages, and their bounds."""

from pathlib import Path
from uuid import UUID

import pytest

from rpcqm.adm.message import Message
from rpcqm.adm.queue import Queue
from rpcqm.base.clock import SystemClock
from rpcqm.config import ConfigurationError
from rpcqm.config.otel_files import check_otel, read_headers
from rpcqm.config.otel_section import MOST_HEADERS, OtelSection
from rpcqm.otel import spans
from rpcqm.otel.exporting import Collector, SpanExport
from rpcqm.otel.spans import MessageSpans, Span, root_of, trace_of

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
    entry = spans._Open(spans._Traced(b"", 0, queue, None), 0)
    for key in range(spans.MOST_OPEN):
        waiting.put(queue, key, entry)
    assert len(waiting.entries) == spans.MOST_OPEN
    assert waiting.pop(queue, 0) is entry
    waiting.put(queue, 0, entry)
    waiting.put(queue, spans.MOST_OPEN, entry)
    assert len(waiting.entries) == spans.MOST_OPEN
    assert waiting.pop(queue, 1) is None


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
