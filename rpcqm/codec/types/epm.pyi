"""Types of idl/epm.idl: written by scripts/generate."""

from typing import Any, Final
from uuid import UUID

from rpcqm.codec.interface import OperationRequest, Value

ept_max_annotation_size: Final = 64

class RPC_IF_ID(Value):
    Uuid: UUID
    VersMajor: int
    VersMinor: int
    def __init__(self, *, Uuid: UUID, VersMajor: int = ..., VersMinor: int = ...) -> None: ...

class twr_t(Value):
    tower_length: int
    tower_octet_string: bytes
    def __init__(self, *, tower_length: int = ..., tower_octet_string: bytes) -> None: ...

class ept_entry_t(Value):
    object: UUID
    tower: twr_t | None
    annotation: str
    def __init__(self, *, object: UUID, tower: twr_t | None = ..., annotation: str) -> None: ...

class ept_insertRequest(OperationRequest[ept_insertResponse]):
    num_ents: int
    entries: list[ept_entry_t]
    replace: int
    def __init__(self, *, num_ents: int, entries: list[ept_entry_t], replace: int) -> None: ...

class ept_insertResponse(Value):
    status: int
    def __init__(self, *, status: int) -> None: ...

class ept_deleteRequest(OperationRequest[ept_deleteResponse]):
    num_ents: int
    entries: list[ept_entry_t]
    def __init__(self, *, num_ents: int, entries: list[ept_entry_t]) -> None: ...

class ept_deleteResponse(Value):
    status: int
    def __init__(self, *, status: int) -> None: ...

class ept_lookupRequest(OperationRequest[ept_lookupResponse]):
    inquiry_type: int
    object: UUID | None
    Ifid: RPC_IF_ID | None
    vers_option: int
    entry_handle: Any
    max_ents: int
    def __init__(
        self,
        *,
        inquiry_type: int,
        object: UUID | None = ...,
        Ifid: RPC_IF_ID | None = ...,
        vers_option: int,
        entry_handle: Any,
        max_ents: int,
    ) -> None: ...

class ept_lookupResponse(Value):
    entry_handle: bytes
    num_ents: int
    entries: list[ept_entry_t]
    status: int
    max_ents: int
    def __init__(
        self,
        *,
        entry_handle: bytes,
        num_ents: int,
        entries: list[ept_entry_t],
        status: int,
        max_ents: int,
    ) -> None: ...

class ept_mapRequest(OperationRequest[ept_mapResponse]):
    obj: UUID | None
    map_tower: twr_t | None
    entry_handle: Any
    max_towers: int
    def __init__(
        self,
        *,
        obj: UUID | None = ...,
        map_tower: twr_t | None = ...,
        entry_handle: Any,
        max_towers: int,
    ) -> None: ...

class ept_mapResponse(Value):
    entry_handle: bytes
    num_towers: int
    ITowers: list[twr_t | None]
    status: int
    max_towers: int
    def __init__(
        self,
        *,
        entry_handle: bytes,
        num_towers: int,
        ITowers: list[twr_t | None],
        status: int,
        max_towers: int,
    ) -> None: ...

class ept_lookup_handle_freeRequest(OperationRequest[ept_lookup_handle_freeResponse]):
    entry_handle: Any
    def __init__(self, *, entry_handle: Any) -> None: ...

class ept_lookup_handle_freeResponse(Value):
    entry_handle: bytes
    status: int
    def __init__(self, *, entry_handle: bytes, status: int) -> None: ...

class ept_inq_objectRequest(OperationRequest[ept_inq_objectResponse]):
    def __init__(self) -> None: ...

class ept_inq_objectResponse(Value):
    ept_object: UUID
    status: int
    def __init__(self, *, ept_object: UUID, status: int) -> None: ...

class ept_mgmt_deleteRequest(OperationRequest[ept_mgmt_deleteResponse]):
    object_speced: int
    object: UUID | None
    tower: twr_t | None
    def __init__(
        self, *, object_speced: int, object: UUID | None = ..., tower: twr_t | None = ...
    ) -> None: ...

class ept_mgmt_deleteResponse(Value):
    status: int
    def __init__(self, *, status: int) -> None: ...
