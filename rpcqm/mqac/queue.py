"""MSMQQueue: an open queue ([MC-MQAC] 3.11)."""

from collections.abc import Awaitable
from typing import NamedTuple

from rpcqm.adm.descriptor import OpenQueueDescriptor
from rpcqm.adm.enums import MessageSeekAction
from rpcqm.adm.message import Message
from rpcqm.adm.transaction import Transaction
from rpcqm.base.completion import Completion, start
from rpcqm.base.errors import HResult, MQError
from rpcqm.codec.automation.values import Variant
from rpcqm.codec.types.mqacvalues import MQTRANSACTION
from rpcqm.codec.types.mqvalues import VARENUM, QueueAccessType
from rpcqm.dcom.com_object import ComCall, ComObject, RemoteReference
from rpcqm.mqac._message_properties import not_implemented
from rpcqm.mqac.arguments import boolean, integer, lookup_identifier, milliseconds, plain, signed
from rpcqm.mqac.machine import Machine
from rpcqm.mqac.message import MSMQMessage
from rpcqm.mqac.named_queues import SendingTarget
from rpcqm.mqac.notifications import ClientEvent, Notifications
from rpcqm.mqac.reading import LocalReading, Reading
from rpcqm.mqac.transaction import transaction_scope

_RECEIVING = frozenset({QueueAccessType.RECEIVE_ACCESS, QueueAccessType.RECEIVE_ADMIN_ACCESS})
_READING = _RECEIVING | {QueueAccessType.PEEK_ACCESS, QueueAccessType.PEEK_ADMIN_ACCESS}

Argument = Variant | None
Answer = MSMQMessage | None

_NOT_FOUND = frozenset(
    {
        HResult.MQ_ERROR_MESSAGE_NOT_FOUND,
        HResult.MQ_ERROR_MESSAGE_LOCKED_UNDER_TRANSACTION,
    }
)
"""Errors of a lookup whose message is not there, or is locked by another reader."""


_EMPTY = frozenset({HResult.MQ_ERROR_IO_TIMEOUT, HResult.MQ_ERROR_MESSAGE_NOT_FOUND})
"""Errors of a read from a queue without a message."""


class Parts(NamedTuple):
    """The parts of a message that a client gets."""

    destination: bool
    body: bool
    connector: bool


class Wanted(NamedTuple):
    """The arguments of lookups, in the order of the IDL.

    `parts` is checked before anything is read: a wrong argument must not lose the message.
    """

    destination: Argument
    body: Argument
    connector: Argument = None

    def parts(self) -> Parts:
        """Raises DISP_E_TYPEMISMATCH for an argument that is neither true nor false."""
        destination = boolean(self.destination, False)
        return Parts(destination, boolean(self.body, True), boolean(self.connector, False))


class Timed(NamedTuple):
    """The arguments of reads that can wait, in the order of the IDL; -1 is INFINITE."""

    destination: Argument
    body: Argument
    timeout: Argument
    connector: Argument = None

    def parts(self) -> Parts:
        """As those of `Wanted`."""
        return Wanted(self.destination, self.body, self.connector).parts()

    def milliseconds(self) -> int:
        return milliseconds(self.timeout)


class OpenedQueue(NamedTuple):
    """The access and share mode of an open queue, and its reader; a local one has a descriptor."""

    access: int
    share_mode: int
    queue_info: ComObject
    reading: Reading


