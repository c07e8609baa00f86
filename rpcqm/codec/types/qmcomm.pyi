"""Types of idl/qmcomm.idl: written by scripts/generate."""

from enum import IntEnum
from typing import Any, Final
from uuid import UUID

from rpcqm.codec.interface import NullPointer, OperationRequest, Value
from rpcqm.codec.types.mqmq import OBJECTID, PROPVARIANT, QUEUE_FORMAT, XACTUOW

CACTB_SEND: Final = 0

CACTB_RECEIVE: Final = 1

CACTB_CREATECURSOR: Final = 2

class CACCreateRemoteCursor(Value):
    hCursor: int
    srv_hACQueue: int
    cli_pQMQueue: int
    def __init__(
        self, *, hCursor: int = ..., srv_hACQueue: int = ..., cli_pQMQueue: int = ...
    ) -> None: ...

class TRANSFER_TYPE(IntEnum):
    CACTB_SEND = 0
    CACTB_RECEIVE = 1
    CACTB_CREATECURSOR = 2

class CACTransferBufferV1(Value):
    uTransferType: int
    u: CACTransferBufferV1_u
    pClass: int | None
    ppMessageID: OBJECTID | NullPointer | None
    ppCorrelationID: bytes | NullPointer | None
    pSentTime: int | None
    pArrivedTime: int | None
    pPriority: int | None
    pDelivery: int | None
    pAcknowledge: int | None
    pAuditing: int | None
    pApplicationTag: int | None
    ppBody: bytes | NullPointer | None
    ulBodyBufferSizeInBytes: int
    ulAllocBodyBufferInBytes: int
    pBodySize: int | None
    ppTitle: str | NullPointer | None
    ulTitleBufferSizeInWCHARs: int
    pulTitleBufferSizeInWCHARs: int | None
    ulAbsoluteTimeToQueue: int
    pulRelativeTimeToQueue: int | None
    ulRelativeTimeToLive: int
    pulRelativeTimeToLive: int | None
    pTrace: int | None
    pulSenderIDType: int | None
    ppSenderID: bytes | NullPointer | None
    pulSenderIDLenProp: int | None
    pulPrivLevel: int | None
    ulAuthLevel: int
    pAuthenticated: int | None
    pulHashAlg: int | None
    pulEncryptAlg: int | None
    ppSenderCert: bytes | NullPointer | None
    ulSenderCertLen: int
    pulSenderCertLenProp: int | None
    ppwcsProvName: str | NullPointer | None
    ulProvNameLen: int
    pulAuthProvNameLenProp: int | None
    pulProvType: int | None
    fDefaultProvider: int
    ppSymmKeys: bytes | NullPointer | None
    ulSymmKeysSize: int
    pulSymmKeysSizeProp: int | None
    bEncrypted: int
    bAuthenticated: int
    uSenderIDLen: int
    ppSignature: bytes | NullPointer | None
    ulSignatureSize: int
    pulSignatureSizeProp: int | None
    ppSrcQMID: UUID | NullPointer | None
    pUow: XACTUOW | None
    ppMsgExtension: bytes | NullPointer | None
    ulMsgExtensionBufferInBytes: int
    pMsgExtensionSize: int | None
    ppConnectorType: UUID | NullPointer | None
    pulBodyType: int | None
    pulVersion: int | None
    def __init__(
        self,
        *,
        uTransferType: int = ...,
        u: CACTransferBufferV1_u,
        pClass: int | None = ...,
        ppMessageID: OBJECTID | NullPointer | None = ...,
        ppCorrelationID: bytes | NullPointer | None = ...,
        pSentTime: int | None = ...,
        pArrivedTime: int | None = ...,
        pPriority: int | None = ...,
        pDelivery: int | None = ...,
        pAcknowledge: int | None = ...,
        pAuditing: int | None = ...,
        pApplicationTag: int | None = ...,
        ppBody: bytes | NullPointer | None = ...,
        ulBodyBufferSizeInBytes: int = ...,
        ulAllocBodyBufferInBytes: int = ...,
        pBodySize: int | None = ...,
        ppTitle: str | NullPointer | None = ...,
        ulTitleBufferSizeInWCHARs: int = ...,
        pulTitleBufferSizeInWCHARs: int | None = ...,
        ulAbsoluteTimeToQueue: int = ...,
        pulRelativeTimeToQueue: int | None = ...,
        ulRelativeTimeToLive: int = ...,
        pulRelativeTimeToLive: int | None = ...,
        pTrace: int | None = ...,
        pulSenderIDType: int | None = ...,
        ppSenderID: bytes | NullPointer | None = ...,
        pulSenderIDLenProp: int | None = ...,
        pulPrivLevel: int | None = ...,
        ulAuthLevel: int = ...,
        pAuthenticated: int | None = ...,
        pulHashAlg: int | None = ...,
        pulEncryptAlg: int | None = ...,
        ppSenderCert: bytes | NullPointer | None = ...,
        ulSenderCertLen: int = ...,
        pulSenderCertLenProp: int | None = ...,
        ppwcsProvName: str | NullPointer | None = ...,
        ulProvNameLen: int = ...,
        pulAuthProvNameLenProp: int | None = ...,
        pulProvType: int | None = ...,
        fDefaultProvider: int = ...,
        ppSymmKeys: bytes | NullPointer | None = ...,
        ulSymmKeysSize: int = ...,
        pulSymmKeysSizeProp: int | None = ...,
        bEncrypted: int = ...,
        bAuthenticated: int = ...,
        uSenderIDLen: int = ...,
        ppSignature: bytes | NullPointer | None = ...,
        ulSignatureSize: int = ...,
        pulSignatureSizeProp: int | None = ...,
        ppSrcQMID: UUID | NullPointer | None = ...,
        pUow: XACTUOW | None = ...,
        ppMsgExtension: bytes | NullPointer | None = ...,
        ulMsgExtensionBufferInBytes: int = ...,
        pMsgExtensionSize: int | None = ...,
        ppConnectorType: UUID | NullPointer | None = ...,
        pulBodyType: int | None = ...,
        pulVersion: int | None = ...,
    ) -> None: ...

