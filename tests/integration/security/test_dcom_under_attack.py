"""COM objects under attack: what strangers and accounts without rights try with activators,
references and pings. Every refusal has the specified code, one line, and others go on.
"""

import json
import struct
from collections.abc import Iterator
from typing import Any
from uuid import UUID, uuid4

import pytest

from rpcqm.base.errors import FaultStatus, HResult, RpcFault
from rpcqm.codec.automation.objref import ObjRefStandard, StdObjRef
from rpcqm.codec.automation.values import Variant
from rpcqm.codec.interface import load
from rpcqm.codec.types.dcom import (
    REMINTERFACEREF,
    ComplexPingRequest,
    IRemUnknown_RemQueryInterfaceRequest,
    IRemUnknown_RemReleaseRequest,
    LocationInfoData,
    RemoteCreateInstanceRequest,
)
from rpcqm.codec.types.oautvalues import VT_DISPATCH
from rpcqm.dcom.activation_properties import SERVER_LOCATION_INFO
from rpcqm.dcom.object_interfaces import object_interfaces
from rpcqm.rpc.security.context import CONNECT, PKT_INTEGRITY
from rpcqm.rpc.security.ntlm import NtlmCredentials
from rpcqm.testing import PrivateQueueManager
from tests.support.accounts import PASSWORD
from tests.support.dcom.dcom_client import (
    ENABLED,
    ComError,
    DcomClient,
    Reference,
    activation_properties,
    orpcthis,
    pack_request,
    served,
)

MSMQ_MESSAGE = UUID("d7d6e075-dccd-11d0-aa4b-0060970debae")
NEWEST = "IMSMQMessage4"
IID = object_interfaces()[NEWEST].iid
LOCATION = LocationInfoData(machineName=None, processId=0, apartmentId=0, contextId=0)
CONFIGURATION = ENABLED.replace(
    "true",
    "true\nobjects_per_caller = 300\nping_sets_per_caller = 20\n"
    'launch = "D:(A;;RP;;;AU)(A;;RP;;;AN)(A;;RP;;;WD)"',
    1,
)


@pytest.fixture(scope="module")
def server() -> Iterator[PrivateQueueManager]:
    with served(CONFIGURATION) as running:
        yield running


@pytest.fixture(scope="module")
def com(server: PrivateQueueManager) -> Iterator[DcomClient]:
    with DcomClient(server.endpoint("epm")) as client:
        yield client


@pytest.fixture
def message(com: DcomClient) -> Iterator[Reference]:
    made = com.create(MSMQ_MESSAGE, NEWEST)
    yield made
    assert com.call(made, "get_Priority") == 3, "others go on"
    com.release(made, 1_000_000)


def lines(server: PrivateQueueManager, event: str) -> int:
    return server.log_path.read_text().count(f'"event": "{event}"')


def test_anonymous_activates_nothing_whatever_the_descriptor_grants(
    server: PrivateQueueManager,
) -> None:
    with DcomClient(server.endpoint("epm"), level=None) as stranger:
        with pytest.raises(RpcFault) as error:
            stranger.create(MSMQ_MESSAGE, NEWEST)
        assert error.value.status is FaultStatus.RPC_S_ACCESS_DENIED


@pytest.mark.parametrize(
    "octets",
    [
        pytest.param(None, id="none"),
        pytest.param(b"", id="empty"),
        pytest.param(b"MEOW" + bytes(60), id="no kind"),
        pytest.param(pack_request([(SERVER_LOCATION_INFO, LOCATION)]), id="not what is needed"),
        pytest.param(activation_properties(MSMQ_MESSAGE, [IID])[:200], id="cut off"),
        pytest.param(
            ObjRefStandard(IID, StdObjRef(0, 5, 1, 2, bytes(16))).pack(), id="another reference"
        ),
    ],
)
def test_activation_properties_that_are_none_are_refused(
    com: DcomClient, message: Reference, octets: bytes | None
) -> None:
    request = RemoteCreateInstanceRequest(
        orpcthis=orpcthis(flags=1), pUnkOuter=None, pActProperties=octets
    )
    response = com.ask("dcom.IRemoteSCMActivator", "RemoteCreateInstance", request)
    assert (response.result, response.ppActProperties) == (HResult.E_INVALIDARG, None)


