"""The endpoint mapper tells which interface is served at which port ([C706] O, [MS-RPCE] 2.2.1.2).

It maps what the server of the same process serves; nothing is registered or deleted from the
network.
"""

import enum
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar
from uuid import UUID, uuid4

from rpcqm.base.errors import DecodeError, FaultStatus, RpcFault
from rpcqm.base.resolver import LookUp, look_up
from rpcqm.codec.interface import Interface, TransferSyntax, load
from rpcqm.codec.types.epm import (
    RPC_IF_ID,
    ept_deleteRequest,
    ept_deleteResponse,
    ept_entry_t,
    ept_inq_objectRequest,
    ept_inq_objectResponse,
    ept_insertRequest,
    ept_insertResponse,
    ept_lookup_handle_freeRequest,
    ept_lookup_handle_freeResponse,
    ept_lookupRequest,
    ept_lookupResponse,
    ept_mapRequest,
    ept_mapResponse,
    ept_mgmt_deleteRequest,
    ept_mgmt_deleteResponse,
    twr_t,
)
from rpcqm.rpc.call import Call
from rpcqm.rpc.client import RpcClient
from rpcqm.rpc.context_handle import NULL_HANDLE, ContextHandle
from rpcqm.rpc.endpoints import BoundEndpoint, ServerFace
from rpcqm.rpc.interface_registry import NCACN_IP_TCP, RegisteredInterface
from rpcqm.rpc.management import MGMT
from rpcqm.rpc.pdu import SyntaxId
from rpcqm.rpc.presentation import NDR
from rpcqm.rpc.tower import Tower, tcp_tower

EPM = load("epm")

NOT_REGISTERED = 0x16C9A0D6
"""There is no (further) element that satisfies the inquiry."""
MAP_HANDLE = "ept_lookup_handle_t"
NIL = UUID(int=0)

ANY_ADDRESS = "0.0.0.0"
MOST_MAPS = 64
"""Addresses for which the endpoint mapper keeps a map.

Bound `rpc.endpoint_maps` [addresses]: all of them are forgotten, and made anew when they are asked
for.
"""

T = TypeVar("T")


class InquiryType(enum.IntEnum):
    """What ept_lookup selects by ([MS-RPCE] 2.2.1.2.4)."""

    RPC_C_EP_ALL_ELTS = 0
    RPC_C_EP_MATCH_BY_IF = 1
    RPC_C_EP_MATCH_BY_OBJ = 2
    RPC_C_EP_MATCH_BY_BOTH = 3


_INQUIRIES = frozenset(InquiryType)
_BY_INTERFACE = (InquiryType.RPC_C_EP_MATCH_BY_IF, InquiryType.RPC_C_EP_MATCH_BY_BOTH)
_BY_OBJECT = (InquiryType.RPC_C_EP_MATCH_BY_OBJ, InquiryType.RPC_C_EP_MATCH_BY_BOTH)


class VersionOption(enum.IntEnum):
    """Which versions of an interface ept_lookup selects ([MS-RPCE] 2.2.1.2.4)."""

    RPC_C_VERS_ALL = 1
    RPC_C_VERS_COMPATIBLE = 2
    RPC_C_VERS_EXACT = 3
    RPC_C_VERS_MAJOR_ONLY = 4
    RPC_C_VERS_UPTO = 5


_Versions = tuple[int, int]

_MATCHES: dict[int, Callable[[_Versions, _Versions], bool]] = {
    VersionOption.RPC_C_VERS_ALL: lambda served, asked: True,
    VersionOption.RPC_C_VERS_COMPATIBLE: lambda served, asked: (
        served[0] == asked[0] and served[1] >= asked[1]
    ),
    VersionOption.RPC_C_VERS_EXACT: lambda served, asked: served == asked,
    VersionOption.RPC_C_VERS_MAJOR_ONLY: lambda served, asked: served[0] == asked[0],
    VersionOption.RPC_C_VERS_UPTO: lambda served, asked: served <= asked,
}


class Element:
    """One element of the map; all of ours have the nil object."""

    __slots__ = ("entry", "host", "interface", "port", "version")

    def __init__(self, interface: RegisteredInterface, host: str, port: int) -> None:
        self.interface = interface
        self.host = host
        self.port = port
        self.version = interface.syntax.major, interface.syntax.minor
        self.entry = ept_entry_t(
            object=NIL, tower=_counted(self.tower()), annotation=interface.policy.annotation
        )

    def tower(self, transfer_syntax: SyntaxId = NDR) -> Tower:
        return tcp_tower(self.interface.syntax, transfer_syntax, self.host, self.port)


def _counted(tower: Tower) -> twr_t:
    octets = tower.pack()
    return twr_t(tower_length=len(octets), tower_octet_string=octets)


