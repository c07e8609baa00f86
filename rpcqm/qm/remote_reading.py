"""Queues of other queue managers, as this one reads them for its clients.

The service gives the functions that call the other queue manager ([MS-MQQP] 3.2, [MS-MQRR] 3.2).
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol

from rpcqm.base.completion import Completion
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.types.mqvalues import RR_ACK, RR_NACK


class RemotelyRead(Protocol):
    """A message that was read: a UserMessage packet, and `handle`, NULL after a peek."""

    @property
    def handle(self) -> bytes: ...

    @property
    def packet(self) -> bytes: ...

    @property
    def arrival_time(self) -> int:
        """Seconds since 1970."""

    @property
    def lookup_identifier(self) -> int: ...


class RemoteReader(Protocol):
    """A queue of another queue manager that has been taken over.

    Every method may fail with MQError; MQ_ERROR_REMOTE_MACHINE_NOT_AVAILABLE without an answer.
    """

    def read(
        self, action: int, timeout: int, cursor: int, lookup_identifier: int = 0
    ) -> "PendingRead":
        """Begin to read; `timeout` is in milliseconds."""

    def end(self, message: RemotelyRead, acknowledgement: int) -> Completion[None]: ...

    def create_cursor(self) -> Completion[int]: ...

    def close_cursor(self, cursor: int) -> Completion[None]: ...

    def purge(self) -> Completion[None]: ...

    def close(self) -> None:
        """Close the queue over there, without waiting for the answer."""


class PendingRead(NamedTuple):
    """A read that may wait; `cancel` ends it."""

    message: Completion[RemotelyRead]
    cancel: Callable[[], None]


OpenElsewhere = Callable[[str, FormatName, bool, bool, str], Completion[RemoteReader]]
"""Opens a queue of a machine, for receiving or for peeking only, alone or with others, for the SID
of a caller."""


async def read_and_end(
    reader: RemoteReader, pending: PendingRead, keep: Callable[[RemotelyRead], bool]
) -> None:
    """Wait for a message; remove it over there if `keep` says so, else give it back.

    Raises MQError as the other side refuses.
    """
    message = await pending.message
    kept = False
    try:
        kept = keep(message)
    finally:
        if any(message.handle):
            await reader.end(message, RR_ACK if kept else RR_NACK)
