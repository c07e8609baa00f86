"""Reading from other queue managers for our clients, by qm2qm and an event loop."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import NamedTuple, Protocol, TypeVar

from rpcqm.adm.queue_manager import QueueManager
from rpcqm.base.completion import Completion
from rpcqm.base.errors import DecodeError, FaultStatus, HResult, MQError, RpcFault
from rpcqm.base.log import get_logger
from rpcqm.client.connection import Connections
from rpcqm.client.identity import next_request_identifier
from rpcqm.client.qm2qm_session import create_remote_cursor
from rpcqm.client.reads import Read
from rpcqm.client.remote_queue import RemoteQueue
from rpcqm.client.remote_read import RECEIVE_ACTIONS, QueueReader
from rpcqm.client.target import (
    HandleLostError,
    OutcomeUnknownError,
    RemoteServer,
    ServerUnreachableError,
    Target,
)
from rpcqm.codec.names.format_name import FormatName
from rpcqm.interfaces._remote_proxy import RemoteNumbers
from rpcqm.qm.remote_reading import PendingRead, RemotelyRead, RemoteReader

T = TypeVar("T")

_NOT_ADMITTED = frozenset({FaultStatus.RPC_S_ACCESS_DENIED, FaultStatus.RPC_S_SEC_PKG_ERROR})

_log = get_logger("service")


class RemoteQueues:
    """Opens queues of other queue managers.

    `target_of` tells where a machine is reached, for the SID of who has named it.
    """

    def __init__(
        self,
        queue_manager: QueueManager,
        target_of: Callable[[str, str], Target] = lambda machine, asker: RemoteServer(machine),
    ) -> None:
        self._queue_manager = queue_manager
        self._target_of = target_of
        self._tasks: set[asyncio.Task[None]] = set()

    def open(self, machine: str, numbers: RemoteNumbers, asker: str) -> Completion[RemoteReader]:
        """Take over a queue that was opened at a machine; MQError when that is refused."""
        return self.run(self._open(machine, numbers, asker), asker)

    async def _open(self, machine: str, numbers: RemoteNumbers, asker: str) -> RemoteReader:
        connections = Connections(self._target_of(machine, asker))
        queue = RemoteQueue(connections, numbers.queue, numbers.descriptor)
        me = self._queue_manager
        routing = me.routing_server or me.directory_server
        try:
            await queue.open(numbers.context, me.identifier, routing)
        except BaseException:
            await connections.close()
            raise
        return LoopRemoteReader(self, connections, TakenOver(connections, queue), asker)

    def open_to_read(
        self, machine: str, name: FormatName, receiving: bool, exclusive: bool, asker: str
    ) -> Completion[RemoteReader]:
        """Open a queue of a machine through RemoteRead; MQError when that is refused."""
        opening = self._open_to_read(machine, name, receiving, exclusive, asker)
        return self.run(opening, asker)

    async def _open_to_read(
        self, machine: str, name: FormatName, receiving: bool, exclusive: bool, asker: str
    ) -> RemoteReader:
        connections = Connections(self._target_of(machine, asker))
        reader = QueueReader(connections, name, peek_only=not receiving, exclusive=exclusive)
        try:
            await reader.__aenter__()
        except BaseException:
            await connections.close()
            raise
        return LoopRemoteReader(self, connections, OpenedToRead(reader), asker)

    def run(self, coroutine: Coroutine[object, None, T], asker: str = "") -> Completion[T]:
        """Run something on the loop; whatever goes wrong is an MQError.

        `asker` is the SID of the client that wants it, "" for the operator.
        """
        outcome: Completion[T] = Completion()
        self.start(_resolve(coroutine, outcome, asker))
        return outcome

    def start(self, coroutine: Coroutine[object, None, None]) -> "asyncio.Task[None]":
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def stop(self) -> None:
        """End what is still under way."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class OpenElsewhere(Protocol):
    """What can be done with a queue that is open at another queue manager."""

    async def read(
        self, action: int, request_id: int, timeout: int, cursor: int, lookup_identifier: int
    ) -> RemotelyRead: ...
    async def cancel(self, request_id: int) -> None: ...
    async def end(self, message: RemotelyRead, acknowledgement: int) -> None: ...
    async def create_cursor(self) -> int: ...
    async def close_cursor(self, cursor: int) -> None: ...
    async def purge(self) -> None: ...
    async def close(self) -> None: ...


class TakenOver:
    """A queue that a client has opened there, read through qm2qm."""

    def __init__(self, connections: Connections, queue: RemoteQueue) -> None:
        self._connections = connections
        self._queue = queue
        self.cancel = queue.cancel
        self.close_cursor = queue.close_cursor
        self.purge = queue.purge
        self.close = queue.close

    async def read(
        self, action: int, request_id: int, timeout: int, cursor: int, lookup_identifier: int
    ) -> RemotelyRead:
        return await self._queue.read(action, request_id, timeout, cursor)

    async def end(self, message: RemotelyRead, acknowledgement: int) -> None:
        await self._queue.end(message.handle, acknowledgement)

    async def create_cursor(self) -> int:
        return await create_remote_cursor(self._connections, self._queue.number)


