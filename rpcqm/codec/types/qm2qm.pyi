"""Types of idl/qm2qm.idl: written by scripts/generate."""

from enum import IntEnum
from typing import Any, Final
from uuid import UUID

from rpcqm.codec.interface import OperationRequest, Value

RR_UNKNOWN: Final = 0

RR_NACK: Final = 1

RR_ACK: Final = 2

class REMOTEREADACK(IntEnum):
    RR_UNKNOWN = 0
    RR_NACK = 1
    RR_ACK = 2

class REMOTEREADDESC(Value):
    hRemoteQueue: int
    hCursor: int
    ulAction: int
    ulTimeout: int
    dwSize: int
    dwQueue: int
    dwRequestID: int
    Reserved: int
    dwArriveTime: int
    eAckNack: int
    lpBuffer: bytes | None
    def __init__(
        self,
        *,
        hRemoteQueue: int = ...,
        hCursor: int = ...,
        ulAction: int = ...,
        ulTimeout: int = ...,
        dwSize: int = ...,
        dwQueue: int = ...,
        dwRequestID: int = ...,
        Reserved: int = ...,
        dwArriveTime: int = ...,
        eAckNack: int = ...,
        lpBuffer: bytes | None = ...,
    ) -> None: ...

class REMOTEREADDESC2(Value):
    pRemoteReadDesc: REMOTEREADDESC | None
    SequentialId: int
    def __init__(
        self, *, pRemoteReadDesc: REMOTEREADDESC | None = ..., SequentialId: int = ...
    ) -> None: ...

class RemoteQMStartReceiveRequest(OperationRequest[RemoteQMStartReceiveResponse]):
    lpRemoteReadDesc: REMOTEREADDESC
    def __init__(self, *, lpRemoteReadDesc: REMOTEREADDESC) -> None: ...

class RemoteQMStartReceiveResponse(Value):
    pphContext: bytes
    lpRemoteReadDesc: REMOTEREADDESC
    result: int
    def __init__(
        self, *, pphContext: bytes, lpRemoteReadDesc: REMOTEREADDESC, result: int
    ) -> None: ...

class RemoteQMEndReceiveRequest(OperationRequest[RemoteQMEndReceiveResponse]):
    pphContext: Any
    dwAck: int
    def __init__(self, *, pphContext: Any, dwAck: int) -> None: ...

class RemoteQMEndReceiveResponse(Value):
    pphContext: bytes
    result: int
    def __init__(self, *, pphContext: bytes, result: int) -> None: ...

class RemoteQMOpenQueueRequest(OperationRequest[RemoteQMOpenQueueResponse]):
    pLicGuid: UUID
    dwMQS: int
    hQueue: int
    pQueue: int
    dwpContext: int
    def __init__(
        self, *, pLicGuid: UUID, dwMQS: int, hQueue: int, pQueue: int, dwpContext: int
    ) -> None: ...

class RemoteQMOpenQueueResponse(Value):
    phContext: bytes
    result: int
    def __init__(self, *, phContext: bytes, result: int) -> None: ...

class RemoteQMCloseQueueRequest(OperationRequest[RemoteQMCloseQueueResponse]):
    pphContext: Any
    def __init__(self, *, pphContext: Any) -> None: ...

class RemoteQMCloseQueueResponse(Value):
    pphContext: bytes
    result: int
    def __init__(self, *, pphContext: bytes, result: int) -> None: ...

class RemoteQMCloseCursorRequest(OperationRequest[RemoteQMCloseCursorResponse]):
    hQueue: int
    hCursor: int
    def __init__(self, *, hQueue: int, hCursor: int) -> None: ...

class RemoteQMCloseCursorResponse(Value):
    result: int
    def __init__(self, *, result: int) -> None: ...

class RemoteQMCancelReceiveRequest(OperationRequest[RemoteQMCancelReceiveResponse]):
    hQueue: int
    pQueue: int
    dwRequestID: int
    def __init__(self, *, hQueue: int, pQueue: int, dwRequestID: int) -> None: ...

class RemoteQMCancelReceiveResponse(Value):
    result: int
    def __init__(self, *, result: int) -> None: ...

class RemoteQMPurgeQueueRequest(OperationRequest[RemoteQMPurgeQueueResponse]):
    hQueue: int
    def __init__(self, *, hQueue: int) -> None: ...

class RemoteQMPurgeQueueResponse(Value):
    result: int
    def __init__(self, *, result: int) -> None: ...

class RemoteQMGetQMQMServerPortRequest(OperationRequest[RemoteQMGetQMQMServerPortResponse]):
    dwPortType: int
    def __init__(self, *, dwPortType: int) -> None: ...

class RemoteQMGetQMQMServerPortResponse(Value):
    result: int
    def __init__(self, *, result: int) -> None: ...

class RemoteQmGetVersionRequest(OperationRequest[RemoteQmGetVersionResponse]):
    def __init__(self) -> None: ...

class RemoteQmGetVersionResponse(Value):
    pMajor: int
    pMinor: int
    pBuildNumber: int
    def __init__(self, *, pMajor: int, pMinor: int, pBuildNumber: int) -> None: ...

class RemoteQMStartReceive2Request(OperationRequest[RemoteQMStartReceive2Response]):
    lpRemoteReadDesc2: REMOTEREADDESC2
    def __init__(self, *, lpRemoteReadDesc2: REMOTEREADDESC2) -> None: ...

class RemoteQMStartReceive2Response(Value):
    pphContext: bytes
    lpRemoteReadDesc2: REMOTEREADDESC2
    result: int
    def __init__(
        self, *, pphContext: bytes, lpRemoteReadDesc2: REMOTEREADDESC2, result: int
    ) -> None: ...

class RemoteQMStartReceiveByLookupIdRequest(
    OperationRequest[RemoteQMStartReceiveByLookupIdResponse]
):
    LookupId: int
    lpRemoteReadDesc2: REMOTEREADDESC2
    def __init__(self, *, LookupId: int, lpRemoteReadDesc2: REMOTEREADDESC2) -> None: ...

class RemoteQMStartReceiveByLookupIdResponse(Value):
    pphContext: bytes
    lpRemoteReadDesc2: REMOTEREADDESC2
    result: int
    def __init__(
        self, *, pphContext: bytes, lpRemoteReadDesc2: REMOTEREADDESC2, result: int
    ) -> None: ...
