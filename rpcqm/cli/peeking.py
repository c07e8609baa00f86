"""Peeking at the messages of a queue that a command chooses."""

from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

from rpcqm.client.reads import WHOLE_BODY

if TYPE_CHECKING:
    from rpcqm.client.message import ReceivedMessage
    from rpcqm.client.remote_read import QueueReader

PREVIEW = 512
"""Bytes of a body that one line of a table can show."""


async def peeked(
    reader: "QueueReader",
    lookup_id: int | None,
    count: int | None,
    *,
    timeout: int = 0,
    body: int = WHOLE_BODY,
) -> "AsyncGenerator[ReceivedMessage, None]":
    """The message with a lookup identifier, or else the first `count` ones; all if that is None.

    `timeout` is the number of milliseconds to wait for the first message.
    """
    if lookup_id is not None:
        yield await reader.peek_by_lookup_identifier(lookup_id, body=body)
        return
    seen = 0
    async for message in reader.browse(timeout, body=body):
        yield message
        seen += 1
        if seen == count:
            return
