"""What others send by HTTP ([MC-MQSRM] 3.1.5.1)."""

from typing import TYPE_CHECKING

from rpcqm.base.completion import Completion, completed
from rpcqm.http.exchange import HttpRequest

if TYPE_CHECKING:
    from rpcqm.srmp.connection.protocol import SrmpProtocol

_UNAVAILABLE = 503


class Receiver:
    """The way of a request to a queue here."""

    def __init__(self, protocol: "SrmpProtocol") -> None:
        self._protocol = protocol

    def receive(self, request: HttpRequest) -> Completion[int]:
        """The status to answer with, once what came is as durable as it asks for."""
        return completed(_UNAVAILABLE)

    def stop(self) -> None:
        """Stop the timers."""
