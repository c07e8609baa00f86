"""The queue that a rule needs, and its implementation by a client."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Protocol

from rpcqm.base.errors import HResult, MQError, RpcFault
from rpcqm.client.connection import END_OF_QUEUE
from rpcqm.client.message import ReceivedMessage
from rpcqm.client.names import format_name
from rpcqm.client.outgoing import OutgoingMessage
from rpcqm.client.queue_manager import QueueManagerClient
from rpcqm.client.reads import WHOLE_BODY
from rpcqm.client.remote_read import PendingReceive, QueueReader
from rpcqm.client.sending import InternalTransaction
from rpcqm.client.target import ServerUnreachableError
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.trigger_rule import DEAD_LETTER, TriggerRule
from rpcqm.codec.types.mqvalues import MQ_LOOKUP_PEEK_CURRENT, MQ_LOOKUP_PEEK_NEXT

LONGEST_LOCKED = 240
"""Seconds for which a message outside of a transaction is kept from others: after five minutes the
queue manager gives it back."""
_WAIT = 2_000
"""Milliseconds for which a read waits for the first message of a queue."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 2.0
"""Seconds between looks at a queue whose messages have all been looked at."""
_TAKEN = END_OF_QUEUE | {
    HResult.MQ_ERROR_MESSAGE_ALREADY_RECEIVED,
    HResult.MQ_ERROR_MESSAGE_LOCKED_UNDER_TRANSACTION,
}
"""Errors of a message that another reader has, or had."""

Send = Callable[[str, OutgoingMessage], Awaitable[None]]


class RuleProblemError(Exception):
    """A rule that its queue cannot serve; the text is a clause."""


class TakenMessage(Protocol):
    """A message that is locked until it is finished, given back or put aside."""

    @property
    def message(self) -> ReceivedMessage: ...
    async def finish(self) -> None: ...
    async def give_back(self) -> None: ...
    async def put_aside(self, target: str) -> None: ...
    async def send(self, queue: str, message: OutgoingMessage) -> None: ...


class TriggerQueue(Protocol):
    """The queue of a rule; `made` is the time of its creation, in seconds since 1970."""

    @property
    def made(self) -> int: ...
    async def next_after(self, lookup_identifier: int) -> ReceivedMessage | None:
        """The head of the next message that is available, in the order of lookup identifiers."""

    async def whole(self, lookup_identifier: int) -> ReceivedMessage | None: ...
    async def take(self, lookup_identifier: int) -> TakenMessage | None: ...
    async def send(self, queue: str, message: OutgoingMessage) -> None: ...
    async def wait(self, rounds: int) -> None:
        """Wait until there may be another message; longer after more rounds without one."""


@asynccontextmanager
async def open_queue(client: QueueManagerClient, rule: TriggerRule) -> AsyncIterator[TriggerQueue]:
    """Open the queue of a rule; raises the errors of the client."""
    name = format_name(rule.queue)
    made = await _made(client, name)
    async with (
        client.open_reader(name, peek_only=True) as looking,
        client.open_reader(name, peek_only=True) as waiting,
    ):
        yield _OpenedQueue(client, rule, made, looking, waiting)


async def _made(client: QueueManagerClient, name: FormatName) -> int:
    """The time at which a queue was created, 0 if the account may not see it."""
    try:
        return int((await client.queues.properties(name)).create_time)
    except MQError as error:
        if error.status is not HResult.MQ_ERROR_ACCESS_DENIED:
            raise
        return 0


class _OpenedQueue:
    """A queue of a queue manager; taking a message shows whether it is transactional."""

    def __init__(
        self,
        client: QueueManagerClient,
        rule: TriggerRule,
        made: int,
        looking: QueueReader,
        waiting: QueueReader,
    ) -> None:
        self._client, self._rule, self.made = client, rule, made
        self._name = format_name(rule.queue)
        self._looking, self._waiting = looking, waiting
        self._transactional: bool | None = None

    async def next_after(self, lookup_identifier: int) -> ReceivedMessage | None:
        """The head of the next message that is available."""
        return await self._looked(lookup_identifier, MQ_LOOKUP_PEEK_NEXT, 0)

    async def whole(self, lookup_identifier: int) -> ReceivedMessage | None:
        """A message with its body, None if it is gone or locked."""
        return await self._looked(lookup_identifier, MQ_LOOKUP_PEEK_CURRENT, WHOLE_BODY)

    async def _looked(self, identifier: int, action: int, body: int) -> ReceivedMessage | None:
        try:
            return await self._looking.peek_by_lookup_identifier(identifier, action, body=body)
        except MQError as error:
            if error.status in _TAKEN:
                return None
            raise

    async def wait(self, rounds: int) -> None:
        """Wait for the first message of an empty queue, otherwise for a moment."""
        try:
            await self._waiting.peek(_WAIT, body=0)
        except MQError as error:
            if error.status not in END_OF_QUEUE:
                raise
        else:
            await asyncio.sleep(min(_FIRST_PAUSE * 2 ** min(rounds, 10), _LONGEST_PAUSE))

    async def send(self, queue: str, message: OutgoingMessage) -> None:
        """Send a message; to a transactional queue in a transaction of its own."""
        await _send(self._client, queue, message)

    async def take(self, lookup_identifier: int) -> TakenMessage | None:
        """Take a message, None if it is gone or locked."""
        opened = AsyncExitStack()
        try:
            reader = await opened.enter_async_context(self._client.open_reader(self._name))
            if self._transactional is not False:
                unit = await self._client.begin_transaction().__aenter__()
                message = await self._received_in(reader, unit, lookup_identifier)
                if message is not None:
                    return _InTransaction(self._client, self._rule, message, unit, reader, opened)
            if self._transactional is not False:
                await opened.aclose()
                return None
            return await self._locked(reader, lookup_identifier, opened)
        except BaseException as error:
            await opened.aclose()
            if isinstance(error, MQError) and error.status in _TAKEN:
                return None
            raise

    async def _received_in(
        self, reader: QueueReader, unit: InternalTransaction, lookup_identifier: int
    ) -> ReceivedMessage | None:
        """Receive in a transaction, which ends if there is no message."""
        try:
            message = await reader.receive_in(unit, 0, lookup_identifier)
        except BaseException as error:
            with contextlib.suppress(MQError, RpcFault, ServerUnreachableError):
                await unit.abort()
            if isinstance(error, MQError):
                if error.status is HResult.MQ_ERROR_TRANSACTION_USAGE:
                    self._transactional = False
                    return None
                if error.status in _TAKEN:
                    return None
            raise
        self._transactional = True
        return message

    async def _locked(
        self, reader: QueueReader, lookup_identifier: int, opened: AsyncExitStack
    ) -> TakenMessage:
        if self._rule.time_limit > LONGEST_LOCKED:
            raise RuleProblemError(
                f"{self._rule.queue} is not transactional, so that a time limit of "
                f"{self._rule.time_limit} s is too long; it has {LONGEST_LOCKED} s at most"
            )
        pending = await reader.receive_by_lookup_identifier(lookup_identifier)
        return _Locked(self._client, self._rule, pending, reader, opened)


