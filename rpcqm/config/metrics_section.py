"""The table [metrics]: what /metrics tells."""

from dataclasses import dataclass
from typing import Annotated

from rpcqm.config.about import About


@dataclass(frozen=True, slots=True)
class MetricsSection:
    """What `/metrics` on `console_port` tells."""

    enabled: Annotated[bool, About("Answer at `/metrics`.")] = True
    queues: Annotated[
        int,
        About(
            "Queues, and destinations, that have series of their own; the others are one together.",
            (1, 100_000),
            beyond="they are one series together",
        ),
    ] = 1_000
    windows_names: Annotated[
        bool, About("Also give `windows_msmq_…`, as exporters on Windows name them.")
    ] = True
