"""Errors as data: what a queue manager, an RPC peer or a decoder refuses, and with which code."""

from rpcqm.base.fault_status import FaultStatus
from rpcqm.base.hresult import HResult, NtStatus

__all__ = ["DecodeError", "FaultStatus", "HResult", "MQError", "NtStatus", "RpcFault"]


class MQError(Exception):
    """A refusal of the queue manager; `status` is what the caller is told."""

    def __init__(self, status: HResult | NtStatus, detail: str = "") -> None:
        super().__init__(f"{status.name}: {detail}" if detail else status.name)
        self.status = status
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.status.name}: {self.detail or self.status.meaning}"


class RpcFault(Exception):
    """A call that ends with a fault PDU; `status` is the fault's code."""

    def __init__(self, status: FaultStatus | HResult | NtStatus, detail: str = "") -> None:
        super().__init__(f"{status.name}: {detail}" if detail else status.name)
        self.status = status
        self.detail = detail


class DecodeError(Exception):
    """Bytes that are not what they should be; `offset` is where, when that is known."""

    def __init__(self, reason: str, offset: int | None = None) -> None:
        super().__init__(reason if offset is None else f"{reason} at offset {offset}")
        self.reason = reason
        self.offset = offset
