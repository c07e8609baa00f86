"""Sending messages and internal transactions through qmcomm and qmcomm2 ([MS-MQMP] 3.2)."""

import asyncio
import contextlib
import itertools
import socket
import uuid
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from types import TracebackType
from typing import Self

from rpcqm.base.clock import Clock, SystemClock
from rpcqm.base.errors import HResult, MQError, RpcFault
from rpcqm.client.connection import Connections, require_value
from rpcqm.client.identity import licence_guid
from rpcqm.client.outgoing import OutgoingMessage
from rpcqm.client.pipelining import pipelined
from rpcqm.client.target import HandleLostError, OutcomeUnknownError, ServerUnreachableError
from rpcqm.client.transfer_buffer import transfer_buffer_of
from rpcqm.codec.interface import OperationRequest
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.queue_format import queue_format_of
from rpcqm.codec.names.written import hint_of
from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.codec.types import qmcomm, qmcomm2
from rpcqm.codec.types.mqmq import OBJECTID, XACTUOW
from rpcqm.codec.types.mqvalues import DENY_NONE, SEND_ACCESS
from rpcqm.codec.types.qmcomm import CACTransferBufferV2


def opening_request(
    name: FormatName,
    access: int,
    share_mode: int = DENY_NONE,
    queue: int = 0,
    descriptor: int = 0,
    context: int = 0,
) -> qmcomm.rpc_QMOpenQueueInternalRequest:
    """A request to open a queue; the last three numbers tell of a queue that is open elsewhere.

    Source: [MS-MQMP] 3.2.4.7.
    """
    return qmcomm.rpc_QMOpenQueueInternalRequest(
        pQueueFormat=queue_format_of(name),
        dwDesiredAccess=access,
        dwShareMode=share_mode,
        hRemoteQueue=queue,
        lplpRemoteQueueName=None,
        dwpQueue=descriptor,
        pLicGuid=licence_guid(),
        lpClientName=socket.gethostname(),
        dwRemoteProtocol=0,
        dwpRemoteContext=context,
    )


async def close_handle(connections: Connections, handle: bytes) -> None:
    """Close an open queue ([MS-MQMP] 3.2.4.15)."""
    request = qmcomm.rpc_ACCloseHandleRequest(phQueue=handle)
    with contextlib.suppress(ServerUnreachableError):  # its end has closed the queue
        await connections.call(request)


@contextlib.contextmanager
def _told_of_http(name: FormatName) -> Iterator[None]:
    """Say why an HTTP name cannot be sent to: that travels in no status (G232)."""
    try:
        yield
    except MQError as error:
        unsupported = error.status is HResult.MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION
        if unsupported and name.is_http and not name.is_read_only:
            detail = "its messages over HTTP are off, set `http_port` or `https_port`"
            raise MQError(error.status, detail) from error
        raise


class InternalTransaction:
    """A transaction of one queue manager.

    An `async with` block commits it at its end, and aborts it if an exception leaves the block.
    """

    def __init__(self, connections: Connections, joined: uuid.UUID | None = None) -> None:
        """With `joined` it is a transaction that another program has begun and ends."""
        self._connections = connections
        self._handle = b""
        self._joined = joined is not None
        self.identifier = joined or uuid.uuid4()

    async def __aenter__(self) -> Self:
        if self._joined:
            return self
        unit = XACTUOW(rgb=self.identifier.bytes_le)
        response = await self._connections.call(
            qmcomm.R_QMEnlistInternalTransactionRequest(pUow=unit)
        )
        self._handle = response.phIntXact
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if not self._handle:
            return  # the block has ended it itself, or another program does
        if error is None:
            await self.commit()
            return
        with contextlib.suppress(MQError, RpcFault, ServerUnreachableError):
            await self.abort()

    async def commit(self) -> None:
        """Send and remove the messages of the transaction."""
        handle, self._handle = self._handle, b""
        await self._connections.call(qmcomm.R_QMCommitTransactionRequest(phIntXact=handle))

    async def abort(self) -> None:
        """Send none of the transaction's messages, and give back those that it removed."""
        handle, self._handle = self._handle, b""
        await self._connections.call(qmcomm.R_QMAbortTransactionRequest(phIntXact=handle))