class _Map:
    """The elements for callers that have reached the machine by one address.

    A caller by IPv4 is not told of what listens on IPv6 only. Towers cannot name an IPv6 address:
    clients take the one they have used. The management interface is everywhere and not named.
    """

    def __init__(self, endpoints: Sequence[BoundEndpoint], reached: str) -> None:
        self.elements: list[Element] = []
        self.by_uuid: dict[UUID, list[Element]] = {}
        named = [each for each in endpoints if each.transport == NCACN_IP_TCP and each.advertised]
        if ":" in reached:
            named.sort(key=lambda endpoint: ":" not in endpoint.address)
        elif reached:
            named = [each for each in named if ":" not in each.address]
        for endpoint in named:
            self._add(endpoint, reached)

    def _add(self, endpoint: BoundEndpoint, reached: str) -> None:
        host = endpoint.address
        if host == ANY_ADDRESS and reached:
            host = reached
        for interface in endpoint.interfaces:
            if interface.policy.advertised and interface.syntax.uuid != MGMT.uuid:
                element = Element(interface, host, endpoint.port)
                self.elements.append(element)
                self.by_uuid.setdefault(interface.syntax.uuid, []).append(element)


class EndpointMapper:
    """The handlers of the endpoint mapper over what `server` listens for.

    `object_uuid` is the mapper's own object.
    """

    def __init__(self, server: ServerFace, object_uuid: UUID | None = None) -> None:
        self._server = server
        self._object = object_uuid or uuid4()
        self._known: list[BoundEndpoint] = []
        self._maps: dict[str, _Map] = {}

    def elements(self, reached: str = "", uuid: UUID | None = None) -> list[Element]:
        """The map as it is now: all of it, or what it has of one interface.

        `reached` is the address by which the caller has reached this machine, if any: it stands
        in the towers of endpoints that listen on all addresses. The map is made anew when the
        server listens elsewhere.
        """
        endpoints = self._server.endpoints
        if endpoints != self._known:
            self._known, self._maps = list(endpoints), {}
        found = self._maps.get(reached)
        if found is None:
            if len(self._maps) >= MOST_MAPS:
                self._maps.clear()
            found = self._maps[reached] = _Map(self._known, reached)
        return found.elements if uuid is None else found.by_uuid.get(uuid, [])

    def ept_insert(self, call: Call, request: ept_insertRequest) -> ept_insertResponse:
        """Refused: endpoints are registered by this process only."""
        return ept_insertResponse(status=FaultStatus.EPT_S_CANT_PERFORM_OP)

    def ept_delete(self, call: Call, request: ept_deleteRequest) -> ept_deleteResponse:
        """Refused, see ept_insert."""
        return ept_deleteResponse(status=FaultStatus.EPT_S_CANT_PERFORM_OP)

    def ept_mgmt_delete(
        self, call: Call, request: ept_mgmt_deleteRequest
    ) -> ept_mgmt_deleteResponse:
        """Refused, see ept_insert."""
        return ept_mgmt_deleteResponse(status=FaultStatus.EPT_S_CANT_PERFORM_OP)

    def ept_inq_object(self, call: Call, request: ept_inq_objectRequest) -> ept_inq_objectResponse:
        return ept_inq_objectResponse(ept_object=self._object, status=0)

    def ept_lookup(self, call: Call, request: ept_lookupRequest) -> ept_lookupResponse:
        """[C706] O, [MS-RPCE] 2.2.1.2.4 ept_lookup (Opnum 2).

        A page that is not full is the last and leaves no handle (impacket stops there); a full
        one leaves its handle even when nothing follows (rpcclient goes on to NOT_REGISTERED).
        """
        handle: ContextHandle | None = request.entry_handle
        try:
            rest = self._selected(call, request) if handle is None else handle.value
        except ValueError:  # an inquiry has no fault for this: the status tells it
            return self._looked_up(request, [], NULL_HANDLE, FaultStatus.EPT_S_CANT_PERFORM_OP)
        found = [element.entry for element in _take(rest, request.max_ents)]
        if len(found) < request.max_ents or not found:
            _close(call, handle)
            status = 0 if found else NOT_REGISTERED
            return self._looked_up(request, found, NULL_HANDLE, status)
        if handle is None:
            handle = call.open_context_handle(MAP_HANDLE, rest)
        return self._looked_up(request, found, handle.wire, 0)

    @staticmethod
    def _looked_up(
        request: ept_lookupRequest, found: list[ept_entry_t], handle: bytes, status: int
    ) -> ept_lookupResponse:
        return ept_lookupResponse(
            entry_handle=handle,
            num_ents=len(found),
            entries=found,
            status=status,
            max_ents=request.max_ents,
        )

    def _selected(self, call: Call, request: ept_lookupRequest) -> list[Element]:
        """The elements of an inquiry; raises ValueError for one that makes no sense."""
        reached = call.local_address
        inquiry = request.inquiry_type
        if inquiry not in _INQUIRIES:
            raise ValueError("an inquiry of no known type")
        if inquiry in _BY_INTERFACE:
            elements = self._of_interface(reached, request.Ifid, request.vers_option)
        else:
            elements = list(self.elements(reached))
        if inquiry in _BY_OBJECT and request.object not in (None, NIL):
            return []
        return elements

    def _of_interface(self, reached: str, asked: RPC_IF_ID | None, option: int) -> list[Element]:
        matches = _MATCHES.get(option)
        if asked is None or matches is None:
            raise ValueError("an inquiry by interface without one")
        version = asked.VersMajor, asked.VersMinor
        known = self.elements(reached, asked.Uuid)
        return [each for each in known if matches(each.version, version)]

    def ept_map(self, call: Call, request: ept_mapRequest) -> ept_mapResponse:
        """[C706] O, [MS-RPCE] 2.2.1.2.5 ept_map (Opnum 3).

        Elements with the nil object match every object. A handle is left only when there is
        more than fits.
        """
        handle: ContextHandle | None = request.entry_handle
        try:
            rest = list(self._mapped(call, request)) if handle is None else handle.value
        except DecodeError:  # a tower that cannot be read has a status, not a fault
            return self._answered(request, [], NULL_HANDLE, FaultStatus.EPT_S_CANT_PERFORM_OP)
        found = [_counted(tower) for tower in _take(rest, request.max_towers)]
        if rest and found and handle is None:
            handle = call.open_context_handle(MAP_HANDLE, rest)
        if not rest or not found:
            _close(call, handle)
            handle = None
        wire = NULL_HANDLE if handle is None else handle.wire
        return self._answered(request, found, wire, 0 if found else NOT_REGISTERED)

    @staticmethod
    def _answered(
        request: ept_mapRequest, found: list[twr_t], handle: bytes, status: int
    ) -> ept_mapResponse:
        return ept_mapResponse(
            entry_handle=handle,
            num_towers=len(found),
            ITowers=list(found),
            status=status,
            max_towers=request.max_towers,
        )

    def _mapped(self, call: Call, request: ept_mapRequest) -> Iterator[Tower]:
        """The towers like the one asked for, with the addresses filled in."""
        if request.map_tower is None:
            raise DecodeError("no tower")
        asked = Tower.unpack(request.map_tower.tower_octet_string)
        for element in self.elements(call.local_address, asked.interface.uuid):
            offered = element.interface
            tower = element.tower(asked.transfer_syntax)
            if (
                offered.syntax.major == asked.interface.major
                and offered.syntax.minor >= asked.interface.minor
                and asked.transfer_syntax in offered.tables
                and asked.protocols == tower.protocols
            ):
                yield tower

    def ept_lookup_handle_free(
        self, call: Call, request: ept_lookup_handle_freeRequest
    ) -> ept_lookup_handle_freeResponse:
        _close(call, request.entry_handle)
        return ept_lookup_handle_freeResponse(entry_handle=NULL_HANDLE, status=0)


