"""Objects over the network: activation, interfaces, references and calls ([MS-DCOM] 3.1)."""

from collections.abc import Iterator
from typing import Any
from uuid import UUID, uuid4

import pytest

from rpcqm.base.errors import FaultStatus, HResult, RpcFault
from rpcqm.codec.automation.objref import ObjRefStandard, StdObjRef, unpack_objref
from rpcqm.codec.interface import TransferSyntax, load
from rpcqm.codec.types.dcom import (
    ORPC_EXTENT,
    ORPC_EXTENT_ARRAY,
    ComplexPingRequest,
    IRemUnknown2_RemQueryInterface2Request,
    IRemUnknown_RemQueryInterfaceRequest,
    ResolveOxid2Request,
    ResolveOxidRequest,
    ServerAlive2Request,
    ServerAliveRequest,
    SimplePingRequest,
)
from rpcqm.dcom.activation import CLASS_OBJECT, CO_S_NOTALLINTERFACES
from rpcqm.dcom.object_interfaces import object_interfaces
from rpcqm.dcom.ping_sets import OR_INVALID_OID, OR_INVALID_SET
from rpcqm.dcom.resolver import OR_INVALID_OXID
from rpcqm.rpc.security.context import CONNECT, PKT_INTEGRITY, PKT_PRIVACY
from rpcqm.testing import PrivateQueueManager
from tests.support.dcom.dcom_client import ComError, DcomClient, Reference, orpcthis, served

MSMQ_MESSAGE = UUID("d7d6e075-dccd-11d0-aa4b-0060970debae")
FACTORY = "IClassFactory"


@pytest.fixture(scope="module")
def server() -> Iterator[PrivateQueueManager]:
    with served() as running:
        yield running


@pytest.fixture(scope="module")
def com(server: PrivateQueueManager) -> Iterator[DcomClient]:
    with DcomClient(server.endpoint("epm")) as client:
        yield client


@pytest.fixture
def message(com: DcomClient) -> Iterator[Reference]:
    made = com.create(MSMQ_MESSAGE, "IMSMQMessage4")
    yield made
    com.release(made, 1000)


def iid_of(interface: str) -> UUID:
    return object_interfaces()[interface].iid


def refusal(error: "pytest.ExceptionInfo[RpcFault]") -> int:
    return int(error.value.status)


# Activation.


@pytest.mark.parametrize("level", [PKT_INTEGRITY, PKT_PRIVACY])
@pytest.mark.parametrize("syntax", list(TransferSyntax))
def test_an_object_is_made_and_called_at_every_level_in_both_syntaxes(
    server: PrivateQueueManager, level: Any, syntax: TransferSyntax
) -> None:
    with DcomClient(server.endpoint("epm"), level=level, syntax=syntax) as client:
        made = client.create(MSMQ_MESSAGE, "IMSMQMessage4")
        client.call(made, "put_Label", "a label")
        assert client.call(made, "get_Label") == "a label"
        assert made.std.public_refs == 5
        client.release(made)


@pytest.mark.conformance("MQAC-rule-2.1")
def test_the_reply_names_the_exporter_by_the_address_that_was_dialled(
    server: PrivateQueueManager, com: DcomClient, message: Reference
) -> None:
    host, port = server.endpoint("dcom")
    named = [each.address for each in com.bindings.strings]
    assert named[0] == f"{host}[{port}]"
    assert f"localhost[{port}]" in named
    assert {each.tower_id for each in com.bindings.strings} == {7}, "ncacn_ip_tcp alone"
    assert [each.authn_svc for each in com.bindings.securities] == [10, 9]
    assert com.authn_hint == PKT_INTEGRITY
    assert message.std.oxid == com.oxid


def test_the_reference_names_the_resolver_without_a_port(com: DcomClient) -> None:
    response = com.remote_activation(MSMQ_MESSAGE, [iid_of("IMSMQMessage4")])
    reference = unpack_objref(response.ppInterfaceData[0])
    assert isinstance(reference, ObjRefStandard)
    assert reference.bindings.strings[0].address == "127.0.0.1"
    com.release(DcomClient.reference(response.ppInterfaceData[0]))


