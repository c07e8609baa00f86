"""Types of idl/remoteread.idl: written by scripts/generate."""

from enum import IntEnum
from typing import Any, Final
from uuid import UUID

from rpcqm.codec.interface import OperationRequest, Value
from rpcqm.codec.types.mqmq import QUEUE_FORMAT, XACTUOW

stFullPacket: Final = 0

stBinaryFirstSection: Final = 1

stBinarySecondSection: Final = 2

stSrmpFirstSection: Final = 3

stSrmpSecondSection: Final = 4

MQ_ACTION_RECEIVE: Final = 0

MQ_ACTION_PEEK_CURRENT: Final = 2147483648

MQ_ACTION_PEEK_NEXT: Final = 2147483649

MQ_LOOKUP_PEEK_CURRENT: Final = 1073741840

MQ_LOOKUP_PEEK_NEXT: Final = 1073741841

MQ_LOOKUP_PEEK_PREV: Final = 1073741842

MQ_LOOKUP_RECEIVE_CURRENT: Final = 1073741856

MQ_LOOKUP_RECEIVE_NEXT: Final = 1073741857

MQ_LOOKUP_RECEIVE_PREV: Final = 1073741858

class SectionType(IntEnum):
    stFullPacket = 0
    stBinaryFirstSection = 1
    stBinarySecondSection = 2
    stSrmpFirstSection = 3
    stSrmpSecondSection = 4

class ReceiveAction(IntEnum):
    MQ_ACTION_RECEIVE = 0
    MQ_ACTION_PEEK_CURRENT = 2147483648
    MQ_ACTION_PEEK_NEXT = 2147483649
    MQ_LOOKUP_PEEK_CURRENT = 1073741840
    MQ_LOOKUP_PEEK_NEXT = 1073741841
    MQ_LOOKUP_PEEK_PREV = 1073741842
    MQ_LOOKUP_RECEIVE_CURRENT = 1073741856
    MQ_LOOKUP_RECEIVE_NEXT = 1073741857
    MQ_LOOKUP_RECEIVE_PREV = 1073741858

class SectionBuffer(Value):
    SectionBufferType: int
    SectionSizeAlloc: int
    SectionSize: int
    pSectionBuffer: bytes | None
    def __init__(
        self,
        *,
        SectionBufferType: int = ...,
        SectionSizeAlloc: int = ...,
        SectionSize: int = ...,
        pSectionBuffer: bytes | None = ...,
    ) -> None: ...

class R_GetServerPortRequest(OperationRequest[R_GetServerPortResponse]):
    def __init__(self) -> None: ...

class R_GetServerPortResponse(Value):
    result: int
    def __init__(self, *, result: int) -> None: ...

class R_OpenQueueRequest(OperationRequest[R_OpenQueueResponse]):
    pQueueFormat: QUEUE_FORMAT
    dwAccess: int
    dwShareMode: int
    pClientId: UUID
    fNonRoutingServer: int
    Major: int
    Minor: int
    BuildNumber: int
    fWorkgroup: int
    def __init__(
        self,
        *,
        pQueueFormat: QUEUE_FORMAT,
        dwAccess: int,
        dwShareMode: int,
        pClientId: UUID,
        fNonRoutingServer: int,
        Major: int,
        Minor: int,
        BuildNumber: int,
        fWorkgroup: int,
    ) -> None: ...

class R_OpenQueueResponse(Value):
    pphContext: bytes
    def __init__(self, *, pphContext: bytes) -> None: ...

class R_CloseQueueRequest(OperationRequest[R_CloseQueueResponse]):
    pphContext: Any
    def __init__(self, *, pphContext: Any) -> None: ...

class R_CloseQueueResponse(Value):
    pphContext: bytes
    result: int
    def __init__(self, *, pphContext: bytes, result: int) -> None: ...

class R_CreateCursorRequest(OperationRequest[R_CreateCursorResponse]):
    phContext: Any
    def __init__(self, *, phContext: Any) -> None: ...

class R_CreateCursorResponse(Value):
    phCursor: int
    result: int
    def __init__(self, *, phCursor: int, result: int) -> None: ...

class R_CloseCursorRequest(OperationRequest[R_CloseCursorResponse]):
    phContext: Any
    hCursor: int
    def __init__(self, *, phContext: Any, hCursor: int) -> None: ...

class R_CloseCursorResponse(Value):
    result: int
    def __init__(self, *, result: int) -> None: ...

class R_PurgeQueueRequest(OperationRequest[R_PurgeQueueResponse]):
    phContext: Any
    def __init__(self, *, phContext: Any) -> None: ...

class R_PurgeQueueResponse(Value):
    result: int
    def __init__(self, *, result: int) -> None: ...

class R_StartReceiveRequest(OperationRequest[R_StartReceiveResponse]):
    phContext: Any
    LookupId: int
    hCursor: int
    ulAction: int
    ulTimeout: int
    dwRequestId: int
    dwMaxBodySize: int
    dwMaxCompoundMessageSize: int
    def __init__(
        self,
        *,
        phContext: Any,
        LookupId: int,
        hCursor: int,
        ulAction: int,
        ulTimeout: int,
        dwRequestId: int,
        dwMaxBodySize: int,
        dwMaxCompoundMessageSize: int,
    ) -> None: ...

