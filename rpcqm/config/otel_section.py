"""The table [otel]: traces by OpenTelemetry."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from rpcqm.config.about import About
from rpcqm.config.urls import check_url

MOST_HEADERS = 64
"""Lines of the file with headers for the collector.

Bound `traces.headers` [lines]: the configuration is refused.
"""


LONGEST_NAME = 255
"""Characters of the name in traces."""


def check_name(text: str) -> None:
    """A name on one line; raises ValueError."""
    if len(text) > LONGEST_NAME:
        raise ValueError(f"which has more than {LONGEST_NAME} characters")
    if not text.isprintable():
        raise ValueError("which has characters that do not print")


@dataclass(frozen=True, slots=True)
class OtelSection:
    """Traces of messages for a collector of OpenTelemetry (docs/traces.md); off without one.

    It needs the extra `otel`. No variable `OTEL_…` of the environment counts.
    """

    endpoint: Annotated[
        str,
        About(
            "URL that takes traces by OTLP (HTTP, protobuf), such as "
            "`http://localhost:4318/v1/traces`.",
            default="none",
            check=check_url,
        ),
    ] = ""
    service_name: Annotated[
        str,
        About("The name of this queue manager in traces (`service.name`).", check=check_name),
    ] = "rpcqm"
    sampled_per_thousand: Annotated[
        int,
        About(
            "Messages of a thousand that are traced; queue managers with the same number choose "
            "the same ones.",
            (0, 1000),
        ),
    ] = 1000
    headers_file: Annotated[
        Path | None,
        About(
            "File with headers for the collector, a line `Name: value` each; nobody else may "
            "read it.",
            default="none",
        ),
    ] = None
    timeout: Annotated[
        int,
        About("Time that the collector has to take a lot of spans.", (1, 60), unit="s"),
    ] = 10
    waiting_spans: Annotated[
        int,
        About(
            "Spans that wait for the collector; more are lost, and counted.",
            (1, 1_000_000),
            beyond="spans are lost, and counted in the log",
        ),
    ] = 10_000
