"""Reading and removing many messages.

Queue managers of ours are asked for thousands in a call (rpcqm_bulk). Others are read with many
calls of RemoteRead on their way at once; a server without RemoteRead is asked for one message after
the other.
"""

import itertools
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Self

from rpcqm.base.errors import DecodeError, MQError
from rpcqm.client.bulk_session import BulkSession, Failure, Found, open_bulk
from rpcqm.client.connection import END_OF_QUEUE, Connections
from rpcqm.client.identity import next_request_identifier
from rpcqm.client.message import ReceivedMessage
from rpcqm.client.pipelining import pipelined
from rpcqm.client.reads import WHOLE_BODY, Read
from rpcqm.client.remote_read import QueueReader, RemoteReadSession
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.types import remoteread
from rpcqm.codec.types.mqvalues import (
    MQ_ACTION_PEEK_CURRENT,
    MQ_ACTION_PEEK_NEXT,
    MQ_LOOKUP_PEEK_CURRENT,
    MQ_LOOKUP_RECEIVE_CURRENT,
    PEEK_ACCESS,
    RECEIVE_ACCESS,
    RR_ACK,
    RR_NACK,
)

_LOOKED_AHEAD = 128
"""Peeks on their way beyond the end of the queue are for nothing: fewer than a whole window."""
_REMOVED_AT_ONCE = 1024
"""Messages that are locked together; a connection that is lost gives these back."""


