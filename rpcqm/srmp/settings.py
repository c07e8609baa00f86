"""The settings of messages over HTTP ([MC-MQSRM] 3.1.1.1.7 to .10, 3.1.2)."""

from dataclasses import dataclass
from typing import NamedTuple


class Redirection(NamedTuple):
    """[MC-MQSRM] 3.1.1.1.10: a URL, or the beginning of some with a `*` at its end, and another."""

    from_url: str
    to_url: str


@dataclass(frozen=True, slots=True)
class SrmpSettings:
    """Times are milliseconds. A port is the one that we listen on, -1 if we do not."""

    http_port: int = -1
    https_port: int = -1
    retry: int = 20_000
    receipt_coalescing: int = 500
    maximum_receipt_delay: int = 10_000
    stream_receipt_wait: int = 30_000
    session_cleanup: int = 300_000
    history_size: int = 10_000
    """Messages by HTTP that are known again when they come a second time.

    Bound `srmp.history` [messages]: of the address from which most have come, the oldest is
    forgotten.
    """
    history_cleanup: int = 1_800_000
    transparent_store_and_forward: bool = False
    default_stream_receipt_url: str = ""
    inbound: tuple[Redirection, ...] = ()
    outbound: tuple[Redirection, ...] = ()
    outbound_exceptions: tuple[str, ...] = ()
    stream_receipt: tuple[Redirection, ...] = ()
    receipts_to: frozenset[str] = frozenset()
    proxy: str = ""

    @property
    def resend_timer_table(self) -> tuple[int, ...]:
        """ResendTimerTable ([MC-MQSRM] 3.1.3.1); the first rung scales the others."""
        first = self.stream_receipt_wait
        return (*(first,) * 3, *(first * 10,) * 3, *(first * 60,) * 3, first * 720)
