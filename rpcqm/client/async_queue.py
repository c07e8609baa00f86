"""Queues and their messages for programs with an event loop (`rpcqm.client.mq`)."""

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from rpcqm.base.errors import HResult, MQError
from rpcqm.client.connection import END_OF_QUEUE
from rpcqm.client.message import ReceivedMessage
from rpcqm.client.message_fields import message_identifier, message_of
from rpcqm.client.names import HERE, no_such_queue, subqueue_name
from rpcqm.client.queue_manager import QueueManagerClient
from rpcqm.client.target import RemoteServer, Target
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.written import hint_of
from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.codec.types.mqvalues import INFINITE

if TYPE_CHECKING:
    from rpcqm.client.remote_read import MoveTarget, PendingReceive, QueueReader
    from rpcqm.client.sending import InternalTransaction, QueueSender

Correlation = MessageIdentifier | str | None
"""The identifier of a message that others answer, as `send` returns it or as text."""


class Message:
    """A received message, which is acknowledged or given back, once.

    One that was received in a transaction leaves its queue, or stays in it, as the transaction
    ends.

    It has every attribute of ReceivedMessage: `body`, `text`, `value`, `xml`, `label`,
    `priority`, `identifier` and so on.
    """

    def __init__(self, received: ReceivedMessage, pending: "PendingReceive | None" = None) -> None:
        self._pending = pending
        self._of_transaction = pending is None
        self.received = received

    def __getattr__(self, name: str) -> Any:
        return getattr(self.received, name)

    @property
    def settled(self) -> bool:
        """Whether the message has been acknowledged, given back or moved, or a transaction will."""
        return self._pending is None

    async def acknowledge(self) -> None:
        """Confirm the message, so that it leaves its queue. A second call does nothing."""
        pending, self._pending = self._pending, None
        if pending is not None:
            await pending.acknowledge()

    async def release(self) -> None:
        """Give the message back to its queue. A second call does nothing.

        Raises RuntimeError for a message of a transaction, which an exception gives back.
        """
        if self._of_transaction:
            raise RuntimeError("an exception that leaves the transaction gives its messages back")
        pending, self._pending = self._pending, None
        if pending is not None:
            await pending.give_back()

    def moved(self) -> None:
        """Say that the message has left its queue in another way."""
        self._pending = None