async def _send(client: QueueManagerClient, queue: str, message: OutgoingMessage) -> None:
    async with client.open_sender(format_name(queue)) as sender:
        try:
            await sender.send(message)
        except MQError as error:
            if error.status is not HResult.MQ_ERROR_TRANSACTION_USAGE:
                raise
            async with client.begin_transaction() as unit:
                await sender.send(message, unit)


class _Taken:
    """The common part of both ways of taking a message."""

    def __init__(
        self,
        client: QueueManagerClient,
        rule: TriggerRule,
        message: ReceivedMessage,
        reader: QueueReader,
        opened: AsyncExitStack,
    ) -> None:
        self._client, self._rule, self.message = client, rule, message
        self._reader, self._opened = reader, opened

    async def finish(self) -> None:
        """Let the message leave its queue."""
        try:
            await self._finish()
        finally:
            await self._opened.aclose()

    async def give_back(self) -> None:
        """Let others, and later tries, have the message."""
        try:
            await self._give_back()
        finally:
            await self._opened.aclose()

    async def put_aside(self, target: str) -> None:
        """Move the message to another queue, in one commit if possible (G647)."""
        if target.startswith(";"):
            try:
                await self._give_back()
                await self._move(format_name(self._rule.queue + target))
            finally:
                await self._opened.aclose()
            return
        if target == DEAD_LETTER:
            letters = "XactDeadLetter$" if self.message.is_transactional else "DeadLetter$"
            packet = bytes(self.message.buffer)[: self.message.size]
            await self._client.maintenance.import_message(format_name(letters), packet)
        else:
            await self.send(target, outgoing_of(self.message))
        await self.finish()

    async def _move(self, target: FormatName) -> None:
        async with self._client.open_move_target(target) as opened:
            await self._reader.move(self.message.lookup_identifier, opened)

    async def send(self, queue: str, message: OutgoingMessage) -> None:
        """Send a message, independently of the outcome of this one."""
        await _send(self._client, queue, message)

    async def _finish(self) -> None:
        raise NotImplementedError

    async def _give_back(self) -> None:
        raise NotImplementedError


class _InTransaction(_Taken):
    """A message that leaves with the commit of a transaction."""

    def __init__(
        self,
        client: QueueManagerClient,
        rule: TriggerRule,
        message: ReceivedMessage,
        unit: InternalTransaction,
        reader: QueueReader,
        opened: AsyncExitStack,
    ) -> None:
        super().__init__(client, rule, message, reader, opened)
        self._unit = unit

    async def _finish(self) -> None:
        await self._unit.commit()

    async def _give_back(self) -> None:
        await self._unit.abort()

    async def send(self, queue: str, message: OutgoingMessage) -> None:
        """Send in the same commit, or separately if the other queue is not transactional."""
        async with self._client.open_sender(format_name(queue)) as sender:
            try:
                await sender.send(message, self._unit)
            except MQError as error:
                if error.status is not HResult.MQ_ERROR_TRANSACTION_USAGE:
                    raise
                await sender.send(message)


class _Locked(_Taken):
    """A message of a queue without transactions, which leaves when it is acknowledged."""

    def __init__(
        self,
        client: QueueManagerClient,
        rule: TriggerRule,
        pending: PendingReceive,
        reader: QueueReader,
        opened: AsyncExitStack,
    ) -> None:
        super().__init__(client, rule, pending.message, reader, opened)
        self._pending = pending

    async def _finish(self) -> None:
        await self._pending.acknowledge()

    async def _give_back(self) -> None:
        await self._pending.release()


def outgoing_of(message: ReceivedMessage) -> OutgoingMessage:
    """A copy of a message to send on: its content, without its requests."""
    return OutgoingMessage(
        body=message.body,
        label=message.label,
        priority=message.priority,
        recoverable=message.recoverable,
        body_type=message.body_type,
        correlation_identifier=message.correlation_identifier,
        application_tag=message.application_tag,
        extension=message.extension,
        response_queue=message.response_queue,
    )
