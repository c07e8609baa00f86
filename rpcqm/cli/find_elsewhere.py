"""Searching another queue manager: every message that can be peeked at is fetched."""

import argparse
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from rpcqm.base.clock import SystemClock
from rpcqm.base.errors import DecodeError, MQError
from rpcqm.cli.errors import UsageMistake
from rpcqm.cli.filters import as_options
from rpcqm.cli.message_search import NOT_READABLE, queues_with_messages
from rpcqm.cli.messages import as_json
from rpcqm.cli.options import queue_name
from rpcqm.cli.peeking import PREVIEW
from rpcqm.client.reads import WHOLE_BODY
from rpcqm.codec.filters.matching import Matcher, Verdict
from rpcqm.codec.filters.written import Surroundings, no_names, read_filter

if TYPE_CHECKING:
    from rpcqm.client.message import ReceivedMessage
    from rpcqm.client.queue_manager import QueueManagerClient

PAGE = 100
"""Messages that are looked at for a page."""


async def pages_from(
    client: "QueueManagerClient",
    arguments: argparse.Namespace,
    conditions: dict[str, str],
    queue: str | None,
    after: str | None,
) -> AsyncGenerator[dict[str, Any], None]:
    """Pages of a search in a queue, or in all (None), as the queue manager here would tell them.

    Raises UsageMistake for what can be searched for on that machine only.
    """
    matcher, behind = _matcher(conditions), _behind(queue, after)
    if queue is not None:
        async with aclosing(_pages_of(client, arguments, matcher, queue, behind)) as pages:
            async for page in pages:
                yield page
        return
    async for path in queues_with_messages(client, arguments):
        try:
            async with aclosing(_pages_of(client, arguments, matcher, path, None)) as pages:
                async for page in pages:
                    yield page | {"next": None}
        except MQError as error:
            if error.status not in NOT_READABLE:
                raise


def _matcher(conditions: dict[str, str]) -> Matcher:
    try:
        return Matcher(read_filter(conditions, Surroundings(SystemClock().now(), no_names)))
    except MQError as error:
        only = "; names of accounts are known on the queue manager's machine only"
        hint = only if "sender" in conditions else ""
        raise UsageMistake(f"{as_options(error.detail)}{hint}.") from None


def _behind(queue: str | None, after: str | None) -> int | None:
    if after is None:
        return None
    if queue is None or not (after.isascii() and after.isdigit() and len(after) <= 20):
        raise UsageMistake("Over --server a search goes on in one queue, --after a lookup id.")
    return int(after)


async def _pages_of(
    client: "QueueManagerClient",
    arguments: argparse.Namespace,
    matcher: Matcher,
    queue: str,
    after: int | None,
) -> AsyncGenerator[dict[str, Any], None]:
    whole = arguments.json or matcher.wanted.looks_at_bodies
    page = _Page(matcher, queue)
    async with client.open_reader(queue_name(arguments, queue), peek_only=True) as reader:
        async for message in reader.browse(body=WHOLE_BODY if whole else PREVIEW):
            if after is not None and message.lookup_identifier <= after:
                continue
            page.look(message)
            if page.told["looked_at"] == PAGE or len(page.told["messages"]) == 1:
                yield page.told
                page = _Page(matcher, queue)
    page.told["next"] = None
    yield page.told


class _Page:
    """What was found among some messages."""

    def __init__(self, matcher: Matcher, queue: str) -> None:
        self._matcher, self._queue = matcher, queue
        self.told: dict[str, Any] = {
            "messages": [],
            "looked_at": 0,
            "unread": 0,
            "unread_first": [],
            "next": None,
        }

    def look(self, message: "ReceivedMessage") -> None:
        """Compare a message, which was fetched."""
        told, key = self.told, str(message.lookup_identifier)
        told["looked_at"] += 1
        told["next"] = key
        try:
            verdict = self._matcher.verdict(message) if self._may_match(message) else Verdict.NO
        except DecodeError:  # nothing that is asked for can be read of it
            verdict = Verdict.NO
        if verdict is Verdict.YES:
            told["messages"].append(as_json(message) | {"queue": self._queue})
        elif verdict is Verdict.UNREAD:
            told["unread"] += 1
            told["unread_first"].append({"queue": self._queue, "lookup_id": key})

    def _may_match(self, message: "ReceivedMessage") -> bool:
        size = len(message.buffer)
        transactional = message.is_transactional
        return self._matcher.may_match(
            message.arrival_time * 1000, size, transactional, message.priority
        )
