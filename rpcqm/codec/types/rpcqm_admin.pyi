"""Types of idl/rpcqm_admin.idl: written by scripts/generate."""

from rpcqm.codec.interface import Value
from rpcqm.codec.types.mqmq import CALPWSTR

class ACCOUNT(Value):
    pwszName: str | None
    pwszSid: str | None
    Groups: CALPWSTR
    def __init__(
        self, *, pwszName: str | None = ..., pwszSid: str | None = ..., Groups: CALPWSTR
    ) -> None: ...

class R_AddAccountRequest(Value):
    pwszName: str
    NtHash: bytes
    pGroups: CALPWSTR
    def __init__(self, *, pwszName: str, NtHash: bytes, pGroups: CALPWSTR) -> None: ...

class R_AddAccountResponse(Value):
    ppwszSid: str | None
    result: int
    def __init__(self, *, ppwszSid: str | None = ..., result: int) -> None: ...

class R_SetAccountPasswordRequest(Value):
    pwszName: str
    NtHash: bytes
    def __init__(self, *, pwszName: str, NtHash: bytes) -> None: ...

class R_SetAccountPasswordResponse(Value):
    result: int
    def __init__(self, *, result: int) -> None: ...

class R_RemoveAccountRequest(Value):
    pwszName: str
    def __init__(self, *, pwszName: str) -> None: ...

class R_RemoveAccountResponse(Value):
    result: int
    def __init__(self, *, result: int) -> None: ...

class R_ListAccountsRequest(Value):
    def __init__(self) -> None: ...

class R_ListAccountsResponse(Value):
    pcAccounts: int
    ppAccounts: list[ACCOUNT] | None
    result: int
    def __init__(
        self, *, pcAccounts: int, ppAccounts: list[ACCOUNT] | None = ..., result: int
    ) -> None: ...

class R_MakeBackupRequest(Value):
    pwszDirectory: str
    def __init__(self, *, pwszDirectory: str) -> None: ...

class R_MakeBackupResponse(Value):
    ppwszProblem: str | None
    result: int
    def __init__(self, *, ppwszProblem: str | None = ..., result: int) -> None: ...

class R_CompactRequest(Value):
    def __init__(self) -> None: ...

class R_CompactResponse(Value):
    pBytesBefore: int
    pBytesAfter: int
    result: int
    def __init__(self, *, pBytesBefore: int, pBytesAfter: int, result: int) -> None: ...
