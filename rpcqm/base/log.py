"""Structured logs: one event per line, JSON for machines or plain text for a terminal."""

import logging
import os
import sys
from typing import Any, TextIO

import structlog


def configure(level: str = "info", as_json: bool = False, stream: TextIO | None = None) -> None:
    """Send every log line of the process to `stream` (standard error by default)."""
    renderer: Any = (
        structlog.processors.JSONRenderer()
        if as_json
        else structlog.dev.ConsoleRenderer(colors=not os.environ.get("NO_COLOR"))
    )
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(
            logging.getLevelNamesMapping()[level.upper()]
        ),
        logger_factory=structlog.PrintLoggerFactory(stream or sys.stderr),
        # A later call, with another level, holds for the loggers that are there already.
        cache_logger_on_first_use=False,
    )


def get_logger(room: str) -> Any:
    """The logger of one room, for example `rpc` or `store`."""
    return structlog.get_logger(room=room)
