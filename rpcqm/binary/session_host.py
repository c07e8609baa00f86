"""The interface between a session and its host ([MS-MQQB] 3.1.1.3.1)."""

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from rpcqm.codec.layout import NULL_GUID
from rpcqm.codec.packet.acknowledgement import PacketKind
from rpcqm.codec.packet.message import PacketMessage


class SessionState(enum.Enum):
    """SessionState of [MS-MQQB] 3.1.1.3.1 but WAITING_RECONNECT (G150)."""

    WAITING_EC_MSG = "WAITING_EC_MSG"
    WAITING_ECR_MSG = "WAITING_ECR_MSG"
    WAITING_CP_MSG = "WAITING_CP_MSG"
    WAITING_CPR_MSG = "WAITING_CPR_MSG"
    OPEN = "OPEN"
    CLOSED = "CLOSED"


ASKING = frozenset({SessionState.WAITING_ECR_MSG, SessionState.WAITING_CPR_MSG})
"""The states of an initiator that waits for an answer."""

TakeTogether = Callable[[bytes, int], tuple[int, int]]
"""Takes recognised packets from octets that begin at a place.

Returns where the first packet begins that it has not taken, and how many from there on have to come
one by one.
"""


class SessionHost(Protocol):
    """The methods of a host that a session calls; none may raise."""

    def transmit(self, data: bytes) -> None:
        """Send bytes to the peer."""

    def state_changed(self, state: SessionState) -> None:
        """Take the session's new state; `closed` reports CLOSED."""

    def message_received(
        self, kind: PacketKind, message: PacketMessage, recoverable: int | None
    ) -> None:
        """Take a message that has arrived, without its SessionHeader.

        `recoverable` is the number of a recoverable one, to be given to `Session.persisted` once it
        is on the disk or has been refused for good.
        """

    def messages_acknowledged(self, tokens: list[object]) -> None:
        """Note that the peer has our messages: express ones arrived, recoverable ones are on its
        disk."""

    def window_moved(self) -> None:
        """Send more: the window has moved."""

    def closed(self, reason: str) -> None:
        """Close the connection: the session is over."""


@dataclass(frozen=True, slots=True)
class Identities:
    """This queue manager and the expected peer, null for a direct name or an acceptor."""

    local: UUID
    remote: UUID = NULL_GUID
