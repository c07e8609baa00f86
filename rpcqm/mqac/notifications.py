"""Events that tell of messages which wait to be read ([MC-MQAC] 3.11.4.1.9)."""

from functools import partial
from typing import TYPE_CHECKING

from rpcqm.adm.message import Message
from rpcqm.base.completion import Completion
from rpcqm.base.errors import HResult, MQError
from rpcqm.codec.automation.values import Variant
from rpcqm.codec.types.mqacvalues import MQMSGCURSOR
from rpcqm.dcom.com_object import ComObject
from rpcqm.mqac.arguments import integer
from rpcqm.mqac.reading import Reading

if TYPE_CHECKING:
    from rpcqm.mqac.queue import MSMQQueue

AT_MOST = 16
"""Notifications that one open queue waits with; a program needs one at a time."""


class EventTarget(ComObject):
    """An object that events are raised on: an MSMQEvent."""

    def arrived(self, queue: "MSMQQueue", cursor: int) -> None:
        """Raise Arrived at whoever listens."""
        raise NotImplementedError

    def arrived_error(self, queue: "MSMQQueue", error: int, cursor: int) -> None:
        """Raise ArrivedError with an HRESULT at whoever listens."""
        raise NotImplementedError


class Notifications:
    """Those that one open queue waits with."""

    def __init__(self, queue: "MSMQQueue") -> None:
        self._queue = queue
        self._waiting: set[object] = set()

    @staticmethod
    def cursor_of(argument: Variant | None) -> int:
        """A MQMSGCURSOR; E_INVALIDARG for anything else."""
        try:
            cursor = integer(argument, MQMSGCURSOR.MQMSG_FIRST)
        except MQError as error:
            raise MQError(HResult.E_INVALIDARG, f"Cursor: {error}") from error
        if cursor not in tuple(MQMSGCURSOR):
            raise MQError(HResult.E_INVALIDARG, f"Cursor {cursor}")
        return cursor

    @staticmethod
    def target_of(event: object) -> EventTarget:
        """The event to raise; E_INVALIDARG for NULL, and for an object of somebody else."""
        if not isinstance(event, EventTarget):
            raise MQError(HResult.E_INVALIDARG, "no MSMQEvent of this queue manager")
        return event

    def start(self, reading: Reading, target: EventTarget, cursor: int, timeout: int) -> None:
        """Wait for a message; `target` hears of it, or why there is none."""
        if len(self._waiting) >= AT_MOST:
            raise MQError(HResult.MQ_ERROR_INSUFFICIENT_RESOURCES, "too many notifications")
        tag = object()
        self._waiting.add(tag)
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
        """Whether the queue has not been closed meanwhile; a notification ends once."""
        waiting = tag in self._waiting
        self._waiting.discard(tag)
        return waiting

    def close(self) -> None:
        """Forget them: who closes a queue is told nothing of it any more."""
        self._waiting.clear()


_EMPTY = frozenset({HResult.MQ_ERROR_IO_TIMEOUT, HResult.MQ_ERROR_ILLEGAL_CURSOR_ACTION})
