"""impacket's DCOM makes, asks and releases objects, with its default settings."""

from collections.abc import Iterator
from uuid import UUID, uuid4

import pytest
from impacket.dcerpc.v5 import dcomrt
from impacket.dcerpc.v5.rpcrt import (
    RPC_C_AUTHN_LEVEL_CONNECT,
    RPC_C_AUTHN_LEVEL_NONE,
    RPC_C_AUTHN_LEVEL_PKT_INTEGRITY,
    RPC_C_AUTHN_LEVEL_PKT_PRIVACY,
    DCERPCException,
)
from impacket.uuid import string_to_bin

from rpcqm.testing import PrivateQueueManager
from tests.support.dcom.dcom_client import ENABLED, served
from tests.support.dcom.dcom_impacket import call, connected, create, iid_of

MSMQ_MESSAGE = UUID("d7d6e075-dccd-11d0-aa4b-0060970debae")
PUBLISHED = "queues.example"
TCP = 7


@pytest.fixture(scope="module")
def server() -> Iterator[PrivateQueueManager]:
    with served(ENABLED.replace("true", f'true\nadvertise = ["{PUBLISHED}"]', 1)) as running:
        yield running


@pytest.fixture(scope="module")
def port(server: PrivateQueueManager) -> int:
    return server.endpoint("epm")[1]


@pytest.mark.parametrize("level", [RPC_C_AUTHN_LEVEL_PKT_INTEGRITY, RPC_C_AUTHN_LEVEL_PKT_PRIVACY])
def test_an_object_is_made_called_asked_and_released(port: int, level: int) -> None:
    with connected(port, level=level) as connection:
        message = create(connection, MSMQ_MESSAGE, "IMSMQMessage4")
        call(message, "IMSMQMessage4", "put_Label", "a label")
        older = message.RemQueryInterface(1, (iid_of("IMSMQMessage"),))
        assert call(older, "IMSMQMessage", "get_Label").pbstrLabel == "a label"
        message.RemAddRef()
        message.RemRelease()
        assert call(message, "IMSMQMessage4", "get_Label").pbstrLabel == "a label"


def test_interfaces_are_switched_eighty_times(port: int) -> None:
    """impacket logs on anew each time, on the same connection."""
    with connected(port) as connection:
        message = create(connection, MSMQ_MESSAGE, "IMSMQMessage4")
        older = message.RemQueryInterface(1, (iid_of("IMSMQMessage"),))
        for number in range(40):
            call(message, "IMSMQMessage4", "put_Priority", number % 8)
            assert call(older, "IMSMQMessage", "get_Priority").plPriority == number % 8


def test_a_target_is_found_among_the_bindings_by_its_name(port: int) -> None:
    with connected(port, target="localhost") as connection:
        message = create(connection, MSMQ_MESSAGE, "IMSMQMessage4")
        assert call(message, "IMSMQMessage4", "get_Priority").plPriority == 3


def test_several_objects_are_made_on_one_connection(port: int) -> None:
    """impacket binds anew for each."""
    with connected(port) as connection:
        first, second = (create(connection, MSMQ_MESSAGE, "IMSMQMessage4") for _ in range(2))
        call(first, "IMSMQMessage4", "put_Label", "first")
        call(second, "IMSMQMessage4", "put_Label", "second")
        assert call(first, "IMSMQMessage4", "get_Label").pbstrLabel == "first"


def test_pings_of_impacket_are_taken(port: int) -> None:
    with connected(port) as connection:
        message = create(connection, MSMQ_MESSAGE, "IMSMQMessage4")
        resolver = dcomrt.IObjectExporter(connection.get_dce_rpc())
        first = resolver.ComplexPing(0, 0, [message.get_oid()], [])
        assert first["ErrorCode"] == 0
        again = resolver.ComplexPing(first["pSetId"], 0, [], [message.get_oid()])
        assert (again["pSetId"], again["ErrorCode"]) == (first["pSetId"], 0)
        assert resolver.SimplePing(first["pSetId"])["ErrorCode"] == 0


def test_the_resolver_answers_impacket(server: PrivateQueueManager, port: int) -> None:
    _, dcom_port = server.endpoint("dcom")
    with connected(port) as connection:
        message = create(connection, MSMQ_MESSAGE, "IMSMQMessage4")
        resolver = dcomrt.IObjectExporter(connection.get_dce_rpc())
        assert resolver.ServerAlive()["ErrorCode"] == 0
        names = [each["aNetworkAddr"].rstrip("\0") for each in resolver.ServerAlive2()]
        assert names[:2] == ["127.0.0.1", PUBLISHED]
        found = resolver.ResolveOxid2(message.get_oxid(), (TCP,))
        assert f"127.0.0.1[{dcom_port}]" in [each["aNetworkAddr"].rstrip("\0") for each in found]


def test_the_older_activator_serves_impacket(port: int) -> None:
    with connected(port) as connection:
        activator = dcomrt.IActivation(connection.get_dce_rpc())
        message = activator.RemoteActivation(
            string_to_bin(str(MSMQ_MESSAGE)), iid_of("IMSMQMessage4")
        )
        assert call(message, "IMSMQMessage4", "get_Priority").plPriority == 3


def test_an_unknown_class_and_interface_have_the_codes_that_impacket_knows(port: int) -> None:
    with connected(port) as connection:
        with pytest.raises(DCERPCException, match="REGDB_E_CLASSNOTREG"):
            create(connection, uuid4(), "IMSMQMessage4")
        with pytest.raises(DCERPCException, match="E_NOINTERFACE"):
            create(connection, MSMQ_MESSAGE, "IMSMQQueue4")
        message = create(connection, MSMQ_MESSAGE, "IMSMQMessage4")
        with pytest.raises(DCERPCException, match="E_NOINTERFACE"):
            message.RemQueryInterface(1, (iid_of("IMSMQQueue4"),))


@pytest.mark.parametrize("level", [RPC_C_AUTHN_LEVEL_NONE, RPC_C_AUTHN_LEVEL_CONNECT])
def test_activation_below_the_minimum_level_is_denied(port: int, level: int) -> None:
    with (
        connected(port, level=level) as connection,
        pytest.raises(DCERPCException, match="access_denied"),
    ):
        create(connection, MSMQ_MESSAGE, "IMSMQMessage4")


def test_who_does_not_know_the_password_activates_nothing(port: int) -> None:
    with (
        connected(port, password="wrong") as connection,
        pytest.raises(DCERPCException, match="access_denied"),
    ):
        create(connection, MSMQ_MESSAGE, "IMSMQMessage4")
