"""Spans to a collector, by OTLP over HTTP: from a thread, within bounds, or not at all.

What is configured counts alone: nothing here asks the environment (G304).
"""

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import requests
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.metrics import NoOpMeterProvider
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from rpcqm.base.clock import Clock
from rpcqm.base.log import get_logger
from rpcqm.otel.spans import Span

STOP_SECONDS = 5.0
"""How long a stop waits for the collector to take what is left."""

TOLD_EVERY = 60_000
"""Milliseconds between two lines of the log about spans that are lost."""

SCHEMA = "https://opentelemetry.io/schemas/1.29.0"
"""The first conventions that say CLIENT of `receive` and of `settle`, as is done here (G482)."""

_BATCH = 512
_EVERY = 1_000
_AGAIN = frozenset({0, 429, 502, 503, 504})
_log = get_logger("otel")


@dataclass(frozen=True, slots=True)
class Collector:
    """Where spans go, and how; `timeout` is seconds, `most` spans wait at most."""

    endpoint: str
    headers: Mapping[str, str]
    timeout: int
    most: int


class _CollectorExporter(SpanExporter):
    """Posts batches, and counts what came of them; it runs in the thread of the processor."""

    def __init__(self, collector: Collector) -> None:
        self._collector = collector
        self._session = requests.Session()
        self._session.trust_env = False
        self._session.headers.update(
            {**collector.headers, "Content-Type": "application/x-protobuf", "User-Agent": "rpcqm"}
        )
        self._stopping = threading.Event()
        self.taken = 0
        self.lost = 0

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.taken += len(spans)
        try:
            delivered = self._deliver(encode_spans(spans).SerializeToString())
        except Exception:  # whatever a collector answers, or the network does
            delivered = False
        if not delivered:
            self.lost += len(spans)
        return SpanExportResult.SUCCESS if delivered else SpanExportResult.FAILURE

    def _deliver(self, content: bytes) -> bool:
        """Post, again while the collector is away, for `timeout` seconds in all."""
        until = time.monotonic() + self._collector.timeout
        pause = 1.0
        while True:
            status = self._post(content)
            if status not in _AGAIN:
                return 200 <= status < 300
            if time.monotonic() + pause >= until or self._stopping.wait(pause):
                return False
            pause *= 2

    def _post(self, content: bytes) -> int:
        """The status of the answer, 0 if none came; its body is not read."""
        try:
            with self._session.post(
                self._collector.endpoint,
                data=content,
                timeout=self._collector.timeout,
                allow_redirects=False,
                stream=True,
            ) as answer:
                return int(answer.status_code)
        except requests.RequestException:
            return 0

    def hurry(self) -> None:
        """Try nothing again from now on."""
        self._stopping.set()

    def shutdown(self) -> None:
        self.hurry()
        self._session.close()


class SpanExport:
    """Takes spans on the loop, and lets a thread send them."""

    def __init__(self, collector: Collector, resource: Mapping[str, str], clock: Clock) -> None:
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL + 1)  # we tell of it
        self._most = collector.most
        self._clock = clock
        self._exporter = _CollectorExporter(collector)
        self._processor: SpanProcessor = BatchSpanProcessor(
            self._exporter,
            max_queue_size=collector.most,
            schedule_delay_millis=_EVERY,
            max_export_batch_size=min(_BATCH, collector.most),
            export_timeout_millis=collector.timeout * 1000,
            meter_provider=NoOpMeterProvider(),
        )
        self._resource = Resource(dict(resource), SCHEMA)
        self._scope = InstrumentationScope("rpcqm", resource.get("service.version"), SCHEMA)
        self._given = 0
        self._overflown = 0
        self._told = 0
        self._told_at: int | None = None

    @property
    def lost(self) -> int:
        """Spans that nobody has got: the collector was away, or too slow."""
        return self._overflown + self._exporter.lost

    def take(self, span: Span) -> None:
        """Let the thread send a span, or drop it when too many wait."""
        if self._given - self._exporter.taken >= self._most:
            self._overflown += 1
        else:
            self._given += 1
            self._processor.on_end(self._readable(span))
        if self.lost > self._told:
            self._tell_lost()

    def _tell_lost(self) -> None:
        now = self._clock.monotonic()
        if self._told_at is None or now - self._told_at >= TOLD_EVERY:
            _log.warning("spans are lost: the collector does not take them", spans=self.lost)
            self._told, self._told_at = self.lost, now

    async def stop(self) -> None:
        """Send what is left, for STOP_SECONDS at most."""
        loop = asyncio.get_running_loop()
        over = asyncio.Event()

        def flush() -> None:
            self._processor.shutdown()
            with contextlib.suppress(RuntimeError):  # the loop has waited long enough
                loop.call_soon_threadsafe(over.set)

        self._exporter.hurry()
        # Not a thread of a pool: the end of the process would wait for that.
        threading.Thread(target=flush, name="otel stop", daemon=True).start()
        try:
            await asyncio.wait_for(over.wait(), STOP_SECONDS)
        except TimeoutError:
            self._overflown += self._given - self._exporter.taken
        if self.lost > self._told:
            _log.warning("spans are lost: the collector does not take them", spans=self.lost)

    def _readable(self, span: Span) -> ReadableSpan:
        link = span.link
        return ReadableSpan(
            span.name,
            context=_context(span.trace, span.span),
            parent=None if span.parent is None else _context(span.trace, span.parent),
            resource=self._resource,
            attributes=span.attributes,
            links=() if link is None else (Link(_context(link.trace, link.span, link.flags)),),
            kind=SpanKind[span.kind],
            status=Status(StatusCode.ERROR, span.error) if span.error else Status(),
            start_time=span.begun,
            end_time=span.ended,
            instrumentation_scope=self._scope,
        )


def _context(trace: int, span: int, flags: int = TraceFlags.SAMPLED) -> SpanContext:
    return SpanContext(trace, span, is_remote=False, trace_flags=TraceFlags(flags))
