"""Objects at a queue manager that is reached by IPv6 ([MS-DCOM] 2.2.19.3)."""

import ipaddress
import socket
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from rpcqm.codec.automation.objref import ObjRefStandard, unpack_objref
from rpcqm.codec.types.dcom import (
    IRemUnknown2_RemQueryInterface2Request,
    ResolveOxid2Request,
    ServerAlive2Request,
)
from rpcqm.dcom.object_interfaces import object_interfaces
from rpcqm.testing import PrivateQueueManager
from tests.support.dcom.clsids import MSMQ_MESSAGE
from tests.support.dcom.dcom_client import ENABLED, DcomClient, orpcthis, served

NEWEST = "IMSMQMessage4"
OUTSIDE = "2001:db8::7"
CONFIGURATION = ENABLED.replace("true", f'true\nadvertise = ["{OUTSIDE}"]', 1)


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


pytestmark = pytest.mark.skipif(not has_ipv6(), reason="loopback has no IPv6 here")


@pytest.fixture(scope="module")
def server() -> Iterator[PrivateQueueManager]:
    with served(CONFIGURATION, "--host", "::") as running:
        yield running


def reached_at(server: PrivateQueueManager, address: str) -> tuple[str, int]:
    return address, server.endpoint("epm")[1]


def is_ipv4(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).version == 4
    except ValueError:
        return False


def split(binding: str) -> tuple[str, int]:
    """A network address with an endpoint, as clients take it apart."""
    host, _, port = binding.rpartition("[")
    return host, int(port.removesuffix("]"))


def test_objects_are_made_and_called_by_the_address_that_was_dialled(
    server: PrivateQueueManager,
) -> None:
    address = "::1"
    with DcomClient(reached_at(server, address)) as com:
        made = com.create(MSMQ_MESSAGE, NEWEST)
        named = [split(each.address) for each in com.bindings.strings]
        port = server.endpoint("dcom")[1]
        assert named[0] == (address, port)
        assert (OUTSIDE, port) in named
        assert com.exporter == (address, port)
        assert not any(is_ipv4(host) for host, _ in named), "nobody listens there"
        com.call(made, "put_Label", "by " + address)
        assert com.call(made, "get_Label") == "by " + address
        assert com.release(made) == 0


def test_every_answer_names_addresses_of_ipv6_as_they_are_written(
    server: PrivateQueueManager,
) -> None:
    """Without brackets of their own: those are for the endpoint."""
    with DcomClient(reached_at(server, "::1")) as com:
        made = com.create(MSMQ_MESSAGE, NEWEST)
        asked: dict[str, Any] = {"cRequestedProtseqs": 1, "arRequestedProtseqs": [7]}
        resolved = com.ask(
            "dcom.IObjectExporter", "ResolveOxid2", ResolveOxid2Request(pOxid=com.oxid, **asked)
        )
        alive = com.ask("dcom.IObjectExporter", "ServerAlive2", ServerAlive2Request())
        port = server.endpoint("dcom")[1]
        assert texts(resolved.ppdsaOxidBindings)[:2] == [f"::1[{port}]", f"{OUTSIDE}[{port}]"]
        assert texts(alive.ppdsaOrBindings)[:2] == ["::1", OUTSIDE]
        request = IRemUnknown2_RemQueryInterface2Request(
            orpcthis=orpcthis(),
            ripid=UUID(bytes_le=made.ipid),
            cIids=1,
            iids=[object_interfaces()["IMSMQMessage2"].iid],
        )
        (octets,) = com.unknown("RemQueryInterface2", request, "IRemUnknown2").ppMIF
        reference = unpack_objref(octets)
        assert isinstance(reference, ObjRefStandard)
        first = [each.address for each in reference.bindings.strings][:2]
        assert [ipaddress.ip_address(each).version for each in first] == [6, 6]


def texts(bindings: Any) -> list[str]:
    """The string bindings, each behind its protocol; an empty one ends them."""
    units = b"".join(unit.to_bytes(2, "little") for unit in bindings.aStringArray)
    strings = units[: 2 * bindings.wSecurityOffset].decode("utf-16-le").split("\0")
    return [each[1:] for each in strings if each]
