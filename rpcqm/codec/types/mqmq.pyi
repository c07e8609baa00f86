"""Types of idl/mqmq.idl: written by scripts/generate."""

from enum import IntEnum
from typing import Final
from uuid import UUID

from rpcqm.codec.interface import Value
from rpcqm.codec.types.dtyp import LARGE_INTEGER, ULARGE_INTEGER

VT_EMPTY: Final = 0

VT_NULL: Final = 1

VT_I2: Final = 2

VT_I4: Final = 3

VT_BOOL: Final = 11

VT_VARIANT: Final = 12

VT_I1: Final = 16

VT_UI1: Final = 17

VT_UI2: Final = 18

VT_UI4: Final = 19

VT_I8: Final = 20

VT_UI8: Final = 21

VT_LPWSTR: Final = 31

VT_BLOB: Final = 65

VT_CLSID: Final = 72

VT_VECTOR: Final = 4096

QUEUE_FORMAT_TYPE_UNKNOWN: Final = 0

QUEUE_FORMAT_TYPE_PUBLIC: Final = 1

QUEUE_FORMAT_TYPE_PRIVATE: Final = 2

QUEUE_FORMAT_TYPE_DIRECT: Final = 3

QUEUE_FORMAT_TYPE_MACHINE: Final = 4

QUEUE_FORMAT_TYPE_CONNECTOR: Final = 5

QUEUE_FORMAT_TYPE_DL: Final = 6

QUEUE_FORMAT_TYPE_MULTICAST: Final = 7

QUEUE_FORMAT_TYPE_SUBQUEUE: Final = 8

class PROPVARIANT(Value):
    vt: int
    wReserved1: int
    wReserved2: int
    wReserved3: int
    _varUnion: PROPVARIANT_varUnion
    def __init__(
        self,
        *,
        vt: int = ...,
        wReserved1: int = ...,
        wReserved2: int = ...,
        wReserved3: int = ...,
        _varUnion: PROPVARIANT_varUnion,
    ) -> None: ...

tag_inner_PROPVARIANT = PROPVARIANT

class XACTUOW(Value):
    rgb: bytes
    def __init__(self, *, rgb: bytes) -> None: ...

class BLOB(Value):
    cbSize: int
    pBlobData: bytes | None
    def __init__(self, *, cbSize: int = ..., pBlobData: bytes | None = ...) -> None: ...

class CAUB(Value):
    cElems: int
    pElems: bytes | None
    def __init__(self, *, cElems: int = ..., pElems: bytes | None = ...) -> None: ...

class CAUI(Value):
    cElems: int
    pElems: list[int] | None
    def __init__(self, *, cElems: int = ..., pElems: list[int] | None = ...) -> None: ...

class CAL(Value):
    cElems: int
    pElems: list[int] | None
    def __init__(self, *, cElems: int = ..., pElems: list[int] | None = ...) -> None: ...

class CAUL(Value):
    cElems: int
    pElems: list[int] | None
    def __init__(self, *, cElems: int = ..., pElems: list[int] | None = ...) -> None: ...

class CAUH(Value):
    cElems: int
    pElems: list[ULARGE_INTEGER] | None
    def __init__(self, *, cElems: int = ..., pElems: list[ULARGE_INTEGER] | None = ...) -> None: ...

class CACLSID(Value):
    cElems: int
    pElems: list[UUID] | None
    def __init__(self, *, cElems: int = ..., pElems: list[UUID] | None = ...) -> None: ...

class CALPWSTR(Value):
    cElems: int
    pElems: list[str | None] | None
    def __init__(self, *, cElems: int = ..., pElems: list[str | None] | None = ...) -> None: ...

class CAPROPVARIANT(Value):
    cElems: int
    pElems: list[PROPVARIANT] | None
    def __init__(self, *, cElems: int = ..., pElems: list[PROPVARIANT] | None = ...) -> None: ...

class VARENUM(IntEnum):
    VT_EMPTY = 0
    VT_NULL = 1
    VT_I2 = 2
    VT_I4 = 3
    VT_BOOL = 11
    VT_VARIANT = 12
    VT_I1 = 16
    VT_UI1 = 17
    VT_UI2 = 18
    VT_UI4 = 19
    VT_I8 = 20
    VT_UI8 = 21
    VT_LPWSTR = 31
    VT_BLOB = 65
    VT_CLSID = 72
    VT_VECTOR = 4096

class DL_ID(Value):
    m_DlGuid: UUID
    m_pwzDomain: str | None
    def __init__(self, *, m_DlGuid: UUID, m_pwzDomain: str | None = ...) -> None: ...

class MULTICAST_ID(Value):
    m_address: int
    m_port: int
    def __init__(self, *, m_address: int = ..., m_port: int = ...) -> None: ...

class OBJECTID(Value):
    Lineage: UUID
    Uniquifier: int
    def __init__(self, *, Lineage: UUID, Uniquifier: int = ...) -> None: ...

class QUEUE_FORMAT_TYPE(IntEnum):
    QUEUE_FORMAT_TYPE_UNKNOWN = 0
    QUEUE_FORMAT_TYPE_PUBLIC = 1
    QUEUE_FORMAT_TYPE_PRIVATE = 2
    QUEUE_FORMAT_TYPE_DIRECT = 3
    QUEUE_FORMAT_TYPE_MACHINE = 4
    QUEUE_FORMAT_TYPE_CONNECTOR = 5
    QUEUE_FORMAT_TYPE_DL = 6
    QUEUE_FORMAT_TYPE_MULTICAST = 7
    QUEUE_FORMAT_TYPE_SUBQUEUE = 8

class QUEUE_FORMAT(Value):
    m_qft: int
    m_SuffixAndFlags: int
    m_reserved: int
    u: QUEUE_FORMAT_u
    def __init__(
        self,
        *,
        m_qft: int = ...,
        m_SuffixAndFlags: int = ...,
        m_reserved: int = ...,
        u: QUEUE_FORMAT_u,
    ) -> None: ...

class PROPVARIANT_varUnion(Value):
    tag: int
    value: (
        int
        | LARGE_INTEGER
        | ULARGE_INTEGER
        | UUID
        | BLOB
        | str
        | CAUB
        | CAUI
        | CAL
        | CAUL
        | CAUH
        | CACLSID
        | CALPWSTR
        | CAPROPVARIANT
        | None
    )
    def __init__(
        self,
        tag: int,
        value: int
        | LARGE_INTEGER
        | ULARGE_INTEGER
        | UUID
        | BLOB
        | str
        | CAUB
        | CAUI
        | CAL
        | CAUL
        | CAUH
        | CACLSID
        | CALPWSTR
        | CAPROPVARIANT
        | None = None,
    ) -> None: ...

class QUEUE_FORMAT_u(Value):
    tag: int
    value: UUID | OBJECTID | str | DL_ID | MULTICAST_ID | None
    def __init__(
        self, tag: int, value: UUID | OBJECTID | str | DL_ID | MULTICAST_ID | None = None
    ) -> None: ...