def test_several_interfaces_are_made_at_once_and_those_that_are_not_there_are_told(
    com: DcomClient,
) -> None:
    iids = [iid_of("IMSMQMessage4"), iid_of("IMSMQMessage"), iid_of("IMSMQQueue4")]
    first, second, third = com.create_with(MSMQ_MESSAGE, iids)
    assert com.status == CO_S_NOTALLINTERFACES
    assert third == HResult.E_NOINTERFACE
    assert isinstance(first, Reference)
    assert isinstance(second, Reference)
    assert first.std.oid == second.std.oid
    com.call(second, "put_Label", "older")
    assert com.call(first, "get_Label") == "older"


def test_remote_activation_tells_each_interface_and_success_as_a_whole(com: DcomClient) -> None:
    iids = [iid_of("IMSMQQueue4"), iid_of("IMSMQMessage4")]
    response = com.remote_activation(MSMQ_MESSAGE, iids)
    assert (response.phr, response.pResults) == (0, [HResult.E_NOINTERFACE, 0])
    assert response.ppInterfaceData[0] is None
    made = DcomClient.reference(response.ppInterfaceData[1])
    assert com.call(made, "get_Priority") == 3


@pytest.mark.parametrize(
    ("clsid", "interface", "status"),
    [
        (uuid4(), "IMSMQMessage4", HResult.REGDB_E_CLASSNOTREG),
        (MSMQ_MESSAGE, "IMSMQQueue4", HResult.E_NOINTERFACE),
    ],
)
def test_an_unknown_class_or_interface_has_its_code(
    com: DcomClient, clsid: UUID, interface: str, status: HResult
) -> None:
    with pytest.raises(ComError) as error:
        com.create(clsid, interface)
    assert error.value.status is status
    response = com.remote_activation(clsid, [iid_of(interface)])
    assert (response.result, response.phr) == (0, status)
    assert response.pResults == [0]
    assert response.ppInterfaceData == [None]


def test_a_factory_of_a_class_makes_its_objects(com: DcomClient) -> None:
    (factory,) = com.create_with(MSMQ_MESSAGE, [iid_of(FACTORY)], class_object=True)
    assert isinstance(factory, Reference)
    octets = com.call(factory, "RemoteCreateInstance", iid_of("IMSMQMessage2"))
    assert octets.interface == "IMSMQMessage2"
    assert com.call(octets, "get_Priority") == 3
    com.call(factory, "RemoteLockServer", 1)
    with pytest.raises(ComError) as error:
        com.call(factory, "RemoteCreateInstance", iid_of("IMSMQQueue4"))
    assert error.value.status is HResult.E_NOINTERFACE


def test_the_older_activator_gives_factories_too(com: DcomClient) -> None:
    response = com.remote_activation(MSMQ_MESSAGE, [iid_of(FACTORY)], Mode=CLASS_OBJECT)
    factory = DcomClient.reference(response.ppInterfaceData[0])
    made = com.call(factory, "RemoteCreateInstance", iid_of("IMSMQMessage4"))
    assert com.call(made, "get_Priority") == 3


@pytest.mark.parametrize("fields", [{"pwszObjectName": "a.txt"}, {"pObjectStorage": b"MEOW"}])
def test_objects_of_a_file_are_refused(com: DcomClient, fields: dict[str, Any]) -> None:
    response = com.remote_activation(MSMQ_MESSAGE, [iid_of("IMSMQMessage4")], **fields)
    assert response.phr == HResult.E_NOINTERFACE


def test_a_server_of_32_bits_is_not_registered(com: DcomClient) -> None:
    with pytest.raises(ComError) as error:
        com.create_with(MSMQ_MESSAGE, [iid_of("IMSMQMessage4")], actvflags=4)
    assert error.value.status is HResult.REGDB_E_CLASSNOTREG


