"""Reading an open queue for clients of COM, a local one or one of another queue manager."""

from contextlib import suppress
from typing import Protocol

from rpcqm.adm.descriptor import Cursor, OpenQueueDescriptor
from rpcqm.adm.enums import MessageSeekAction
from rpcqm.adm.message import Message
from rpcqm.adm.transaction import Transaction
from rpcqm.base.completion import Completion, start
from rpcqm.base.errors import HResult, MQError
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.types.mqacvalues import MQMSGCURSOR
from rpcqm.codec.types.mqvalues import ReceiveAction
from rpcqm.dcom.com_object import ComCall
from rpcqm.mqac.machine import Machine
from rpcqm.operations.audit import COM, ordered, ordered_from
from rpcqm.qm import cursors
from rpcqm.qm.access import RECEIVING
from rpcqm.qm.receive_actions import lookup_action
from rpcqm.qm.remote_reading import RemotelyRead, RemoteReader, read_and_end


class Reading(Protocol):
    """The reads of MSMQQueue from its open queue; times are in milliseconds.

    Messages are removed before they are returned, and given back if the caller has gone.
    """

    handle: int

    async def receive(
        self, call: ComCall, timeout: int, at_cursor: bool, transaction: Transaction | None
    ) -> Message: ...
    async def peek(self, call: ComCall, timeout: int, at_cursor: bool) -> Message: ...
    async def peek_next(self, call: ComCall, timeout: int) -> Message: ...
    async def look_up(self, call: ComCall, seek: MessageSeekAction, identifier: int) -> Message: ...
    async def take(
        self,
        call: ComCall,
        seek: MessageSeekAction,
        identifier: int,
        transaction: Transaction | None,
        allow_peek: bool,
    ) -> Message: ...
    def watch(self, tag: object, cursor: int, timeout: int) -> Completion[Message]: ...
    async def reset(self) -> None: ...
    async def purge(self, call: ComCall) -> None: ...
    def close(self) -> None: ...


class LocalReading:
    """A queue of this queue manager, with the cursor of the object that has it open."""

    def __init__(self, machine: Machine, descriptor: OpenQueueDescriptor) -> None:
        self._machine = machine
        self._messages = machine.messages
        self._readers = machine.readers
        self.descriptor = descriptor
        self.handle = descriptor.handle
        self._cursor: Cursor | None = None

    def _at(self, at_cursor: bool) -> Cursor | None:
        return self._own_cursor() if at_cursor else None

    def _own_cursor(self) -> Cursor:
        """The cursor, which most readers do not need."""
        if self._cursor is None:
            self._cursor = self._readers.open_cursor(self.descriptor)
        if self._cursor is None:
            raise MQError(HResult.MQ_ERROR_QUEUE_NOT_AVAILABLE)
        return self._cursor

    async def receive(
        self, call: ComCall, timeout: int, at_cursor: bool, transaction: Transaction | None
    ) -> Message:
        """Lock a message, check that the caller is still there, and only then remove it."""
        cursor = self._at(at_cursor)
        before = None if cursor is None else (cursor.key, cursor.cursor_state)
        beginning = self._messages.dequeue_message_begin(
            self.descriptor, timeout, cursor, (self.handle, call.call), transaction
        )
        message = await self._waited_for(call, beginning)
        await self._end(call, message, transaction)
        if call.call.abandoned and cursor is not None and before is not None:
            cursor.key, cursor.cursor_state = before
        return message

    async def _end(self, call: ComCall, message: Message, transaction: Transaction | None) -> None:
        kept = not call.call.abandoned
        await self._messages.end_read(self.descriptor, message, kept, transaction)

    async def peek(self, call: ComCall, timeout: int, at_cursor: bool) -> Message:
        tag, cursor = (self.handle, call.call), self._at(at_cursor)
        peeking = self._messages.peek_message(self.descriptor, timeout, cursor, tag)
        return await self._waited_for(call, peeking)

    async def peek_next(self, call: ComCall, timeout: int) -> Message:
        tag, cursor = (self.handle, call.call), self._own_cursor()
        peeking = self._messages.peek_next_message(self.descriptor, cursor, timeout, tag)
        return await self._waited_for(call, peeking)

    async def _waited_for(self, call: ComCall, reading: Completion[Message]) -> Message:
        """The message, once it is there; the wait ends with the client, or by its cancel."""
        if not reading.done:
            self._end_with_caller(call)
        return await reading

    def _end_with_caller(self, call: ComCall) -> None:
        tag = (self.handle, call.call)

        def cancel() -> None:
            self._readers.cancel_wait(self.descriptor, tag)

        call.call.on_abandoned(cancel)
        call.call.on_cancelled(cancel)

    async def look_up(self, call: ComCall, seek: MessageSeekAction, identifier: int) -> Message:
        return await self._messages.read_message_by_lookup_identifier(
            self.descriptor, identifier, True, seek
        )

    async def take(
        self,
        call: ComCall,
        seek: MessageSeekAction,
        identifier: int,
        transaction: Transaction | None,
        allow_peek: bool,
    ) -> Message:
        message = await self._messages.read_message_by_lookup_identifier(
            self.descriptor, identifier, False, seek, transaction, two_phase_read=True
        )
        if allow_peek and transaction is not None:
            self._messages.allow_peek(message)
        await self._end(call, message, transaction)
        return message

    def watch(self, tag: object, cursor: int, timeout: int) -> Completion[Message]:
        """Wait for a message (MQMSGCURSOR) outside of any call; closing the queue ends the wait."""
        descriptor, under = self.descriptor, (self.handle, tag)
        if cursor == MQMSGCURSOR.MQMSG_NEXT:
            own = self._own_cursor()
            return self._messages.peek_next_message(descriptor, own, timeout, under)
        at = self._at(cursor == MQMSGCURSOR.MQMSG_CURRENT)
        return self._messages.peek_message(descriptor, timeout, at, under)

    async def reset(self) -> None:
        if self._cursor is not None:
            cursors.initialize(self._cursor)

    async def purge(self, call: ComCall) -> None:
        queue, access = self.descriptor.queue_reference, self.descriptor.access_type
        if queue is None:
            gone = HResult.MQ_ERROR_INVALID_HANDLE
            denied = HResult.MQ_ERROR_ACCESS_DENIED
            raise MQError(gone if access in RECEIVING else denied, "the queue has been deleted")
        with ordered_from(call.peer, COM):
            purged = self._machine.orders.purge(call.identity, queue, access)
        await purged

    def close(self) -> None:
        self._machine.opening.close_queue(self.descriptor)