@pytest.mark.parametrize("place", [16, 24, 48, 60, 64, 80, 120, 160])
def test_sizes_of_properties_that_lie_are_refused(
    com: DcomClient, message: Reference, place: int
) -> None:
    octets = bytearray(activation_properties(MSMQ_MESSAGE, [IID]))
    struct.pack_into("<I", octets, 48 + place, 0xFFFFFFF0)
    request = RemoteCreateInstanceRequest(
        orpcthis=orpcthis(flags=1), pUnkOuter=None, pActProperties=bytes(octets)
    )
    try:
        response = com.ask("dcom.IRemoteSCMActivator", "RemoteCreateInstance", request)
    except RpcFault as error:
        assert error.status is FaultStatus.RPC_X_BAD_STUB_DATA  # noqa: PT017
    else:
        assert response.result in (0, HResult.E_INVALIDARG, HResult.REGDB_E_CLASSNOTREG)


def test_an_unknown_class_is_logged_once(
    server: PrivateQueueManager, com: DcomClient, message: Reference
) -> None:
    before = lines(server, "a call was refused"), lines(server, "an activation was refused")
    with pytest.raises(ComError):
        com.create(uuid4(), NEWEST)
    assert com.remote_activation(uuid4(), [IID]).phr == HResult.REGDB_E_CLASSNOTREG
    after = lines(server, "a call was refused"), lines(server, "an activation was refused")
    assert (after[0] - before[0], after[1] - before[1]) == (1, 1)
    log = [json.loads(each) for each in server.log_path.read_text().splitlines()]
    (line,) = [each for each in log if each["event"] == "an activation was refused"][before[1] :]
    assert line["authentication_level"] == "RPC_C_AUTHN_LEVEL_PKT_PRIVACY"


def test_more_is_released_than_is_held(com: DcomClient) -> None:
    made = com.create(MSMQ_MESSAGE, NEWEST)
    ipid = UUID(bytes_le=made.ipid)
    everything = REMINTERFACEREF(ipid=ipid, cPublicRefs=0xFFFFFFFF, cPrivateRefs=0xFFFFFFFF)
    request = IRemUnknown_RemReleaseRequest(
        orpcthis=orpcthis(), cInterfaceRefs=1000, InterfaceRefs=[everything] * 1000
    )
    assert com.unknown("RemRelease", request).result == 0
    with pytest.raises(RpcFault) as error:
        com.call(made, "get_Priority")
    assert error.value.status is HResult.RPC_E_DISCONNECTED


def test_references_of_others_are_not_released_by_those_who_hold_none(
    server: PrivateQueueManager, com: DcomClient, message: Reference
) -> None:
    """Private references are a caller's own; who does not know the IPID releases nothing."""
    server.run("user", "add", "mallory", "--password-stdin", input=PASSWORD + "\n")
    assert com.add_references(message, 0, 1) == 0
    mallory = NtlmCredentials("mallory", PASSWORD)
    with DcomClient(server.endpoint("epm"), mallory) as other:
        other.exporter, other.rem_unknown = com.exporter, com.rem_unknown
        other.release(message, 1_000_000, 1_000_000)
    assert com.call(message, "get_Priority") == 3
    com.add_references(message, 5)
    com.release(message, 0, 1)


def foreign(reference: Reference, **fields: Any) -> bytes:
    """A reference like another one, but for some fields."""
    std = reference.std
    known: dict[str, Any] = {"oxid": std.oxid, "oid": std.oid, "ipid": std.ipid} | fields
    return ObjRefStandard(IID, StdObjRef(0, 0, **known)).pack()


def test_an_argument_that_names_no_object_of_ours_is_refused(
    com: DcomClient, message: Reference
) -> None:
    missing = Variant(VT_DISPATCH, foreign(message, ipid=bytes(16)))
    with pytest.raises(ComError) as error:
        com.call(message, "Send", foreign(message, ipid=bytes(16)), missing)
    assert error.value.status is HResult.E_NOINTERFACE
    with pytest.raises(ComError) as error:
        com.call(message, "Send", b"rubbish", missing)
    assert error.value.status is HResult.RPC_E_INVALID_OBJREF