class QueueSender:
    """A queue that is open for sending.

    When the connection is lost, the next message opens the queue again, unless it belongs to a
    transaction: the server has aborted that.
    """

    def __init__(
        self,
        connections: Connections,
        name: FormatName,
        clock: Clock | None = None,
        more: Sequence[FormatName] = (),
    ) -> None:
        """`more` are further queues for each message; only an rpcqm server takes them."""
        self._connections = connections
        self._name = name
        self._more = more
        self._clock = clock or SystemClock()
        self._handles: dict[FormatName | None, bytes] = {}
        """Open handles by the dead-letter queue of their messages; None stands for the system's."""
        self._opening = asyncio.Lock()

    async def __aenter__(self) -> Self:
        self._handles[None], _ = await self._open()
        return self

    async def _open(self) -> tuple[bytes, int]:
        """Open all queues by one handle ([MS-MQMP] 3.2.4.7); returns it with its number."""
        with self._naming(self._name), _told_of_http(self._name):
            opened = await self._connections.call(opening_request(self._name, SEND_ACCESS))
        handle, number = opened.phQueue, opened.pdwQMContext
        try:
            for name in self._more:
                await self._add(number, name)
        except BaseException:
            await close_handle(self._connections, handle)
            raise
        return handle, number

    @contextlib.contextmanager
    def _naming(self, name: FormatName) -> Iterator[None]:
        """Let a refusal say which of several queues it is about."""
        try:
            yield
        except MQError as error:
            if not self._more or error.detail:
                raise
            raise MQError(error.status, f"`{name}`{hint_of(name)}") from error

    async def _add(self, number: int, name: FormatName) -> None:
        # Only now, because few programs need it and interfaces take time to load.
        from rpcqm.codec.types import rpcqm_sending

        request = rpcqm_sending.R_AddDestinationRequest(
            dwQMContext=number, pQueueFormat=queue_format_of(name)
        )
        with self._naming(name), _told_of_http(name):
            await self._connections.call(request)

    async def _handle_for(self, dead_letter_queue: FormatName | None) -> bytes:
        """The handle whose messages have that dead-letter queue; opens it if necessary.

        Raises HandleLostError if the queue is not open.
        """
        if None not in self._handles:
            raise HandleLostError(f"{self._name} is not open.")
        async with self._opening:
            if dead_letter_queue not in self._handles:
                self._handles[dead_letter_queue] = await self._open_with(dead_letter_queue)
        return self._handles[dead_letter_queue]

    async def _open_with(self, dead_letter_queue: FormatName | None) -> bytes:
        # Only now, because few programs need it and interfaces take time to load.
        from rpcqm.codec.types import rpcqm_sending

        chosen = None if dead_letter_queue is None else queue_format_of(dead_letter_queue)
        handle, number = await self._open()
        request = rpcqm_sending.R_SetDeadLetterQueueRequest(
            dwQMContext=number, pDeadLetterQueue=chosen
        )
        try:
            await self._connections.call(request)
        except BaseException:
            await close_handle(self._connections, handle)
            raise
        return handle

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def send(
        self, message: OutgoingMessage, transaction: InternalTransaction | None = None
    ) -> MessageIdentifier:
        """Send a message; a recoverable message is durable when this returns its identifier.

        A message of a transaction is sent when that is committed. Raises OutcomeUnknownError if
        the connection breaks before the answer comes; the message is never sent twice.
        """
        opened = self._handles.get(None)
        try:
            return await self._send(message, transaction)
        except OutcomeUnknownError:
            raise
        except ServerUnreachableError as error:
            if transaction is not None or opened is None:
                raise
            await self._open_again(opened, error)
        return await self._send(message, transaction)

    async def _open_again(self, lost: bytes, reason: Exception) -> None:
        """Open the queue again; raises `reason`, which ended the old handle, if that fails."""
        async with self._opening:
            if self._handles.get(None) != lost:
                return
            try:
                handle, _ = await self._open()
            except ServerUnreachableError as error:
                raise reason from error
            self._handles.clear()
            self._handles[None] = handle

    async def _send(
        self, message: OutgoingMessage, transaction: InternalTransaction | None
    ) -> MessageIdentifier:
        unit = None if transaction is None else transaction.identifier
        buffer = transfer_buffer_of(message, self._clock.now() // 1000, unit)
        handle = self._handles.get(message.dead_letter_queue)
        if handle is None:
            handle = await self._handle_for(message.dead_letter_queue)
        return _identifier(await self._connections.call(_request(handle, buffer)))

    async def send_all(
        self, messages: Iterable[OutgoingMessage]
    ) -> AsyncIterator[MessageIdentifier]:
        """Send messages in their order, many on their way at once; yields their identifiers.

        Raises what `send` raises; then it is not certain what became of those behind the last
        identifier, of which many may have been sent.
        """
        for queue, some in itertools.groupby(messages, lambda each: each.dead_letter_queue):
            # Alone, because this opens the queue again where the connection was lost.
            yield await self.send(next(some))
            async for identifier in self._send_together(await self._handle_for(queue), some):
                yield identifier

    async def _send_together(
        self, handle: bytes, messages: Iterable[OutgoingMessage]
    ) -> AsyncIterator[MessageIdentifier]:
        now = self._clock.now
        buffers = (transfer_buffer_of(each, now() // 1000) for each in messages)
        requests = (_request(handle, each) for each in buffers)
        kind = qmcomm2.rpc_ACSendMessageExRequest
        async with contextlib.aclosing(
            pipelined(self._connections, kind, requests, weigh=_octets)
        ) as answers:
            async for answer in answers:
                if isinstance(answer, MQError):
                    raise answer
                yield _identifier(answer)

    async def close(self) -> None:
        """Close the queue."""
        handles = list(self._handles.values())
        self._handles.clear()
        for handle in handles:
            await close_handle(self._connections, handle)


def _request(handle: bytes, buffer: CACTransferBufferV2) -> qmcomm2.rpc_ACSendMessageExRequest:
    return qmcomm2.rpc_ACSendMessageExRequest(
        hQueue=handle, ptb=buffer, pMessageID=OBJECTID(Lineage=uuid.UUID(int=0))
    )


def _identifier(response: qmcomm2.rpc_ACSendMessageExResponse) -> MessageIdentifier:
    identifier = require_value(response.pMessageID)
    return MessageIdentifier(identifier.Lineage, identifier.Uniquifier)


def _octets(request: OperationRequest[qmcomm2.rpc_ACSendMessageExResponse]) -> int:
    assert isinstance(request, qmcomm2.rpc_ACSendMessageExRequest)
    buffer = require_value(request.ptb).old
    return (buffer.ulBodyBufferSizeInBytes or 0) + (buffer.ulMsgExtensionBufferInBytes or 0)