@pytest.mark.parametrize("version", [(5, 8), (4, 7), (6, 1)])
def test_a_client_of_another_version_is_refused(com: DcomClient, version: tuple[int, int]) -> None:
    major, minor = version
    this = orpcthis(minor, flags=1, major=major)
    response = com.remote_activation(MSMQ_MESSAGE, [iid_of("IMSMQMessage4")], ORPCthis=this)
    assert response.result == HResult.RPC_E_VERSION_MISMATCH


# Calls.


def raw_call(com: DcomClient, reference: Reference, **this: int) -> Any:
    """get_Priority with another ORPCTHIS."""
    com.this = this
    try:
        return com.call(reference, "get_Priority")
    finally:
        com.this = {}


@pytest.mark.parametrize("minor", [1, 2, 4, 6, 7])
def test_every_version_up_to_ours_is_served(
    com: DcomClient, message: Reference, minor: int
) -> None:
    assert raw_call(com, message, minor=minor) == 3


@pytest.mark.parametrize(
    ("this", "status"),
    [
        ({"minor": 8}, HResult.RPC_E_VERSION_MISMATCH),
        ({"major": 4}, HResult.RPC_E_VERSION_MISMATCH),
        ({"flags": 1}, HResult.RPC_E_INVALID_HEADER),
    ],
)
def test_a_call_whose_orpcthis_is_wrong_is_a_fault(
    com: DcomClient, message: Reference, this: dict[str, int], status: HResult
) -> None:
    with pytest.raises(RpcFault) as error:
        raw_call(com, message, **this)
    assert refusal(error) == status
    assert com.call(message, "get_Priority") == 3, "the connection lives on"


def with_ipid(reference: Reference, ipid: bytes, interface: str = "") -> Reference:
    std = StdObjRef(0, 5, reference.std.oxid, reference.std.oid, ipid)
    return Reference(interface or reference.interface, std)


def test_a_call_of_an_unknown_ipid_is_disconnected(com: DcomClient, message: Reference) -> None:
    for wrong in (bytes(range(16)), com.rem_unknown):
        with pytest.raises(RpcFault) as error:
            com.call(with_ipid(message, wrong), "get_Priority")
        assert refusal(error) == HResult.RPC_E_DISCONNECTED


def test_an_ipid_is_called_by_its_own_interface_only(com: DcomClient, message: Reference) -> None:
    older = com.query_interface(message, "IMSMQMessage")
    for wrong in (
        with_ipid(message, older.ipid),
        with_ipid(message, message.ipid, "IMSMQTransactionDispenser3"),
    ):
        operation = "get_Priority" if wrong.interface == "IMSMQMessage4" else "BeginTransaction"
        with pytest.raises(RpcFault) as error:
            com.call(wrong, operation)
        assert refusal(error) == HResult.RPC_E_DISCONNECTED


def test_a_derived_interface_is_called_by_its_base(com: DcomClient, message: Reference) -> None:
    assert com.call(with_ipid(message, message.ipid, "IDispatch"), "GetTypeInfoCount") == 1


# Interfaces and references.


def test_interfaces_are_asked_for_and_have_one_ipid_each(
    com: DcomClient, message: Reference
) -> None:
    found = [
        com.query_interface(message, name)
        for name in ("IMSMQMessage", "IMSMQMessage2", "IMSMQMessage3", "IDispatch", "IUnknown")
    ]
    assert len({each.ipid for each in (message, *found)}) == 6
    assert {each.std.oid for each in found} == {message.std.oid}
    assert com.query_interface(message, "IMSMQMessage4").ipid == message.ipid
    with pytest.raises(ComError) as error:
        com.query_interface(message, "IMSMQQueue4")
    assert error.value.status is HResult.E_NOINTERFACE


