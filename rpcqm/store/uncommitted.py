"""Operations of open transactions: on the disk as they arrive, invisible until the commit."""

from dataclasses import dataclass, field

TRANSACTION_ID_LENGTH = 16
"""Bytes of an XACTUOW ([MS-MQMQ] 2.2.18.1.8)."""


@dataclass(slots=True)
class UncommittedOperation:
    """One operation; `serial` and `size` are set when it carries a packet for `queue_id`.

    `data` is the queue manager's own description of it. `charged` says whether the packet counts in
    the queue's account on behalf of this operation.
    """

    number: int
    data: bytes
    queue_id: int = 0
    serial: int | None = None
    size: int = 0
    charged: bool = False


@dataclass(slots=True)
class UncommittedTransaction:
    """The staged operations of a transaction (16 bytes of XACTUOW), by numbers from 1 on."""

    transaction_id: bytes
    operations: dict[int, UncommittedOperation] = field(default_factory=dict)
    next_number: int = 1
