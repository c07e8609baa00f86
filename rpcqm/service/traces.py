"""Traces of a queue manager, if a collector is configured; loaded only then."""

from importlib.metadata import version

from rpcqm.base.clock import Clock
from rpcqm.config.otel_files import read_headers
from rpcqm.config.otel_section import OtelSection
from rpcqm.otel.exporting import Collector, SpanExport
from rpcqm.otel.spans import MessageSpans
from rpcqm.qm.engine import QueueManagerEngine


def start_traces(engine: QueueManagerEngine, section: OtelSection, clock: Clock) -> SpanExport:
    """Tell a collector of messages from now on; the caller stops it behind everything else."""
    machine = engine.queue_manager
    collector = Collector(
        section.endpoint,
        read_headers(section.headers_file),
        section.timeout,
        section.waiting_spans,
    )
    resource = {
        "service.name": section.service_name,
        "service.version": version("rpcqm"),
        "service.instance.id": str(machine.identifier),
        "host.name": machine.computer_name,
    }
    export = SpanExport(collector, resource, clock)
    engine.watch_messages(
        MessageSpans(
            export,
            machine.identifier,
            section.sampled_per_thousand,
            server=machine.computer_name,
        )
    )
    return export
