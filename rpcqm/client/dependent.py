"""Queues as a dependent client sees them: opened and read at its supporting server.

The server also reads for the client from queues of other queue managers ([MS-MQMP] 3.2.4.7).
Messages come in buffers, which are asked for again, larger, until the message fits.
"""

import contextlib
from collections.abc import Callable
from dataclasses import astuple, dataclass, replace
from typing import Any, Self
from uuid import UUID

from rpcqm.base.errors import DecodeError, HResult, MQError, RpcFault
from rpcqm.client.connection import OPEN_TIMEOUT, Connections
from rpcqm.client.identity import licence_guid
from rpcqm.client.qm2qm_session import create_remote_cursor, open_remote_queue
from rpcqm.client.sending import InternalTransaction, close_handle, opening_request
from rpcqm.client.target import ServerUnreachableError
from rpcqm.codec.names.format_name import FormatName, parse_format_names
from rpcqm.codec.names.path_name import PathName
from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.codec.types import qmcomm, qmcomm2
from rpcqm.codec.types.mqmq import OBJECTID, XACTUOW
from rpcqm.codec.types.mqvalues import (
    DENY_NONE,
    DENY_RECEIVE,
    INFINITE,
    MQ_ACTION_PEEK_CURRENT,
    MQ_ACTION_PEEK_NEXT,
    MQ_ACTION_RECEIVE,
    PEEK_ACCESS,
    RECEIVE_ACCESS,
)

_TOO_SMALL = frozenset(
    {
        HResult.MQ_ERROR_BUFFER_OVERFLOW,
        HResult.MQ_ERROR_LABEL_BUFFER_TOO_SMALL,
        HResult.MQ_ERROR_FORMATNAME_BUFFER_TOO_SMALL,
    }
)
_NAMES = ("Response", "Admin", "Dest")
_ASKED_AGAIN = 8
"""How often an answer may be too large for the room that the server has asked for."""
_LARGEST = 0x0100_0000
"""Octets or characters that no part of an answer exceeds."""
_NAMES_TRAVEL = 1024
"""Characters of a format name that a buffer brings at most ([MS-MQMP] 3.1.5.3)."""


@dataclass(frozen=True, slots=True)
class BufferedMessage:
    """A message that came in a CACTransferBufferV2; times are in seconds since 1970."""

    body: bytes
    label: str
    extension: bytes
    identifier: MessageIdentifier
    correlation_identifier: bytes
    message_class: int
    priority: int
    delivery: int
    body_type: int
    application_tag: int
    sent_time: int
    arrival_time: int
    response_queue: tuple[FormatName, ...]
    administration_queue: tuple[FormatName, ...]
    destination_queue: tuple[FormatName, ...]


@dataclass(frozen=True, slots=True)
class _Sizes:
    """Sizes of the buffers: bytes for body and extension, characters for the others.

    The first sizes hold most messages; a larger one costs one more call.
    """

    body: int = 4096
    extension: int = 256
    label: int = 250
    names: int = 1024

    def of(self, old: qmcomm.CACTransferBufferV1) -> "_Sizes":
        """Sizes in which the message fits, according to the server's answer.

        Raises DecodeError where these are no larger, or larger than anything.
        """
        told = [getattr(old.u.value, f"pul{name}FormatNameLenProp") or 0 for name in _NAMES]
        larger = replace(
            self,
            body=max(self.body, old.pBodySize or 0),
            extension=max(self.extension, old.pMsgExtensionSize or 0),
            label=max(self.label, old.pulTitleBufferSizeInWCHARs or 0),
            names=max(self.names, *told),
        )
        if larger == self or max(astuple(larger)) > _LARGEST:
            raise DecodeError("the server asks for room that nothing needs")
        return larger