class CACTransferBufferV2(Value):
    old: CACTransferBufferV1
    pbFirstInXact: int | None
    pbLastInXact: int | None
    ppXactID: OBJECTID | NullPointer | None
    def __init__(
        self,
        *,
        old: CACTransferBufferV1,
        pbFirstInXact: int | None = ...,
        pbLastInXact: int | None = ...,
        ppXactID: OBJECTID | NullPointer | None = ...,
    ) -> None: ...

class OBJECT_FORMAT(Value):
    ObjType: int
    u: OBJECT_FORMAT_u
    def __init__(self, *, ObjType: int = ..., u: OBJECT_FORMAT_u) -> None: ...

class CACTransferBufferV1_u(Value):
    tag: int
    value: CACTransferBufferV1_Send | CACTransferBufferV1_Receive | CACCreateRemoteCursor | None
    def __init__(
        self,
        tag: int,
        value: CACTransferBufferV1_Send
        | CACTransferBufferV1_Receive
        | CACCreateRemoteCursor
        | None = None,
    ) -> None: ...

class OBJECT_FORMAT_u(Value):
    tag: int
    value: QUEUE_FORMAT | None
    def __init__(self, tag: int, value: QUEUE_FORMAT | None = None) -> None: ...

class CACTransferBufferV1_Send(Value):
    pAdminQueueFormat: QUEUE_FORMAT | None
    pResponseQueueFormat: QUEUE_FORMAT | None
    def __init__(
        self,
        *,
        pAdminQueueFormat: QUEUE_FORMAT | None = ...,
        pResponseQueueFormat: QUEUE_FORMAT | None = ...,
    ) -> None: ...

class CACTransferBufferV1_Receive(Value):
    RequestTimeout: int
    Action: int
    Asynchronous: int
    Cursor: int
    ulResponseFormatNameLen: int
    ppResponseFormatName: str | NullPointer | None
    pulResponseFormatNameLenProp: int | None
    ulAdminFormatNameLen: int
    ppAdminFormatName: str | NullPointer | None
    pulAdminFormatNameLenProp: int | None
    ulDestFormatNameLen: int
    ppDestFormatName: str | NullPointer | None
    pulDestFormatNameLenProp: int | None
    ulOrderingFormatNameLen: int
    ppOrderingFormatName: str | NullPointer | None
    pulOrderingFormatNameLenProp: int | None
    def __init__(
        self,
        *,
        RequestTimeout: int = ...,
        Action: int = ...,
        Asynchronous: int = ...,
        Cursor: int = ...,
        ulResponseFormatNameLen: int = ...,
        ppResponseFormatName: str | NullPointer | None = ...,
        pulResponseFormatNameLenProp: int | None = ...,
        ulAdminFormatNameLen: int = ...,
        ppAdminFormatName: str | NullPointer | None = ...,
        pulAdminFormatNameLenProp: int | None = ...,
        ulDestFormatNameLen: int = ...,
        ppDestFormatName: str | NullPointer | None = ...,
        pulDestFormatNameLenProp: int | None = ...,
        ulOrderingFormatNameLen: int = ...,
        ppOrderingFormatName: str | NullPointer | None = ...,
        pulOrderingFormatNameLenProp: int | None = ...,
    ) -> None: ...

