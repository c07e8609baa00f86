"""The events that an association reports besides calls.

Events of refusals hold the first octets of the PDU, for logs: its header, and nothing that was
sealed.
"""

from dataclasses import dataclass

from rpcqm.base.errors import FaultStatus
from rpcqm.base.identity import Identity
from rpcqm.rpc.call import InFlight
from rpcqm.rpc.constants import AuthenticationLevel, RejectReason
from rpcqm.rpc.pdu import ContextAnswer
from rpcqm.rpc.security.logon import NO_CLAIM, LogonClaim

SHOWN = 32
"""The number of first octets that an event holds."""


@dataclass(frozen=True, slots=True)
class BindReceived:
    """A bind or an alter_context was answered; `answers` are its results."""

    answers: tuple[ContextAnswer, ...]


@dataclass(frozen=True, slots=True)
class BindRefused:
    """A bind was answered with a bind_nak, and the connection ends."""

    reason: RejectReason
    text: str
    octets: bytes
    claim: LogonClaim = NO_CLAIM
    level: AuthenticationLevel | None = None


@dataclass(frozen=True, slots=True)
class LoggedOn:
    """A handshake has succeeded: the claimed name, and the account that was authenticated."""

    identity: Identity
    level: AuthenticationLevel
    claim: LogonClaim


@dataclass(frozen=True, slots=True)
class AuthenticationFailed:
    """A later leg failed; requests under it are refused."""

    text: str
    octets: bytes
    claim: LogonClaim = NO_CLAIM
    level: AuthenticationLevel | None = None


@dataclass(frozen=True, slots=True)
class CallRefused:
    """A request was answered with a fault before it became a call.

    `level` is its protection, or None if that was not examined.
    """

    call_id: int
    opnum: int
    status: FaultStatus
    text: str
    octets: bytes
    level: AuthenticationLevel | None = None


@dataclass(frozen=True, slots=True)
class CallCancelled:
    """The client asked for a call to be cancelled; its callbacks have run."""

    call: InFlight


@dataclass(frozen=True, slots=True)
class CallOrphaned:
    """The client wants no answer to a call any more; its callbacks have run."""

    call: InFlight


@dataclass(frozen=True, slots=True)
class CancelIgnored:
    """A cancel or orphaned PDU without a signature meant a call that is signed."""

    call: InFlight


@dataclass(frozen=True, slots=True)
class ProtocolError:
    """The peer broke the protocol, and the connection ends; `octets` began the PDU."""

    text: str
    octets: bytes


Event = (
    BindReceived
    | BindRefused
    | LoggedOn
    | AuthenticationFailed
    | CallRefused
    | CallCancelled
    | CallOrphaned
    | CancelIgnored
    | ProtocolError
)
