"""A queue that is read through rpcqm_bulk, which only queue managers of ours serve (G700)."""

import asyncio
import contextlib
import struct
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence

from rpcqm.base.consecutive import consecutive
from rpcqm.base.errors import DecodeError, HResult, MQError, RpcFault
from rpcqm.client.connection import OPEN_TIMEOUT, Connections, require_success
from rpcqm.client.message import ReceivedMessage, from_packet
from rpcqm.client.target import RemoteServer, ServerUnreachableError
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.queue_format import queue_format_of
from rpcqm.codec.packet.types import SEQUENTIAL_MASK
from rpcqm.codec.types import rpcqm_bulk
from rpcqm.codec.types.rpcqm_bulk import LOOKUP_RANGE

Failure = MQError | DecodeError
Found = ReceivedMessage | Failure
"""A message, or the reason for which it could not be read."""

_READ_AT_ONCE = 512
"""Messages that are asked for together: the next ones are on their way while these are decoded."""
_ENTRY = struct.Struct("<QIII")


async def open_bulk(
    connections: Connections, name: FormatName, access: int
) -> "BulkSession | None":
    """Open a queue; None where the server does not have the interface, or not for such callers.

    Raises what Connections.call raises for anything else, as MQError for a queue that is not there.
    """
    target = connections.target
    if isinstance(target, RemoteServer) and target.credentials is None:
        return None
    request = rpcqm_bulk.R_BulkOpenRequest(pQueueFormat=queue_format_of(name), dwAccess=access)
    try:
        response = await connections.call(request, OPEN_TIMEOUT)
    except RpcFault:
        return None
    return BulkSession(connections, response.pphContext)


class BulkSession:
    """An open queue; a context handle of the server."""

    def __init__(self, connections: Connections, handle: bytes) -> None:
        self._connections = connections
        self._handle = handle

    async def close(self) -> None:
        """Close the handle."""
        if self._handle:
            handle, self._handle = self._handle, b""
            with contextlib.suppress(ServerUnreachableError):  # its end has closed the handle
                await self._connections.call(rpcqm_bulk.R_BulkCloseRequest(pphContext=handle))

    async def visible(self) -> AsyncIterator[int]:
        """The lookup identifiers of the messages that can be seen, in the queue's order."""
        async for page in self.pages():
            for key in page:
                yield key

    async def pages(self) -> AsyncIterator[list[int]]:
        """The same in lists, as they are answered."""
        after = 0
        while True:
            response = await self._connections.call(
                rpcqm_bulk.R_BulkListRequest(phContext=self._handle, After=after, cMost=0)
            )
            ranges = response.ppRanges or ()
            if sum(each.Count for each in ranges) > rpcqm_bulk.MOST_BULK_MESSAGES:
                raise DecodeError("an answer lists more messages than there is room for")
            yield [key for each in ranges for key in range(each.First, each.First + each.Count)]
            if not response.pNext:
                return
            if response.pNext <= after:
                raise DecodeError("the list of messages does not go on")
            after = response.pNext

    async def count(self) -> int:
        """How many messages can be received."""
        request = rpcqm_bulk.R_BulkCountRequest(phContext=self._handle)
        return (await self._connections.call(request)).pMessages

    async def sizes(self, identifiers: Sequence[int]) -> list[int]:
        """The octets of messages, 0 for one that is gone."""
        found: list[int] = []
        most = rpcqm_bulk.MOST_BULK_MESSAGES
        for at in range(0, len(identifiers), most):
            some = identifiers[at : at + most]
            ranges = ranges_of(some)
            request = rpcqm_bulk.R_BulkSizesRequest(
                phContext=self._handle, cRanges=len(ranges), pRanges=ranges
            )
            sizes = (await self._connections.call(request)).ppSizes or ()
            if len(sizes) != len(some):
                raise DecodeError("the sizes of other messages are answered")
            found += sizes
        return found

    async def peek(self, identifiers: Sequence[int]) -> AsyncGenerator[tuple[int, Found], None]:
        """Read messages, in that order."""
        at, asked = 0, self._asked(identifiers, 0)
        try:
            while asked is not None:
                response = await asked
                at += response.pcDone
                if not response.pcDone:
                    raise DecodeError("the server has read none of the messages")
                asked = self._asked(identifiers, at)
                for found in _found(response.ppMessages or b"", response.pcDone):
                    yield found
        finally:
            if asked is not None:
                asked.cancel()

    def _asked(
        self, identifiers: Sequence[int], at: int
    ) -> "asyncio.Task[rpcqm_bulk.R_BulkReadResponse] | None":
        """The answer to a request for the next messages; None where there are no more."""
        ranges = ranges_of(identifiers[at : at + _READ_AT_ONCE])
        if not ranges:
            return None
        request = rpcqm_bulk.R_BulkReadRequest(
            phContext=self._handle, cRanges=len(ranges), pRanges=ranges
        )
        return asyncio.ensure_future(self._connections.call(request))

    async def remove(self, identifiers: Sequence[int]) -> AsyncIterator[tuple[int, Failure]]:
        """Remove messages; yields those that could not be removed, with the reason."""
        most = rpcqm_bulk.MOST_BULK_MESSAGES
        for at in range(0, len(identifiers), most):
            ranges = ranges_of(identifiers[at : at + most])
            response = await self._connections.call(
                rpcqm_bulk.R_BulkRemoveRequest(
                    phContext=self._handle, cRanges=len(ranges), pRanges=ranges
                )
            )
            for each in response.ppRefused or ():
                yield each.LookupId, _error_of(each.Status)


def ranges_of(identifiers: Sequence[int]) -> list[LOOKUP_RANGE]:
    """Identifiers in their order, those that follow each other without a gap as one range."""
    return [LOOKUP_RANGE(First=first, Count=count) for first, count in consecutive(identifiers)]


def _found(octets: bytes, count: int) -> Iterator[tuple[int, Found]]:
    """What an answer says of so many messages; raises DecodeError if it is cut."""
    at = 0
    for _ in range(count):
        if at + _ENTRY.size > len(octets):
            raise DecodeError("an answer ends within a message", at)
        key, arrival, status, size = _ENTRY.unpack_from(octets, at)
        start = at + _ENTRY.size
        at = start + size
        if at > len(octets):
            raise DecodeError("a message is longer than its answer", start)
        yield key, _message(key, arrival, status, octets[start:at])
    if at != len(octets):
        raise DecodeError("an answer goes on behind its last message", at)


def _message(key: int, arrival: int, status: int, octets: bytes) -> Found:
    if status:
        return _error_of(status)
    try:
        return from_packet(octets, key & SEQUENTIAL_MASK, arrival)
    except DecodeError as error:
        return error


def _error_of(status: int) -> MQError:
    try:
        require_success(status & 0xFFFFFFFF)
    except MQError as error:
        return error
    return MQError(HResult.MQ_ERROR, f"with the code 0x{status & 0xFFFFFFFF:08X}")