class R_StartReceiveResponse(Value):
    pdwArriveTime: int
    pSequenceId: int
    pdwNumberOfSections: int
    ppPacketSections: list[SectionBuffer] | None
    result: int
    def __init__(
        self,
        *,
        pdwArriveTime: int,
        pSequenceId: int,
        pdwNumberOfSections: int,
        ppPacketSections: list[SectionBuffer] | None = ...,
        result: int,
    ) -> None: ...

class R_CancelReceiveRequest(OperationRequest[R_CancelReceiveResponse]):
    phContext: Any
    dwRequestId: int
    def __init__(self, *, phContext: Any, dwRequestId: int) -> None: ...

class R_CancelReceiveResponse(Value):
    result: int
    def __init__(self, *, result: int) -> None: ...

class R_EndReceiveRequest(OperationRequest[R_EndReceiveResponse]):
    phContext: Any
    dwAck: int
    dwRequestId: int
    def __init__(self, *, phContext: Any, dwAck: int, dwRequestId: int) -> None: ...

class R_EndReceiveResponse(Value):
    result: int
    def __init__(self, *, result: int) -> None: ...

class R_MoveMessageRequest(OperationRequest[R_MoveMessageResponse]):
    phContextFrom: Any
    ullContextTo: int
    LookupId: int
    pTransactionId: XACTUOW
    def __init__(
        self, *, phContextFrom: Any, ullContextTo: int, LookupId: int, pTransactionId: XACTUOW
    ) -> None: ...

class R_MoveMessageResponse(Value):
    result: int
    def __init__(self, *, result: int) -> None: ...

class R_OpenQueueForMoveRequest(OperationRequest[R_OpenQueueForMoveResponse]):
    pQueueFormat: QUEUE_FORMAT
    dwAccess: int
    dwShareMode: int
    pClientId: UUID
    fNonRoutingServer: int
    Major: int
    Minor: int
    BuildNumber: int
    fWorkgroup: int
    def __init__(
        self,
        *,
        pQueueFormat: QUEUE_FORMAT,
        dwAccess: int,
        dwShareMode: int,
        pClientId: UUID,
        fNonRoutingServer: int,
        Major: int,
        Minor: int,
        BuildNumber: int,
        fWorkgroup: int,
    ) -> None: ...

class R_OpenQueueForMoveResponse(Value):
    pMoveContext: int
    pphContext: bytes
    def __init__(self, *, pMoveContext: int, pphContext: bytes) -> None: ...

class R_QMEnlistRemoteTransactionRequest(OperationRequest[R_QMEnlistRemoteTransactionResponse]):
    pTransactionId: XACTUOW
    cbPropagationToken: int
    pbPropagationToken: bytes
    pQueueFormat: QUEUE_FORMAT
    def __init__(
        self,
        *,
        pTransactionId: XACTUOW,
        cbPropagationToken: int,
        pbPropagationToken: bytes,
        pQueueFormat: QUEUE_FORMAT,
    ) -> None: ...

class R_QMEnlistRemoteTransactionResponse(Value):
    result: int
    def __init__(self, *, result: int) -> None: ...

class R_StartTransactionalReceiveRequest(OperationRequest[R_StartTransactionalReceiveResponse]):
    phContext: Any
    LookupId: int
    hCursor: int
    ulAction: int
    ulTimeout: int
    dwRequestId: int
    dwMaxBodySize: int
    dwMaxCompoundMessageSize: int
    pTransactionId: XACTUOW
    def __init__(
        self,
        *,
        phContext: Any,
        LookupId: int,
        hCursor: int,
        ulAction: int,
        ulTimeout: int,
        dwRequestId: int,
        dwMaxBodySize: int,
        dwMaxCompoundMessageSize: int,
        pTransactionId: XACTUOW,
    ) -> None: ...

class R_StartTransactionalReceiveResponse(Value):
    pdwArriveTime: int
    pSequenceId: int
    pdwNumberOfSections: int
    ppPacketSections: list[SectionBuffer] | None
    result: int
    def __init__(
        self,
        *,
        pdwArriveTime: int,
        pSequenceId: int,
        pdwNumberOfSections: int,
        ppPacketSections: list[SectionBuffer] | None = ...,
        result: int,
    ) -> None: ...

class R_SetUserAcknowledgementClassRequest(OperationRequest[R_SetUserAcknowledgementClassResponse]):
    phContext: Any
    LookupId: int
    usClass: int
    def __init__(self, *, phContext: Any, LookupId: int, usClass: int) -> None: ...

class R_SetUserAcknowledgementClassResponse(Value):
    result: int
    def __init__(self, *, result: int) -> None: ...

class R_EndTransactionalReceiveRequest(OperationRequest[R_EndTransactionalReceiveResponse]):
    phContext: Any
    dwAck: int
    dwRequestId: int
    def __init__(self, *, phContext: Any, dwAck: int, dwRequestId: int) -> None: ...

class R_EndTransactionalReceiveResponse(Value):
    result: int
    def __init__(self, *, result: int) -> None: ...
