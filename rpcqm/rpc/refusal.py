"""The errors of receiving a PDU: one ends the connection, the other refuses one request."""

from rpcqm.base.errors import DecodeError, FaultStatus, HResult, NtStatus
from rpcqm.rpc.constants import AuthenticationLevel, PduType, RejectReason
from rpcqm.rpc.pdu import PaddingError


class ConnectionBroken(Exception):
    """The PDU at hand ends the connection, after a fault (for a bind, after a bind_nak).

    `call_id` and `context_id` are what the fault names, the PDU's own call by default;
    `executed` is False when the fault says that nothing was done.
    """

    def __init__(
        self,
        text: str,
        status: FaultStatus | HResult | NtStatus = FaultStatus.nca_s_proto_error,
        *,
        call_id: int | None = None,
        context_id: int = 0,
        executed: bool = True,
        reject: RejectReason = RejectReason.REASON_NOT_SPECIFIED,
    ) -> None:
        super().__init__(text)
        self.text = text
        self.status = status
        self.call_id = call_id
        self.context_id = context_id
        self.executed = executed
        self.reject = reject


class RequestRefused(Exception):
    """A request that is answered with a fault; the connection goes on.

    `level` is its protection, or None if that was not examined.
    """

    def __init__(
        self,
        opnum: int,
        context_id: int,
        status: FaultStatus,
        text: str,
        level: AuthenticationLevel | None = None,
    ) -> None:
        super().__init__(text)
        self.opnum = opnum
        self.context_id = context_id
        self.status = status
        self.text = text
        self.level = level


def unreadable(error: DecodeError, ptype: int) -> ConnectionBroken:
    """The error that ends the connection for an unreadable PDU, with the statuses of Windows."""
    status = FaultStatus.nca_s_proto_error
    if isinstance(error, PaddingError) and ptype == PduType.auth3:
        status = FaultStatus.nca_s_fault_remote_no_memory
    return ConnectionBroken(
        error.reason,
        status,
        executed=ptype not in (PduType.alter_context, PduType.auth3),
        reject=RejectReason.PROTOCOL_VERSION_NOT_SUPPORTED,
    )
