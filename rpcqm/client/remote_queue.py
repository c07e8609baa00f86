"""Reading a queue at another queue manager through qm2qm ([MS-MQQP] 3.2).

The queue was opened there through qmcomm, by this program or by the client that it reads for.
"""

import contextlib
from dataclasses import dataclass
from uuid import UUID

from rpcqm.base.errors import DecodeError, FaultStatus, HResult, MQError, RpcFault
from rpcqm.client.connection import OPEN_TIMEOUT, Connections
from rpcqm.client.target import ServerUnreachableError
from rpcqm.codec.packet.message import PacketMessage
from rpcqm.codec.packet.types import SEQUENTIAL_BITS
from rpcqm.codec.types import qm2qm
from rpcqm.codec.types.mqvalues import IP_READ

FIRST_WITH_IDENTIFIERS = (5, 1, 951)
"""The first version with RemoteQMStartReceive2 ([MS-MQQP] 3.2.4.2, G42)."""


@dataclass(frozen=True, slots=True)
class RemoteMessage:
    """The UserMessage packet that a read has returned; `handle` is NULL after a peek.

    `arrival_time` is in seconds since 1970. `sequential_identifier` is 0 if an old server sent it.
    """

    handle: bytes
    packet: bytes
    arrival_time: int
    sequential_identifier: int

    @property
    def lookup_identifier(self) -> int:
        """As the server knows it: first by priority."""
        priority = PacketMessage(self.packet).priority
        return (7 - priority) << SEQUENTIAL_BITS | self.sequential_identifier


class RemoteQueue:
    """An open remote queue ([MS-MQQP] 3.2.1.3).

    `number` and `descriptor` are phQueue and dwpQueue of R_QMOpenRemoteQueue at the server.
    """

    def __init__(self, connections: Connections, number: int, descriptor: int) -> None:
        self._connections = connections
        self.number = number
        self._descriptor = descriptor
        self._session = b""
        self._has_identifiers: bool | None = None

    async def open(self, context: int, client: UUID, routing: bool) -> None:
        """Open the queue through qm2qm, at the port that the server names ([MS-MQQP] 3.2.4.1)."""
        request = qm2qm.RemoteQMGetQMQMServerPortRequest(dwPortType=IP_READ)
        port = (await self._connections.call(request, OPEN_TIMEOUT)).result
        if port:
            await self._connections.redirect("qm2qm", port)
        opening = qm2qm.RemoteQMOpenQueueRequest(
            pLicGuid=client,
            dwMQS=int(routing),
            hQueue=self.number,
            pQueue=self._descriptor,
            dwpContext=context,
        )
        response = await self._connections.call(opening, OPEN_TIMEOUT)
        self._session = response.phContext

    async def read(
        self, action: int, request_id: int, timeout: int = 0, cursor: int = 0
    ) -> RemoteMessage:
        """Peek, or lock a message until `end` ([MS-MQQP] 3.2.4.2, .3, .5, .6).

        `timeout` is in milliseconds.
        """
        read = self._description(action, request_id, timeout, cursor)
        if await self._knows_identifiers():
            outer = qm2qm.REMOTEREADDESC2(pRemoteReadDesc=read)
            second = qm2qm.RemoteQMStartReceive2Request(lpRemoteReadDesc2=outer)
            return _with_identifier(await self._connections.call(second))
        first = qm2qm.RemoteQMStartReceiveRequest(lpRemoteReadDesc=read)
        response = await self._connections.call(first)
        return _message(response, response.lpRemoteReadDesc, 0)

    async def read_by_lookup_identifier(
        self, action: int, request_id: int, identifier: int
    ) -> RemoteMessage:
        """Read the message with the identifier, or the neighbour that `action` names."""
        read = self._description(action, request_id, 0, 0)
        request = qm2qm.RemoteQMStartReceiveByLookupIdRequest(
            LookupId=identifier, lpRemoteReadDesc2=qm2qm.REMOTEREADDESC2(pRemoteReadDesc=read)
        )
        return _with_identifier(await self._connections.call(request))

    def _description(
        self, action: int, request_id: int, timeout: int, cursor: int
    ) -> qm2qm.REMOTEREADDESC:
        return qm2qm.REMOTEREADDESC(
            hRemoteQueue=self.number,
            dwQueue=self._descriptor,
            hCursor=cursor,
            ulAction=action,
            ulTimeout=timeout,
            dwRequestID=request_id,
        )

    async def _knows_identifiers(self) -> bool:
        """Whether the server has RemoteQMStartReceive2, which its version tells.

        A server without the call that tells the version does not have it either.
        """
        if self._has_identifiers is None:
            try:
                told = await self._connections.call(qm2qm.RemoteQmGetVersionRequest())
            except RpcFault as fault:
                if fault.status is not FaultStatus.nca_s_op_rng_error:
                    raise
                self._has_identifiers = False
            else:
                version = (told.pMajor, told.pMinor, told.pBuildNumber)
                self._has_identifiers = version >= FIRST_WITH_IDENTIFIERS
        return self._has_identifiers

    async def end(self, handle: bytes, acknowledgement: int) -> None:
        """Remove the message that was locked, or give it back ([MS-MQQP] 3.2.4.3)."""
        request = qm2qm.RemoteQMEndReceiveRequest(pphContext=handle, dwAck=acknowledgement)
        await self._connections.call(request)

    async def cancel(self, request_id: int) -> None:
        """End a read that waits ([MS-MQQP] 3.2.4.7)."""
        request = qm2qm.RemoteQMCancelReceiveRequest(
            hQueue=self.number, pQueue=self._descriptor, dwRequestID=request_id
        )
        await self._connections.call(request)

    async def close_cursor(self, cursor: int) -> None:
        """Close a cursor that was made through qmcomm ([MS-MQQP] 3.2.4.8)."""
        request = qm2qm.RemoteQMCloseCursorRequest(hQueue=self.number, hCursor=cursor)
        await self._connections.call(request)

    async def purge(self) -> None:
        """Delete every message ([MS-MQQP] 3.2.4.4)."""
        request = qm2qm.RemoteQMPurgeQueueRequest(hQueue=self.number)
        await self._connections.call(request)

    async def close(self) -> None:
        """Close the queue ([MS-MQQP] 3.2.4.9)."""
        if self._session:
            session, self._session = self._session, b""
            with contextlib.suppress(ServerUnreachableError):  # its end has closed the queue
                request = qm2qm.RemoteQMCloseQueueRequest(pphContext=session)
                await self._connections.call(request)


def _with_identifier(
    response: qm2qm.RemoteQMStartReceive2Response | qm2qm.RemoteQMStartReceiveByLookupIdResponse,
) -> RemoteMessage:
    outer = response.lpRemoteReadDesc2
    return _message(response, outer.pRemoteReadDesc, outer.SequentialId)


def _message(
    response: qm2qm.RemoteQMStartReceiveResponse
    | qm2qm.RemoteQMStartReceive2Response
    | qm2qm.RemoteQMStartReceiveByLookupIdResponse,
    read: qm2qm.REMOTEREADDESC | None,
    sequential_identifier: int,
) -> RemoteMessage:
    """The message of a response.

    Raises MQError if the read was cancelled, which the server counts as a success, and
    DecodeError if the response holds no message.
    """
    if response.result == HResult.MQ_INFORMATION_REMOTE_CANCELED_BY_CLIENT:
        raise MQError(HResult.MQ_ERROR_OPERATION_CANCELLED)
    if read is None or not read.lpBuffer:
        raise DecodeError("no message came")
    return RemoteMessage(
        response.pphContext, read.lpBuffer, read.dwArriveTime, sequential_identifier
    )
