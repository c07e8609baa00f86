"""Types of idl/qmmgmt.idl: written by scripts/generate."""

from enum import IntEnum
from typing import Final

from rpcqm.codec.interface import OperationRequest, Value
from rpcqm.codec.types.mqmq import PROPVARIANT, QUEUE_FORMAT

MGMT_MACHINE: Final = 1

MGMT_QUEUE: Final = 2

MGMT_SESSION: Final = 3

class MgmtObjectType(IntEnum):
    MGMT_MACHINE = 1
    MGMT_QUEUE = 2
    MGMT_SESSION = 3

class MGMT_OBJECT(Value):
    type: int
    u: MGMT_OBJECT_u
    def __init__(self, *, type: int = ..., u: MGMT_OBJECT_u) -> None: ...

class MGMT_OBJECT_u(Value):
    tag: int
    value: QUEUE_FORMAT | int | None
    def __init__(self, tag: int, value: QUEUE_FORMAT | int | None = None) -> None: ...

class R_QMMgmtGetInfoRequest(OperationRequest[R_QMMgmtGetInfoResponse]):
    pObjectFormat: MGMT_OBJECT
    cp: int
    aProp: list[int]
    apVar: list[PROPVARIANT]
    def __init__(
        self, *, pObjectFormat: MGMT_OBJECT, cp: int, aProp: list[int], apVar: list[PROPVARIANT]
    ) -> None: ...

class R_QMMgmtGetInfoResponse(Value):
    apVar: list[PROPVARIANT]
    result: int
    def __init__(self, *, apVar: list[PROPVARIANT], result: int) -> None: ...

class R_QMMgmtActionRequest(OperationRequest[R_QMMgmtActionResponse]):
    pObjectFormat: MGMT_OBJECT
    lpwszAction: str
    def __init__(self, *, pObjectFormat: MGMT_OBJECT, lpwszAction: str) -> None: ...

class R_QMMgmtActionResponse(Value):
    result: int
    def __init__(self, *, result: int) -> None: ...
