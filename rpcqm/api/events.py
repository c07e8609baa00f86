"""Events, sent by the server (server-sent events), so that programs need not poll."""

import asyncio
from collections.abc import Callable

from rpcqm.api import parameters, reading
from rpcqm.api.asked import Asked, Reply
from rpcqm.api.problems import Refusal, bad_request
from rpcqm.base.identity import Identity
from rpcqm.codec.names.written import HERE, format_name
from rpcqm.operations.events import Subscription
from rpcqm.operations.shapes import described_happening
from rpcqm.operations.trail import Event

EVENT_STREAM = "text/event-stream"
HEARTBEAT_SECONDS = 15.0
"""After so much silence a comment is sent.

The caller's password or token is checked again then, and before events are told.
"""
RETRY_MILLISECONDS = 1000
_LONGEST_NUMBER = 20


async def listen_to_events(asked: Asked) -> Reply:
    """Events from now on, or since Last-Event-ID as far as they are kept: server-sent events.

    Without `queues` for administrators. The stream ends after the longest wait at the latest.
    """
    wanted: parameters.Listening = asked.parameters
    queues = None
    if wanted.queues is not None:
        queues = [format_name(each.strip(), HERE) for each in wanted.queues.split(",")]
    after = _number(asked.headers.get("last-event-id"))
    listener = asked.operations.events.subscribe(asked.identity, queues, after)
    stream = EventStream(listener, asked.again, asked.longest_wait)
    return Reply(200, stream=stream, content_type=EVENT_STREAM)


def _number(text: str | None) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= _LONGEST_NUMBER):
        raise bad_request("Last-Event-ID: the id of an event is a number")
    return int(text)


class EventStream:
    """The events of one listener as octets."""

    def __init__(
        self, listener: Subscription, again: Callable[[], Identity], longest: float
    ) -> None:
        self._listener = listener
        self._again = again
        self._begun = False
        now = asyncio.get_running_loop().time()
        self._end, self._check = now + longest, now + HEARTBEAT_SECONDS

    async def next(self) -> bytes | None:
        """The next events; a comment after a long silence."""
        if not self._begun:
            self._begun = True
            return b"retry: %d\n\n" % RETRY_MILLISECONDS
        now = asyncio.get_running_loop().time()
        if now >= self._end or self._listener.over:
            return None
        if now >= self._check and not self._is_still_right(now):
            return None
        events = await self._listener.take(min(self._end, self._check) - now)
        if events and not self._is_still_right(now):
            return None
        if events:
            return b"".join(map(_written, events))
        return None if self._listener.over else b":\n\n"

    def _is_still_right(self, now: float) -> bool:
        """Whether the caller could log on now: tokens end, accounts are deleted."""
        self._check = now + HEARTBEAT_SECONDS
        before = self._listener.identity
        try:
            self._listener.identity = self._again()
        except Refusal:
            return False
        return self._listener.identity.sid == before.sid

    def close(self) -> None:
        """End the listening."""
        self._listener.leave()


def _written(event: Event) -> bytes:
    told = reading.write_json(described_happening(event))
    number = b"id: %d\n" % event.number if event.number else b""
    return number + b"event: %s\ndata: %s\n\n" % (event.kind.encode(), told)