class AsyncQueue:
    """A queue, or `more` to send to, for programs with an event loop, in an `async with` block.

    A received message is acknowledged when the program asks for the next one or ends the block;
    it is given back when an exception leaves the block.
    """

    def __init__(
        self,
        client: QueueManagerClient,
        name: FormatName,
        *more: FormatName,
        peek_only: bool = False,
        exclusive: bool = False,
    ) -> None:
        self.client = client
        self.name = name
        self._more = more
        self._peek_only = peek_only
        self._exclusive = exclusive
        self._reader: QueueReader | None = None
        self._sender: QueueSender | None = None
        self._opened = AsyncExitStack()
        self._closed = False
        self._in_hand: Message | None = None
        self._transaction: InternalTransaction | None = None
        self._move_targets: dict[str, MoveTarget] = {}

    async def __aenter__(self) -> Self:
        self._require_open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if error is not None and self._in_hand is not None:
                await self._in_hand.release()
            await self._settle()
        finally:
            self._closed = True
            await self._opened.aclose()
            await self.client.close()

    async def send(self, body: object, **fields: object) -> MessageIdentifier:
        """Send a body of any type that `encode_body` takes, or an OutgoingMessage.

        `fields` are further fields of OutgoingMessage; queues may be named by texts, and times be
        timedeltas. A recoverable message (the default) is durable when this returns its
        identifier. Raises TypeError or ValueError for what a message cannot have.
        """
        self._require_open()
        message = message_of(body, fields, host_of(self.client.target))
        if self._sender is None:
            sender = self.client.open_sender(self.name, *self._more)
            with self._told_what_was_meant():
                self._sender = await self._opened.enter_async_context(sender)
        return await self._sender.send(message, self._transaction)

    @asynccontextmanager
    async def transaction(self, *others: "AsyncQueue") -> AsyncIterator[None]:
        """Send, receive and move everything in the block when that ends, as one.

        If an exception leaves the block, nothing is sent, and what was received or moved is back.
        `others` are further queues of the same queue manager that take part. Transactional queues
        take messages only in transactions, and other queues none. Raises RuntimeError if one of
        the queues is in a transaction already, ValueError if one is elsewhere, and
        MQError(MQ_ERROR_TRANSACTION_ENLIST) if the queue manager is not rpcqm.
        """
        queues = (self, *others)
        self._require_free(queues)
        async with self.client.begin_transaction() as transaction:
            for queue in queues:
                queue._transaction = transaction
            try:
                yield
            finally:
                for queue in queues:
                    queue._transaction = None

    def _require_free(self, queues: "tuple[AsyncQueue, ...]") -> None:
        for queue in queues:
            queue._require_open()
            if queue._transaction is not None:
                raise RuntimeError("this queue is in a transaction already")
            if str(queue.client.target) != str(self.client.target):
                raise ValueError(
                    f"a transaction is of one queue manager: {queue.name} is at "
                    f"{queue.client.target}, {self.name} at {self.client.target}"
                )

    async def receive(
        self,
        timeout: float | None = None,
        limit: int | None = None,
        correlation: "Correlation" = None,
    ) -> AsyncIterator[Message]:
        """Receive messages as they come, at most `limit` of them; with `correlation` only answers.

        The iteration ends when no message comes within `timeout` seconds.
        """
        received = 0
        while limit is None or received < limit:
            message = await self.receive_one(timeout, correlation)
            if message is None:
                return
            received += 1
            yield message
        await self._settle()

    async def receive_one(
        self, timeout: float | None = None, correlation: "Correlation" = None
    ) -> Message | None:
        """Receive the next message; returns None if no message comes within `timeout` seconds.

        With `correlation`, the identifier of a question, it is the next message that answers it.
        """
        await self._settle()
        reader = await self._open_reader()
        try:
            if correlation is not None:
                return await self._answer(reader, _question(correlation), _milliseconds(timeout))
            return await self._received(reader, _milliseconds(timeout))
        except MQError as error:
            if error.status not in END_OF_QUEUE:
                raise
        return None

    async def _answer(
        self, reader: "QueueReader", question: MessageIdentifier, timeout: int
    ) -> Message | None:
        from rpcqm.client.correlation import TAKEN, answers

        async with aclosing(answers(reader, question, timeout)) as found:
            async for message in found:
                try:
                    return await self._received(reader, 0, message.lookup_identifier)
                except MQError as error:
                    if error.status not in TAKEN:
                        raise
        return None

    async def _received(self, reader: "QueueReader", timeout: int, identifier: int = 0) -> Message:
        """Receive the first message, or the one with that lookup identifier."""
        if self._transaction is not None:
            return Message(await reader.receive_in(self._transaction, timeout, identifier))
        if identifier:
            pending = await reader.receive_by_lookup_identifier(identifier)
        else:
            pending = await reader.receive(timeout)
        self._in_hand = Message(pending.message, pending)
        return self._in_hand

    async def move(self, message: "Message | ReceivedMessage | int", to: str) -> None:
        """Move a message to a subqueue of this queue, such as `poison`; "" is the queue itself.

        `message` was received and not settled yet, or peeked at, or is a lookup identifier. In a
        transaction it moves when that ends well. Raises MQError if somebody else holds it.
        """
        identifier = message if isinstance(message, int) else message.lookup_identifier
        reader = await self._open_reader()
        target = await self._move_target(to)
        await reader.move(identifier, target, self._transaction)
        if isinstance(message, Message):
            message.moved()
        if self._in_hand is not None and self._in_hand.settled:
            self._in_hand = None

    async def _move_target(self, to: str) -> "MoveTarget":
        if to not in self._move_targets:
            target = self.client.open_move_target(subqueue_name(self.name, to))
            self._move_targets[to] = await self._opened.enter_async_context(target)
        return self._move_targets[to]

    async def peek(self, timeout: float | None = None) -> ReceivedMessage | None:
        """The first message, which stays; None if no message comes within `timeout` seconds."""
        reader = await self._open_reader()
        try:
            return await reader.peek(_milliseconds(timeout))
        except MQError as error:
            if error.status not in END_OF_QUEUE:
                raise
        return None

    async def browse(self) -> AsyncIterator[ReceivedMessage]:
        """The messages of the queue in their order; they stay in it."""
        reader = await self._open_reader()
        async for message in reader.browse():
            yield message

    async def purge(self) -> None:
        """Delete every message."""
        await (await self._open_reader()).purge()

    def _require_open(self) -> None:
        if self._closed:
            raise ValueError("the queue is closed: its `with` block has ended")

    async def _open_reader(self) -> "QueueReader":
        self._require_open()
        if self._more:
            status = HResult.MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION
            raise MQError(status, "several queues can be sent to only")
        if self._reader is None:
            reader = self.client.open_reader(
                self.name, peek_only=self._peek_only, exclusive=self._exclusive
            )
            with self._told_what_was_meant():
                self._reader = await self._opened.enter_async_context(reader)
        return self._reader

    @contextmanager
    def _told_what_was_meant(self) -> Iterator[None]:
        """Let MQ_ERROR_QUEUE_NOT_FOUND say which name was probably meant by an odd one."""
        try:
            yield
        except MQError as error:
            if error.status is not HResult.MQ_ERROR_QUEUE_NOT_FOUND or error.detail or self._more:
                raise
            if not hint_of(self.name):
                raise
            raise no_such_queue(self.name) from error

    async def _settle(self) -> None:
        """Acknowledge the message that was received last, if it is still to be settled."""
        message, self._in_hand = self._in_hand, None
        if message is not None:
            await message.acknowledge()


def host_of(target: Target) -> str:
    """The host whose queues short names mean."""
    return target.host if isinstance(target, RemoteServer) else HERE


def _milliseconds(seconds: float | None) -> int:
    if seconds is None:
        return INFINITE
    return max(0, min(round(seconds * 1000), INFINITE - 1))


def _question(correlation: MessageIdentifier | str) -> MessageIdentifier:
    if isinstance(correlation, MessageIdentifier):
        return correlation
    return message_identifier(correlation)
