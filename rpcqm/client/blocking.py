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
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Generic, Self, TypeVar

from rpcqm.client.accounts import AccountsClient
from rpcqm.client.bulk import BulkReader
from rpcqm.client.bulk_session import Failure, Found
from rpcqm.client.management import ManagementClient
from rpcqm.client.message import ReceivedMessage
from rpcqm.client.outgoing import OutgoingMessage
from rpcqm.client.queue_manager import QueueManagerClient
from rpcqm.client.queues import QueuesClient
from rpcqm.client.reads import WHOLE_BODY
from rpcqm.client.remote_read import MoveTarget, PendingReceive, QueueReader
from rpcqm.client.sending import InternalTransaction, QueueSender
from rpcqm.client.target import Target
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.codec.types.mqvalues import INFINITE, MQ_LOOKUP_PEEK_CURRENT, MQ_LOOKUP_RECEIVE_CURRENT

T = TypeVar("T")

_AT_A_TIME = 512
"""Items that one change of threads brings: enough that the change costs little of each."""

_OCTETS_AT_A_TIME = 4 << 20

W = TypeVar("W", bound=AbstractAsyncContextManager[object, bool | None])


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

        Ctrl-C, or any other exception that ends the wait, cancels the call. Raises ValueError
        after `close`.
        """
        if self._loop.is_closed():
            call.close()
            raise ValueError("the connection is closed: its `with` block has ended")
        future = asyncio.run_coroutine_threadsafe(call, self._loop)
        try:
            return future.result()
        except BaseException:  # Ctrl-C too: without this the call would go on unheard
            future.cancel()
            raise

    def each(
        self,
        items: AsyncIterator[T],
        at_a_time: int = _AT_A_TIME,
        weigh: Callable[[T], int] | None = None,
    ) -> Iterator[T]:
        """Iterate over an asynchronous iterator, waiting for `at_a_time` items together.

        With `weigh`, which gives the octets of an item, for 4 MiB of them at most, and one more.
        """

        async def some() -> list[T]:
            found: list[T] = []
            room = _OCTETS_AT_A_TIME
            async for item in items:
                found.append(item)
                room -= weigh(item) if weigh else 0
                if len(found) >= at_a_time or room <= 0:
                    break
            return found

        while found := self.run(some()):
            yield from found

    @property
    def wrapped(self) -> QueueManagerClient:
        """The asyncio client; wait for its calls with `run`."""
        return self._client

    @property
    def queues(self) -> QueuesClient:
        """The private queues; wait for its calls with `run`."""
        return self._client.queues

    @property
    def management(self) -> ManagementClient:
        """What the queue manager tells administrators; wait for its calls with `run`."""
        return self._client.management

    @property
    def accounts(self) -> AccountsClient:
        """The accounts; wait for its calls with `run`."""
        return self._client.accounts

    def open_sender(self, name: FormatName, *more: FormatName) -> "BlockingSender":
        """Open one or more queues for sending, with `with`; each message goes to all of them."""
        return BlockingSender(self, self._client.open_sender(name, *more))

    def open_reader(
        self, name: FormatName, *, peek_only: bool = False, exclusive: bool = False
    ) -> "BlockingReader":
        """Open a queue, with `with`, to read it, move messages out of it or purge it."""
        reader = self._client.open_reader(name, peek_only=peek_only, exclusive=exclusive)
        return BlockingReader(self, reader)

    def open_bulk_reader(self, name: FormatName, *, peek_only: bool = False) -> "BlockingBulk":
        """Open a queue, with `with`, to read or remove many messages."""
        return BlockingBulk(self, self._client.open_bulk_reader(name, peek_only=peek_only))

    def open_move_target(self, name: FormatName) -> "BlockingMoveTarget":
        """Open a queue, with `with`, that messages are to be moved to."""
        return BlockingMoveTarget(self, self._client.open_move_target(name))

    def begin_transaction(self) -> "BlockingTransaction":
        """A transaction, which begins and ends with its `with` block."""
        return BlockingTransaction(self, self._client.begin_transaction())


class Blocking(Generic[W]):
    """Makes an ordinary context manager of an asynchronous one, which is `wrapped`."""

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


def _octets(found: Found) -> int:
    return len(found.buffer) if isinstance(found, ReceivedMessage) else 0


class BlockingBulk(Blocking[BulkReader]):
    """A queue that is read in bulk; see BulkReader for what the calls mean."""

    def visible(self) -> Iterator[int]:
        return self._client.each(self.wrapped.visible())

    def count(self) -> int | None:
        return self._client.run(self.wrapped.count())

    def sizes(self, identifiers: Sequence[int]) -> list[int]:
        return self._client.run(self.wrapped.sizes(identifiers))

    def browse(self) -> Iterator[ReceivedMessage]:
        return self._client.each(self.wrapped.browse(), weigh=_octets)

    def peek(self, identifiers: Sequence[int]) -> Iterator[tuple[int, Found]]:
        found = self.wrapped.peek(identifiers)
        return self._client.each(found, weigh=lambda pair: _octets(pair[1]))

    def remove(self, identifiers: Sequence[int]) -> Iterator[tuple[int, Failure]]:
        return self._client.each(self.wrapped.remove(identifiers))


class BlockingMoveTarget(Blocking[MoveTarget]):
    """A queue or subqueue that messages are moved to."""


class BlockingTransaction(Blocking[InternalTransaction]):
    """A transaction: committed when the block ends, aborted when an exception leaves it."""


class BlockingSender(Blocking[QueueSender]):
    """A queue that is open for sending."""

    def send(
        self, message: OutgoingMessage, transaction: BlockingTransaction | None = None
    ) -> MessageIdentifier:
        """Send a message; a recoverable message is durable when this returns its identifier."""
        unit = None if transaction is None else transaction.wrapped
        return self._client.run(self.wrapped.send(message, unit))

    def send_all(self, messages: Iterable[OutgoingMessage]) -> Iterator[MessageIdentifier]:
        """Send messages in their order, many on their way at once; see QueueSender.send_all."""
        return self._client.each(self.wrapped.send_all(messages))


class BlockingReceive:
    """A message that leaves its queue when the block ends, unless an exception leaves the block."""

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


class BlockingReader(Blocking[QueueReader]):
    """A queue that is open for reading; see QueueReader for what the calls mean."""

    def peek(self, timeout: int = INFINITE, *, body: int = WHOLE_BODY) -> ReceivedMessage:
        return self._client.run(self.wrapped.peek(timeout, body=body))

    def peek_by_lookup_identifier(
        self, identifier: int, action: int = MQ_LOOKUP_PEEK_CURRENT, *, body: int = WHOLE_BODY
    ) -> ReceivedMessage:
        return self._client.run(
            self.wrapped.peek_by_lookup_identifier(identifier, action, body=body)
        )

    def browse(self, timeout: int = 0, *, body: int = WHOLE_BODY) -> Iterator[ReceivedMessage]:
        return self._client.each(self.wrapped.browse(timeout, body=body), at_a_time=1)

    def receive(self, timeout: int = INFINITE) -> BlockingReceive:
        return BlockingReceive(self._client, self._client.run(self.wrapped.receive(timeout)))

    def receive_by_lookup_identifier(
        self, identifier: int, action: int = MQ_LOOKUP_RECEIVE_CURRENT
    ) -> BlockingReceive:
        pending = self.wrapped.receive_by_lookup_identifier(identifier, action)
        return BlockingReceive(self._client, self._client.run(pending))

    def move(self, identifier: int, target: BlockingMoveTarget) -> None:
        self._client.run(self.wrapped.move(identifier, target.wrapped))

    def purge(self) -> None:
        self._client.run(self.wrapped.purge())