class DependentQueue:
    """A queue that is open for reading through a supporting server ([MS-MQMP] 3.2.1.2).

    `connect` connects to another machine if that has the queue; these connections are closed as
    soon as the supporting server has taken the queue over.
    """

    def __init__(
        self,
        connections: Connections,
        name: FormatName,
        connect: Callable[[str], Connections],
        *,
        peek_only: bool = False,
        exclusive: bool = False,
    ) -> None:
        self._connections = connections
        self._name = name
        self._connect = connect
        self._access = PEEK_ACCESS if peek_only else RECEIVE_ACCESS
        self._share_mode = DENY_RECEIVE if exclusive else DENY_NONE
        self._handle = b""
        self._context = 0
        self.remote_path: str | None = None
        """The path name of a queue elsewhere."""

    async def __aenter__(self) -> Self:
        """Open at the supporting server; if the queue is elsewhere, open it there and here again.

        Source: [MS-MQMP] 3.2.4.7.
        """
        response = await self._open_here(0, 0, 0)
        if response.lplpRemoteQueueName is not None:
            self.remote_path = response.lplpRemoteQueueName
            response = await self._open_there(response.lplpRemoteQueueName)
        self._handle, self._context = response.phQueue, response.pdwQMContext
        return self

    async def _open_here(
        self, queue: int, descriptor: int, context: int
    ) -> qmcomm.rpc_QMOpenQueueInternalResponse:
        request = opening_request(
            self._name, self._access, self._share_mode, queue, descriptor, context
        )
        return await self._connections.call(request, OPEN_TIMEOUT)

    async def _open_there(self, path: str) -> qmcomm.rpc_QMOpenQueueInternalResponse:
        """Open at the queue's own queue manager, and have the supporting server take it over."""
        machine = self._connect(PathName.parse(path).computer)
        try:
            opening = await open_remote_queue(
                machine, self._name, self._access, self._share_mode, licence_guid()
            )
            try:
                return await self._open_here(opening.queue, opening.descriptor, opening.context)
            finally:
                # The handle is of no use any more, and ends with the connection in any case.
                with contextlib.suppress(MQError, RpcFault, ServerUnreachableError):
                    await opening.close()
        finally:
            await machine.close()

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the queue ([MS-MQMP] 3.2.4.15)."""
        if self._handle:
            handle, self._handle = self._handle, b""
            await close_handle(self._connections, handle)

    async def format_name(self) -> str:
        """The format name that the queue was opened by ([MS-MQMP] 3.2.4.14)."""
        length = 128  # characters: most names fit, and the server tells the length of a longer one
        for _ in range(_ASKED_AGAIN):
            response = await self._format_name(length)
            if response.result != HResult.MQ_ERROR_FORMATNAME_BUFFER_TOO_SMALL:
                return (response.lpwcsFormatName or "").partition("\0")[0]
            if not length < response.pdwLength <= _LARGEST:
                break
            length = response.pdwLength
        raise _never_enough()

    async def _format_name(self, length: int) -> qmcomm.rpc_ACHandleToFormatNameResponse:
        request = qmcomm.rpc_ACHandleToFormatNameRequest(
            hQueue=self._handle,
            dwFormatNameRPCBufferLen=length,
            lpwcsFormatName="\0" * length,
            pdwLength=length,
        )
        return await self._connections.call(
            request,
            accepted=frozenset({HResult.MQ_ERROR_FORMATNAME_BUFFER_TOO_SMALL}),
        )

    # Cursors

    async def create_cursor(self) -> int:
        """Create a cursor before the first message ([MS-MQMP] 3.2.4.8).

        If the queue is elsewhere, an old server has its client create the cursor there. It offers
        only an obsolete call for that, which raises MQError(MQ_ERROR_ILLEGAL_OPERATION).
        """
        request = qmcomm2.rpc_ACCreateCursorExRequest(
            hQueue=self._handle, pcc=qmcomm.CACCreateRemoteCursor()
        )
        response = await self._connections.call(request)
        cursor = response.pcc.hCursor
        if response.result == HResult.MQ_INFORMATION_REMOTE_OPERATION:
            await self._create_cursor_there(response.pcc)
        return cursor

    async def _create_cursor_there(self, pcc: qmcomm.CACCreateRemoteCursor) -> None:
        """Create the cursor at the queue's own queue manager, and tell the supporting server."""
        try:
            path = await self._remote_name(pcc.cli_pQMQueue)
            machine = self._connect(PathName.parse(path).computer)
            try:
                remote = await create_remote_cursor(machine, pcc.srv_hACQueue)
            finally:
                await machine.close()
            request = qmcomm.rpc_ACSetCursorPropertiesRequest(
                hProxy=self._handle, hCursor=pcc.hCursor, hRemoteCursor=remote
            )
            await self._connections.call(request)
        except BaseException:
            # The first error is the one to tell.
            with contextlib.suppress(MQError, RpcFault, ServerUnreachableError):
                await self.close_cursor(pcc.hCursor)
            raise

    async def _remote_name(self, queue: int) -> str:
        request = qmcomm.R_QMGetRemoteQueueNameRequest(pQueue=queue, lplpRemoteQueueName=None)
        response = await self._connections.call(request)
        return response.lplpRemoteQueueName or ""

    async def close_cursor(self, cursor: int) -> None:
        """Close a cursor ([MS-MQMP] 3.2.4.16)."""
        request = qmcomm.rpc_ACCloseCursorRequest(hQueue=self._handle, hCursor=cursor)
        await self._connections.call(request)

    # Messages

    async def purge(self) -> None:
        """Delete every message ([MS-MQMP] 3.2.4.9)."""
        await self._connections.call(qmcomm.rpc_ACPurgeQueueRequest(hQueue=self._handle))

    async def peek(self, timeout: int = INFINITE, *, cursor: int = 0) -> BufferedMessage:
        """The first message, or the one under the cursor ([MS-MQMP] 3.2.4.11).

        Waits at most `timeout` milliseconds.
        """
        return await self._read(MQ_ACTION_PEEK_CURRENT, timeout, cursor, None)

    async def peek_next(self, cursor: int, timeout: int = INFINITE) -> BufferedMessage:
        """Move the cursor to the next message and peek at that."""
        return await self._read(MQ_ACTION_PEEK_NEXT, timeout, cursor, None)

    async def receive(
        self,
        timeout: int = INFINITE,
        *,
        cursor: int = 0,
        transaction: InternalTransaction | None = None,
    ) -> BufferedMessage:
        """Read and remove a message; a transaction removes it when it is committed.

        Raises OutcomeUnknownError if the connection breaks before the answer comes; then the
        message may be lost. QueueReader, which reads in two phases, loses none. Source:
        [MS-MQMP] 3.2.4.12.
        """
        identifier = None if transaction is None else transaction.identifier
        return await self._read(MQ_ACTION_RECEIVE, timeout, cursor, identifier)

    async def _read(
        self, action: int, timeout: int, cursor: int, transaction: UUID | None
    ) -> BufferedMessage:
        """Read; a message that does not fit stays, and is asked for again with larger buffers."""
        sizes = _Sizes()
        for _ in range(_ASKED_AGAIN):
            buffer = _receiving_buffer(sizes, action, timeout, cursor, transaction)
            request = qmcomm2.rpc_ACReceiveMessageExRequest(hQMContext=self._context, ptb=buffer)
            response = await self._connections.call(request, accepted=_TOO_SMALL)
            if not response.result:
                return _message_in(response.ptb.old)
            sizes = sizes.of(response.ptb.old)
            if action == MQ_ACTION_PEEK_NEXT:
                action = MQ_ACTION_PEEK_CURRENT  # the cursor has moved on already
        raise _never_enough()


