"""/metrics, for Prometheus: written in pieces, between which others are served."""

from collections.abc import Iterator
from http import HTTPStatus

from rpcqm.api.asked import Reply, settled
from rpcqm.api.problems import Refusal
from rpcqm.api.slices import in_slices
from rpcqm.base.errors import HResult
from rpcqm.base.identity import Identity
from rpcqm.http.origins import is_loopback
from rpcqm.operations.exposition import Writer
from rpcqm.operations.metrics import MetricsSettings
from rpcqm.operations.operations import Operations

PATH = "/metrics"

_OPEN_METRICS, _TEXT = "application/openmetrics-text", "text/plain"


class MetricsStream:
    """The metrics, piece by piece."""

    def __init__(self, pieces: Iterator[str]) -> None:
        self._pieces: Iterator[str] = pieces
        self._slices = in_slices(self._going_on())
        self._closed = False

    def _going_on(self) -> Iterator[str]:
        for piece in self._pieces:
            if self._closed:
                return
            yield piece

    async def next(self) -> bytes | None:
        """What was written within a slice of time."""
        async for made in self._slices:
            text = "".join(made)
            if text:
                return text.encode()
        return None

    def close(self) -> None:
        """Write no more."""
        self._closed = True


async def show_metrics(
    operations: Operations,
    identity: Identity,
    address: str,
    accept: str,
    settings: MetricsSettings,
) -> Reply:
    """All metrics in the format that the caller wants; raises Refusal, MQError.

    A password is taken from this machine only; from elsewhere it has to be a token.
    """
    if identity.scope is None and not is_loopback(address):
        code = HResult.MQ_ERROR_ACCESS_DENIED.name
        raise Refusal(HTTPStatus.FORBIDDEN, code, "metrics are told elsewhere for a token only")
    writer = Writer(wants_open_metrics(accept))
    pieces = await settled(operations.metrics.told(identity, writer, settings))
    return Reply(content_type=writer.content_type, stream=MetricsStream(pieces))


def wants_open_metrics(accept: str) -> bool:
    """Whether an Accept header likes OpenMetrics at least as much as plain text."""
    weights = {_OPEN_METRICS: 0.0, _TEXT: 0.0}
    for part in accept.split(","):
        kind, *parameters = (each.strip().lower() for each in part.split(";"))
        if kind in weights:
            weights[kind] = max(weights[kind], _weight(parameters))
    return weights[_OPEN_METRICS] > 0 and weights[_OPEN_METRICS] >= weights[_TEXT]


def _weight(parameters: list[str]) -> float:
    for each in parameters:
        name, _, value = each.partition("=")
        if name == "q":
            try:
                return float(value)
            except ValueError:
                return 0.0
    return 1.0