def test_an_object_of_another_exporter_is_no_object_of_ours(
    com: DcomClient, message: Reference
) -> None:
    with pytest.raises(ComError):
        com.call(message, "Send", foreign(message, oxid=7), Variant(10, 0x80020004))


def test_many_interfaces_are_asked_for_at_once(com: DcomClient, message: Reference) -> None:
    count = 0xFFFF
    response = com.unknown(
        "RemQueryInterface",
        IRemUnknown_RemQueryInterfaceRequest(
            orpcthis=orpcthis(),
            ripid=UUID(bytes_le=message.ipid),
            cRefs=1,
            cIids=count,
            iids=[uuid4()] * count,
        ),
    )
    assert response.result == HResult.E_NOINTERFACE
    assert {each.hResult for each in response.ppQIResults} == {HResult.E_NOINTERFACE}


def test_a_flood_of_pings_makes_no_more_sets_than_it_may(
    com: DcomClient, message: Reference
) -> None:
    request = ComplexPingRequest(
        pSetId=0,
        SequenceNum=0,
        cAddToSet=0xFFFF,
        cDelFromSet=0,
        AddToSet=[message.std.oid] * 0xFFFF,
        DelFromSet=None,
    )
    found = [com.ask("dcom.IObjectExporter", "ComplexPing", request).result for _ in range(25)]
    assert found == [0] * 20 + [1816] * 5


def test_an_object_is_called_by_no_opnum_of_the_local_methods(
    com: DcomClient, message: Reference
) -> None:
    interface = load(f"mqac.{NEWEST}")
    assert interface.operations[:3] == (None, None, None)

    async def ask(opnum: int) -> None:
        assert com.exporter is not None
        binding = await com._binding(com.exporter, f"mqac.{NEWEST}")
        pending = binding.client.start(
            binding.context_id, opnum, bytes(32), UUID(bytes_le=message.ipid)
        )
        await pending.result()

    for opnum in (0, 1, 2, 98, 0xFFFF):
        with pytest.raises(RpcFault) as error:
            com._loop.run(ask(opnum))
        assert error.value.status is FaultStatus.nca_s_op_rng_error


def test_a_level_that_is_allowed_is_served_and_no_lower_one() -> None:
    """`minimum_level = "connect"` is for old clients; without a logon nothing is done."""
    configuration = ENABLED.replace("true", 'true\nminimum_level = "connect"', 1)
    with served(configuration) as running:
        for level in (CONNECT, PKT_INTEGRITY):
            with DcomClient(running.endpoint("epm"), level=level) as client:
                made = client.create(MSMQ_MESSAGE, NEWEST)
                assert client.call(made, "get_Priority") == 3
                assert client.authn_hint == CONNECT
        with DcomClient(running.endpoint("epm"), level=None) as stranger:
            with pytest.raises(RpcFault) as error:
                stranger.create(MSMQ_MESSAGE, NEWEST)
            assert error.value.status is FaultStatus.RPC_S_ACCESS_DENIED


def test_accounts_that_the_descriptors_leave_out_are_denied() -> None:
    configuration = ENABLED.replace(
        "true", 'true\nlaunch = "D:(A;;RP;;;BA)"\naccess = "D:(A;;LC;;;BA)"', 1
    )
    with served(configuration) as running:
        running.run(
            *("user", "add", "chief", "--group", "administrators", "--password-stdin"),
            input=PASSWORD + "\n",
        )
        chief = NtlmCredentials("chief", PASSWORD)
        with (
            DcomClient(running.endpoint("epm"), chief) as allowed,
            DcomClient(running.endpoint("epm")) as alice,
        ):
            made = allowed.create(MSMQ_MESSAGE, NEWEST)
            assert allowed.call(made, "get_Priority") == 3
            with pytest.raises(ComError) as refused:
                alice.create(MSMQ_MESSAGE, NEWEST)
            assert refused.value.status is HResult.E_ACCESSDENIED
            assert alice.remote_activation(MSMQ_MESSAGE, [IID]).result == HResult.E_ACCESSDENIED
            alice.exporter, alice.rem_unknown = allowed.exporter, allowed.rem_unknown
            with pytest.raises(RpcFault) as error:
                alice.call(made, "get_Priority")
            assert error.value.status is FaultStatus.RPC_S_ACCESS_DENIED