class RemoteReading:
    """A queue of another queue manager, read with this one's account there (G86)."""

    def __init__(
        self, reader: RemoteReader, handle: int, name: FormatName, receiving: bool
    ) -> None:
        self._reader = reader
        self._name = name
        self._receiving = receiving
        self._cursor = 0
        self.handle = handle

    async def receive(
        self, call: ComCall, timeout: int, at_cursor: bool, transaction: Transaction | None
    ) -> Message:
        _refuse(transaction)
        cursor = await self._at(at_cursor)
        return await self._read(call, ReceiveAction.MQ_ACTION_RECEIVE, timeout, cursor)

    async def peek(self, call: ComCall, timeout: int, at_cursor: bool) -> Message:
        cursor = await self._at(at_cursor)
        return await self._read(call, ReceiveAction.MQ_ACTION_PEEK_CURRENT, timeout, cursor)

    async def peek_next(self, call: ComCall, timeout: int) -> Message:
        if not self._cursor:
            raise MQError(HResult.MQ_ERROR_ILLEGAL_CURSOR_ACTION)
        return await self._read(call, ReceiveAction.MQ_ACTION_PEEK_NEXT, timeout, self._cursor)

    async def look_up(self, call: ComCall, seek: MessageSeekAction, identifier: int) -> Message:
        action, identifier = lookup_action(seek, identifier, peek=True)
        return await self._read(call, action, 0, 0, identifier)

    async def take(
        self,
        call: ComCall,
        seek: MessageSeekAction,
        identifier: int,
        transaction: Transaction | None,
        allow_peek: bool,
    ) -> Message:
        _refuse(transaction)
        action, identifier = lookup_action(seek, identifier, peek=False)
        return await self._read(call, action, 0, 0, identifier)

    async def _at(self, at_cursor: bool) -> int:
        """The other side's number of the cursor, created at its first use; 0 without a cursor."""
        if at_cursor and not self._cursor:
            self._cursor = await self._reader.create_cursor()
        return self._cursor if at_cursor else 0

    async def _read(
        self, call: ComCall, action: int, timeout: int, cursor: int, identifier: int = 0
    ) -> Message:
        pending = self._reader.read(action, timeout, cursor, identifier)
        call.call.on_abandoned(pending.cancel)
        call.call.on_cancelled(pending.cancel)
        read: list[Message] = []

        def keep(found: RemotelyRead) -> bool:
            read.append(_message(found))
            return not call.call.abandoned

        await read_and_end(self._reader, pending, keep)
        return read[0]

    def watch(self, tag: object, cursor: int, timeout: int) -> Completion[Message]:
        """Wait for a message (MQMSGCURSOR) outside of any call; closing the queue ends the wait."""
        return start(self._watch(cursor, timeout))

    async def _watch(self, cursor: int, timeout: int) -> Message:
        action, number = ReceiveAction.MQ_ACTION_PEEK_CURRENT, 0
        if cursor == MQMSGCURSOR.MQMSG_NEXT:
            action, number = ReceiveAction.MQ_ACTION_PEEK_NEXT, self._cursor
        if cursor != MQMSGCURSOR.MQMSG_FIRST:
            number = await self._at(True)
        return _message(await self._reader.read(action, timeout, number).message)

    async def reset(self) -> None:
        cursor, self._cursor = self._cursor, 0
        if cursor:
            with suppress(MQError):  # the cursor is forgotten here in any case
                await self._reader.close_cursor(cursor)

    async def purge(self, call: ComCall) -> None:
        about = str(self._name)
        with ordered_from(call.peer, COM), ordered(call.identity, "purge", about):
            if not self._receiving:
                raise MQError(HResult.MQ_ERROR_ACCESS_DENIED, "not opened for receiving")
        await self._reader.purge()

    def close(self) -> None:
        self._reader.close()


def _refuse(transaction: Transaction | None) -> None:
    if transaction is not None:
        raise MQError(HResult.MQ_ERROR_TRANSACTION_USAGE, "not from elsewhere")


def _message(found: RemotelyRead) -> Message:
    message = Message(found.packet)
    message.arrival_time = found.arrival_time * 1000
    message.lookup_identifier = found.lookup_identifier
    return message