class R_QMGetRemoteQueueNameRequest(OperationRequest[R_QMGetRemoteQueueNameResponse]):
    pQueue: int
    lplpRemoteQueueName: str | None
    def __init__(self, *, pQueue: int, lplpRemoteQueueName: str | None = ...) -> None: ...

class R_QMGetRemoteQueueNameResponse(Value):
    lplpRemoteQueueName: str | None
    result: int
    def __init__(self, *, lplpRemoteQueueName: str | None = ..., result: int) -> None: ...

class R_QMOpenRemoteQueueRequest(OperationRequest[R_QMOpenRemoteQueueResponse]):
    pQueueFormat: QUEUE_FORMAT | None
    dwCallingProcessID: int
    dwDesiredAccess: int
    dwShareMode: int
    pLicGuid: UUID
    dwMQS: int
    def __init__(
        self,
        *,
        pQueueFormat: QUEUE_FORMAT | None = ...,
        dwCallingProcessID: int,
        dwDesiredAccess: int,
        dwShareMode: int,
        pLicGuid: UUID,
        dwMQS: int,
    ) -> None: ...

class R_QMOpenRemoteQueueResponse(Value):
    pphContext: bytes
    pdwContext: int
    dwpQueue: int
    phQueue: int
    result: int
    def __init__(
        self, *, pphContext: bytes, pdwContext: int, dwpQueue: int, phQueue: int, result: int
    ) -> None: ...

class R_QMCloseRemoteQueueContextRequest(OperationRequest[R_QMCloseRemoteQueueContextResponse]):
    pphContext: Any
    def __init__(self, *, pphContext: Any) -> None: ...

class R_QMCloseRemoteQueueContextResponse(Value):
    pphContext: bytes
    def __init__(self, *, pphContext: bytes) -> None: ...

class R_QMCreateRemoteCursorRequest(OperationRequest[R_QMCreateRemoteCursorResponse]):
    ptb1: CACTransferBufferV1
    hQueue: int
    def __init__(self, *, ptb1: CACTransferBufferV1, hQueue: int) -> None: ...

class R_QMCreateRemoteCursorResponse(Value):
    phCursor: int
    result: int
    def __init__(self, *, phCursor: int, result: int) -> None: ...

class R_QMCreateObjectInternalRequest(OperationRequest[R_QMCreateObjectInternalResponse]):
    dwObjectType: int
    lpwcsPathName: str
    SDSize: int
    pSecurityDescriptor: bytes | None
    cp: int
    aProp: list[int]
    apVar: list[PROPVARIANT]
    def __init__(
        self,
        *,
        dwObjectType: int,
        lpwcsPathName: str,
        SDSize: int,
        pSecurityDescriptor: bytes | None = ...,
        cp: int,
        aProp: list[int],
        apVar: list[PROPVARIANT],
    ) -> None: ...

class R_QMCreateObjectInternalResponse(Value):
    result: int
    def __init__(self, *, result: int) -> None: ...

class R_QMSetObjectSecurityInternalRequest(OperationRequest[R_QMSetObjectSecurityInternalResponse]):
    pObjectFormat: OBJECT_FORMAT
    SecurityInformation: int
    SDSize: int
    pSecurityDescriptor: bytes | None
    def __init__(
        self,
        *,
        pObjectFormat: OBJECT_FORMAT,
        SecurityInformation: int,
        SDSize: int,
        pSecurityDescriptor: bytes | None = ...,
    ) -> None: ...

class R_QMSetObjectSecurityInternalResponse(Value):
    result: int
    def __init__(self, *, result: int) -> None: ...

class R_QMGetObjectSecurityInternalRequest(OperationRequest[R_QMGetObjectSecurityInternalResponse]):
    pObjectFormat: OBJECT_FORMAT
    RequestedInformation: int
    nLength: int
    def __init__(
        self, *, pObjectFormat: OBJECT_FORMAT, RequestedInformation: int, nLength: int
    ) -> None: ...

