"""Reading through qm2qm where a server does not have RemoteRead ([MS-MQRR] 3.2.4.1).

The queue and its cursors are opened through qmcomm, which every server offers to remote readers.
"""

import contextlib
from uuid import UUID

from rpcqm.base.errors import DecodeError, HResult, MQError, RpcFault
from rpcqm.client.connection import OPEN_TIMEOUT, Connections
from rpcqm.client.identity import licence_guid
from rpcqm.client.message import ReceivedMessage
from rpcqm.client.reads import (
    NO_TRANSACTION,
    NOT_THERE,
    OpenForMove,
    Read,
)
from rpcqm.client.remote_queue import RemoteMessage, RemoteQueue
from rpcqm.client.target import ServerUnreachableError
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.queue_format import queue_format_of
from rpcqm.codec.packet.message import PacketMessage
from rpcqm.codec.packet.remote_read import MessagePacketExtension
from rpcqm.codec.types import qmcomm
from rpcqm.codec.types.mqvalues import (
    DENY_NONE,
    DENY_RECEIVE,
    MQ_LOOKUP_PEEK_CURRENT,
    MQ_LOOKUP_PEEK_NEXT,
    MQ_LOOKUP_PEEK_PREV,
    MQ_LOOKUP_RECEIVE_CURRENT,
    MQ_LOOKUP_RECEIVE_NEXT,
    MQ_LOOKUP_RECEIVE_PREV,
    RR_NACK,
)

NOT_DECLARED = 0x0000
"""dwMQS of a client that does not say what it is ([MS-MQMP] 3.1.4.2)."""

_BY_IDENTIFIER = frozenset(
    {
        MQ_LOOKUP_PEEK_CURRENT,
        MQ_LOOKUP_PEEK_NEXT,
        MQ_LOOKUP_PEEK_PREV,
        MQ_LOOKUP_RECEIVE_CURRENT,
        MQ_LOOKUP_RECEIVE_NEXT,
        MQ_LOOKUP_RECEIVE_PREV,
    }
)


class RemoteOpening:
    """A queue that R_QMOpenRemoteQueue has opened, with the numbers that the server gave it."""

    def __init__(
        self, connections: Connections, response: qmcomm.R_QMOpenRemoteQueueResponse
    ) -> None:
        self._connections = connections
        self._handle = response.pphContext
        self.context = response.pdwContext
        self.descriptor = response.dwpQueue
        self.queue = response.phQueue

    async def close(self) -> None:
        """R_QMCloseRemoteQueueContext; a reader that has taken the queue over keeps it (G27)."""
        handle, self._handle = self._handle, b""
        if handle:
            request = qmcomm.R_QMCloseRemoteQueueContextRequest(pphContext=handle)
            await self._connections.call(request)


async def open_remote_queue(
    connections: Connections, name: FormatName, access: int, share_mode: int, client: UUID
) -> RemoteOpening:
    """Open a queue for a reader that uses qm2qm ([MS-MQMP] 3.1.4.2)."""
    request = qmcomm.R_QMOpenRemoteQueueRequest(
        pQueueFormat=queue_format_of(name),
        dwCallingProcessID=0,
        dwDesiredAccess=access,
        dwShareMode=share_mode,
        pLicGuid=client,
        dwMQS=NOT_DECLARED,
    )
    response = await connections.call(request, OPEN_TIMEOUT)
    return RemoteOpening(connections, response)


async def create_remote_cursor(connections: Connections, queue: int) -> int:
    """Create a cursor on a queue that `open_remote_queue` has opened ([MS-MQMP] 3.1.4.4)."""
    ignored = qmcomm.CACTransferBufferV1(
        uTransferType=qmcomm.CACTB_CREATECURSOR,
        u=qmcomm.CACTransferBufferV1_u(qmcomm.CACTB_CREATECURSOR, qmcomm.CACCreateRemoteCursor()),
    )
    request = qmcomm.R_QMCreateRemoteCursorRequest(ptb1=ignored, hQueue=queue)
    response = await connections.call(request)
    return response.phCursor


class Qm2QmSession:
    """A queue that is read through qm2qm; it can neither move messages nor cut bodies."""

    def __init__(self, connections: Connections, name: FormatName) -> None:
        self._connections = connections
        self._name = name
        self._queue = RemoteQueue(connections, 0, 0)
        self._locked: dict[int, bytes] = {}

    async def open(self, access: int, exclusive: bool) -> None:
        """Open the queue through qmcomm, take it over through qm2qm, and close the first handle."""
        share_mode = DENY_RECEIVE if exclusive else DENY_NONE
        client = licence_guid()
        opening = await open_remote_queue(self._connections, self._name, access, share_mode, client)
        try:
            self._queue = RemoteQueue(self._connections, opening.queue, opening.descriptor)
            await self._queue.open(opening.context, client, False)
        finally:
            # The first handle is of no use any more, and the server closes it by itself too.
            with contextlib.suppress(MQError, RpcFault, ServerUnreachableError):
                await opening.close()

    async def start(self, read: Read) -> ReceivedMessage:
        if read.action in _BY_IDENTIFIER:
            found = await self._queue.read_by_lookup_identifier(
                read.action, read.request_id, read.identifier
            )
        else:
            found = await self._queue.read(read.action, read.request_id, read.timeout, read.cursor)
        if any(found.handle):
            self._locked[read.request_id] = found.handle
        try:
            return _received(found)
        except DecodeError:
            if read.request_id in self._locked:
                await self.end(read.request_id, RR_NACK)
            raise

    async def end(self, request_id: int, acknowledgement: int) -> None:
        handle = self._locked.pop(request_id, None)
        if handle is None:
            raise MQError(HResult.MQ_ERROR_INVALID_HANDLE, "no message is locked")
        await self._queue.end(handle, acknowledgement)

    async def cancel(self, request_id: int) -> None:
        await self._queue.cancel(request_id)

    async def create_cursor(self) -> int:
        return await create_remote_cursor(self._connections, self._queue.number)

    async def close_cursor(self, cursor: int) -> None:
        await self._queue.close_cursor(cursor)

    async def enlist(self, transaction: UUID) -> None:
        raise MQError(HResult.MQ_ERROR_TRANSACTION_ENLIST, NOT_THERE)

    async def end_in(self, request_id: int, acknowledgement: int) -> None:
        raise MQError(HResult.MQ_ERROR_TRANSACTION_ENLIST, NOT_THERE)

    async def move(
        self, identifier: int, target: OpenForMove, transaction: UUID = NO_TRANSACTION
    ) -> None:
        raise MQError(HResult.MQ_ERROR_UNSUPPORTED_OPERATION, "the server is too old to move")

    async def purge(self) -> None:
        await self._queue.purge()

    async def close(self) -> None:
        self._locked.clear()
        await self._queue.close()


def _received(found: RemoteMessage) -> ReceivedMessage:
    """The message in a packet; raises DecodeError if the packet holds no message."""
    message = PacketMessage(found.packet)
    message.validate()
    return ReceivedMessage(
        found.packet, MessagePacketExtension(), found.sequential_identifier, found.arrival_time
    )
