#!/usr/bin/env bash
# What prometheus_client makes of an observation that is no number.
#
# Versions    prometheus_client 0.26.0, Python 3.11
# Guess       Histogram.observe(nan) counts it in the bucket +Inf, which has all; and what the library
#             writes, its own parser reads.
# Behaviour   It is counted nowhere, yet added to the sum, which is NaN from then on until the process
#             ends. The page is served as OpenMetrics with that sum, and the library's own parser of
#             OpenMetrics refuses the whole page because of it.
# Hurt        Whoever observes a quotient that is 0/0 once a year: averages of that histogram are NaN
#             for ever, the number of observations is one too low, and whatever reads the page by the
#             strict parser loses all other metrics, too.
# Seen        count 1.0, +Inf 1.0, sum NaN; parser: ValueError
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check prometheus_client==0.26.0
cat >"$folder/try.py" <<'PYTHON'
import sys

from prometheus_client import CollectorRegistry, Histogram
from prometheus_client.openmetrics.exposition import generate_latest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

registry = CollectorRegistry()
histogram = Histogram("wait_seconds", "Time that calls wait", buckets=(1, 2), registry=registry)
histogram.observe(1)
histogram.observe(float("nan"))
page = generate_latest(registry).decode()
lines = dict(line.rsplit(" ", 1) for line in page.splitlines() if not line.startswith("#"))
count, total = lines["wait_seconds_count"], lines["wait_seconds_sum"]
infinite = lines['wait_seconds_bucket{le="+Inf"}']
try:
    parsed = f"{len(list(text_string_to_metric_families(page)))} families"
except Exception as error:
    parsed = type(error).__name__
print(f"count {count}, +Inf {infinite}, sum {total}; parser: {parsed}")
sys.exit((count, infinite, total, parsed) != ("1.0", "1.0", "NaN", "ValueError"))
PYTHON
cd "$folder"
"$folder/venv/bin/python" "$folder/try.py" || {
    echo "not as it was seen" >&2
    exit 1
}
echo "as it was seen"