class R_QMGetObjectSecurityInternalResponse(Value):
    pSecurityDescriptor: bytes
    lpnLengthNeeded: int
    result: int
    def __init__(
        self, *, pSecurityDescriptor: bytes, lpnLengthNeeded: int, result: int
    ) -> None: ...

class R_QMDeleteObjectRequest(OperationRequest[R_QMDeleteObjectResponse]):
    pObjectFormat: OBJECT_FORMAT
    def __init__(self, *, pObjectFormat: OBJECT_FORMAT) -> None: ...

class R_QMDeleteObjectResponse(Value):
    result: int
    def __init__(self, *, result: int) -> None: ...

class R_QMGetObjectPropertiesRequest(OperationRequest[R_QMGetObjectPropertiesResponse]):
    pObjectFormat: OBJECT_FORMAT
    cp: int
    aProp: list[int]
    apVar: list[PROPVARIANT]
    def __init__(
        self, *, pObjectFormat: OBJECT_FORMAT, cp: int, aProp: list[int], apVar: list[PROPVARIANT]
    ) -> None: ...

class R_QMGetObjectPropertiesResponse(Value):
    apVar: list[PROPVARIANT]
    result: int
    def __init__(self, *, apVar: list[PROPVARIANT], result: int) -> None: ...

class R_QMSetObjectPropertiesRequest(OperationRequest[R_QMSetObjectPropertiesResponse]):
    pObjectFormat: OBJECT_FORMAT
    cp: int
    aProp: list[int] | None
    apVar: list[PROPVARIANT] | None
    def __init__(
        self,
        *,
        pObjectFormat: OBJECT_FORMAT,
        cp: int,
        aProp: list[int] | None = ...,
        apVar: list[PROPVARIANT] | None = ...,
    ) -> None: ...

class R_QMSetObjectPropertiesResponse(Value):
    result: int
    def __init__(self, *, result: int) -> None: ...

class R_QMObjectPathToObjectFormatRequest(OperationRequest[R_QMObjectPathToObjectFormatResponse]):
    lpwcsPathName: str
    pObjectFormat: OBJECT_FORMAT
    def __init__(self, *, lpwcsPathName: str, pObjectFormat: OBJECT_FORMAT) -> None: ...

class R_QMObjectPathToObjectFormatResponse(Value):
    pObjectFormat: OBJECT_FORMAT
    result: int
    def __init__(self, *, pObjectFormat: OBJECT_FORMAT, result: int) -> None: ...

class R_QMGetTmWhereaboutsRequest(OperationRequest[R_QMGetTmWhereaboutsResponse]):
    cbBufSize: int
    def __init__(self, *, cbBufSize: int) -> None: ...

class R_QMGetTmWhereaboutsResponse(Value):
    pbWhereabouts: bytes
    pcbWhereabouts: int
    result: int
    def __init__(self, *, pbWhereabouts: bytes, pcbWhereabouts: int, result: int) -> None: ...

class R_QMEnlistTransactionRequest(OperationRequest[R_QMEnlistTransactionResponse]):
    pUow: XACTUOW
    cbCookie: int
    pbCookie: bytes
    def __init__(self, *, pUow: XACTUOW, cbCookie: int, pbCookie: bytes) -> None: ...

class R_QMEnlistTransactionResponse(Value):
    result: int
    def __init__(self, *, result: int) -> None: ...

class R_QMEnlistInternalTransactionRequest(OperationRequest[R_QMEnlistInternalTransactionResponse]):
    pUow: XACTUOW
    def __init__(self, *, pUow: XACTUOW) -> None: ...

class R_QMEnlistInternalTransactionResponse(Value):
    phIntXact: bytes
    result: int
    def __init__(self, *, phIntXact: bytes, result: int) -> None: ...

class R_QMCommitTransactionRequest(OperationRequest[R_QMCommitTransactionResponse]):
    phIntXact: Any
    def __init__(self, *, phIntXact: Any) -> None: ...

class R_QMCommitTransactionResponse(Value):
    phIntXact: bytes
    result: int
    def __init__(self, *, phIntXact: bytes, result: int) -> None: ...

class R_QMAbortTransactionRequest(OperationRequest[R_QMAbortTransactionResponse]):
    phIntXact: Any
    def __init__(self, *, phIntXact: Any) -> None: ...

