"""Copies of sessions, to see what would become of one (docs/request-templates.md)."""

from copy import copy

from rpcqm.base.clock import Timer, Timers
from rpcqm.binary.framing import PacketBuffer
from rpcqm.binary.sent_messages import SentMessages
from rpcqm.binary.session import Session
from rpcqm.binary.session_host import SessionHost

_TIMERS = ("_initialization", "_cleanup", "_ack_wait", "_ack_send")


def _nothing() -> None:
    """Nobody waits for the timer of a copy."""


def silent(timer: Timer | None, timers: Timers) -> Timer | None:
    """A timer like one, among timers that nobody runs."""
    return None if timer is None else Timer(timers, timer.due, _nothing)


def copied(session: Session, host: SessionHost) -> Session:
    """A session like one, of another host: what happens to it happens to nothing else."""
    made = copy(session)
    made._host, made._timers = host, Timers(session._clock)
    made.take_together = None
    made._arrived = PacketBuffer()
    made._sent = SentMessages()
    made._sent.in_flight = session._sent.in_flight.copy()
    made._sent.unpersisted = dict(session._sent.unpersisted)
    made._persisted_early = set(session._persisted_early)
    for name in _TIMERS:
        setattr(made, name, silent(getattr(session, name), made._timers))
    return made


def told(session: Session) -> dict[str, object]:
    """What there is to know of a session, but for when its timers are due."""
    return {
        "state": session.state,
        "received": session.message_received_count,
        "recoverable received": session.recoverable_message_received_count,
        "unacknowledged": session.unacked_received_msg_count,
        "sent": session.message_sent_count,
        "recoverable sent": session.recoverable_message_sent_count,
        "in flight": list(session._sent.in_flight),
        "unpersisted": list(session._sent.unpersisted.items()),
        "persisted": (session._persisted_recoverable, session._acknowledged_recoverable),
        "direct": session.direct,
        "active": (session.session_active, session.received_ack),
        "windows": (session.window_size, session.received_window_size),
        "timers": [getattr(session, name) is not None for name in _TIMERS],
        "acknowledges in": session._ack_send_duration if session._ack_send else None,
    }
