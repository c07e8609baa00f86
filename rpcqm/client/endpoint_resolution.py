"""Asking an endpoint mapper for the port of an interface ([MS-RPCE] 3.3.1.3.1)."""

from uuid import UUID

from rpcqm.base.errors import DecodeError, FaultStatus, RpcFault
from rpcqm.codec.interface import Interface, load
from rpcqm.codec.types.epm import ept_mapRequest, twr_t
from rpcqm.rpc.client import RpcClient
from rpcqm.rpc.context_handle import NULL_HANDLE
from rpcqm.rpc.pdu import SyntaxId
from rpcqm.rpc.presentation import NDR
from rpcqm.rpc.tower import Tower, tcp_tower

MAXIMUM_TOWERS = 4


async def resolve(host: str, port: int, interface: Interface) -> int:
    """The TCP port at which `host` serves the interface, asked at the mapper's own port.

    Raises RpcFault(EPT_S_NOT_REGISTERED) when it does not, OSError when nobody answers.
    """
    wanted = tcp_tower(SyntaxId(interface.uuid, *interface.version), NDR, "0.0.0.0", 0).pack()
    request = ept_mapRequest(
        obj=UUID(int=0),
        map_tower=twr_t(tower_length=len(wanted), tower_octet_string=wanted),
        entry_handle=NULL_HANDLE,
        max_towers=MAXIMUM_TOWERS,
    )
    async with await RpcClient.connect_tcp(host, port) as client:
        binding = await client.bind(load("epm"))
        response = await binding.call("ept_map", request)
    for tower in response.ITowers:
        if tower is not None and (found := _tcp_port(tower.tower_octet_string)):
            return found
    raise RpcFault(FaultStatus.EPT_S_NOT_REGISTERED, interface.name)


def _tcp_port(octets: bytes) -> int | None:
    try:
        return Tower.unpack(octets).tcp_port
    except DecodeError:
        return None
