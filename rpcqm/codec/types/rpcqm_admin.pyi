"""Types of idl/rpcqm_admin.idl: written by scripts/generate."""

from rpcqm.codec.interface import OperationRequest, Value
from rpcqm.codec.types.mqmq import CALPWSTR, OBJECTID, PROPVARIANT, QUEUE_FORMAT

class ACCOUNT(Value):
    pwszName: str | None
    pwszSid: str | None
    Groups: CALPWSTR
    def __init__(
        self, *, pwszName: str | None = ..., pwszSid: str | None = ..., Groups: CALPWSTR
    ) -> None: ...

class TRAIL_EVENT(Value):
    Time: int
    LookupId: int
    Happening: int
    pwszQueue: str | None
    pwszDetail: str | None
    def __init__(
        self,
        *,
        Time: int = ...,
        LookupId: int = ...,
        Happening: int = ...,
        pwszQueue: str | None = ...,
        pwszDetail: str | None = ...,
    ) -> None: ...

class PLACE(Value):
    LookupId: int
    Arrived: int
    State: int
    pwszQueue: str | None
    pwszLabel: str | None
    def __init__(
        self,
        *,
        LookupId: int = ...,
        Arrived: int = ...,
        State: int = ...,
        pwszQueue: str | None = ...,
        pwszLabel: str | None = ...,
    ) -> None: ...

class PUBLIC_QUEUE(Value):
    pwszPathName: str | None
    pwszFormatName: str | None
    pwszLabel: str | None
    fHere: int
    fFixed: int
    def __init__(
        self,
        *,
        pwszPathName: str | None = ...,
        pwszFormatName: str | None = ...,
        pwszLabel: str | None = ...,
        fHere: int = ...,
        fFixed: int = ...,
    ) -> None: ...

class R_AddAccountRequest(OperationRequest[R_AddAccountResponse]):
    pwszName: str
    NtHash: bytes
    pGroups: CALPWSTR
    def __init__(self, *, pwszName: str, NtHash: bytes, pGroups: CALPWSTR) -> None: ...

class R_AddAccountResponse(Value):
    ppwszSid: str | None
    result: int
    def __init__(self, *, ppwszSid: str | None = ..., result: int) -> None: ...

class R_SetAccountPasswordRequest(OperationRequest[R_SetAccountPasswordResponse]):
    pwszName: str
    NtHash: bytes
    def __init__(self, *, pwszName: str, NtHash: bytes) -> None: ...

class R_SetAccountPasswordResponse(Value):
    result: int
    def __init__(self, *, result: int) -> None: ...

class R_RemoveAccountRequest(OperationRequest[R_RemoveAccountResponse]):
    pwszName: str
    def __init__(self, *, pwszName: str) -> None: ...

class R_RemoveAccountResponse(Value):
    result: int
    def __init__(self, *, result: int) -> None: ...

class R_ListAccountsRequest(OperationRequest[R_ListAccountsResponse]):
    def __init__(self) -> None: ...

class R_ListAccountsResponse(Value):
    pcAccounts: int
    ppAccounts: list[ACCOUNT] | None
    result: int
    def __init__(
        self, *, pcAccounts: int, ppAccounts: list[ACCOUNT] | None = ..., result: int
    ) -> None: ...

class R_MakeBackupRequest(OperationRequest[R_MakeBackupResponse]):
    pwszDirectory: str
    def __init__(self, *, pwszDirectory: str) -> None: ...

class R_MakeBackupResponse(Value):
    ppwszProblem: str | None
    result: int
    def __init__(self, *, ppwszProblem: str | None = ..., result: int) -> None: ...

class R_CompactRequest(OperationRequest[R_CompactResponse]):
    def __init__(self) -> None: ...

class R_CompactResponse(Value):
    pBytesBefore: int
    pBytesAfter: int
    result: int
    def __init__(self, *, pBytesBefore: int, pBytesAfter: int, result: int) -> None: ...

class R_SetEventTrailRequest(OperationRequest[R_SetEventTrailResponse]):
    pQueueFormat: QUEUE_FORMAT
    fOn: int
    def __init__(self, *, pQueueFormat: QUEUE_FORMAT, fOn: int) -> None: ...

class R_SetEventTrailResponse(Value):
    result: int
    def __init__(self, *, result: int) -> None: ...

