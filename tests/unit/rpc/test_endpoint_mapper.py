"""The endpoint mapper and the management interface over a server that is not there."""

from typing import Any
from uuid import UUID

import pytest

from rpcqm.base.errors import FaultStatus
from rpcqm.codec.interface import TransferSyntax
from rpcqm.codec.types.epm import RPC_IF_ID, ept_entry_t, twr_t
from rpcqm.rpc import pdu
from rpcqm.rpc.constants import AuthenticationLevel
from rpcqm.rpc.endpoint_mapper import (
    EPM,
    MOST_MAPS,
    NIL,
    NOT_REGISTERED,
    EndpointMapper,
    InquiryType,
    VersionOption,
)
from rpcqm.rpc.endpoints import BoundEndpoint, Statistics
from rpcqm.rpc.interface_registry import (
    NCACN_IP_TCP,
    NCALRPC,
    InterfacePolicy,
    InterfaceSet,
    register,
)
from rpcqm.rpc.management import MGMT, ManagementInterface
from rpcqm.rpc.pdu import SyntaxId
from rpcqm.rpc.presentation import NDR, NDR64
from rpcqm.rpc.security.context import AuthenticationError, Handshake
from rpcqm.rpc.tower import Tower, tcp_tower
from tests.support.rpc.probe import OTHER, PROBE, ProbeHandlers, ProbeInterface, Rig, Wire, element

NULL = bytes(20)
MAPPER = SyntaxId(EPM.uuid, *EPM.version)
MANAGEMENT = SyntaxId(MGMT.uuid, *MGMT.version)
CANT_PERFORM = 0x6D8


class NoProvider:
    """A row of the table of security providers that only has a name."""

    principal_name = "host/server"

    def accept(self, level: AuthenticationLevel, address: str = "") -> Handshake:
        raise AuthenticationError("no handshakes here")


class Server:
    """What the mapper needs of a server: three interfaces on two ports and a socket."""

    def __init__(self) -> None:
        handlers = ProbeHandlers()
        newer = SyntaxId(PROBE.uuid, 2, 0)
        annotated = InterfacePolicy(annotation="a probe")
        self.probe = register(ProbeInterface(), handlers, annotated)
        self.newer = register(ProbeInterface(newer), handlers, InterfacePolicy())
        self.other = register(ProbeInterface(OTHER), handlers, InterfacePolicy())
        self.management = register(MGMT, ManagementInterface(self), InterfacePolicy())
        first = InterfaceSet([self.probe, self.other, self.management])
        self.endpoints = [
            BoundEndpoint(NCACN_IP_TCP, "127.0.0.1", 2103, first),
            BoundEndpoint(NCACN_IP_TCP, "127.0.0.1", 2105, InterfaceSet([self.newer])),
            BoundEndpoint(NCACN_IP_TCP, "127.0.0.1", 135, InterfaceSet([]), advertised=False),
            BoundEndpoint(NCALRPC, "/run/socket", 0, first),
        ]
        self.providers = {10: NoProvider()}

    def statistics(self) -> Statistics:
        return Statistics(1, 2, 3, (1 << 32) + 4)


