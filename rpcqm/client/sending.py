"""Sending messages and internal transactions through qmcomm and qmcomm2 ([MS-MQMP] 3.2)."""

import contextlib
import socket
import uuid
from types import TracebackType
from typing import Any, Self

from rpcqm.base.clock import Clock, SystemClock
from rpcqm.base.errors import MQError, RpcFault
from rpcqm.client.connection import Connections
from rpcqm.client.outgoing import OutgoingMessage
from rpcqm.client.target import ServerUnreachableError
from rpcqm.client.transfer_buffer import transfer_buffer_of
from rpcqm.codec.format_name import FormatName
from rpcqm.codec.packet_types import MessageIdentifier
from rpcqm.codec.queue_format import queue_format_of
from rpcqm.codec.types import qmcomm, qmcomm2
from rpcqm.codec.types.mqmq import OBJECTID, XACTUOW

SEND_ACCESS = 0x00000002
DENY_NONE = 0
_LICENCE = uuid.uuid4()
"""Identifies this client's computer ([MS-MQMP] 3.2.1.1); we are another one each time."""


class InternalTransaction:
    """A unit of work that only this queue manager knows.

    As a context manager it is committed when the block ends well, else aborted.
    """

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._handle = b""
        self.identifier = uuid.uuid4()

    async def __aenter__(self) -> Self:
        response = await self._call(
            "R_QMEnlistInternalTransaction",
            qmcomm.R_QMEnlistInternalTransactionRequest(pUow=XACTUOW(rgb=self.identifier.bytes_le)),
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
            return  # it has been ended in the block
        if error is None:
            await self.commit()
            return
        with contextlib.suppress(MQError, RpcFault, ServerUnreachableError):
            await self.abort()

    async def commit(self) -> None:
        """Let everything happen that belongs to the transaction."""
        handle, self._handle = self._handle, b""
        await self._call(
            "R_QMCommitTransaction", qmcomm.R_QMCommitTransactionRequest(phIntXact=handle)
        )

    async def abort(self) -> None:
        """Let nothing of it happen."""
        handle, self._handle = self._handle, b""
        await self._call(
            "R_QMAbortTransaction", qmcomm.R_QMAbortTransactionRequest(phIntXact=handle)
        )

    async def _call(self, operation: str, request: object) -> Any:
        return await self._connections.call("qmcomm", operation, request)


class QueueSender:
    """A queue that is open for sending."""

    def __init__(
        self, connections: Connections, name: FormatName, clock: Clock | None = None
    ) -> None:
        self._connections = connections
        self._name = name
        self._clock = clock or SystemClock()
        self._handle = b""

    async def __aenter__(self) -> Self:
        request = qmcomm.rpc_QMOpenQueueInternalRequest(
            pQueueFormat=queue_format_of(self._name),
            dwDesiredAccess=SEND_ACCESS,
            dwShareMode=DENY_NONE,
            hRemoteQueue=0,
            lplpRemoteQueueName=None,
            dwpQueue=0,
            pLicGuid=_LICENCE,
            lpClientName=socket.gethostname(),
            dwRemoteProtocol=0,
            dwpRemoteContext=0,
        )
        response = await self._connections.call("qmcomm", "rpc_QMOpenQueueInternal", request)
        self._handle = response.phQueue
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def send(
        self, message: OutgoingMessage, transaction: InternalTransaction | None = None
    ) -> MessageIdentifier:
        """Send a message; a recoverable one is durable when its identifier comes back.

        In a transaction it is sent when that is committed.
        """
        buffer = transfer_buffer_of(
            message,
            self._clock.now() // 1000,
            None if transaction is None else transaction.identifier,
        )
        request = qmcomm2.rpc_ACSendMessageExRequest(
            hQueue=self._handle, ptb=buffer, pMessageID=OBJECTID(Lineage=uuid.UUID(int=0))
        )
        response = await self._connections.call("qmcomm2", "rpc_ACSendMessageEx", request)
        return MessageIdentifier(response.pMessageID.Lineage, response.pMessageID.Uniquifier)

    async def close(self) -> None:
        """Close the queue; a server that is gone has closed it already."""
        if self._handle:
            handle, self._handle = self._handle, b""
            with contextlib.suppress(ServerUnreachableError):
                await self._connections.call(
                    "qmcomm",
                    "rpc_ACCloseHandle",
                    qmcomm.rpc_ACCloseHandleRequest(phQueue=handle),
                )
