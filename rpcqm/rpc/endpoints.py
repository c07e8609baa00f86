"""What other parts of a server may read of it: its endpoints and its statistics."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from rpcqm.rpc.interface_registry import InterfaceSet
from rpcqm.rpc.security.context import SecurityProvider


@dataclass(frozen=True, slots=True)
class BoundEndpoint:
    """A listening address: a TCP host and port, or the path of a Unix socket (port 0)."""

    transport: str
    address: str
    port: int
    interfaces: InterfaceSet
    advertised: bool = True


@dataclass(frozen=True, slots=True)
class Statistics:
    """What rpc_mgmt_inq_stats counts ([C706] appendix Q)."""

    calls_in: int
    calls_out: int
    packets_in: int
    packets_out: int


class ServerFace(Protocol):
    """The members of a server that the endpoint mapper and the management interface use."""

    @property
    def endpoints(self) -> Sequence[BoundEndpoint]: ...

    @property
    def providers(self) -> Mapping[int, SecurityProvider]: ...

    def statistics(self) -> Statistics: ...