class BulkReader:
    """A queue that is open for peeking and, unless `peek_only`, for removing messages."""

    def __init__(
        self,
        connections: Connections,
        name: FormatName,
        *,
        peek_only: bool,
        outgoing: bool = False,
    ) -> None:
        self._connections = connections
        self._name = name
        self._access = PEEK_ACCESS if peek_only else RECEIVE_ACCESS
        self._bulk: BulkSession | None = None
        self._outgoing = outgoing
        self._reader = QueueReader(connections, name, peek_only=peek_only, outgoing=outgoing)

    async def __aenter__(self) -> Self:
        try:
            self._bulk = await open_bulk(self._connections, self._name, self._access)
        except MQError:
            if not self._outgoing:  # RemoteRead may open what waits for a queue of that name
                raise
        if self._bulk is None:
            await self._reader.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._bulk is not None:
            await self._bulk.close()
        await self._reader.close()

    async def visible(self) -> AsyncIterator[int]:
        """The lookup identifiers of the messages that can be seen, in the queue's order."""
        if self._bulk is not None:
            async for key in self._bulk.visible():
                yield key
            return
        if not isinstance(self._reader.session, RemoteReadSession):
            async for message in self._reader.browse(body=0):
                yield message.lookup_identifier
            return
        cursor = await self._reader.create_cursor()
        async with aclosing(self._read(self._numbered(_walk(cursor)), _LOOKED_AHEAD)) as found:
            async for _, each in found:
                if isinstance(each, MQError) and each.status in END_OF_QUEUE:
                    break
                if isinstance(each, MQError | DecodeError):
                    raise each
                yield each.lookup_identifier
        await self._reader.close_cursor(cursor)

    async def count(self) -> int | None:
        """How many messages can be received; None where only a walk through them could tell."""
        return None if self._bulk is None else await self._bulk.count()

    async def sizes(self, identifiers: Sequence[int]) -> list[int]:
        """The octets of messages, 0 for one that is gone; their bodies do not come for it."""
        if self._bulk is not None:
            return await self._bulk.sizes(identifiers)
        async with aclosing(self._peeked(identifiers, body=0)) as found:
            return [
                len(each.buffer) if isinstance(each, ReceivedMessage) else 0
                async for _, each in found
            ]

    async def browse(self) -> AsyncIterator[ReceivedMessage]:
        """The messages that can be seen, in the queue's order; raises MQError as peeking does."""
        if self._bulk is None:
            async for message in self._reader.browse():
                yield message
            return
        async for some in self._bulk.pages():
            async with aclosing(self._bulk.peek(some)) as pairs:
                async for _, found in pairs:
                    if isinstance(found, ReceivedMessage):
                        yield found
                    elif not isinstance(found, MQError) or found.status not in END_OF_QUEUE:
                        raise found

    async def peek(self, identifiers: Sequence[int]) -> AsyncIterator[tuple[int, Found]]:
        """Read the messages with these lookup identifiers, in that order."""
        if self._bulk is not None:
            async with aclosing(self._bulk.peek(identifiers)) as pairs:
                async for pair in pairs:
                    yield pair
            return
        async with aclosing(self._peeked(identifiers)) as pairs:
            async for pair in pairs:
                yield pair

    async def _peeked(
        self, identifiers: Sequence[int], body: int = WHOLE_BODY
    ) -> AsyncGenerator[tuple[int, Found], None]:
        if isinstance(self._reader.session, RemoteReadSession):
            kind = MQ_LOOKUP_PEEK_CURRENT
            reads = (Read(kind, 0, identifier=each, body=body) for each in identifiers)
            async for read, found in self._read(self._numbered(reads)):
                yield read.identifier, found
            return
        for each in identifiers:
            try:
                yield each, await self._reader.peek_by_lookup_identifier(each, body=body)
            except (MQError, DecodeError) as error:
                yield each, error

    async def remove(self, identifiers: Sequence[int]) -> AsyncIterator[tuple[int, Failure]]:
        """Remove messages; yields those that could not be removed, with the reason.

        Bodies are not read. Through RemoteRead a message that cannot be decoded is given back
        ([MS-MQRR] 3.2.4.4.1).
        """
        if self._bulk is not None:
            async for refusal in self._bulk.remove(identifiers):
                yield refusal
            return
        for at in range(0, len(identifiers), _REMOVED_AT_ONCE):
            some = identifiers[at : at + _REMOVED_AT_ONCE]
            if isinstance(self._reader.session, RemoteReadSession):
                async for pair in self._remove(some):
                    yield pair
                continue
            for each in some:
                try:
                    async with await self._reader.receive_by_lookup_identifier(each):
                        pass
                except (MQError, DecodeError) as error:
                    yield each, error

    async def _remove(self, identifiers: Sequence[int]) -> AsyncIterator[tuple[int, Failure]]:
        reads = (Read(MQ_LOOKUP_RECEIVE_CURRENT, 0, identifier=e, body=0) for e in identifiers)
        locked: list[Read] = []
        unreadable: list[Read] = []
        async for read, found in self._read(self._numbered(reads)):
            if not isinstance(found, ReceivedMessage):
                yield read.identifier, found
            if not isinstance(found, MQError):
                (unreadable if isinstance(found, DecodeError) else locked).append(read)
        async for _ in self._end(unreadable, RR_NACK):
            pass  # the reason that they stay was yielded when they were read
        async for read, error in self._end(locked, RR_ACK):
            yield read.identifier, error

    async def _end(
        self, locked: list[Read], acknowledgement: int
    ) -> AsyncIterator[tuple[Read, MQError]]:
        session = self._session()
        requests = (session.ending(read.request_id, acknowledgement) for read in locked)
        following = iter(locked)
        async for outcome in pipelined(self._connections, remoteread.R_EndReceiveRequest, requests):
            read = next(following)
            if isinstance(outcome, MQError):
                yield read, outcome

    def _session(self) -> RemoteReadSession:
        session = self._reader.session
        assert isinstance(session, RemoteReadSession)
        return session

    def _numbered(self, reads: Iterator[Read]) -> Iterator[Read]:
        """Reads with request identifiers of their own."""
        for each in reads:
            yield replace(each, request_id=next_request_identifier())

    async def _read(
        self, reads: Iterator[Read], window: int | None = None
    ) -> AsyncGenerator[tuple[Read, Found], None]:
        session = self._session()
        asked, sent = itertools.tee(reads)
        requests = (session.starting(read) for read in sent)
        calls = pipelined(self._connections, remoteread.R_StartReceiveRequest, requests, window)
        async with aclosing(calls):
            async for outcome in calls:
                yield next(asked), _found(session, outcome)


def _found(
    session: RemoteReadSession, outcome: remoteread.R_StartReceiveResponse | MQError
) -> Found:
    if isinstance(outcome, MQError):
        return outcome
    try:
        return session.received(outcome)
    except DecodeError as error:
        return error


def _walk(cursor: int) -> Iterator[Read]:
    """Reads that peek at every message after a new cursor, without bodies."""
    yield Read(MQ_ACTION_PEEK_CURRENT, 0, cursor=cursor, body=0)
    yield from itertools.repeat(Read(MQ_ACTION_PEEK_NEXT, 0, cursor=cursor, body=0))
