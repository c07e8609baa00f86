"""A collector of OpenTelemetry: takes traces by OTLP over HTTP on loopback, and keeps them."""

import contextlib
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.support.waiting import until

_LARGEST = 16 << 20


@dataclass(frozen=True)
class TakenSpan:
    """One span as it came, with the identifiers in hexadecimal; `resource` is who told of it.

    `schemas` are those of the resource and of the scope.
    """

    name: str
    trace: str
    span: str
    parent: str
    kind: int
    begun: int
    ended: int
    attributes: dict[str, str]
    links: tuple[tuple[str, str], ...]
    error: str
    resource: dict[str, str]
    schemas: tuple[str, str]


class Collector:
    """What has come; `status` is what is answered from now on."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.status = 200
        self.spans: list[TakenSpan] = []
        self.octets = b""
        self.headers: list[dict[str, str]] = []

    def take(self, content: bytes, headers: dict[str, str]) -> None:
        self.headers.append(headers)
        self.octets += content
        for each in ExportTraceServiceRequest.FromString(content).resource_spans:
            resource = _texts(each.resource.attributes)
            for scope in each.scope_spans:
                self.spans += [
                    _taken(span, resource, (each.schema_url, scope.schema_url))
                    for span in scope.spans
                ]

    def named(self, name: str) -> list[TakenSpan]:
        return [span for span in list(self.spans) if span.name == name]

    def wait_for(self, name: str, count: int = 1) -> list[TakenSpan]:
        """Spans of a name, once there are as many; AssertionError if they do not come."""
        try:
            until(lambda: len(self.named(name)) >= count)
        except AssertionError:
            counts = Counter(span.name for span in list(self.spans))
            raise AssertionError(f"{count} {name} expected, not {counts}") from None
        return self.named(name)


@contextlib.contextmanager
def collecting() -> Iterator[Collector]:
    """A collector that runs for as long as the block."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            content = self.rfile.read(min(int(self.headers["Content-Length"]), _LARGEST))
            if self.path == "/v1/traces" and collector.status == 200:
                collector.take(content, {k.lower(): v for k, v in self.headers.items()})
            self.send_response(collector.status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    collector = Collector(f"http://127.0.0.1:{server.server_address[1]}/v1/traces")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield collector
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


def _texts(attributes: Any) -> dict[str, str]:
    return {each.key: each.value.string_value for each in attributes}


def _taken(span: Any, resource: dict[str, str], schemas: tuple[str, str]) -> TakenSpan:
    return TakenSpan(
        span.name,
        span.trace_id.hex(),
        span.span_id.hex(),
        span.parent_span_id.hex(),
        span.kind,
        span.start_time_unix_nano,
        span.end_time_unix_nano,
        _texts(span.attributes),
        tuple((link.trace_id.hex(), link.span_id.hex()) for link in span.links),
        span.status.message if span.status.code == 2 else "",
        resource,
        schemas,
    )
