"""rpcqm_cluster: a node of a cluster, whether it is the queue manager or a standby."""

import json
from dataclasses import asdict

from rpcqm.base.completion import Completion
from rpcqm.codec.types.rpcqm_cluster import (
    R_GetClusterStatusRequest,
    R_GetClusterStatusResponse,
    R_MakeCopyRequest,
    R_MakeCopyResponse,
    R_PromoteRequest,
    R_RemoveMemberRequest,
    R_SwitchOverRequest,
)
from rpcqm.operations.cluster import ClusterOperations
from rpcqm.rpc.call import Call
from rpcqm.rpc.interface_registry import NCALRPC, InterfacePolicy

POLICY = InterfacePolicy(transports=frozenset({NCALRPC}), of_process=True)
"""This interface cannot be reached from another machine."""


class ClusterInterface:
    """The handlers; others than administrators get MQ_ERROR_ACCESS_DENIED."""

    def __init__(self, cluster: ClusterOperations) -> None:
        self._cluster = cluster

    def R_GetClusterStatus(
        self, call: Call, request: R_GetClusterStatusRequest
    ) -> R_GetClusterStatusResponse:
        """How the node is, and the log as it sees it (Opnum 0)."""
        status = self._cluster.status(call.identity)
        text = json.dumps(asdict(status), separators=(",", ":"))
        return R_GetClusterStatusResponse(ppwszStatus=text, result=0)

    def R_Promote(self, call: Call, request: R_PromoteRequest) -> int:
        """Let this standby take over (Opnum 1)."""
        self._cluster.promote(call.identity)
        return 0

    def R_SwitchOver(self, call: Call, request: R_SwitchOverRequest) -> int:
        """Let another node take over from this primary (Opnum 2)."""
        self._cluster.switch_over(call.identity, request.pwszNode)
        return 0

    def R_RemoveMember(self, call: Call, request: R_RemoveMemberRequest) -> Completion[None]:
        """Keep the log for a member no more (Opnum 3)."""
        return self._cluster.remove(call.identity, request.pwszNode)

    async def R_MakeCopy(self, call: Call, request: R_MakeCopyRequest) -> R_MakeCopyResponse:
        """Copy this node's data (Opnum 4)."""
        problem = await self._cluster.copy(call.identity, request.pwszDirectory)
        return R_MakeCopyResponse(ppwszProblem=problem, result=0)
