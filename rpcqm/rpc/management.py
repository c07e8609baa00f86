"""The remote management interface, served at every endpoint ([C706] Q, [MS-RPCE] 2.2.1.3)."""

from rpcqm.base.errors import FaultStatus
from rpcqm.codec.interface import load
from rpcqm.codec.types.epm import RPC_IF_ID
from rpcqm.codec.types.mgmt import (
    rpc_if_id_vector_t,
    rpc_mgmt_inq_if_idsRequest,
    rpc_mgmt_inq_if_idsResponse,
    rpc_mgmt_inq_princ_nameRequest,
    rpc_mgmt_inq_princ_nameResponse,
    rpc_mgmt_inq_statsRequest,
    rpc_mgmt_inq_statsResponse,
    rpc_mgmt_is_server_listeningRequest,
    rpc_mgmt_is_server_listeningResponse,
    rpc_mgmt_stop_server_listeningRequest,
    rpc_mgmt_stop_server_listeningResponse,
)
from rpcqm.rpc.call import Call
from rpcqm.rpc.endpoints import ServerFace

MGMT = load("mgmt")

ERROR_INSUFFICIENT_BUFFER = 122
"""A Win32 code: the name does not fit into what the caller offers."""


class ManagementInterface:
    """The handlers of the management interface of one server."""

    def __init__(self, server: ServerFace) -> None:
        self._server = server

    def rpc_mgmt_inq_if_ids(
        self, call: Call, request: rpc_mgmt_inq_if_idsRequest
    ) -> rpc_mgmt_inq_if_idsResponse:
        """The interfaces of the endpoint that is asked, without this one."""
        found: list[RPC_IF_ID | None] = [
            RPC_IF_ID(
                Uuid=each.syntax.uuid, VersMajor=each.syntax.major, VersMinor=each.syntax.minor
            )
            for each in call.association.endpoint.interfaces
            if each.syntax.uuid != MGMT.uuid
        ]
        vector = rpc_if_id_vector_t(Count=len(found), IfId=found)
        return rpc_mgmt_inq_if_idsResponse(if_id_vector=vector, status=0)

    def rpc_mgmt_inq_stats(
        self, call: Call, request: rpc_mgmt_inq_statsRequest
    ) -> rpc_mgmt_inq_statsResponse:
        """Calls in and out, packets in and out, as many as are asked for."""
        seen = self._server.statistics()
        all_of_them = [seen.calls_in, seen.calls_out, seen.packets_in, seen.packets_out]
        asked = [number & 0xFFFFFFFF for number in all_of_them[: request.count]]
        return rpc_mgmt_inq_statsResponse(count=len(asked), statistics=asked, status=0)

    def rpc_mgmt_is_server_listening(
        self, call: Call, request: rpc_mgmt_is_server_listeningRequest
    ) -> rpc_mgmt_is_server_listeningResponse:
        return rpc_mgmt_is_server_listeningResponse(status=0, result=1)

    def rpc_mgmt_stop_server_listening(
        self, call: Call, request: rpc_mgmt_stop_server_listeningRequest
    ) -> rpc_mgmt_stop_server_listeningResponse:
        """Refused to everybody: only the process that started the server stops it."""
        return rpc_mgmt_stop_server_listeningResponse(status=FaultStatus.RPC_S_ACCESS_DENIED)

    def rpc_mgmt_inq_princ_name(
        self, call: Call, request: rpc_mgmt_inq_princ_nameRequest
    ) -> rpc_mgmt_inq_princ_nameResponse:
        """The server's principal name for a security provider."""
        provider = self._server.providers.get(request.authn_proto)
        name, status = "", 0
        if provider is None:
            status = int(FaultStatus.RPC_S_UNKNOWN_AUTHN_SERVICE)
        elif len(provider.principal_name) < request.princ_name_size:
            name = provider.principal_name
        else:
            status = ERROR_INSUFFICIENT_BUFFER
        return rpc_mgmt_inq_princ_nameResponse(
            princ_name=name, status=status, princ_name_size=request.princ_name_size
        )