def ask_for(com: DcomClient, ipid: bytes, *iids: UUID) -> Any:
    return com.unknown(
        "RemQueryInterface",
        IRemUnknown_RemQueryInterfaceRequest(
            orpcthis=orpcthis(),
            ripid=UUID(bytes_le=ipid),
            cRefs=3,
            cIids=len(iids),
            iids=list(iids),
        ),
    )


def test_each_interface_that_is_asked_for_has_its_own_result(
    com: DcomClient, message: Reference
) -> None:
    response = ask_for(com, message.ipid, iid_of("IMSMQQueue4"), iid_of("IMSMQMessage"))
    assert response.result == 0
    assert [each.hResult for each in response.ppQIResults] == [HResult.E_NOINTERFACE, 0]
    assert response.ppQIResults[1].std.cPublicRefs == 3


def test_asking_an_unknown_ipid_for_interfaces_names_no_object(
    com: DcomClient, message: Reference
) -> None:
    response = ask_for(com, bytes(range(16)), iid_of("IMSMQMessage4"))
    assert (response.result, response.ppQIResults) == (HResult.RPC_E_INVALID_OBJECT, None)


def test_the_second_interface_of_the_remote_unknown_gives_whole_references(
    com: DcomClient, message: Reference
) -> None:
    response = com.unknown(
        "RemQueryInterface2",
        IRemUnknown2_RemQueryInterface2Request(
            orpcthis=orpcthis(),
            ripid=UUID(bytes_le=message.ipid),
            cIids=2,
            iids=[iid_of("IMSMQMessage2"), iid_of("IMSMQQueue4")],
        ),
        "IRemUnknown2",
    )
    assert response.phr == [0, HResult.E_NOINTERFACE]
    made = DcomClient.reference(response.ppMIF[0])
    assert (made.interface, made.std.oid) == ("IMSMQMessage2", message.std.oid)
    assert com.call(made, "get_Priority") == 3
    assert response.ppMIF[1] is None


def test_an_object_ends_with_its_last_reference(com: DcomClient) -> None:
    made = com.create(MSMQ_MESSAGE, "IMSMQMessage4")
    assert com.add_references(made, 2, 1) == 0
    assert com.release(made, 6) == 0
    assert com.call(made, "get_Priority") == 3
    com.release(made, 1000)
    assert com.call(made, "get_Priority") == 3, "the private one is left"
    com.release(made, 0, 1)
    with pytest.raises(RpcFault) as error:
        com.call(made, "get_Priority")
    assert refusal(error) == HResult.RPC_E_DISCONNECTED
    assert com.add_references(made, 1) == HResult.CO_E_OBJNOTREG
    assert com.release(made) == 0


# Resolution and pings.


def test_the_exporter_is_resolved_and_a_foreign_one_is_not(
    server: PrivateQueueManager, com: DcomClient, message: Reference
) -> None:
    host, port = server.endpoint("dcom")
    asked: dict[str, Any] = {"cRequestedProtseqs": 1, "arRequestedProtseqs": [7]}
    for name, request in (
        ("ResolveOxid", ResolveOxidRequest(pOxid=com.oxid, **asked)),
        ("ResolveOxid2", ResolveOxid2Request(pOxid=com.oxid, **asked)),
    ):
        response = com.ask("dcom.IObjectExporter", name, request)
        assert response.result == 0
        assert response.pipidRemUnknown.bytes_le == com.rem_unknown
        assert response.pAuthnHint == PKT_INTEGRITY
        text = b"".join(
            unit.to_bytes(2, "little") for unit in response.ppdsaOxidBindings.aStringArray
        )
        assert f"{host}[{port}]".encode("utf-16-le") in text
        request.pOxid = 5
        assert com.ask("dcom.IObjectExporter", name, request).result == OR_INVALID_OXID