class MapperRig(Rig):
    """The mapper and the management interface, reached by PDUs."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.server = Server()
        self.mapper = EndpointMapper(self.server, UUID(int=7))
        served = [
            register(EPM, self.mapper, InterfacePolicy()),
            self.server.management,
            self.server.probe,
        ]
        interfaces = self.endpoint.interfaces
        assert isinstance(interfaces, InterfaceSet)
        for each in served[:2]:
            interfaces.add(each)


@pytest.fixture
def wire() -> Wire:
    connected = MapperRig().connect()
    connected.bind(p_context_elem=(element(0, MAPPER), element(1, MANAGEMENT)))
    return connected


def call(wire: Wire, interface: Any, context_id: int, name: str, **values: Any) -> Any:
    operation = interface.operation(name)
    stub = operation.encode_request(TransferSyntax.NDR, operation.request_class(**values))
    answer = wire.call(operation.opnum, stub, p_cont_id=context_id)
    assert isinstance(answer, pdu.Response), answer
    return operation.decode_response(TransferSyntax.NDR, answer.stub_data)


def lookup(wire: Wire, **values: Any) -> Any:
    defaults = {
        "inquiry_type": InquiryType.RPC_C_EP_ALL_ELTS,
        "object": None,
        "Ifid": None,
        "vers_option": VersionOption.RPC_C_VERS_ALL,
        "entry_handle": NULL,
        "max_ents": 100,
    }
    return call(wire, EPM, 0, "ept_lookup", **defaults | values)


def found(response: Any) -> list[tuple[SyntaxId, int | None]]:
    towers = [Tower.unpack(entry.tower.tower_octet_string) for entry in response.entries]
    return [(tower.interface, tower.tcp_port) for tower in towers]


EVERYTHING = [(PROBE, 2103), (OTHER, 2103), (SyntaxId(PROBE.uuid, 2), 2105)]


def test_everything_is_listed_but_the_mapper_itself(wire: Wire) -> None:
    response = lookup(wire)
    assert found(response) == EVERYTHING
    assert (response.status, response.entry_handle) == (0, NULL)
    assert {entry.object for entry in response.entries} == {NIL}
    assert [entry.annotation for entry in response.entries] == ["a probe", "", ""]


def test_pages_follow_each_other_to_the_end(wire: Wire) -> None:
    listed: list[Any] = []
    handle = NULL
    for _ in range(3):
        response = lookup(wire, max_ents=1, entry_handle=handle)
        assert response.status == 0
        listed += found(response)
        handle = response.entry_handle
        assert handle != NULL
    last = lookup(wire, max_ents=1, entry_handle=handle)
    assert (last.status, last.entry_handle, last.entries) == (NOT_REGISTERED, NULL, [])
    assert listed == EVERYTHING
    assert len(wire.association.group.handles) == 0


def test_a_page_that_is_not_full_is_the_last(wire: Wire) -> None:
    first = lookup(wire, max_ents=2)
    second = lookup(wire, max_ents=2, entry_handle=first.entry_handle)
    assert found(first) + found(second) == EVERYTHING
    assert (second.status, second.entry_handle) == (0, NULL)


def test_the_maximum_is_echoed(wire: Wire) -> None:
    operation = EPM.operation("ept_lookup")
    assert lookup(wire, max_ents=77).max_ents == 77
    assert operation.opnum == 2


def test_an_inquiry_may_be_given_up(wire: Wire) -> None:
    handle = lookup(wire, max_ents=1).entry_handle
    response = call(wire, EPM, 0, "ept_lookup_handle_free", entry_handle=handle)
    assert (response.entry_handle, response.status) == (NULL, 0)
    assert len(wire.association.group.handles) == 0
    again = call(wire, EPM, 0, "ept_lookup_handle_free", entry_handle=NULL)
    assert (again.entry_handle, again.status) == (NULL, 0)


def asked(major: int, minor: int = 0, uuid: UUID = PROBE.uuid) -> RPC_IF_ID:
    return RPC_IF_ID(Uuid=uuid, VersMajor=major, VersMinor=minor)


V12, V20 = EVERYTHING[0], EVERYTHING[2]


@pytest.mark.parametrize(
    ("option", "interface", "expected"),
    [
        (VersionOption.RPC_C_VERS_ALL, asked(9), [V12, V20]),
        (VersionOption.RPC_C_VERS_ALL, asked(1, 0, OTHER.uuid), [EVERYTHING[1]]),
        (VersionOption.RPC_C_VERS_COMPATIBLE, asked(1, 1), [V12]),
        (VersionOption.RPC_C_VERS_COMPATIBLE, asked(1, 3), []),
        (VersionOption.RPC_C_VERS_EXACT, asked(1, 2), [V12]),
        (VersionOption.RPC_C_VERS_EXACT, asked(1, 1), []),
        (VersionOption.RPC_C_VERS_MAJOR_ONLY, asked(2, 9), [V20]),
        (VersionOption.RPC_C_VERS_UPTO, asked(1, 9), [V12]),
        (VersionOption.RPC_C_VERS_UPTO, asked(3), [V12, V20]),
        (VersionOption.RPC_C_VERS_UPTO, asked(1, 1), []),
    ],
)
def test_elements_are_selected_by_interface(
    wire: Wire, option: VersionOption, interface: RPC_IF_ID, expected: list[Any]
) -> None:
    inquiry = InquiryType.RPC_C_EP_MATCH_BY_IF
    response = lookup(wire, inquiry_type=inquiry, Ifid=interface, vers_option=option)
    assert found(response) == expected
    assert response.status == (0 if expected else NOT_REGISTERED)


def test_elements_are_selected_by_object(wire: Wire) -> None:
    inquiry = InquiryType.RPC_C_EP_MATCH_BY_OBJ
    assert found(lookup(wire, inquiry_type=inquiry, object=NIL)) == EVERYTHING
    assert lookup(wire, inquiry_type=inquiry, object=UUID(int=9)).status == NOT_REGISTERED
    both = InquiryType.RPC_C_EP_MATCH_BY_BOTH
    assert found(lookup(wire, inquiry_type=both, object=NIL, Ifid=asked(2))) == [V12, V20]


@pytest.mark.parametrize(
    "values",
    [
        {"inquiry_type": 4},
        {"inquiry_type": 1, "Ifid": None},
        {"inquiry_type": 1, "Ifid": asked(1), "vers_option": 0},
        {"inquiry_type": 1, "Ifid": asked(1), "vers_option": 6},
    ],
)
def test_an_inquiry_that_makes_no_sense_is_refused(wire: Wire, values: dict[str, Any]) -> None:
    response = lookup(wire, **values)
    assert (response.status, response.entries) == (CANT_PERFORM, [])


def test_nothing_is_asked_for_with_a_maximum_of_zero(wire: Wire) -> None:
    assert lookup(wire, max_ents=0).status == NOT_REGISTERED


def test_more_than_500_are_bad_stub_data(wire: Wire) -> None:
    operation = EPM.operation("ept_lookup")
    request = operation.request_class(
        inquiry_type=0, object=None, Ifid=None, vers_option=1, entry_handle=NULL, max_ents=500
    )
    stub = operation.encode_request(TransferSyntax.NDR, request)
    assert stub.endswith((500).to_bytes(4, "little"))
    answer = wire.call(operation.opnum, stub[:-4] + (501).to_bytes(4, "little"))
    assert isinstance(answer, pdu.Fault)
    assert answer.status == FaultStatus.RPC_X_BAD_STUB_DATA


# ept_map.


def mapped(wire: Wire, tower: Tower | bytes | None, **values: Any) -> Any:
    octets = tower.pack() if isinstance(tower, Tower) else tower
    made = None
    if octets is not None:
        made = twr_t(tower_length=len(octets), tower_octet_string=octets)
    defaults = {"obj": NIL, "map_tower": made, "entry_handle": NULL, "max_towers": 4}
    return call(wire, EPM, 0, "ept_map", **defaults | values)


def test_a_tower_comes_back_with_its_address(wire: Wire) -> None:
    response = mapped(wire, tcp_tower(SyntaxId(PROBE.uuid, 1, 0), NDR, "0.0.0.0", 135))
    assert (response.status, response.num_towers, response.entry_handle) == (0, 1, NULL)
    tower = Tower.unpack(response.ITowers[0].tower_octet_string)
    assert tower == tcp_tower(PROBE, NDR, "127.0.0.1", 2103)


def test_any_object_is_mapped(wire: Wire) -> None:
    tower = tcp_tower(OTHER, NDR, "0.0.0.0", 0)
    assert mapped(wire, tower, obj=UUID(int=5)).num_towers == 1
    assert mapped(wire, tower, obj=None).num_towers == 1


@pytest.mark.parametrize(
    "tower",
    [
        pytest.param(tcp_tower(SyntaxId(PROBE.uuid, 3), NDR, "0.0.0.0", 0), id="other major"),
        pytest.param(tcp_tower(SyntaxId(PROBE.uuid, 1, 3), NDR, "0.0.0.0", 0), id="newer minor"),
        pytest.param(tcp_tower(PROBE, NDR64, "0.0.0.0", 0), id="other syntax"),
        pytest.param(tcp_tower(MAPPER, NDR, "0.0.0.0", 0), id="not served"),
        pytest.param(Tower(PROBE, NDR, ()), id="no protocol"),
        pytest.param(
            Tower(PROBE, NDR, tcp_tower(PROBE, NDR, "0.0.0.0", 0).floors[:2]), id="other protocol"
        ),
    ],
)
def test_what_is_not_served_is_not_mapped(wire: Wire, tower: Tower) -> None:
    response = mapped(wire, tower)
    assert (response.status, response.num_towers) == (NOT_REGISTERED, 0)


@pytest.mark.parametrize("octets", [None, b"", b"\x05\0garbage"], ids=["none", "empty", "garbage"])
def test_what_is_no_tower_cannot_be_mapped(wire: Wire, octets: bytes | None) -> None:
    assert mapped(wire, octets).status == CANT_PERFORM


def test_more_towers_than_fit_come_by_a_handle(wire: Wire) -> None:
    rig = wire.rig
    assert isinstance(rig, MapperRig)
    rig.server.endpoints.append(rig.server.endpoints[0])
    tower = tcp_tower(PROBE, NDR, "0.0.0.0", 0)
    first = mapped(wire, tower, max_towers=1)
    assert (first.num_towers, first.entry_handle != NULL) == (1, True)
    second = mapped(wire, tower, max_towers=1, entry_handle=first.entry_handle)
    assert (second.num_towers, second.status, second.entry_handle) == (1, 0, NULL)
    assert len(wire.association.group.handles) == 0


# The rest.


def test_nothing_is_registered_or_deleted_from_the_network(wire: Wire) -> None:
    octets = tcp_tower(PROBE, NDR, "127.0.0.1", 1).pack()
    tower = twr_t(tower_length=len(octets), tower_octet_string=octets)
    entry = ept_entry_t(object=NIL, tower=tower, annotation="")
    insert = call(wire, EPM, 0, "ept_insert", num_ents=1, entries=[entry], replace=1)
    delete = call(wire, EPM, 0, "ept_delete", num_ents=1, entries=[entry])
    managed = call(wire, EPM, 0, "ept_mgmt_delete", object_speced=0, object=None, tower=tower)
    assert {insert.status, delete.status, managed.status} == {CANT_PERFORM}
    assert found(lookup(wire)) == EVERYTHING


def test_the_mapper_has_an_object(wire: Wire) -> None:
    response = call(wire, EPM, 0, "ept_inq_object")
    assert (response.ept_object, response.status) == (UUID(int=7), 0)


def test_the_server_is_listening_and_stays_so(wire: Wire) -> None:
    listening = call(wire, MGMT, 1, "rpc_mgmt_is_server_listening")
    assert (listening.result, listening.status) == (1, 0)
    assert call(wire, MGMT, 1, "rpc_mgmt_stop_server_listening").status == 5
    assert call(wire, MGMT, 1, "rpc_mgmt_is_server_listening").result == 1


def test_the_interfaces_of_the_endpoint_are_told(wire: Wire) -> None:
    vector = call(wire, MGMT, 1, "rpc_mgmt_inq_if_ids").if_id_vector
    listed = {(each.Uuid, each.VersMajor, each.VersMinor) for each in vector.IfId}
    assert listed == {(PROBE.uuid, 1, 2), (OTHER.uuid, 1, 0), (EPM.uuid, 3, 0)}
    assert vector.Count == 3


@pytest.mark.parametrize("count", [0, 1, 3, 4, 50])
def test_as_many_statistics_as_asked_for(wire: Wire, count: int) -> None:
    response = call(wire, MGMT, 1, "rpc_mgmt_inq_stats", count=count)
    assert response.statistics == [1, 2, 3, 4][:count]
    assert response.count == min(count, 4)


@pytest.mark.parametrize(
    ("provider", "size", "name", "status"),
    [(10, 12, "host/server", 0), (10, 11, "", 122), (9, 100, "", 1747), (0, 100, "", 1747)],
)
def test_the_principal_name_of_a_provider(
    wire: Wire, provider: int, size: int, name: str, status: int
) -> None:
    response = call(
        wire, MGMT, 1, "rpc_mgmt_inq_princ_name", authn_proto=provider, princ_name_size=size
    )
    assert (response.princ_name, response.status) == (name, status)


def test_the_map_follows_the_server() -> None:
    rig = MapperRig()
    wire = rig.connect()
    wire.bind(p_context_elem=(element(0, MAPPER),))
    assert found(lookup(wire)) == EVERYTHING
    rig.server.endpoints.pop(0)
    assert found(lookup(wire)) == EVERYTHING[2:]
    more = BoundEndpoint(NCACN_IP_TCP, "127.0.0.1", 2107, InterfaceSet([rig.server.other]))
    rig.server.endpoints.append(more)
    assert found(lookup(wire)) == [*EVERYTHING[2:], (OTHER, 2107)]


# Addresses.

TCP = NCACN_IP_TCP


def hosts_and_ports(reached: str, *endpoints: tuple[str, int]) -> list[tuple[str, int]]:
    """What a caller is told who has reached the machine by an address."""
    server = Server()
    probes = InterfaceSet([server.probe])
    server.endpoints = [BoundEndpoint(TCP, host, port, probes) for host, port in endpoints]
    rig = MapperRig()
    rig.mapper._server = server
    wire = rig.connect()
    wire.association.local_address = reached
    wire.bind(p_context_elem=(element(0, MAPPER),))
    towers = [Tower.unpack(each.tower.tower_octet_string) for each in lookup(wire).entries]
    response = mapped(wire, tcp_tower(PROBE, NDR, "0.0.0.0", 0), max_towers=9)
    assert [Tower.unpack(each.tower_octet_string) for each in response.ITowers] == towers
    return [(".".join(map(str, each.floors[2].right)), each.tcp_port or 0) for each in towers]


@pytest.mark.parametrize(
    ("reached", "expected"),
    [
        pytest.param("192.0.2.7", [("192.0.2.7", 1), ("127.0.0.1", 2)], id="by IPv4"),
        pytest.param(
            "2001:db8::7",
            [("0.0.0.0", 3), ("0.0.0.0", 4), ("2001:db8::7", 1), ("127.0.0.1", 2)],
            id="by IPv6",
        ),
        pytest.param(
            "", [("0.0.0.0", 1), ("127.0.0.1", 2), ("0.0.0.0", 3), ("0.0.0.0", 4)], id="locally"
        ),
    ],
)
def test_towers_name_the_address_that_was_reached(
    reached: str, expected: list[tuple[str, int]]
) -> None:
    """An endpoint on all addresses has the caller's; IPv6 addresses do not fit into a tower."""
    endpoints = ("0.0.0.0", 1), ("127.0.0.1", 2), ("::", 3), ("::1", 4)
    wanted = [("0.0.0.0" if ":" in host else host, port) for host, port in expected]
    assert hosts_and_ports(reached, *endpoints) == wanted


@pytest.mark.bound("rpc.endpoint_maps")
def test_the_map_is_kept_for_few_addresses() -> None:
    mapper = MapperRig().mapper
    kept = [mapper.elements(f"127.0.0.{number}") for number in range(MOST_MAPS)]
    for number, made in enumerate(kept):
        assert mapper.elements(f"127.0.0.{number}") is made
    mapper.elements("127.0.1.0")
    assert mapper.elements("127.0.0.0") is not kept[0]
    assert len(mapper._maps) == 2
