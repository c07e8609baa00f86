"""Reading, moving and purging messages through RemoteRead ([MS-MQRR] 3.2).

Where a server does not have RemoteRead, reading goes through qm2qm.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self, TypeVar

from rpcqm.base.errors import DecodeError, FaultStatus, HResult, MQError, RpcFault
from rpcqm.client.connection import OPEN_TIMEOUT, Connections
from rpcqm.client.identity import in_workgroup, licence_guid, next_request_identifier
from rpcqm.client.message import ReceivedMessage, from_sections
from rpcqm.client.target import HandleLostError, OutcomeUnknownError, ServerUnreachableError
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.queue_format import queue_format_of
from rpcqm.codec.packet.base import INFINITE
from rpcqm.codec.types import remoteread
from rpcqm.codec.types.mqmq import XACTUOW

RECEIVE_ACCESS = 0x00000001
MOVE_ACCESS = 0x00000004
PEEK_ACCESS = 0x00000020
DENY_NONE = 0
DENY_SHARE = 1

ACTION_RECEIVE = remoteread.MQ_ACTION_RECEIVE
ACTION_PEEK_CURRENT = remoteread.MQ_ACTION_PEEK_CURRENT
ACTION_PEEK_NEXT = remoteread.MQ_ACTION_PEEK_NEXT
LOOKUP_PEEK_CURRENT = remoteread.MQ_LOOKUP_PEEK_CURRENT
LOOKUP_PEEK_NEXT = remoteread.MQ_LOOKUP_PEEK_NEXT
LOOKUP_PEEK_PREV = remoteread.MQ_LOOKUP_PEEK_PREV
LOOKUP_RECEIVE_CURRENT = remoteread.MQ_LOOKUP_RECEIVE_CURRENT
LOOKUP_RECEIVE_NEXT = remoteread.MQ_LOOKUP_RECEIVE_NEXT
LOOKUP_RECEIVE_PREV = remoteread.MQ_LOOKUP_RECEIVE_PREV
RECEIVE_ACTIONS = frozenset(
    {ACTION_RECEIVE, LOOKUP_RECEIVE_CURRENT, LOOKUP_RECEIVE_NEXT, LOOKUP_RECEIVE_PREV}
)

RR_NACK, RR_ACK = 1, 2
"""REMOTEREADACK of qm2qm, whose types readers of RemoteRead need not load."""

WHOLE_BODY = 0x400000
"""More than the body of any message."""
VERSION = (6, 1, 7601)
"""What clients of Windows 7 say; servers ignore it ([MS-MQRR] <16> to <18>)."""
NO_TRANSACTION = XACTUOW(rgb=bytes(16))
END_OF_QUEUE = frozenset({HResult.MQ_ERROR_IO_TIMEOUT, HResult.MQ_ERROR_MESSAGE_NOT_FOUND})


RequestT = TypeVar("RequestT")


class ReadSession(Protocol):
    """An open queue at the server, by whatever interface it is read."""

    async def start(self, read: "Read") -> ReceivedMessage:
        """Peek, or lock a message until `end`; it may wait."""

    async def end(self, request_id: int, acknowledgement: int) -> None:
        """Remove the message that was locked, or give it back."""

    async def cancel(self, request_id: int) -> None:
        """End a read that waits; MQError(STATUS_NOT_FOUND) when none does."""

    async def create_cursor(self) -> int:
        """A cursor before the first message."""

    async def close_cursor(self, cursor: int) -> None: ...

    async def move(self, identifier: int, target: "MoveTarget") -> None: ...

    async def purge(self) -> None: ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Read:
    """One read: `timeout` in milliseconds, `body` the bytes of the body that are wanted."""

    action: int
    request_id: int
    timeout: int = 0
    cursor: int = 0
    identifier: int = 0
    body: int = WHOLE_BODY


class _Handle:
    """An open queue; a context handle of the server."""

    def __init__(self, connections: Connections, name: FormatName) -> None:
        self._connections = connections
        self._name = name
        self._handle = b""

    def _opening(self, make: Callable[..., RequestT], access: int, exclusive: bool) -> RequestT:
        major, minor, build = VERSION
        return make(
            pQueueFormat=queue_format_of(self._name),
            dwAccess=access,
            dwShareMode=DENY_SHARE if exclusive else DENY_NONE,
            pClientId=licence_guid(),
            fNonRoutingServer=1,
            Major=major,
            Minor=minor,
            BuildNumber=build,
            fWorkgroup=int(in_workgroup(self._connections.target)),
        )

    async def close(self) -> None:
        """Close the handle; a server that is gone has closed it already."""
        if self._handle:
            handle, self._handle = self._handle, b""
            with contextlib.suppress(ServerUnreachableError):
                await self._connections.call(remoteread.R_CloseQueueRequest(pphContext=handle))


class MoveTarget(_Handle):
    """A queue or subqueue that messages are moved to."""

    context = 0

    async def __aenter__(self) -> Self:
        response = await self._connections.call(
            self._opening(remoteread.R_OpenQueueForMoveRequest, MOVE_ACCESS, False),
            OPEN_TIMEOUT,
        )
        self.context = response.pMoveContext
        self._handle = response.pphContext
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class RemoteReadSession(_Handle):
    """A queue that is read through RemoteRead."""

    async def open(self, access: int, exclusive: bool) -> None:
        """R_OpenQueue ([MS-MQRR] 3.2.4.1)."""
        request = self._opening(remoteread.R_OpenQueueRequest, access, exclusive)
        self._handle = (await self._connections.call(request, OPEN_TIMEOUT)).pphContext

    def starting(self, read: Read) -> remoteread.R_StartReceiveRequest:
        """The request of R_StartReceive for a read."""
        return remoteread.R_StartReceiveRequest(
            phContext=self._handle,
            LookupId=read.identifier,
            hCursor=read.cursor,
            ulAction=read.action,
            ulTimeout=read.timeout,
            dwRequestId=read.request_id,
            dwMaxBodySize=read.body,
            dwMaxCompoundMessageSize=WHOLE_BODY,
        )

    def received(self, response: remoteread.R_StartReceiveResponse) -> ReceivedMessage:
        """The message in a response of R_StartReceive; raises DecodeError."""
        return from_sections(
            response.ppPacketSections or [], response.pSequenceId, response.pdwArriveTime
        )

    def ending(self, request_id: int, acknowledgement: int) -> remoteread.R_EndReceiveRequest:
        """The request of R_EndReceive."""
        return remoteread.R_EndReceiveRequest(
            phContext=self._handle, dwAck=acknowledgement, dwRequestId=request_id
        )

    async def start(self, read: Read) -> ReceivedMessage:
        """R_StartReceive."""
        response = await self._connections.call(self.starting(read))
        try:
            return self.received(response)
        except DecodeError:  # [MS-MQRR] 3.2.4.4.1: it cannot be put together
            if read.action in RECEIVE_ACTIONS:
                await self.end(read.request_id, RR_NACK)
            raise

    async def end(self, request_id: int, acknowledgement: int) -> None:
        """R_EndReceive."""
        await self._connections.call(self.ending(request_id, acknowledgement))

    async def cancel(self, request_id: int) -> None:
        """R_CancelReceive."""
        await self._connections.call(
            remoteread.R_CancelReceiveRequest(phContext=self._handle, dwRequestId=request_id),
        )

    async def create_cursor(self) -> int:
        """R_CreateCursor."""
        response = await self._connections.call(
            remoteread.R_CreateCursorRequest(phContext=self._handle)
        )
        return response.phCursor

    async def close_cursor(self, cursor: int) -> None:
        """R_CloseCursor."""
        await self._connections.call(
            remoteread.R_CloseCursorRequest(phContext=self._handle, hCursor=cursor),
        )

    async def move(self, identifier: int, target: MoveTarget) -> None:
        """R_MoveMessage."""
        await self._connections.call(
            remoteread.R_MoveMessageRequest(
                phContextFrom=self._handle,
                ullContextTo=target.context,
                LookupId=identifier,
                pTransactionId=NO_TRANSACTION,
            ),
        )

    async def purge(self) -> None:
        """R_PurgeQueue."""
        await self._connections.call(remoteread.R_PurgeQueueRequest(phContext=self._handle))


class QueueReader:
    """A queue that is open for peeking and, unless `peek_only`, for receiving and purging.

    When the connection is lost, the next read opens the queue again: what was locked has been
    given back by the server, and cursors are gone.
    """

    def __init__(
        self,
        connections: Connections,
        name: FormatName,
        *,
        peek_only: bool = False,
        exclusive: bool = False,
    ) -> None:
        self._connections = connections
        self._name = name
        self._access = PEEK_ACCESS if peek_only else RECEIVE_ACCESS
        self._exclusive = exclusive
        self._session: ReadSession | None = None
        self._waiting: dict[int, int] = {}
        """Cursors, or 0, of the reads that have not been answered, by request identifier."""
        self._cursors: set[int] = set()

    async def __aenter__(self) -> Self:
        self._session = await self._opened()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _opened(self) -> ReadSession:
        """By RemoteRead; by qm2qm where the endpoint mapper does not know RemoteRead.

        Source: [MS-MQRR] 3.2.4.1.
        """
        session = RemoteReadSession(self._connections, self._name)
        try:
            await session.open(self._access, self._exclusive)
        except RpcFault as fault:
            if fault.status is not FaultStatus.EPT_S_NOT_REGISTERED:
                raise
            # Only now, because few servers need it and interfaces take time to load.
            from rpcqm.client.qm2qm_session import Qm2QmSession

            older = Qm2QmSession(self._connections, self._name)
            await older.open(self._access, self._exclusive)
            return older
        return session

    @property
    def session(self) -> ReadSession:
        """The queue at the server; HandleLostError when it is not open."""
        if self._session is None:
            raise HandleLostError(f"{self._name} is not open.")
        return self._session

    async def close(self) -> None:
        """End what is pending, the cursors and the handle ([MS-MQRR] 3.2.4.13)."""
        if self._session is None:
            return
        session = self._session
        with contextlib.suppress(MQError, RpcFault, ServerUnreachableError):
            for cursor in list(self._cursors):
                await self.close_cursor(cursor)
        await self._cancel_all(list(self._waiting))
        self._session = None
        await session.close()

    async def peek(
        self, timeout: int = INFINITE, *, cursor: int = 0, body: int = WHOLE_BODY
    ) -> ReceivedMessage:
        """The first message, or the one under `cursor`, waiting `timeout` milliseconds.

        `body` is how much of the body is wanted, in bytes.
        """
        read = Read(ACTION_PEEK_CURRENT, self.next_id(), timeout, cursor, body=body)
        return await self._start(read)

    async def peek_next(
        self, cursor: int, timeout: int = INFINITE, *, body: int = WHOLE_BODY
    ) -> ReceivedMessage:
        """Move the cursor on and read the message there."""
        read = Read(ACTION_PEEK_NEXT, self.next_id(), timeout, cursor, body=body)
        return await self._start(read)

    async def peek_by_lookup_identifier(
        self, identifier: int, action: int = LOOKUP_PEEK_CURRENT, *, body: int = WHOLE_BODY
    ) -> ReceivedMessage:
        """The message with the identifier, or by `action` its neighbour."""
        return await self._start(Read(action, self.next_id(), 0, 0, identifier, body))

    async def browse(
        self, timeout: int = 0, *, body: int = WHOLE_BODY
    ) -> AsyncIterator[ReceivedMessage]:
        """Every message in order, whatever others do meanwhile.

        Only the first one is waited for.
        """
        try:
            message = await self.peek(timeout, body=body)
            while True:
                yield message
                message = await self.peek_by_lookup_identifier(
                    message.lookup_identifier, LOOKUP_PEEK_NEXT, body=body
                )
        except MQError as error:
            if error.status not in END_OF_QUEUE:
                raise

    async def receive(self, timeout: int = INFINITE, *, cursor: int = 0) -> "PendingReceive":
        """The first message, or the one under `cursor`; it stays until it is acknowledged."""
        return await self._receive(Read(ACTION_RECEIVE, self.next_id(), timeout, cursor))

    async def receive_by_lookup_identifier(
        self, identifier: int, action: int = LOOKUP_RECEIVE_CURRENT
    ) -> "PendingReceive":
        """The message with the identifier, or by `action` its neighbour."""
        return await self._receive(Read(action, self.next_id(), identifier=identifier))

    async def _receive(self, read: Read) -> "PendingReceive":
        message = await self._start(read)
        return PendingReceive(self.session, read.request_id, message)

    async def _start(self, read: Read) -> ReceivedMessage:
        """A read; one that the loss of the connection ended is begun again on a new one.

        Nothing is lost or doubled by that: the server gives back what it had locked.
        """
        session = self.session
        try:
            return await self._read(session, read)
        except OutcomeUnknownError:
            raise
        except ServerUnreachableError as error:
            if read.cursor:
                raise
            await self._open_again(session, error)
        return await self._read(self.session, read)

    async def _open_again(self, lost: ReadSession, reason: Exception) -> None:
        """Open the queue anew; who cannot says why the old session ended."""
        if self._session is lost:
            self._cursors.clear()
            try:
                self._session = await self._opened()
            except ServerUnreachableError as error:
                raise reason from error

    async def _read(self, session: ReadSession, read: Read) -> ReceivedMessage:
        """A cancelled wait is cancelled at the server as well."""
        self._waiting[read.request_id] = read.cursor
        started = asyncio.ensure_future(session.start(read))
        try:
            return await asyncio.shield(started)
        except asyncio.CancelledError:
            await self._withdraw(session, started, read)
            raise
        finally:
            self._waiting.pop(read.request_id, None)

    async def _withdraw(
        self, session: ReadSession, started: "asyncio.Future[ReceivedMessage]", read: Read
    ) -> None:
        """End a wait that nobody wants any more; a message that came meanwhile is given back.

        The cancel may arrive before the read does: then it is repeated.
        """
        delay = 0.01
        while not started.done():
            await self._cancel_all([read.request_id])
            await asyncio.wait([started], timeout=delay)
            delay = min(2 * delay, 1.0)
        try:
            await started
        except (MQError, RpcFault, DecodeError, ServerUnreachableError):
            return
        if read.action in RECEIVE_ACTIONS:
            with contextlib.suppress(MQError, RpcFault, ServerUnreachableError):
                await session.end(read.request_id, RR_NACK)

    async def cancel(self, request_id: int) -> None:
        """End a read that waits; MQError(STATUS_NOT_FOUND) when nothing waits so."""
        await self.session.cancel(request_id)

    async def _cancel_all(self, request_ids: list[int]) -> None:
        """Cancel reads; those that have been answered meanwhile are none of our business."""
        for request_id in request_ids:
            with contextlib.suppress(MQError, RpcFault, ServerUnreachableError):
                await self.cancel(request_id)

    async def create_cursor(self) -> int:
        """A cursor before the first message."""
        cursor = await self.session.create_cursor()
        self._cursors.add(cursor)
        return cursor

    async def close_cursor(self, cursor: int) -> None:
        """Close a cursor; reads that wait on it are cancelled first ([MS-MQRR] 3.2.4.12)."""
        await self._cancel_all([read for read, on in self._waiting.items() if on == cursor])
        self._cursors.discard(cursor)
        await self.session.close_cursor(cursor)

    async def move(self, identifier: int, target: MoveTarget) -> None:
        """Move a message to a related queue.

        Raises MQError with STATUS_INVALID_PARAMETER where the two are not related.
        """
        await self.session.move(identifier, target)

    async def purge(self) -> None:
        """Delete every message."""
        await self.session.purge()

    def next_id(self) -> int:
        """A request identifier that no pending read of this process has."""
        return next_request_identifier()


class PendingReceive:
    """A message that was handed out and stays in its queue until it is acknowledged.

    As a context manager it is acknowledged when the block ends well, else given back.
    """

    def __init__(self, session: ReadSession, request_id: int, message: ReceivedMessage) -> None:
        self._session = session
        self._request_id = request_id
        self.message = message

    async def acknowledge(self) -> None:
        """The message has arrived; it leaves its queue."""
        await self._session.end(self._request_id, RR_ACK)

    async def release(self) -> None:
        """The message is for somebody else."""
        await self._session.end(self._request_id, RR_NACK)

    async def __aenter__(self) -> ReceivedMessage:
        return self.message

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:
            await self.acknowledge()
        else:
            await self.give_back()

    async def give_back(self) -> None:
        """Release the message as far as possible; the server does it by itself later."""
        with contextlib.suppress(MQError, RpcFault, ServerUnreachableError):
            await self.release()
