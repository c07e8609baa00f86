"""Types of idl/mgmt.idl: written by scripts/generate."""

from rpcqm.codec.interface import OperationRequest, Value
from rpcqm.codec.types.epm import RPC_IF_ID

class rpc_if_id_vector_t(Value):
    Count: int
    IfId: list[RPC_IF_ID | None]
    def __init__(self, *, Count: int = ..., IfId: list[RPC_IF_ID | None]) -> None: ...

class rpc_mgmt_inq_if_idsRequest(OperationRequest[rpc_mgmt_inq_if_idsResponse]):
    def __init__(self) -> None: ...

class rpc_mgmt_inq_if_idsResponse(Value):
    if_id_vector: rpc_if_id_vector_t | None
    status: int
    def __init__(self, *, if_id_vector: rpc_if_id_vector_t | None = ..., status: int) -> None: ...

class rpc_mgmt_inq_statsRequest(OperationRequest[rpc_mgmt_inq_statsResponse]):
    count: int
    def __init__(self, *, count: int) -> None: ...

class rpc_mgmt_inq_statsResponse(Value):
    count: int
    statistics: list[int]
    status: int
    def __init__(self, *, count: int, statistics: list[int], status: int) -> None: ...

class rpc_mgmt_is_server_listeningRequest(OperationRequest[rpc_mgmt_is_server_listeningResponse]):
    def __init__(self) -> None: ...

class rpc_mgmt_is_server_listeningResponse(Value):
    status: int
    result: int
    def __init__(self, *, status: int, result: int) -> None: ...

class rpc_mgmt_stop_server_listeningRequest(
    OperationRequest[rpc_mgmt_stop_server_listeningResponse]
):
    def __init__(self) -> None: ...

class rpc_mgmt_stop_server_listeningResponse(Value):
    status: int
    def __init__(self, *, status: int) -> None: ...

class rpc_mgmt_inq_princ_nameRequest(OperationRequest[rpc_mgmt_inq_princ_nameResponse]):
    authn_proto: int
    princ_name_size: int
    def __init__(self, *, authn_proto: int, princ_name_size: int) -> None: ...

class rpc_mgmt_inq_princ_nameResponse(Value):
    princ_name: str
    status: int
    princ_name_size: int
    def __init__(self, *, princ_name: str, status: int, princ_name_size: int) -> None: ...