def test_pings_are_taken_and_wrong_ones_have_their_codes(
    com: DcomClient, message: Reference
) -> None:
    def ping(set_id: int, sequence: int, *oids: int) -> Any:
        request = ComplexPingRequest(
            pSetId=set_id,
            SequenceNum=sequence,
            cAddToSet=len(oids),
            cDelFromSet=0,
            AddToSet=list(oids) or None,
            DelFromSet=None,
        )
        return com.ask("dcom.IObjectExporter", "ComplexPing", request)

    made = ping(0, 1, message.std.oid)
    assert (made.result, made.pPingBackoffFactor) == (0, 0)
    simple = SimplePingRequest(pSetId=made.pSetId)
    assert com.ask("dcom.IObjectExporter", "SimplePing", simple).result == 0
    assert ping(made.pSetId, 2, 99).result == OR_INVALID_OID
    assert ping(7, 1).result == OR_INVALID_SET
    simple.pSetId = 7
    assert com.ask("dcom.IObjectExporter", "SimplePing", simple).result == OR_INVALID_SET


# Who is let in.


def test_everybody_may_ask_whether_the_server_lives(server: PrivateQueueManager) -> None:
    with DcomClient(server.endpoint("epm"), level=None) as stranger:
        alive = stranger.ask("dcom.IObjectExporter", "ServerAlive", ServerAliveRequest())
        assert alive.result == 0
        told = stranger.ask("dcom.IObjectExporter", "ServerAlive2", ServerAlive2Request())
        assert (told.pComVersion.MajorVersion, told.pComVersion.MinorVersion) == (5, 7)
        assert (told.result, told.pReserved) == (0, 0)


@pytest.mark.parametrize("level", [None, CONNECT])
def test_nothing_else_is_done_below_the_minimum_level(
    server: PrivateQueueManager, com: DcomClient, message: Reference, level: Any
) -> None:
    with DcomClient(server.endpoint("epm"), level=level) as stranger:
        stranger.exporter, stranger.rem_unknown = com.exporter, com.rem_unknown
        iids = [iid_of("IMSMQMessage4")]
        for attempt in (
            lambda: stranger.create_with(MSMQ_MESSAGE, iids),
            lambda: stranger.remote_activation(MSMQ_MESSAGE, iids),
            lambda: stranger.call(message, "get_Label"),
            lambda: stranger.release(message),
            lambda: stranger.ask("dcom.IObjectExporter", "SimplePing", SimplePingRequest(pSetId=1)),
        ):
            with pytest.raises(RpcFault) as error:
                attempt()
            assert refusal(error) == FaultStatus.RPC_S_ACCESS_DENIED
    assert com.call(message, "get_Priority") == 3


def test_the_interfaces_of_objects_are_at_their_own_port_only(server: PrivateQueueManager) -> None:
    with DcomClient(server.endpoint("rpc")) as client:
        with pytest.raises(RpcFault) as error:
            client.create(MSMQ_MESSAGE, "IMSMQMessage4")
        assert refusal(error) == FaultStatus.nca_s_unk_if


# Extensions.


@pytest.mark.parametrize("size", [0, 5, 8])
def test_extensions_that_nobody_knows_are_ignored(
    com: DcomClient, message: Reference, size: int
) -> None:
    """[MS-DCOM] 2.2.13.1: the data is as long as its size, rounded up to 8."""
    extent = ORPC_EXTENT(id=uuid4(), size=size, data=bytes(-(-size // 8) * 8))
    extensions = ORPC_EXTENT_ARRAY(size=1, reserved=0, extent=[extent, None])
    operation = load("mqac.IMSMQMessage4").operation("get_Priority")
    this = orpcthis()
    this.extensions = extensions
    response = com._loop.run(
        com._asked(
            com.exporter or ("", 0),
            "mqac.IMSMQMessage4",
            "get_Priority",
            operation.request_class(orpcthis=this),
            message.ipid,
        )
    )
    assert (response.result, response.orpcthat.extensions) == (0, None)
    activating = orpcthis(flags=1)
    activating.extensions = extensions
    iids = [iid_of("IMSMQMessage4")]
    assert com.remote_activation(MSMQ_MESSAGE, iids, ORPCthis=activating).phr == 0