class R_QMAbortTransactionResponse(Value):
    phIntXact: bytes
    result: int
    def __init__(self, *, phIntXact: bytes, result: int) -> None: ...

class rpc_QMOpenQueueInternalRequest(OperationRequest[rpc_QMOpenQueueInternalResponse]):
    pQueueFormat: QUEUE_FORMAT
    dwDesiredAccess: int
    dwShareMode: int
    hRemoteQueue: int
    lplpRemoteQueueName: str | None
    dwpQueue: int
    pLicGuid: UUID
    lpClientName: str
    dwRemoteProtocol: int
    dwpRemoteContext: int
    def __init__(
        self,
        *,
        pQueueFormat: QUEUE_FORMAT,
        dwDesiredAccess: int,
        dwShareMode: int,
        hRemoteQueue: int,
        lplpRemoteQueueName: str | None = ...,
        dwpQueue: int,
        pLicGuid: UUID,
        lpClientName: str,
        dwRemoteProtocol: int,
        dwpRemoteContext: int,
    ) -> None: ...

class rpc_QMOpenQueueInternalResponse(Value):
    lplpRemoteQueueName: str | None
    pdwQMContext: int
    phQueue: bytes
    result: int
    def __init__(
        self,
        *,
        lplpRemoteQueueName: str | None = ...,
        pdwQMContext: int,
        phQueue: bytes,
        result: int,
    ) -> None: ...

class rpc_ACCloseHandleRequest(OperationRequest[rpc_ACCloseHandleResponse]):
    phQueue: Any
    def __init__(self, *, phQueue: Any) -> None: ...

class rpc_ACCloseHandleResponse(Value):
    phQueue: bytes
    result: int
    def __init__(self, *, phQueue: bytes, result: int) -> None: ...

class rpc_ACCloseCursorRequest(OperationRequest[rpc_ACCloseCursorResponse]):
    hQueue: Any
    hCursor: int
    def __init__(self, *, hQueue: Any, hCursor: int) -> None: ...

class rpc_ACCloseCursorResponse(Value):
    result: int
    def __init__(self, *, result: int) -> None: ...

class rpc_ACSetCursorPropertiesRequest(OperationRequest[rpc_ACSetCursorPropertiesResponse]):
    hProxy: Any
    hCursor: int
    hRemoteCursor: int
    def __init__(self, *, hProxy: Any, hCursor: int, hRemoteCursor: int) -> None: ...

class rpc_ACSetCursorPropertiesResponse(Value):
    result: int
    def __init__(self, *, result: int) -> None: ...

class rpc_ACHandleToFormatNameRequest(OperationRequest[rpc_ACHandleToFormatNameResponse]):
    hQueue: Any
    dwFormatNameRPCBufferLen: int
    lpwcsFormatName: str | None
    pdwLength: int
    def __init__(
        self,
        *,
        hQueue: Any,
        dwFormatNameRPCBufferLen: int,
        lpwcsFormatName: str | None = ...,
        pdwLength: int,
    ) -> None: ...

class rpc_ACHandleToFormatNameResponse(Value):
    lpwcsFormatName: str | None
    pdwLength: int
    result: int
    def __init__(
        self, *, lpwcsFormatName: str | None = ..., pdwLength: int, result: int
    ) -> None: ...

class rpc_ACPurgeQueueRequest(OperationRequest[rpc_ACPurgeQueueResponse]):
    hQueue: Any
    def __init__(self, *, hQueue: Any) -> None: ...

class rpc_ACPurgeQueueResponse(Value):
    result: int
    def __init__(self, *, result: int) -> None: ...

class R_QMQueryQMRegistryInternalRequest(OperationRequest[R_QMQueryQMRegistryInternalResponse]):
    dwQueryType: int
    def __init__(self, *, dwQueryType: int) -> None: ...

class R_QMQueryQMRegistryInternalResponse(Value):
    lplpMQISServer: str | None
    result: int
    def __init__(self, *, lplpMQISServer: str | None = ..., result: int) -> None: ...

class R_QMGetRTQMServerPortRequest(OperationRequest[R_QMGetRTQMServerPortResponse]):
    fIP: int
    def __init__(self, *, fIP: int) -> None: ...

class R_QMGetRTQMServerPortResponse(Value):
    result: int
    def __init__(self, *, result: int) -> None: ...
