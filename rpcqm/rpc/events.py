"""What an association reports besides calls.

What was refused comes with the first octets of its PDU, for the logs: its header, but nothing
of what was sealed.
"""

from dataclasses import dataclass

from rpcqm.base.errors import FaultStatus
from rpcqm.base.identity import Identity
from rpcqm.rpc.call import InFlight
from rpcqm.rpc.constants import AuthenticationLevel, RejectReason
from rpcqm.rpc.pdu import ContextAnswer
from rpcqm.rpc.security.logon import NO_CLAIM, LogonClaim

SHOWN = 32
"""How many of the first octets an event has."""


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
    """A handshake has succeeded: who the peer said it was, and which account that is."""

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

    `level` is how it was protected, None if that was not looked at.
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
