#!/usr/bin/env bash
# Whether the timeouts of OpenTelemetry's BatchSpanProcessor end a wait.
#
# Versions    opentelemetry-sdk 1.45.2, Python 3.11
# Guess       BatchSpanProcessor(…, export_timeout_millis=100) gives an export up after 100 ms, and
#             force_flush(100) returns then, with False.
# Behaviour   Neither does: nothing reads the first, and force_flush exports in the caller's thread,
#             returns when the exporter does, and says True.
# Hurt        Whoever calls force_flush before the end of a service, or from an event loop, and counts
#             on the timeout: while the collector hangs, so does the service, which a supervisor then
#             kills in the middle of its work. What bounds the wait has to be in the exporter, or the
#             flush in a thread that nobody waits for.
# Seen        the export of 2000 ms was over when force_flush(100) returned True
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check opentelemetry-sdk==1.45.2
cat >"$folder/try.py" <<'PYTHON'
import sys
import threading

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

over = threading.Event()


class Slow(SpanExporter):
    def export(self, spans):
        threading.Event().wait(2)
        over.set()
        return SpanExportResult.SUCCESS

    def shutdown(self):
        pass


processor = BatchSpanProcessor(Slow(), schedule_delay_millis=60_000, export_timeout_millis=100)
provider = TracerProvider()
provider.add_span_processor(processor)
provider.get_tracer("finding").start_span("one").end()
answer = processor.force_flush(100)
waited = over.is_set()
processor.shutdown()
state = "over" if waited else "going on"
print(f"the export of 2000 ms was {state} when force_flush(100) returned {answer}")
sys.exit((waited, answer) != (True, True))
PYTHON
env -u OTEL_SDK_DISABLED "$folder/venv/bin/python" "$folder/try.py" || {
    echo "not as it was seen" >&2
    exit 1
}
echo "as it was seen"
