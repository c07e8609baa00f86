"""The text that Prometheus reads: its format 0.0.4, and OpenMetrics 1.0."""

from collections.abc import Iterable, Iterator, Sequence

from rpcqm.base.metrics import Histogram
from rpcqm.operations.metric_families import COUNTER, Family

TEXT = "text/plain; version=0.0.4; charset=utf-8"
OPEN_METRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"

LINES_AT_ONCE = 500
"""About a tenth of a millisecond."""

NANOSECONDS = tuple(range(14, 38, 2))
"""Bits of the bounds of durations: 16 µs, four times as much each, up to 69 s."""
MESSAGES = tuple(range(0, 13, 2))
"""Bits of the bounds of numbers of messages: less than 1, 4, 16 … 4096."""


def escaped(value: str) -> str:
    """The value of a label, escaped for quotation marks."""
    value = value.encode("utf-8", "backslashreplace").decode()  # no two names become one
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def labels(family: Family, *values: str) -> str:
    """The labels of a series as they follow its name."""
    pairs = zip(family.labels, values, strict=True)
    return "{" + ",".join(f'{name}="{escaped(value)}"' for name, value in pairs) + "}"


class Writer:
    """Writes families, in pieces."""

    def __init__(self, open_metrics: bool = False) -> None:
        self._open_metrics = open_metrics

    @property
    def content_type(self) -> str:
        return OPEN_METRICS if self._open_metrics else TEXT

    def head(self, family: Family) -> str:
        """The lines before the series of a family."""
        name = family.name
        if family.kind == COUNTER and not self._open_metrics:
            name += "_total"
        text = f"# HELP {name} {family.help}.\n# TYPE {name} {family.kind}\n"
        if family.unit and self._open_metrics:
            text += f"# UNIT {name} {family.unit}\n"
        return text

    def end(self) -> str:
        """The text after all families."""
        return "# EOF\n" if self._open_metrics else ""

    def series(
        self, family: Family, places: Sequence[str], values: Iterable[float]
    ) -> Iterator[str]:
        """A family with a series for each place, which are labels in braces or nothing."""
        yield self.head(family)
        name = family.name + ("_total" if family.kind == COUNTER else "")
        lines: list[str] = []
        for place, value in zip(places, values, strict=True):
            lines.append(f"{name}{place} {value}\n")
            if len(lines) == LINES_AT_ONCE:
                yield "".join(lines)
                lines.clear()
        yield "".join(lines)

    def histograms(
        self,
        family: Family,
        found: Iterable[tuple[tuple[str, ...], Histogram]],
        bits: Sequence[int],
        unit: float,
    ) -> Iterator[str]:
        """A family of histograms by the values of their labels; `unit` is what 1 in them is."""
        yield self.head(family)
        for values, histogram in found:
            yield "".join(_histogram_lines(family, values, histogram, bits, unit))


def _histogram_lines(
    family: Family, values: tuple[str, ...], histogram: Histogram, bits: Sequence[int], unit: float
) -> Iterator[str]:
    name, counts = family.name, histogram.counts
    inside = labels(family, *values)[1:-1] if values else ""
    comma, place = ("," if inside else ""), (f"{{{inside}}}" if inside else "")
    for bit in bits:
        bound = ((1 << bit) - (unit == 1)) * unit
        below = sum(counts[: bit + 1])
        yield f'{name}_bucket{{{inside}{comma}le="{float(bound)!r}"}} {below}\n'
    count = sum(counts)
    yield f'{name}_bucket{{{inside}{comma}le="+Inf"}} {count}\n'
    yield f"{name}_sum{place} {float(histogram.total * unit)!r}\n"
    yield f"{name}_count{place} {count}\n"
