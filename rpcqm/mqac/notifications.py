"""Events for messages that wait to be read ([MC-MQAC] 3.11.4.1.9)."""

from functools import partial
from typing import TYPE_CHECKING

from rpcqm.adm.message import Message
from rpcqm.base.completion import Completion
from rpcqm.base.errors import HResult, MQError
from rpcqm.codec.automation.type_library import describe
from rpcqm.codec.automation.values import Variant
from rpcqm.codec.types.mqacvalues import MQMSGCURSOR
from rpcqm.codec.types.oautvalues import VT_DISPATCH, VT_I4
from rpcqm.dcom.client import OutboundCalls
from rpcqm.dcom.com_object import ComCall, ComObject, RemoteReference
from rpcqm.dcom.event_interfaces import Methods
from rpcqm.mqac.arguments import integer, signed
from rpcqm.mqac.reading import Reading

if TYPE_CHECKING:
    from rpcqm.mqac.queue import MSMQQueue

AT_MOST = 16
"""Notifications of EnableNotification that one open queue waits with.

A program needs one at a time.

Bound `dcom.notifications_of_an_open_queue` [notifications]: more get
MQ_ERROR_INSUFFICIENT_RESOURCES.
"""


EVENTS = describe("_DMSMQEventEvents").uuid
ARRIVED, ARRIVED_ERROR = (member.dispid for member in describe("_DMSMQEventEvents").members)
_PRIVATE = Methods("IMSMQPrivateEvent", "FireArrivedEvent", "FireArrivedErrorEvent")


class EventTarget(ComObject):
    """An object that events are raised on."""

    def raise_event(self, member: int, *arguments: Variant) -> None:
        """Call an event of _DMSMQEventEvents at all connected clients."""
        raise NotImplementedError

    def forget(self) -> None:
        """Forget a notification: its event will not come any more."""

    def arrived(self, queue: "MSMQQueue", cursor: int) -> None:
        """[MC-MQAC] 3.16.4.4.1 Arrived (Opnum 7)."""
        self.raise_event(ARRIVED, Variant(VT_DISPATCH, queue), Variant(VT_I4, cursor))

    def arrived_error(self, queue: "MSMQQueue", error: int, cursor: int) -> None:
        """[MC-MQAC] 3.16.4.4.2 ArrivedError (Opnum 8)."""
        code = Variant(VT_I4, signed(error))
        self.raise_event(ARRIVED_ERROR, Variant(VT_DISPATCH, queue), code, Variant(VT_I4, cursor))


class ClientEvent(EventTarget):
    """An event object of the client's own, called once: its MSMQEvent or another sink (G293)."""

    def __init__(self, outbound: OutboundCalls, call: ComCall, event: RemoteReference) -> None:
        self._sink = outbound.sink(event.objref, call.call, EVENTS, (_PRIVATE,))

    def connect(self) -> Completion[None]:
        """Connect; CONNECT_E_CANNOTCONNECT if it is unreachable, or takes no events."""
        return self._sink.connect()

    def raise_event(self, member: int, *arguments: Variant) -> None:
        self._sink.fire(member, arguments)
        self._sink.finish()

    def forget(self) -> None:
        self._sink.close()


class Notifications:
    """The notifications of one open queue."""

    def __init__(self, queue: "MSMQQueue") -> None:
        self._queue = queue
        self._waiting: dict[object, EventTarget] = {}

    @staticmethod
    def cursor_of(argument: Variant | None) -> int:
        """A MQMSGCURSOR; E_INVALIDARG for any other number."""
        try:
            cursor = integer(argument, MQMSGCURSOR.MQMSG_FIRST)
        except MQError as error:
            raise MQError(HResult.E_INVALIDARG, f"Cursor: {error}") from error
        if cursor not in tuple(MQMSGCURSOR):
            raise MQError(HResult.E_INVALIDARG, f"Cursor {cursor}")
        return cursor

    @staticmethod
    def target_of(event: object) -> EventTarget | RemoteReference:
        """The event to raise; E_INVALIDARG for NULL, and for another object of ours."""
        if not isinstance(event, EventTarget | RemoteReference):
            raise MQError(HResult.E_INVALIDARG, "no MSMQEvent")
        return event

    def start(self, reading: Reading, target: EventTarget, cursor: int, timeout: int) -> None:
        """Wait for a message; `target` gets the event, or the error."""
        if len(self._waiting) >= AT_MOST:
            raise MQError(HResult.MQ_ERROR_INSUFFICIENT_RESOURCES, "too many notifications")
        tag = object()
        self._waiting[tag] = target
        try:
            watching = reading.watch(tag, cursor, timeout)
        except MQError as error:
            self._failed(tag, target, cursor, timeout, error)
            return
        watching.add_done_callback(partial(self._ended, tag, target, cursor, timeout))

    def _ended(
        self,
        tag: object,
        target: EventTarget,
        cursor: int,
        timeout: int,
        watching: Completion[Message],
    ) -> None:
        error = watching.error
        if error is not None:
            self._failed(tag, target, cursor, timeout, error)
        elif self._is_waiting(tag):
            target.arrived(self._queue, cursor)

    def _failed(
        self, tag: object, target: EventTarget, cursor: int, timeout: int, error: BaseException
    ) -> None:
        if not self._is_waiting(tag):
            return
        status = error.status if isinstance(error, MQError) else HResult.MQ_ERROR
        if not timeout and status in _EMPTY:
            status = HResult.MQ_ERROR_MESSAGE_NOT_FOUND
        target.arrived_error(self._queue, status, cursor)

    def _is_waiting(self, tag: object) -> bool:
        """Whether the queue is still open; a notification ends once."""
        return self._waiting.pop(tag, None) is not None

    def close(self) -> None:
        """Forget all: a client that closes a queue gets no more events of it."""
        for target in self._waiting.values():
            target.forget()
        self._waiting.clear()


_EMPTY = frozenset({HResult.MQ_ERROR_IO_TIMEOUT, HResult.MQ_ERROR_ILLEGAL_CURSOR_ACTION})
