"""Structured logs: one event per line, JSON for machines or plain text for a terminal.

Many lines quote octets of strangers. So every text is cut, and its unprintable characters are
escaped. The lines of one kind that one peer causes are limited in rate: the lines left out are
counted, and the next line of that kind has their number as `left_out`.
"""

import contextlib
import logging
import os
import sys
from collections.abc import Mapping, Sequence
from typing import TextIO

import structlog
from structlog.typing import EventDict, FilteringBoundLogger, Processor

from rpcqm.base.addresses import owner_of_peer
from rpcqm.base.buckets import TokenBuckets
from rpcqm.base.clock import Clock, SystemClock
from rpcqm.base.text import cut, visible

LINES_AT_ONCE = 20
"""Lines of one kind that one peer, or one account, may cause at once.

Bound `log.lines_at_once` [lines]: the line is left out, and the next one tells how many were.
"""
LINES_PER_SECOND = 1
"""Lines of one kind that one peer, or one account, may cause in the long run.

Bound `log.lines_per_second` [lines a second]: the line is left out, and the next one tells how many
were.
"""
LINES_WITHOUT_PEER_AT_ONCE = 200
"""Lines of one kind that name no peer and no account, at once.

Bound `log.lines_without_peer_at_once` [lines]: the line is left out, and the next one tells how
many were.
"""
LINES_WITHOUT_PEER_PER_SECOND = 20
"""Lines of one kind that name no peer and no account, in the long run.

Bound `log.lines_without_peer_per_second` [lines a second]: the line is left out, and the next one
tells how many were.
"""
PEERS = 4096
"""Peers, accounts and kinds of lines whose rates are told apart.

Bound `log.peers` [rates]: all further peers share one rate.
"""
ITEMS = 64
"""Items of a list in a line of the log.

Bound `log.items` [items]: the others are left out.
"""
TRACEBACK_LINES = 100
"""Lines of a traceback in the log.

Bound `log.traceback_lines` [lines]: the lines in the middle are left out.
"""


class _Lines(structlog.PrintLogger):
    """Writes lines. A line that a full disk does not take is lost; the caller goes on."""

    def msg(self, message: str) -> None:
        with contextlib.suppress(OSError):
            super().msg(message)

    log = debug = info = warn = warning = msg
    fatal = failure = err = error = critical = exception = msg


def _to_standard_error(*_: object) -> structlog.PrintLogger:
    """The standard error, where lines go until `configure` is called; output is the program's."""
    return _Lines(sys.stderr)


if not structlog.is_configured():
    structlog.configure(logger_factory=_to_standard_error)


def is_json(style: str) -> bool:
    """Whether lines are JSON by `logging.format`; `auto` means JSON except on a terminal."""
    return style == "json" or (style == "auto" and not sys.stderr.isatty())


def configure(
    level: str = "info",
    as_json: bool = False,
    stream: TextIO | None = None,
    clock: Clock | None = None,
) -> None:
    """Send every log line of the process to `stream` (standard error by default)."""
    renderer: Processor = (
        structlog.processors.JSONRenderer()
        if as_json
        else structlog.dev.ConsoleRenderer(colors=not os.environ.get("NO_COLOR"))
    )
    structlog.configure(
        processors=[
            limited_in_rate(clock or SystemClock()),
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            fit_to_be_shown,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(
            logging.getLevelNamesMapping()[level.upper()]
        ),
        logger_factory=lambda *_: _Lines(stream or sys.stderr),
        # a later call with another level also applies to loggers that exist already
        cache_logger_on_first_use=False,
    )


def get_logger(room: str) -> FilteringBoundLogger:
    """The logger of one room, for example `rpc` or `store`."""
    logger: FilteringBoundLogger = structlog.get_logger(room=room)
    return logger


def limited_in_rate(clock: Clock) -> Processor:
    """Leave out lines that one peer or account causes too often, and frequent lines without a peer.

    A line with `always=True` is never left out: an administrator has asked for it, or it reports a
    change.
    """
    of_callers = TokenBuckets(LINES_AT_ONCE, LINES_PER_SECOND, PEERS)
    of_nobody = TokenBuckets(LINES_WITHOUT_PEER_AT_ONCE, LINES_WITHOUT_PEER_PER_SECOND, PEERS)

    def limit(logger: object, method: str, event: EventDict) -> EventDict:
        if event.pop("always", False):
            return event
        peer, who, kind = event.get("peer"), event.get("who"), event.get("event")
        now = clock.monotonic()
        if peer is not None:
            left_out = of_callers.take((owner_of_peer(str(peer)), kind), now)
        elif who is not None:
            left_out = of_callers.take((kind, event.get("sid"), who), now)
        else:
            left_out = of_nobody.take(kind, now)
        if left_out is None:
            raise structlog.DropEvent
        if left_out:
            event["left_out"] = left_out
        return event

    return limit


def fit_to_be_shown(logger: object, method: str, event: EventDict) -> EventDict:
    """Cut each text of a line, and escape its unprintable characters."""
    for name, value in event.items():
        event[name] = _traceback(value) if name == "exception" else _shown(value)
    return event


def _shown(value: object) -> object:
    if value is None or isinstance(value, bool | float):
        return value
    if isinstance(value, int):
        return value if value.bit_length() <= 64 else cut(hex(value))
    if isinstance(value, str):
        return visible(cut(value))
    if isinstance(value, Mapping):
        return {visible(cut(str(key))): _shown(value[key]) for key in list(value)[:ITEMS]}
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray | memoryview):
        return [_shown(each) for each in value[:ITEMS]]
    return visible(cut(repr(value)))


def _traceback(text: object) -> str:
    """The first and the last lines of a traceback, indented so that none looks like a line of the
    log."""
    lines = str(text).split("\n")
    if len(lines) > TRACEBACK_LINES:
        half = TRACEBACK_LINES // 2
        left_out = f"… ({len(lines) - 2 * half:,} lines)"
        lines = [*lines[:half], left_out, *lines[-half:]]
    return "\n".join(f"  {visible(cut(line))}" for line in lines)