class R_GetEventTrailStateRequest(OperationRequest[R_GetEventTrailStateResponse]):
    pQueueFormat: QUEUE_FORMAT
    def __init__(self, *, pQueueFormat: QUEUE_FORMAT) -> None: ...

class R_GetEventTrailStateResponse(Value):
    pfOn: int
    result: int
    def __init__(self, *, pfOn: int, result: int) -> None: ...

class R_GetEventTrailRequest(OperationRequest[R_GetEventTrailResponse]):
    pMessageId: OBJECTID
    def __init__(self, *, pMessageId: OBJECTID) -> None: ...

class R_GetEventTrailResponse(Value):
    pcEvents: int
    ppEvents: list[TRAIL_EVENT] | None
    result: int
    def __init__(
        self, *, pcEvents: int, ppEvents: list[TRAIL_EVENT] | None = ..., result: int
    ) -> None: ...

class R_ImportMessageRequest(OperationRequest[R_ImportMessageResponse]):
    pQueueFormat: QUEUE_FORMAT
    cbPacket: int
    pPacket: bytes
    def __init__(self, *, pQueueFormat: QUEUE_FORMAT, cbPacket: int, pPacket: bytes) -> None: ...

class R_ImportMessageResponse(Value):
    pLookupId: int
    result: int
    def __init__(self, *, pLookupId: int, result: int) -> None: ...

class R_FindMessageRequest(OperationRequest[R_FindMessageResponse]):
    pMessageId: OBJECTID
    def __init__(self, *, pMessageId: OBJECTID) -> None: ...

class R_FindMessageResponse(Value):
    pcPlaces: int
    ppPlaces: list[PLACE] | None
    result: int
    def __init__(
        self, *, pcPlaces: int, ppPlaces: list[PLACE] | None = ..., result: int
    ) -> None: ...

class R_ListPublicQueuesRequest(OperationRequest[R_ListPublicQueuesResponse]):
    def __init__(self) -> None: ...

class R_ListPublicQueuesResponse(Value):
    pcQueues: int
    ppQueues: list[PUBLIC_QUEUE] | None
    result: int
    def __init__(
        self, *, pcQueues: int, ppQueues: list[PUBLIC_QUEUE] | None = ..., result: int
    ) -> None: ...

class R_CreatePublicQueueRequest(OperationRequest[R_CreatePublicQueueResponse]):
    pwszPathName: str
    SDSize: int
    pSecurityDescriptor: bytes | None
    cp: int
    aProp: list[int]
    apVar: list[PROPVARIANT]
    def __init__(
        self,
        *,
        pwszPathName: str,
        SDSize: int,
        pSecurityDescriptor: bytes | None = ...,
        cp: int,
        aProp: list[int],
        apVar: list[PROPVARIANT],
    ) -> None: ...

class R_CreatePublicQueueResponse(Value):
    result: int
    def __init__(self, *, result: int) -> None: ...

class R_ListOutgoingQueuesRequest(OperationRequest[R_ListOutgoingQueuesResponse]):
    def __init__(self) -> None: ...

class R_ListOutgoingQueuesResponse(Value):
    pNames: CALPWSTR
    result: int
    def __init__(self, *, pNames: CALPWSTR, result: int) -> None: ...

class R_ListExposedQueuesRequest(OperationRequest[R_ListExposedQueuesResponse]):
    def __init__(self) -> None: ...

class R_ListExposedQueuesResponse(Value):
    pNames: CALPWSTR
    result: int
    def __init__(self, *, pNames: CALPWSTR, result: int) -> None: ...

class R_GetMachineSecurityRequest(OperationRequest[R_GetMachineSecurityResponse]):
    RequestedInformation: int
    def __init__(self, *, RequestedInformation: int) -> None: ...

class R_GetMachineSecurityResponse(Value):
    pcbDescriptor: int
    ppDescriptor: bytes | None
    result: int
    def __init__(
        self, *, pcbDescriptor: int, ppDescriptor: bytes | None = ..., result: int
    ) -> None: ...

class R_SetMachineSecurityRequest(OperationRequest[R_SetMachineSecurityResponse]):
    SecurityInformation: int
    cbDescriptor: int
    pDescriptor: bytes
    def __init__(
        self, *, SecurityInformation: int, cbDescriptor: int, pDescriptor: bytes
    ) -> None: ...

class R_SetMachineSecurityResponse(Value):
    result: int
    def __init__(self, *, result: int) -> None: ...
