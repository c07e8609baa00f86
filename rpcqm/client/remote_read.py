"""Reading, moving and purging messages through RemoteRead ([MS-MQRR] 3.2).

Where a server does not have RemoteRead, reading goes through qm2qm.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar
from uuid import UUID

from rpcqm.base.errors import DecodeError, FaultStatus, HResult, MQError, RpcFault
from rpcqm.client.connection import END_OF_QUEUE, OPEN_TIMEOUT, Connections
from rpcqm.client.identity import in_workgroup, licence_guid, next_request_identifier
from rpcqm.client.message import ReceivedMessage, from_sections
from rpcqm.client.reads import (
    NO_TRANSACTION,
    NOT_THERE,
    WHOLE_BODY,
    OpenForMove,
    Read,
    ReadSession,
)
from rpcqm.client.target import HandleLostError, OutcomeUnknownError, ServerUnreachableError
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.queue_format import queue_format_of
from rpcqm.codec.types import remoteread
from rpcqm.codec.types.mqmq import XACTUOW
from rpcqm.codec.types.mqvalues import (
    DENY_NONE,
    DENY_RECEIVE,
    INFINITE,
    MOVE_ACCESS,
    MQ_ACTION_PEEK_CURRENT,
    MQ_ACTION_PEEK_NEXT,
    MQ_ACTION_RECEIVE,
    MQ_LOOKUP_PEEK_CURRENT,
    MQ_LOOKUP_PEEK_NEXT,
    MQ_LOOKUP_RECEIVE_CURRENT,
    PEEK_ACCESS,
    PEEK_ADMIN_ACCESS,
    RECEIVE_ACCESS,
    RECEIVE_ADMIN_ACCESS,
    RR_ACK,
    RR_NACK,
    ReceiveAction,
)

if TYPE_CHECKING:
    from rpcqm.client.sending import InternalTransaction

RECEIVE_ACTIONS: frozenset[int] = frozenset(
    action for action in ReceiveAction if "RECEIVE" in action.name
)
"""The actions that lock a message until the read is ended."""

VERSION = (6, 1, 7601)
"""What clients of Windows 7 say; servers ignore it ([MS-MQRR] <16> to <18>)."""
RequestT = TypeVar("RequestT")


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
            dwShareMode=DENY_RECEIVE if exclusive else DENY_NONE,
            pClientId=licence_guid(),
            fNonRoutingServer=1,
            Major=major,
            Minor=minor,
            BuildNumber=build,
            fWorkgroup=int(in_workgroup(self._connections.target)),
        )

    async def close(self) -> None:
        """Close the handle."""
        if self._handle:
            handle, self._handle = self._handle, b""
            with contextlib.suppress(ServerUnreachableError):  # its end has closed the handle
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
            dwMaxCompoundMessageSize=read.request,
        )

    def _starting_in(
        self, read: Read, transaction: UUID
    ) -> remoteread.R_StartTransactionalReceiveRequest:
        return remoteread.R_StartTransactionalReceiveRequest(
            phContext=self._handle,
            LookupId=read.identifier,
            hCursor=read.cursor,
            ulAction=read.action,
            ulTimeout=read.timeout,
            dwRequestId=read.request_id,
            dwMaxBodySize=read.body,
            dwMaxCompoundMessageSize=read.request,
            pTransactionId=XACTUOW(rgb=transaction.bytes_le),
        )

    def received(
        self,
        response: remoteread.R_StartReceiveResponse
        | remoteread.R_StartTransactionalReceiveResponse,
    ) -> ReceivedMessage:
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
        """R_StartReceive, or R_StartTransactionalReceive for a transaction."""
        response = (
            await self._connections.call(self.starting(read))
            if read.transaction is None
            else await self._connections.call(self._starting_in(read, read.transaction))
        )
        try:
            return self.received(response)
        except DecodeError:  # a message that cannot be decoded is given back ([MS-MQRR] 3.2.4.4.1)
            if read.action in RECEIVE_ACTIONS:
                await end_read(self, read, RR_NACK)
            raise

    async def end(self, request_id: int, acknowledgement: int) -> None:
        """R_EndReceive."""
        await self._connections.call(self.ending(request_id, acknowledgement))

    async def end_in(self, request_id: int, acknowledgement: int) -> None:
        """R_EndTransactionalReceive."""
        request = remoteread.R_EndTransactionalReceiveRequest(
            phContext=self._handle, dwAck=acknowledgement, dwRequestId=request_id
        )
        await self._connections.call(request)

    async def enlist(self, transaction: UUID) -> None:
        """R_QMEnlistRemoteTransaction; only rpcqm joins a transaction without a coordinator."""
        request = remoteread.R_QMEnlistRemoteTransactionRequest(
            pTransactionId=XACTUOW(rgb=transaction.bytes_le),
            cbPropagationToken=0,
            pbPropagationToken=b"",
            pQueueFormat=queue_format_of(self._name),
        )
        try:
            await self._connections.call(request, OPEN_TIMEOUT)
        except (MQError, RpcFault) as error:
            raise MQError(HResult.MQ_ERROR_TRANSACTION_ENLIST, NOT_THERE) from error

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

    async def move(
        self, identifier: int, target: OpenForMove, transaction: UUID = NO_TRANSACTION
    ) -> None:
        """R_MoveMessage."""
        await self._connections.call(
            remoteread.R_MoveMessageRequest(
                phContextFrom=self._handle,
                ullContextTo=target.context,
                LookupId=identifier,
                pTransactionId=XACTUOW(rgb=transaction.bytes_le),
            ),
        )

    async def purge(self) -> None:
        """R_PurgeQueue."""
        await self._connections.call(remoteread.R_PurgeQueueRequest(phContext=self._handle))


async def end_read(session: ReadSession, read: Read, acknowledgement: int) -> None:
    """End a read that has locked a message, with or without a transaction."""
    end = session.end if read.transaction is None else session.end_in
    await end(read.request_id, acknowledgement)


class QueueReader:
    """A queue that is open for peeking and, unless `peek_only`, for receiving and purging.

    When the connection is lost, the next read opens the queue again. By then the server has given
    back the locked messages and closed the cursors.
    """

    def __init__(
        self,
        connections: Connections,
        name: FormatName,
        *,
        peek_only: bool = False,
        exclusive: bool = False,
        outgoing: bool = False,
    ) -> None:
        self._connections = connections
        self._name = name
        self._access = PEEK_ACCESS if peek_only else RECEIVE_ACCESS
        self._outgoing = outgoing
        self._exclusive = exclusive
        self._session: ReadSession | None = None
        self._waiting: dict[int, int] = {}
        """Cursors, or 0, of the reads that have not been answered, by request identifier."""
        self._cursors: set[int] = set()
        self._enlisted: UUID | None = None

    async def __aenter__(self) -> Self:
        self._session = await self._opened()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _opened(self) -> ReadSession:
        """Open through RemoteRead, or qm2qm if the endpoint mapper does not know RemoteRead.

        Source: [MS-MQRR] 3.2.4.1.
        """
        session = RemoteReadSession(self._connections, self._name)
        try:
            await session.open(self._access, self._exclusive)
        except MQError as error:
            if not self._outgoing or error.status is not self._not_here:
                raise
            await self._open_outgoing(session, error)
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
    def _not_here(self) -> HResult:
        """What RemoteRead says of a queue elsewhere: HTTP names are none of its own (G233)."""
        if self._name.is_http:
            return HResult.MQ_ERROR_INVALID_PARAMETER
        return HResult.MQ_ERROR_QUEUE_NOT_FOUND

    async def _open_outgoing(self, session: RemoteReadSession, not_found: MQError) -> None:
        """Open the messages on their way to a queue elsewhere, as administrators may."""
        administrative = {PEEK_ACCESS: PEEK_ADMIN_ACCESS, RECEIVE_ACCESS: RECEIVE_ADMIN_ACCESS}
        try:
            await session.open(administrative[self._access], self._exclusive)
        except MQError:
            if self._name.is_http:
                status = HResult.MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION
                raise MQError(status, "messages of that name are only sent") from None
            raise not_found from None

    @property
    def connections(self) -> Connections:
        """Those of its queue manager."""
        return self._connections

    @property
    def name(self) -> FormatName:
        """The queue that is read."""
        return self._name

    @property
    def session(self) -> ReadSession:
        """The queue at the server; raises HandleLostError if it is not open."""
        if self._session is None:
            raise HandleLostError(f"{self._name} is not open.")
        return self._session

    async def close(self) -> None:
        """Cancel the reads that wait, and close the cursors and the queue ([MS-MQRR] 3.2.4.13)."""
        if self._session is None:
            return
        session = self._session
        # Closing the queue ends its cursors in any case.
        with contextlib.suppress(MQError, RpcFault, ServerUnreachableError):
            for cursor in list(self._cursors):
                await self.close_cursor(cursor)
        await self._cancel_all(list(self._waiting))
        self._session = None
        await session.close()

    async def peek(
        self, timeout: int = INFINITE, *, cursor: int = 0, body: int = WHOLE_BODY
    ) -> ReceivedMessage:
        """The first message, or the one under `cursor`; it stays in the queue.

        Waits at most `timeout` milliseconds. `body` is the number of bytes of the body to read.
        """
        read = Read(MQ_ACTION_PEEK_CURRENT, next_request_identifier(), timeout, cursor, body=body)
        return await self._start(read)

    async def peek_next(
        self, cursor: int, timeout: int = INFINITE, *, body: int = WHOLE_BODY
    ) -> ReceivedMessage:
        """Move the cursor to the next message and peek at that."""
        read = Read(MQ_ACTION_PEEK_NEXT, next_request_identifier(), timeout, cursor, body=body)
        return await self._start(read)

    async def peek_by_lookup_identifier(
        self, identifier: int, action: int = MQ_LOOKUP_PEEK_CURRENT, *, body: int = WHOLE_BODY
    ) -> ReceivedMessage:
        """Peek at the message with the identifier, or at the neighbour that `action` names."""
        return await self._start(Read(action, next_request_identifier(), 0, 0, identifier, body))

    async def browse(
        self, timeout: int = 0, *, body: int = WHOLE_BODY
    ) -> AsyncIterator[ReceivedMessage]:
        """Peek at each message in order, whatever other readers do meanwhile.

        `timeout` is the number of milliseconds to wait for the first message only.
        """
        try:
            message = await self.peek(timeout, body=body)
            while True:
                yield message
                message = await self.peek_by_lookup_identifier(
                    message.lookup_identifier, MQ_LOOKUP_PEEK_NEXT, body=body
                )
        except MQError as error:
            if error.status not in END_OF_QUEUE:
                raise

    async def receive(self, timeout: int = INFINITE, *, cursor: int = 0) -> "PendingReceive":
        """Lock the first message, or the one under `cursor`, until it is acknowledged.

        Waits at most `timeout` milliseconds.
        """
        return await self._receive(
            Read(MQ_ACTION_RECEIVE, next_request_identifier(), timeout, cursor)
        )

    async def receive_by_lookup_identifier(
        self, identifier: int, action: int = MQ_LOOKUP_RECEIVE_CURRENT
    ) -> "PendingReceive":
        """Receive the message with the identifier, or the neighbour that `action` names."""
        return await self._receive(Read(action, next_request_identifier(), identifier=identifier))

    async def receive_in(
        self, transaction: "InternalTransaction", timeout: int = INFINITE, identifier: int = 0
    ) -> ReceivedMessage:
        """Receive in a transaction of the same server: the message leaves its queue with that.

        With an `identifier` it is the message with that lookup identifier. Raises
        MQError(MQ_ERROR_TRANSACTION_USAGE) if the queue is not transactional, and
        MQError(MQ_ERROR_TRANSACTION_ENLIST) if the server is not rpcqm.
        """
        unit, session = transaction.identifier, self.session
        if self._enlisted != unit:
            await session.enlist(unit)
            self._enlisted = unit
        action = MQ_LOOKUP_RECEIVE_CURRENT if identifier else MQ_ACTION_RECEIVE
        number = next_request_identifier()
        read = Read(action, number, timeout, identifier=identifier, transaction=unit)
        message = await self._read(session, read)
        await end_read(session, read, RR_ACK)
        return message

    async def _receive(self, read: Read) -> "PendingReceive":
        message = await self._start(read)
        return PendingReceive(self.session, read.request_id, message)

    async def _start(self, read: Read) -> ReceivedMessage:
        """Read, and begin again on a new connection if the old one was lost.

        No message is lost or doubled by that: the server gives back what it had locked.
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
        """Open the queue again; raises `reason`, which ended the old session, if that fails."""
        if self._session is lost:
            self._cursors.clear()
            try:
                self._session = await self._opened()
            except ServerUnreachableError as error:
                raise reason from error

    async def _read(self, session: ReadSession, read: Read) -> ReceivedMessage:
        """Read; if the wait is cancelled here, cancel it at the server too."""
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
        """End a read that is no longer wanted; give a message back that came meanwhile.

        The cancel may arrive before the read does; so it is repeated until the read has ended.
        """
        delay = 0.01  # seconds: a local server has long answered; a slow one is asked less often
        while not started.done():
            await self._cancel_all([read.request_id])
            await asyncio.wait([started], timeout=delay)
            delay = min(2 * delay, 1.0)
        try:
            await started
        except (MQError, RpcFault, DecodeError, ServerUnreachableError):
            return  # it has brought no message, which is what was wanted
        if read.action in RECEIVE_ACTIONS:
            with contextlib.suppress(MQError, RpcFault, ServerUnreachableError):
                await end_read(session, read, RR_NACK)

    async def cancel(self, request_id: int) -> None:
        """End a read that waits; raises MQError(STATUS_NOT_FOUND) if no such read waits."""
        await self.session.cancel(request_id)

    async def _cancel_all(self, request_ids: list[int]) -> None:
        """Cancel reads; a read that was answered meanwhile is left alone."""
        for request_id in request_ids:
            with contextlib.suppress(MQError, RpcFault, ServerUnreachableError):
                await self.cancel(request_id)

    async def create_cursor(self) -> int:
        """Create a cursor before the first message."""
        cursor = await self.session.create_cursor()
        self._cursors.add(cursor)
        return cursor

    async def close_cursor(self, cursor: int) -> None:
        """Close a cursor; reads that wait on it are cancelled first ([MS-MQRR] 3.2.4.12)."""
        await self._cancel_all([read for read, on in self._waiting.items() if on == cursor])
        self._cursors.discard(cursor)
        await self.session.close_cursor(cursor)

    async def move(
        self, identifier: int, target: MoveTarget, transaction: "InternalTransaction | None" = None
    ) -> None:
        """Move a message to a related queue, such as a subqueue of this one.

        A transaction moves it when it is committed. Raises MQError(STATUS_INVALID_PARAMETER) if
        the queues are not related.
        """
        unit = NO_TRANSACTION if transaction is None else transaction.identifier
        await self.session.move(identifier, target, unit)

    async def purge(self) -> None:
        """Delete every message."""
        await self.session.purge()


class PendingReceive:
    """A received message, which stays locked in its queue until it is acknowledged.

    A `with` block acknowledges it at its end, and gives it back if an exception leaves the block.
    """

    def __init__(self, session: ReadSession, request_id: int, message: ReceivedMessage) -> None:
        self._session = session
        self._request_id = request_id
        self.message = message

    async def acknowledge(self) -> None:
        """Confirm the message, so that it leaves its queue."""
        await self._session.end(self._request_id, RR_ACK)

    async def release(self) -> None:
        """Give the message back to its queue, for any reader; raises what the call raises."""
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
        """Give the message back; errors are left out, since the server does it by itself later."""
        with contextlib.suppress(MQError, RpcFault, ServerUnreachableError):
            await self.release()