def _never_enough() -> DecodeError:
    return DecodeError("the server says of every room that it is too small")


def _receiving_buffer(
    sizes: _Sizes, action: int, timeout: int, cursor: int, transaction: UUID | None
) -> qmcomm.CACTransferBufferV2:
    names: dict[str, str | int] = {}
    travel = min(sizes.names, _NAMES_TRAVEL)
    for name in _NAMES:
        names[f"pp{name}FormatName"] = "\0" * travel
        names[f"ul{name}FormatNameLen"] = travel
        names[f"pul{name}FormatNameLenProp"] = sizes.names
    make: Callable[..., qmcomm.CACTransferBufferV1_Receive] = qmcomm.CACTransferBufferV1_Receive
    receive = make(RequestTimeout=timeout, Action=action, Cursor=cursor, **names)
    old = qmcomm.CACTransferBufferV1(
        uTransferType=qmcomm.CACTB_RECEIVE,
        u=qmcomm.CACTransferBufferV1_u(qmcomm.CACTB_RECEIVE, receive),
        pClass=0,
        ppMessageID=OBJECTID(Lineage=UUID(int=0)),
        ppCorrelationID=bytes(20),
        pSentTime=0,
        pArrivedTime=0,
        pPriority=0,
        pDelivery=0,
        pApplicationTag=0,
        ppBody=bytes(sizes.body),
        ulBodyBufferSizeInBytes=sizes.body,
        ulAllocBodyBufferInBytes=sizes.body,
        pBodySize=0,
        ppTitle="\0" * sizes.label,
        ulTitleBufferSizeInWCHARs=sizes.label,
        pulTitleBufferSizeInWCHARs=sizes.label,
        ppMsgExtension=bytes(sizes.extension),
        ulMsgExtensionBufferInBytes=sizes.extension,
        pMsgExtensionSize=0,
        pulBodyType=0,
        pUow=None if transaction is None else XACTUOW(rgb=transaction.bytes_le),
    )
    return qmcomm.CACTransferBufferV2(old=old)


def _message_in(old: Any) -> BufferedMessage:
    receive = old.u.value
    response, administration, destination = (
        _names(getattr(receive, f"pp{name}FormatName")) for name in _NAMES
    )
    return BufferedMessage(
        body=old.ppBody[: old.pBodySize],
        label=old.ppTitle.partition("\0")[0],
        extension=old.ppMsgExtension[: old.pMsgExtensionSize],
        identifier=MessageIdentifier(old.ppMessageID.Lineage, old.ppMessageID.Uniquifier),
        correlation_identifier=old.ppCorrelationID,
        message_class=old.pClass,
        priority=old.pPriority,
        delivery=old.pDelivery,
        body_type=old.pulBodyType,
        application_tag=old.pApplicationTag,
        sent_time=old.pSentTime,
        arrival_time=old.pArrivedTime,
        response_queue=response,
        administration_queue=administration,
        destination_queue=destination,
    )


def _names(text: str | None) -> tuple[FormatName, ...]:
    """The names of queues in a text; if it was cut, those that came whole."""
    name, ended, _ = (text or "").partition("\0")
    if name and not ended:
        name = name.rpartition(",")[0]
    return parse_format_names(name) if name else ()
