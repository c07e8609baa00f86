"""Values of Windows where [MS-MQQB] leaves a choice (its appendix A); milliseconds."""

from dataclasses import dataclass

RESEND_TIMEOUTS_SHORT = 30_000
RESEND_TIMEOUTS_MEDIUM = 300_000
RESEND_TIMEOUTS_LONG = 1_800_000
RESEND_TIMEOUTS_FINAL = 21_600_000

RESEND_TIMER_TABLE = (
    *(RESEND_TIMEOUTS_SHORT,) * 3,
    *(RESEND_TIMEOUTS_MEDIUM,) * 3,
    *(RESEND_TIMEOUTS_LONG,) * 3,
    RESEND_TIMEOUTS_FINAL,
)
"""The successive times to wait for an order acknowledgement (3.1.3.1)."""


@dataclass(frozen=True, slots=True)
class BinarySettings:
    """Durations and bounds of sessions and sequences."""

    session_initialization: int = 60_000
    session_cleanup: int = 300_000
    session_retry_connect: int = 5_000
    ack_wait_timeout: int = 20_000
    window_size: int = 64
    order_ack_timeout: int = 500
    maximum_order_ack_delay: int = 10_000
    message_id_history_cleanup: int = 1_800_000
    message_id_history_size: int = 10_000
    ping_response: int = 1_000
    resend_timer_table: tuple[int, ...] = RESEND_TIMER_TABLE


ROUTER_SESSION_CLEANUP = 120_000
"""The Session Cleanup Timer of a routing server."""
