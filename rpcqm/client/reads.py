"""What a read asks for, and what a queue that is open at a server can do."""

from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from rpcqm.client.message import ReceivedMessage

WHOLE_BODY = 0x400000
"""Bytes to read of a body: no message is larger than 4 MB."""
BEFORE_BODY = 4096
"""Octets of an HTTP request that are read besides a part of its body: most have fewer before it.

Where there are more, less of the body comes.
"""
BEFORE_WHOLE_BODY = 0x60000
"""The same for a whole body: room for the largest envelope (256 KiB) and all headers."""
NO_TRANSACTION = UUID(int=0)

NOT_THERE = (
    "only rpcqm lets its clients receive in a transaction; receive outside of it, and make sure "
    "that what a message causes may happen twice"
)
"""Why a server that needs a transaction coordinator is not asked further."""


class OpenForMove(Protocol):
    """A queue that messages are moved to; `context` is the server's name of it."""

    context: int


class ReadSession(Protocol):
    """A queue that is open at the server, through RemoteRead or qm2qm."""

    async def start(self, read: "Read") -> ReceivedMessage:
        """Peek at a message, or lock one until `end`; waits if `read` has a timeout."""

    async def end(self, request_id: int, acknowledgement: int) -> None:
        """Remove the message that was locked, or give it back."""

    async def cancel(self, request_id: int) -> None:
        """End a read that waits; raises MQError(STATUS_NOT_FOUND) if no such read waits."""

    async def create_cursor(self) -> int:
        """A cursor before the first message."""

    async def close_cursor(self, cursor: int) -> None: ...

    async def enlist(self, transaction: UUID) -> None:
        """Let a transaction of the server receive; MQError if the server cannot."""

    async def end_in(self, request_id: int, acknowledgement: int) -> None:
        """Leave the message that was locked to its transaction, or give it back."""

    async def move(
        self, identifier: int, target: OpenForMove, transaction: UUID = NO_TRANSACTION
    ) -> None: ...

    async def purge(self) -> None: ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Read:
    """One read: `timeout` in milliseconds, `body` the bytes of the body that are wanted."""

    action: int
    request_id: int
    timeout: int = 0
    cursor: int = 0
    identifier: int = 0
    body: int = WHOLE_BODY
    transaction: UUID | None = None

    @property
    def request(self) -> int:
        """Bytes that are wanted of the HTTP request by which a message has come."""
        return self.body + (BEFORE_BODY if self.body < WHOLE_BODY else BEFORE_WHOLE_BODY)