def _take(rest: list[T], count: int) -> list[T]:
    taken, rest[:] = rest[:count], rest[count:]
    return taken


def _close(call: Call, handle: ContextHandle | None) -> None:
    if handle is not None:
        call.close_context_handle(handle)


async def resolve(host: str, epm_port: int, interface: Interface, find: LookUp = look_up) -> int:
    """Ask the endpoint mapper of a host for the TCP port of an interface.

    Raises OSError if nothing listens there, RpcFault if the interface is not served
    (EPT_S_NOT_REGISTERED) or the endpoint mapper fails (with the status that it tells).
    """
    asked = SyntaxId(interface.uuid, *interface.version)
    tower = tcp_tower(asked, NDR, "0.0.0.0", 0)
    async with await RpcClient.connect_tcp(host, epm_port, find=find) as client:
        mapper = await client.bind(EPM, TransferSyntax.NDR)
        request = ept_mapRequest(
            obj=NIL, map_tower=_counted(tower), entry_handle=NULL_HANDLE, max_towers=4
        )
        response = await mapper.send(request).response()
    if response.status not in (0, NOT_REGISTERED):
        raise RpcFault(FaultStatus(response.status), f"the endpoint mapper of {host} failed")
    for found in response.ITowers:
        port = found and Tower.unpack(found.tower_octet_string).tcp_port
        if port:
            return int(port)
    raise RpcFault(FaultStatus.EPT_S_NOT_REGISTERED, f"{interface.name} is not served at {host}")
