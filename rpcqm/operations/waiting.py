"""Looking at messages that may come yet, and receiving an answer: both wait for some time."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable

from rpcqm.adm.descriptor import OpenQueueDescriptor
from rpcqm.adm.enums import PositionState
from rpcqm.adm.message import Message
from rpcqm.base.completion import Completion, completed
from rpcqm.base.errors import HResult, MQError
from rpcqm.base.identity import Identity
from rpcqm.base.settling import settled
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.codec.types.mqvalues import QueueAccessType
from rpcqm.operations.messages import Measure, MessageOperations, Page
from rpcqm.qm.engine import QueueManagerEngine
from rpcqm.qm.leases import BRIEFLY, LeasedMessage, require_logon

READ_AT_ONCE = 64
"""Messages that are looked through for an answer before others are served."""

Still = Callable[[], bool]
"""Whether who asks may still log on."""


class Watch:
    """The keys of messages that come to a queue, or are free again, in the next `wait` ms."""

    def __init__(self, engine: QueueManagerEngine, descriptor: OpenQueueDescriptor, wait: int):
        self._engine, self._descriptor = engine, descriptor
        self._until = engine.clock.now() + wait
        self._keys: deque[int] = deque()
        self._over = False
        self._error: BaseException | None = None
        self._woken: Completion[None] | None = None
        self._listen()

    async def next(self) -> list[int]:
        """The next ones, at least one; none when the time is over. Raises MQError."""
        while not self._keys and not self._over:
            self._woken = Completion()
            await settled(self._woken)
        if self._error is not None:
            raise self._error
        keys = list(self._keys)
        self._keys.clear()
        return keys

    def _listen(self) -> None:
        left = self._until - self._engine.clock.now()
        try:
            wait = self._engine.readers.wait_for_new_message
            wait(self._descriptor, left, False, None, None, self._take).add_done_callback(
                self._ended
            )
        except MQError as error:
            self._stop(error)

    def _take(self, key: int) -> Completion[Message]:
        self._keys.append(key)
        queue = self._descriptor.queue_reference
        assert queue is not None
        return completed(self._engine.positions.message_at(queue, key))

    def _ended(self, outcome: Completion[Message]) -> None:
        if outcome.error is None:
            self._listen()
        else:
            self._stop(outcome.error)
        if self._woken is not None and not self._woken.done:
            self._woken.succeed(None)

    def _stop(self, error: BaseException) -> None:
        self._over = True
        if not (isinstance(error, MQError) and error.status is HResult.MQ_ERROR_IO_TIMEOUT):
            self._error = error


class WaitingOperations:
    """Who may peek or receive may wait for it; the right is looked at again for what is given."""

    def __init__(self, engine: QueueManagerEngine, messages: MessageOperations) -> None:
        self._engine = engine
        self._messages = messages

    async def peek(
        self,
        identity: Identity,
        name: FormatName,
        after: int | None,
        limit: int,
        wait: int,
        still: Still,
        measure: Measure | None = None,
    ) -> Page:
        """Look at messages as `MessageOperations.peek`, and for up to `wait` ms until one comes."""
        page = self._messages.peek(identity, name, after, limit, measure=measure)
        if page.messages or wait <= 0:
            return page
        access = QueueAccessType.PEEK_ACCESS
        with self._messages.opened_to_read(identity, name, access) as (descriptor, _):
            watch = Watch(self._engine, descriptor, wait)
            while not page.messages and await watch.next():
                require_logon(still)
                page = self._messages.peek(identity, name, after, limit, measure=measure)
        return page

    async def receive_answer(
        self,
        identity: Identity,
        name: FormatName,
        correlation_identifier: MessageIdentifier,
        lease: int,
        wait: int,
        still: Still,
    ) -> list[LeasedMessage]:
        """The first message with that correlation identifier, under a lease of `lease` ms.

        Waits up to `wait` ms for it. A lease of 0 removes it at once. Raises as `Leases.hold`.
        """
        access = QueueAccessType.RECEIVE_ACCESS
        with self._messages.opened_to_read(identity, name, access) as (descriptor, _):
            async for key in self._there_and_coming(descriptor, wait):
                if self._answers(descriptor, key, correlation_identifier):
                    require_logon(still)
                    return [await self._receive(identity, name, key, lease)]
        return []

    async def _there_and_coming(
        self, descriptor: OpenQueueDescriptor, wait: int
    ) -> AsyncIterator[int]:
        """The keys of what is there, and of what comes in the next `wait` ms."""
        watch = Watch(self._engine, descriptor, wait)
        queue = descriptor.queue_reference
        assert queue is not None
        last, after = queue.message_position_list.last(), None
        while last is not None and (after is None or after < last):
            keys = queue.message_position_list.page(after, READ_AT_ONCE)
            for key in keys:
                yield key
            after = keys[-1] if keys else last
            await asyncio.sleep(0)
        while came := await watch.next():
            for key in came:
                yield key

    def _answers(
        self, descriptor: OpenQueueDescriptor, key: int, wanted: MessageIdentifier
    ) -> bool:
        """Whether a message is there, nobody holds it, and it has that correlation identifier."""
        queue = descriptor.queue_reference
        if queue is None or queue.message_position_list.state(key) is not PositionState.AVAILABLE:
            return False
        message = self._engine.positions.message_at(queue, key)
        return message.attributes.correlation_identifier == wanted

    async def _receive(
        self, identity: Identity, name: FormatName, key: int, lease: int
    ) -> LeasedMessage:
        held = self._engine.leases.hold(name, identity, key, lease or BRIEFLY)
        (received,) = held.received
        if lease:
            return received
        assert received.lease is not None
        await settled(self._engine.leases.complete(identity, [received.lease.identifier]))
        return LeasedMessage(received.message, received.delivery_count, None)