class MSMQQueue(SendingTarget):
    """An open queue; without `opened`, a blank one that a client has created itself."""

    INTERFACES = ("IMSMQQueue4", "IMSMQQueue3", "IMSMQQueue2", "IMSMQQueue")

    WAITING = frozenset(
        {
            *("Receive", "ReceiveCurrent", "Peek", "PeekCurrent", "PeekNext"),
            *("Receive_v1", "ReceiveCurrent_v1", "Peek_v1", "PeekCurrent_v1", "PeekNext_v1"),
        }
    )

    def __init__(self, machine: Machine, opened: OpenedQueue | None = None) -> None:
        self._machine = machine
        self._opened = opened
        self.is_closed = opened is None
        self._notifications = Notifications(self)
        if opened is not None:
            machine.closers[opened.reading.handle] = self.released

    @property
    def open_queue_descriptor(self) -> OpenQueueDescriptor | None:
        opened = self._opened
        if opened is None or self.is_closed or not isinstance(opened.reading, LocalReading):
            return None
        return opened.reading.descriptor

    # States ([MC-MQAC] 3.11.1.1)

    def _initialized(self) -> OpenedQueue:
        if self._opened is None:
            raise MQError(HResult.OLE_E_BLANK)
        return self._opened

    def _open(self) -> OpenedQueue:
        """The open queue; MQ_ERROR_INVALID_HANDLE once it is closed (G273)."""
        opened = self._initialized()
        if self.is_closed:
            raise MQError(HResult.MQ_ERROR_INVALID_HANDLE, "the queue is closed")
        return opened

    def _open_for(self, accesses: frozenset[QueueAccessType]) -> Reading:
        opened = self._open()
        if opened.access not in accesses:
            raise MQError(HResult.MQ_ERROR_ACCESS_DENIED, "opened for something else")
        self._machine.held.check(self._owner)
        return opened.reading

    @property
    def _owner(self) -> str:
        """The SID of the caller who has opened the queue."""
        opened = self._open()
        return self._machine.openers.get(opened.reading.handle, "")

    # Properties

    def get_Access(self, call: ComCall) -> int:
        """[MC-MQAC] 3.11.4.1.1 Access (Opnum 7)."""
        return self._open().access

    def get_ShareMode(self, call: ComCall) -> int:
        """[MC-MQAC] 3.11.4.1.2 ShareMode (Opnum 8)."""
        return self._open().share_mode

    def get_QueueInfo(self, call: ComCall) -> ComObject:
        """[MC-MQAC] 3.11.4.1.3 QueueInfo (Opnum 9)."""
        return self._open().queue_info

    def get_Handle(self, call: ComCall) -> int:
        """[MC-MQAC] 3.11.4.1.4 Handle (Opnum 10)."""
        return signed(self._open().reading.handle)

    def get_Handle2(self, call: ComCall) -> Variant:
        """[MC-MQAC] 3.11.4.1.20 Handle2 (Opnum 26)."""
        return Variant(VARENUM.VT_I8, self._open().reading.handle)

    def get_IsOpen(self, call: ComCall) -> int:
        """[MC-MQAC] 3.11.4.1.5 IsOpen (Opnum 11)."""
        return int(self.get_IsOpen2(call))

    def get_IsOpen2(self, call: ComCall) -> bool:
        """[MC-MQAC] 3.11.4.1.32 IsOpen2 (Opnum 38)."""
        self._initialized()
        return not self.is_closed

    get_Properties = not_implemented

    # Closing

    def Close(self, call: ComCall) -> None:
        """[MC-MQAC] 3.11.4.1.6 Close (Opnum 12)."""
        self._open()
        self.released()

    def released(self) -> None:
        if self._opened is None or self.is_closed:
            return
        self.is_closed = True
        self._machine.openers.pop(self._opened.reading.handle, None)
        self._machine.closers.pop(self._opened.reading.handle, None)
        self._notifications.close()
        self._opened.reading.close()

    # Receiving: the parameters of each method are those of the IDL

    async def Receive_v1(self, call: ComCall, Transaction: Argument, *others: Argument) -> Answer:
        """[MC-MQAC] 3.11.4.1.7 Receive_v1 (Opnum 13)."""
        return await self._receive(call, False, Transaction, Timed(*others))

    async def Receive(self, call: ComCall, Transaction: Argument, *others: Argument) -> Answer:
        """The first message, whatever the cursor (G274).

        Source: [MC-MQAC] 3.11.4.1.14 Receive (Opnum 20).
        """
        return await self._receive(call, False, Transaction, Timed(*others))

    async def ReceiveCurrent_v1(
        self, call: ComCall, Transaction: Argument, *others: Argument
    ) -> Answer:
        """[MC-MQAC] 3.11.4.1.11 ReceiveCurrent_v1 (Opnum 17)."""
        return await self._receive(call, True, Transaction, Timed(*others))

    async def ReceiveCurrent(
        self, call: ComCall, Transaction: Argument, *others: Argument
    ) -> Answer:
        """[MC-MQAC] 3.11.4.1.16 ReceiveCurrent (Opnum 22)."""
        return await self._receive(call, True, Transaction, Timed(*others))

    async def _receive(
        self, call: ComCall, at_cursor: bool, transaction: Argument, asked: Timed
    ) -> Answer:
        reading = self._open_for(_RECEIVING)
        joined = self._transaction(call, transaction)
        parts, milliseconds = asked.parts(), asked.milliseconds()
        receiving = reading.receive(call, milliseconds, at_cursor, joined)
        return await self._answer(receiving, milliseconds, parts, at_cursor)

    def _transaction(self, call: ComCall, argument: Argument) -> Transaction | None:
        """The transaction to receive in; None for a single message."""
        given = plain(argument)
        single = given is not None and not isinstance(given.value, ComObject)
        if single and integer(given, 0) == MQTRANSACTION.MQ_SINGLE_MESSAGE:
            return None
        return transaction_scope(self._machine.transactions, call.identity, argument).transaction

    async def _answer(
        self, reading: Awaitable[Message], timeout: int, parts: Parts, at_cursor: bool = False
    ) -> Answer:
        """The message that was read; the answer without one depends on a switch (G270)."""
        try:
            message = await reading
        except MQError as error:
            empty = error.status in _EMPTY or (at_cursor and not timeout and _is_in_use(error))
            if empty and self._machine.empty_is_nothing():
                return None
            if empty and not timeout:
                raise MQError(HResult.MQ_ERROR_MESSAGE_NOT_FOUND) from error
            raise
        return self._made(message, parts)

    def _made(self, message: Message, parts: Parts) -> MSMQMessage:
        owner = "" if self.is_closed else self._owner
        return MSMQMessage.of_received(
            self._machine,
            message,
            want_destination=parts.destination,
            want_body=parts.body,
            want_connector=parts.connector,
            owner=owner,
        )

    # Peeking

    async def Peek_v1(self, call: ComCall, *asked: Argument) -> Answer:
        """[MC-MQAC] 3.11.4.1.8 Peek_v1 (Opnum 14)."""
        return await self._peek(call, False, Timed(*asked))

    async def Peek(self, call: ComCall, *asked: Argument) -> Answer:
        """The first message, whatever the cursor (G274); [MC-MQAC] 3.11.4.1.15 Peek (Opnum 21)."""
        return await self._peek(call, False, Timed(*asked))

    async def PeekCurrent_v1(self, call: ComCall, *asked: Argument) -> Answer:
        """[MC-MQAC] 3.11.4.1.13 PeekCurrent_v1 (Opnum 19)."""
        return await self._peek(call, True, Timed(*asked))

    async def PeekCurrent(self, call: ComCall, *asked: Argument) -> Answer:
        """[MC-MQAC] 3.11.4.1.18 PeekCurrent (Opnum 24)."""
        return await self._peek(call, True, Timed(*asked))

    async def _peek(self, call: ComCall, at_cursor: bool, asked: Timed) -> Answer:
        reading = self._open_for(_READING)
        parts, milliseconds = asked.parts(), asked.milliseconds()
        peeking = reading.peek(call, milliseconds, at_cursor)
        return await self._answer(peeking, milliseconds, parts, at_cursor)

    async def PeekNext_v1(self, call: ComCall, *asked: Argument) -> Answer:
        """[MC-MQAC] 3.11.4.1.12 PeekNext_v1 (Opnum 18)."""
        return await self._peek_next(call, Timed(*asked))

    async def PeekNext(self, call: ComCall, *asked: Argument) -> Answer:
        """[MC-MQAC] 3.11.4.1.17 PeekNext (Opnum 23)."""
        return await self._peek_next(call, Timed(*asked))

    async def _peek_next(self, call: ComCall, asked: Timed) -> Answer:
        reading = self._open_for(_READING)
        parts, milliseconds = asked.parts(), asked.milliseconds()
        return await self._answer(reading.peek_next(call, milliseconds), milliseconds, parts)

    async def Reset(self, call: ComCall) -> None:
        """[MC-MQAC] 3.11.4.1.10 Reset (Opnum 16)."""
        await self._open().reading.reset()

    # By lookup identifier

    async def ReceiveByLookupId(
        self, call: ComCall, LookupId: Argument, Transaction: Argument, *wanted: Argument
    ) -> Answer:
        """[MC-MQAC] 3.11.4.1.21 ReceiveByLookupId (Opnum 27)."""
        identifier = lookup_identifier(LookupId)
        return await self._take(call, _CURRENT, identifier, Transaction, Wanted(*wanted))

    async def ReceiveByLookupIdAllowPeek(
        self, call: ComCall, LookupId: Argument, Transaction: Argument, *wanted: Argument
    ) -> Answer:
        """As ReceiveByLookupId; peeks find the message until its transaction has ended (G274).

        Source: [MC-MQAC] 3.11.4.1.33 ReceiveByLookupIdAllowPeek (Opnum 39).
        """
        identifier = lookup_identifier(LookupId)
        return await self._take(
            call, _CURRENT, identifier, Transaction, Wanted(*wanted), allow_peek=True
        )

    async def ReceiveNextByLookupId(
        self, call: ComCall, LookupId: Argument, Transaction: Argument, *wanted: Argument
    ) -> Answer:
        """[MC-MQAC] 3.11.4.1.22 ReceiveNextByLookupId (Opnum 28)."""
        identifier = lookup_identifier(LookupId)
        return await self._take(call, _NEXT, identifier, Transaction, Wanted(*wanted))

    async def ReceivePreviousByLookupId(
        self, call: ComCall, LookupId: Argument, Transaction: Argument, *wanted: Argument
    ) -> Answer:
        """[MC-MQAC] 3.11.4.1.23 ReceivePreviousByLookupId (Opnum 29)."""
        identifier = lookup_identifier(LookupId)
        return await self._take(call, _PREVIOUS, identifier, Transaction, Wanted(*wanted))

    async def ReceiveFirstByLookupId(
        self, call: ComCall, Transaction: Argument, *wanted: Argument
    ) -> Answer:
        """[MC-MQAC] 3.11.4.1.24 ReceiveFirstByLookupId (Opnum 30)."""
        return await self._take(call, _FIRST, 0, Transaction, Wanted(*wanted))

    async def ReceiveLastByLookupId(
        self, call: ComCall, Transaction: Argument, *wanted: Argument
    ) -> Answer:
        """[MC-MQAC] 3.11.4.1.25 ReceiveLastByLookupId (Opnum 31)."""
        return await self._take(call, _LAST, 0, Transaction, Wanted(*wanted))

    async def _take(
        self,
        call: ComCall,
        seek: MessageSeekAction,
        identifier: int,
        transaction: Argument,
        wanted: Wanted,
        allow_peek: bool = False,
    ) -> MSMQMessage:
        reading = self._open_for(_RECEIVING)
        joined, parts = self._transaction(call, transaction), wanted.parts()
        try:
            message = await reading.take(call, seek, identifier, joined, allow_peek)
        except MQError as error:
            raise _lookup_error(error) from error
        return self._made(message, parts)

    async def PeekByLookupId(self, call: ComCall, LookupId: Argument, *wanted: Argument) -> Answer:
        """[MC-MQAC] 3.11.4.1.26 PeekByLookupId (Opnum 32)."""
        return await self._look_up(call, _CURRENT, lookup_identifier(LookupId), Wanted(*wanted))

    async def PeekNextByLookupId(
        self, call: ComCall, LookupId: Argument, *wanted: Argument
    ) -> Answer:
        """[MC-MQAC] 3.11.4.1.27 PeekNextByLookupId (Opnum 33)."""
        return await self._look_up(call, _NEXT, lookup_identifier(LookupId), Wanted(*wanted))

    async def PeekPreviousByLookupId(
        self, call: ComCall, LookupId: Argument, *wanted: Argument
    ) -> Answer:
        """[MC-MQAC] 3.11.4.1.28 PeekPreviousByLookupId (Opnum 34)."""
        return await self._look_up(call, _PREVIOUS, lookup_identifier(LookupId), Wanted(*wanted))

    async def PeekFirstByLookupId(self, call: ComCall, *wanted: Argument) -> Answer:
        """[MC-MQAC] 3.11.4.1.29 PeekFirstByLookupId (Opnum 35)."""
        return await self._look_up(call, _FIRST, 0, Wanted(*wanted))

    async def PeekLastByLookupId(self, call: ComCall, *wanted: Argument) -> Answer:
        """[MC-MQAC] 3.11.4.1.30 PeekLastByLookupId (Opnum 36)."""
        return await self._look_up(call, _LAST, 0, Wanted(*wanted))

    async def _look_up(
        self, call: ComCall, seek: MessageSeekAction, identifier: int, wanted: Wanted
    ) -> MSMQMessage:
        reading, parts = self._open_for(_READING), wanted.parts()
        try:
            message = await reading.look_up(call, seek, identifier)
        except MQError as error:
            if error.status is HResult.MQ_ERROR_TRANSACTION_USAGE:  # another reader has locked it
                raise MQError(HResult.MQ_ERROR_MESSAGE_NOT_FOUND) from error
            raise _lookup_error(error) from error
        return self._made(message, parts)

    # Other methods

    async def Purge(self, call: ComCall) -> None:
        """Purge, if the queue was opened for receiving, which the orders check for every door.

        Source: [MC-MQAC] 3.11.4.1.31 Purge (Opnum 37).
        """
        await self._open_for(frozenset(QueueAccessType)).purge(call)

    def EnableNotification(
        self, call: ComCall, Event: object, Cursor: Argument, ReceiveTimeout: Argument
    ) -> Completion[None] | None:
        """Raise Arrived, once, when there is a message, also for callers who may receive (G275).

        The event is one of ours, or the client's own (G293). Source: [MC-MQAC] 3.11.4.1.9
        EnableNotification (Opnum 15).
        """
        cursor = Notifications.cursor_of(Cursor)
        self._open()
        event = Notifications.target_of(Event)
        reading = self._open_for(_READING)
        timeout = milliseconds(ReceiveTimeout)
        if isinstance(event, RemoteReference):
            return start(self._notify_client(call, event, cursor, timeout))
        self._notifications.start(reading, event, cursor, timeout)
        return None

    async def _notify_client(
        self, call: ComCall, event: RemoteReference, cursor: int, timeout: int
    ) -> None:
        outbound = self._machine.outbound
        if outbound is None:
            raise MQError(HResult.E_INVALIDARG, "no MSMQEvent of this queue manager")
        target = ClientEvent(outbound, call, event)
        await target.connect()
        try:
            reading = self._open_for(_READING)  # the queue may have been closed meanwhile
            self._notifications.start(reading, target, cursor, timeout)
        except MQError:
            target.forget()
            raise


_CURRENT = MessageSeekAction.SEEK_CURRENT
_NEXT = MessageSeekAction.SEEK_NEXT
_PREVIOUS = MessageSeekAction.SEEK_PREVIOUS
_FIRST = MessageSeekAction.SEEK_FIRST
_LAST = MessageSeekAction.SEEK_LAST


def _is_in_use(error: MQError) -> bool:
    """Whether another call waits with the cursor; this one does not wait, and finds nothing."""
    return error.status is HResult.MQ_ERROR_ILLEGAL_CURSOR_ACTION


def _lookup_error(error: MQError) -> MQError:
    return MQError(HResult.MQ_ERROR_MESSAGE_NOT_FOUND) if error.status in _NOT_FOUND else error
