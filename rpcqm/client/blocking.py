"""The client for programs without an event loop: the same calls, each waiting for its answer.

    with BlockingClient(LocalServer(socket)) as client:
        name = format_name("orders")
        with client.open_sender(name) as sender:
            sender.send(OutgoingMessage(b"hello"))
        with client.open_reader(name) as reader:
            with reader.receive(timeout=1000) as message:
                print(message.body)

Several threads may use one client at the same time.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator, Sequence
from types import TracebackType
from typing import Generic, Protocol, Self, TypeVar

from rpcqm.client.accounts import Accounts
from rpcqm.client.bulk import BulkReader, Failure, Found
from rpcqm.client.management import Management
from rpcqm.client.message import ReceivedMessage
from rpcqm.client.outgoing import OutgoingMessage
from rpcqm.client.queue_manager import QueueManagerClient
from rpcqm.client.queues import Queues
from rpcqm.client.remote_read import (
    LOOKUP_PEEK_CURRENT,
    LOOKUP_RECEIVE_CURRENT,
    WHOLE_BODY,
    MoveTarget,
    PendingReceive,
    QueueReader,
)
from rpcqm.client.sending import InternalTransaction, QueueSender
from rpcqm.client.target import Target
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.base import INFINITE
from rpcqm.codec.packet.types import MessageIdentifier

T = TypeVar("T")

_AT_A_TIME = 512


class _Opened(Protocol):
    """What is opened with `async with`."""

    def __aenter__(self) -> Coroutine[object, None, object]: ...

    def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> Coroutine[object, None, None]: ...


W = TypeVar("W", bound=_Opened)


class BlockingClient:
    """A client of one queue manager, on an event loop in a thread of its own."""

    def __init__(self, target: Target, patience: float = 0.0) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="rpcqm client", daemon=True
        )
        self._thread.start()
        self._client = QueueManagerClient(target, patience)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections, and end the thread."""
        self.run(self._client.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def run(self, call: Coroutine[object, None, T]) -> T:
        """Wait for a call of the asyncio client, for example `client.queues.delete(name)`.

        A call that is interrupted here, as by Ctrl-C, is cancelled there.
        """
        future = asyncio.run_coroutine_threadsafe(call, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def each(self, items: AsyncIterator[T]) -> Iterator[T]:
        """What an asynchronous iterator gives; some are waited for at a time."""

        async def some() -> list[T]:
            found: list[T] = []
            async for item in items:
                found.append(item)
                if len(found) >= _AT_A_TIME:
                    break
            return found

        while found := self.run(some()):
            yield from found

    @property
    def wrapped(self) -> QueueManagerClient:
        """The asyncio client; wait for its calls with `run`."""
        return self._client

    @property
    def queues(self) -> Queues:
        """The private queues; wait for its calls with `run`."""
        return self._client.queues

    @property
    def management(self) -> Management:
        """What administrators are told; wait for its calls with `run`."""
        return self._client.management

    @property
    def accounts(self) -> Accounts:
        """The accounts; wait for its calls with `run`."""
        return self._client.accounts

    def open_sender(self, name: FormatName, *more: FormatName) -> "BlockingSender":
        """A queue, or several, to send to; open it with `with`."""
        return BlockingSender(self, self._client.open_sender(name, *more))

    def open_reader(
        self, name: FormatName, *, peek_only: bool = False, exclusive: bool = False
    ) -> "BlockingReader":
        """A queue to read from, move from and purge; open it with `with`."""
        reader = self._client.open_reader(name, peek_only=peek_only, exclusive=exclusive)
        return BlockingReader(self, reader)

    def open_bulk_reader(self, name: FormatName, *, peek_only: bool = False) -> "BlockingBulk":
        """A queue to read and remove many messages from; open it with `with`."""
        return BlockingBulk(self, self._client.open_bulk_reader(name, peek_only=peek_only))

    def open_move_target(self, name: FormatName) -> "BlockingMoveTarget":
        """A queue to move to; open it with `with`."""
        return BlockingMoveTarget(self, self._client.open_move_target(name))

    def begin_transaction(self) -> "BlockingTransaction":
        """A unit of work; begin it with `with`."""
        return BlockingTransaction(self, self._client.begin_transaction())


class _Blocking(Generic[W]):
    """An asynchronous context manager, `wrapped`, as an ordinary one."""

    def __init__(self, client: BlockingClient, wrapped: W) -> None:
        self._client = client
        self.wrapped = wrapped

    def __enter__(self) -> Self:
        self._client.run(self.wrapped.__aenter__())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._client.run(self.wrapped.__aexit__(kind, error, traceback))


class BlockingBulk(_Blocking[BulkReader]):
    """A queue that is read in bulk; see BulkReader for what the calls mean."""

    def visible(self) -> Iterator[int]:
        return self._client.each(self.wrapped.visible())

    def peek(self, identifiers: Sequence[int]) -> Iterator[tuple[int, Found]]:
        return self._client.each(self.wrapped.peek(identifiers))

    def remove(self, identifiers: Sequence[int]) -> Iterator[tuple[int, Failure]]:
        return self._client.each(self.wrapped.remove(identifiers))


class BlockingMoveTarget(_Blocking[MoveTarget]):
    """A queue or subqueue that messages are moved to."""


class BlockingTransaction(_Blocking[InternalTransaction]):
    """A unit of work: committed when the block ends well, else aborted."""


class BlockingSender(_Blocking[QueueSender]):
    """A queue that is open for sending."""

    def send(
        self, message: OutgoingMessage, transaction: BlockingTransaction | None = None
    ) -> MessageIdentifier:
        """Send a message; a recoverable one is durable when its identifier comes back."""
        unit = None if transaction is None else transaction.wrapped
        return self._client.run(self.wrapped.send(message, unit))


class BlockingReceive:
    """A message that stays in its queue until the block ends well."""

    def __init__(self, client: BlockingClient, pending: PendingReceive) -> None:
        self._client = client
        self._pending = pending

    def __enter__(self) -> ReceivedMessage:
        return self._pending.message

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._client.run(self._pending.__aexit__(kind, error, traceback))


class BlockingReader(_Blocking[QueueReader]):
    """A queue that is open for reading; see QueueReader for what the calls mean."""

    def peek(self, timeout: int = INFINITE, *, body: int = WHOLE_BODY) -> ReceivedMessage:
        return self._client.run(self.wrapped.peek(timeout, body=body))

    def peek_by_lookup_identifier(
        self, identifier: int, action: int = LOOKUP_PEEK_CURRENT, *, body: int = WHOLE_BODY
    ) -> ReceivedMessage:
        return self._client.run(
            self.wrapped.peek_by_lookup_identifier(identifier, action, body=body)
        )

    def browse(self, timeout: int = 0, *, body: int = WHOLE_BODY) -> Iterator[ReceivedMessage]:
        messages = self.wrapped.browse(timeout, body=body)

        async def following() -> ReceivedMessage | None:
            return await anext(messages, None)

        while (message := self._client.run(following())) is not None:
            yield message

    def receive(self, timeout: int = INFINITE) -> BlockingReceive:
        return BlockingReceive(self._client, self._client.run(self.wrapped.receive(timeout)))

    def receive_by_lookup_identifier(
        self, identifier: int, action: int = LOOKUP_RECEIVE_CURRENT
    ) -> BlockingReceive:
        pending = self.wrapped.receive_by_lookup_identifier(identifier, action)
        return BlockingReceive(self._client, self._client.run(pending))

    def move(self, identifier: int, target: BlockingMoveTarget) -> None:
        self._client.run(self.wrapped.move(identifier, target.wrapped))

    def purge(self) -> None:
        self._client.run(self.wrapped.purge())
