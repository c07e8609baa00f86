"""Finding the message that answers another one, by its correlation identifier."""

import asyncio
import itertools
from collections.abc import AsyncGenerator
from contextlib import aclosing

from rpcqm.base.errors import HResult, MQError, RpcFault
from rpcqm.client.connection import END_OF_QUEUE
from rpcqm.client.message import ReceivedMessage
from rpcqm.client.remote_read import QueueReader
from rpcqm.client.searching import search_page
from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.codec.types.mqvalues import INFINITE

FIRST_LOOK, LONGEST_LOOK = 1_000, 30_000
"""Milliseconds for which one cursor waits for arrivals: an answer of a higher priority comes before
it, and is found by the next look through the queue."""

_PAGE = 100
WALKED = 64
"""Messages that are looked at one by one; the queue manager itself looks through a deeper queue."""

TAKEN = END_OF_QUEUE | {HResult.MQ_ERROR_MESSAGE_LOCKED_UNDER_TRANSACTION}
"""The refusals of a message that somebody else has received meanwhile."""


async def answers(
    reader: QueueReader, question: MessageIdentifier, timeout: int
) -> AsyncGenerator[ReceivedMessage, None]:
    """Peek at the messages that name `question`, without their bodies, for `timeout` milliseconds.

    The messages that are there are looked through in order, the first ones with a call for each,
    then those that arrive. A message may come again.
    """
    loop = asyncio.get_running_loop()
    end, look = loop.time() + timeout / 1000, FIRST_LOOK
    while True:
        left = look if timeout == INFINITE else min(look, max(0, round((end - loop.time()) * 1000)))
        async with aclosing(_walk(reader, question, left)) as walk:
            async for message in walk:
                if message.correlation_identifier == question:
                    yield message
        if timeout != INFINITE and loop.time() >= end:
            return
        look = min(2 * look, LONGEST_LOOK)


async def _walk(
    reader: QueueReader, question: MessageIdentifier, patience: int
) -> AsyncGenerator[ReceivedMessage, None]:
    """The messages behind a new cursor, until none comes for `patience` milliseconds.

    Of a deep queue those that name `question` come first, as far as the queue manager tells.
    """
    cursor = await reader.create_cursor()
    try:
        message = await reader.peek(patience, cursor=cursor, body=0)
        for seen in itertools.count(1):
            yield message
            if seen == WALKED:
                keys = await _searched(reader, question, message.lookup_identifier)
                for key in keys or ():
                    if (found := await _peeked(reader, key)) is not None:
                        yield found
                if keys is not None and not patience:
                    return
            message = await reader.peek_next(cursor, patience, body=0)
    except MQError as error:
        if error.status not in END_OF_QUEUE:
            raise
    finally:
        await reader.close_cursor(cursor)


async def _searched(reader: QueueReader, question: MessageIdentifier, key: int) -> list[int] | None:
    """What the queue manager finds behind a message; None where it makes no search, or not now."""
    found: list[int] = []
    after: str | None = str(key)
    conditions = {"correlation_id": str(question)}
    while after is not None:
        asked = {"conditions": conditions, "after": after, "limit": _PAGE, "whole": False}
        try:
            page = await search_page(reader.connections, reader.name, asked)
        except (MQError, RpcFault):
            return None
        found += [int(each["lookup_id"]) for each in page["messages"]]
        after = page["next"]
    return found


async def _peeked(reader: QueueReader, key: int) -> ReceivedMessage | None:
    """The message with a lookup identifier, unless somebody has taken it."""
    try:
        return await reader.peek_by_lookup_identifier(key, body=0)
    except MQError as error:
        if error.status not in TAKEN:
            raise
        return None