class ReadMessage(NamedTuple):
    """A message that was read through RemoteRead; `handle` is the number of its request."""

    handle: bytes
    packet: bytes
    arrival_time: int
    lookup_identifier: int


class OpenedToRead:
    """A queue that this queue manager has opened there, read through RemoteRead."""

    def __init__(self, reader: QueueReader) -> None:
        session = reader.session
        self._session = session
        self.cancel = session.cancel
        self.create_cursor = session.create_cursor
        self.close_cursor = session.close_cursor
        self.purge = session.purge
        self.close = reader.close

    async def read(
        self, action: int, request_id: int, timeout: int, cursor: int, lookup_identifier: int
    ) -> RemotelyRead:
        read = Read(action, request_id, timeout, cursor, lookup_identifier)
        found = await self._session.start(read)
        handle = request_id.to_bytes(4, "little") if action in RECEIVE_ACTIONS else b""
        packet = bytes(found.buffer)
        return ReadMessage(handle, packet, found.arrival_time, found.lookup_identifier)

    async def end(self, message: RemotelyRead, acknowledgement: int) -> None:
        await self._session.end(int.from_bytes(message.handle, "little"), acknowledgement)


class LoopRemoteReader:
    """A queue of another queue manager, on connections of its own.

    When these break the queue is closed over there: what waits, and whatever is asked after that,
    fails with MQ_ERROR_STALE_HANDLE, until the client closes the queue here (G68).
    """

    def __init__(
        self,
        queues: RemoteQueues,
        connections: Connections,
        queue: OpenElsewhere,
        asker: str,
    ) -> None:
        self._queues = queues
        self._asker = asker
        self._connections = connections
        self._queue = queue
        self._lost = ""

    def read(
        self, action: int, timeout: int, cursor: int, lookup_identifier: int = 0
    ) -> PendingRead:
        request_id = next_request_identifier()
        reading = self._queue.read(action, request_id, timeout, cursor, lookup_identifier)
        message: Completion[RemotelyRead] = Completion()
        self._queues.start(_resolve(self._in_session(reading), message, self._asker))
        return PendingRead(message, lambda: self._cancel(message, request_id))

    def _cancel(self, message: Completion[RemotelyRead], request_id: int) -> None:
        if not message.done:
            self._queues.run(self._queue.cancel(request_id), self._asker)

    def end(self, message: RemotelyRead, acknowledgement: int) -> Completion[None]:
        return self._run(self._queue.end(message, acknowledgement))

    def create_cursor(self) -> Completion[int]:
        return self._run(self._queue.create_cursor())

    def close_cursor(self, cursor: int) -> Completion[None]:
        return self._run(self._queue.close_cursor(cursor))

    def purge(self) -> Completion[None]:
        return self._run(self._queue.purge())

    def _run(self, call: Coroutine[object, None, T]) -> Completion[T]:
        return self._queues.run(self._in_session(call), self._asker)

    async def _in_session(self, call: Coroutine[object, None, T]) -> T:
        """The outcome of a call, while the queue is open over there."""
        if self._lost:
            call.close()
            raise MQError(HResult.MQ_ERROR_STALE_HANDLE, self._lost)
        try:
            return await call
        except (HandleLostError, OutcomeUnknownError) as error:
            self._lost = str(error)
            _log.info("a queue of another queue manager is lost", reason=self._lost)
            await self._connections.close()
            raise MQError(HResult.MQ_ERROR_STALE_HANDLE, self._lost) from error

    def close(self) -> None:
        self._queues.run(self._close(), self._asker)

    async def _close(self) -> None:
        try:
            await self._queue.close()
        finally:
            await self._connections.close()


async def _resolve(
    coroutine: Coroutine[object, None, T], outcome: Completion[T], asker: str
) -> None:
    try:
        value = await coroutine
    except MQError as error:
        outcome.fail(error)
    except (ServerUnreachableError, RpcFault, DecodeError) as error:
        _log.info("another queue manager cannot be read", who=asker, reason=str(error))
        outcome.fail(MQError(_status_of(error), str(error)))
    except BaseException as error:
        outcome.fail(error)
        raise
    else:
        outcome.succeed(value)


def _status_of(error: Exception) -> HResult:
    """What a client is told of another queue manager that does not serve us."""
    if isinstance(error, RpcFault) and error.status in _NOT_ADMITTED:
        return HResult.MQ_ERROR_ACCESS_DENIED
    return HResult.MQ_ERROR_REMOTE_MACHINE_NOT_AVAILABLE
