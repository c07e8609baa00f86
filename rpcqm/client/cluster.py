"""What a node of a cluster tells, and what operators order there (docs/failover.md)."""

import json
from pathlib import Path
from typing import Any

from rpcqm.client.connection import Connections
from rpcqm.codec.types import rpcqm_cluster


class ClusterClient:
    """The node of this machine, whether it is the queue manager or a standby."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def status(self) -> dict[str, Any]:
        """How the node is, and the log and the other members as it sees them."""
        response = await self._connections.call(rpcqm_cluster.R_GetClusterStatusRequest())
        told: dict[str, Any] = json.loads(response.ppwszStatus or "{}")
        return told

    async def promote(self) -> None:
        """Let this standby take over."""
        await self._connections.call(rpcqm_cluster.R_PromoteRequest())

    async def switch_over(self, to: str = "") -> None:
        """Let another node take over from this primary: the one named `to`, or any."""
        await self._connections.call(rpcqm_cluster.R_SwitchOverRequest(pwszNode=to))

    async def remove(self, node: str) -> None:
        """Let the log wait for a node no more."""
        await self._connections.call(rpcqm_cluster.R_RemoveMemberRequest(pwszNode=node))

    async def copy(self, directory: Path) -> str:
        """Make a backup of this node's data; gives why that cannot be, or an empty text."""
        request = rpcqm_cluster.R_MakeCopyRequest(pwszDirectory=str(directory))
        return (await self._connections.call(request)).ppwszProblem or ""
