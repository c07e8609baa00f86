"""Errors as data: refusals of a queue manager, an RPC peer or a decoder, with their codes.

Their texts may quote octets of strangers; long ones are cut.
"""

from rpcqm.base.fault_status import FaultStatus
from rpcqm.base.hresult import HResult, NtStatus
from rpcqm.base.text import cut

__all__ = ["DecodeError", "FaultStatus", "HResult", "MQError", "NtStatus", "RpcFault"]


class MQError(Exception):
    """A refusal of the queue manager; `status` is the code that the caller gets."""

    def __init__(self, status: HResult | NtStatus, detail: str = "") -> None:
        detail = cut(detail)
        super().__init__(f"{status.name}: {detail}" if detail else status.name)
        self.status = status
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.status.name}: {self.detail or self.status.meaning}"


class RpcFault(Exception):
    """A call that ends with a fault PDU; `status` is the fault's code."""

    def __init__(self, status: FaultStatus | HResult | NtStatus, detail: str = "") -> None:
        detail = cut(detail)
        super().__init__(f"{status.name}: {detail}" if detail else status.name)
        self.status = status
        self.detail = detail


class DecodeError(Exception):
    """Bytes that do not have the expected form, from `offset` on if that is known."""

    def __init__(self, reason: str, offset: int | None = None) -> None:
        reason = cut(reason)
        super().__init__(reason if offset is None else f"{reason} at offset {offset}")
        self.reason = reason
        self.offset = offset
