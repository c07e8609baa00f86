"""Finding the message that answers another one, by its correlation identifier."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

from rpcqm.base.errors import HResult, MQError
from rpcqm.client.connection import END_OF_QUEUE
from rpcqm.client.message import ReceivedMessage
from rpcqm.client.remote_read import QueueReader
from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.codec.types.mqvalues import INFINITE

FIRST_LOOK, LONGEST_LOOK = 1_000, 30_000
"""Milliseconds for which one cursor waits for arrivals: an answer of a higher priority comes before
it, and is found by the next look through the queue."""

TAKEN = END_OF_QUEUE | {HResult.MQ_ERROR_MESSAGE_LOCKED_UNDER_TRANSACTION}
"""The refusals of a message that somebody else has received meanwhile."""


async def answers(
    reader: QueueReader, question: MessageIdentifier, timeout: int
) -> AsyncGenerator[ReceivedMessage, None]:
    """Peek at the messages that name `question`, without their bodies, for `timeout` milliseconds.

    The messages that are there are looked through in order, one call for each, then those that
    arrive. A message may come again.
    """
    loop = asyncio.get_running_loop()
    end, look = loop.time() + timeout / 1000, FIRST_LOOK
    while True:
        left = look if timeout == INFINITE else min(look, max(0, round((end - loop.time()) * 1000)))
        async with aclosing(_walk(reader, left)) as walk:
            async for message in walk:
                if message.correlation_identifier == question:
                    yield message
        if timeout != INFINITE and loop.time() >= end:
            return
        look = min(2 * look, LONGEST_LOOK)


async def _walk(reader: QueueReader, patience: int) -> AsyncGenerator[ReceivedMessage, None]:
    """The messages behind a new cursor, until none comes for `patience` milliseconds."""
    cursor = await reader.create_cursor()
    try:
        yield await reader.peek(patience, cursor=cursor, body=0)
        while True:
            yield await reader.peek_next(cursor, patience, body=0)
    except MQError as error:
        if error.status not in END_OF_QUEUE:
            raise
    finally:
        await reader.close_cursor(cursor)
