"""Backups and disk space of a queue manager, through its administration interface."""

from pathlib import Path

from rpcqm.client.connection import Connections
from rpcqm.codec.types import rpcqm_admin


class MaintenanceError(Exception):
    """What was asked for could not be done; the text is a sentence."""


class Maintenance:
    """What can be done with the data while it is in use; for administrators of the machine."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def make_backup(self, directory: Path) -> None:
        """Have everything that is durable copied to a directory that is new or empty.

        The path is absolute. MaintenanceError when it cannot be written.
        """
        request = rpcqm_admin.R_MakeBackupRequest(pwszDirectory=str(directory))
        response = await self._connections.call("rpcqm_admin", "R_MakeBackup", request)
        if response.ppwszProblem:
            raise MaintenanceError(response.ppwszProblem)

    async def compact(self) -> tuple[int, int]:
        """Have the disk space of removed messages given back; bytes used before and after."""
        request = rpcqm_admin.R_CompactRequest()
        response = await self._connections.call("rpcqm_admin", "R_Compact", request)
        return response.pBytesBefore, response.pBytesAfter
