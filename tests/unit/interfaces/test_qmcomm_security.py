"""Security descriptors of queues over qmcomm ([MS-MQMP] 3.1.4.6, 3.1.4.7)."""

from typing import Any

import pytest

from rpcqm.base.errors import HResult
from rpcqm.codec.properties import QueueProperty
from rpcqm.codec.security.descriptor import SecurityDescriptor
from rpcqm.codec.security.sddl import format_sddl, parse_sddl
from rpcqm.rpc.interface_registry import NCALRPC
from tests.support.queue_manager import RunningQueueManager
from tests.support.rpc.callers import (
    ADMINISTRATOR,
    ALICE,
    BOB,
    CallServer,
)
from tests.support.rpc.dependent_client import Client, object_of, served_clients
from tests.support.rpc.remote_reader import status_name

ORDERS = r"DIRECT=OS:.\private$\orders"
OWNER, GROUP, DACL, SACL = 1, 2, 4, 8
P = QueueProperty


@pytest.fixture
def server(qm: RunningQueueManager) -> CallServer:
    return served_clients(qm)


@pytest.fixture
def client(server: CallServer) -> Client:
    return Client(server.connect(ADMINISTRATOR, transport=NCALRPC))


def get_security(client: Client, parts: int, size: int = 4096) -> Any:
    return client.caller.call(
        "R_QMGetObjectSecurityInternal",
        pObjectFormat=object_of(ORDERS),
        RequestedInformation=parts,
        nLength=size,
    )


@pytest.mark.conformance("MQMP-op-8")
@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        (OWNER, "O:BA"),
        (GROUP, "G:BU"),
        (DACL, "D:(A;;0xf003f;;;WD)"),
        (SACL, "S:(AU;SA;0x4;;;WD)"),
        (OWNER | DACL, "O:BAD:(A;;0xf003f;;;WD)"),
        (15, "O:BAG:BUD:(A;;0xf003f;;;WD)S:(AU;SA;0x4;;;WD)"),
    ],
)
def test_the_parts_of_a_descriptor_are_told_each_on_its_own(
    qm: RunningQueueManager, client: Client, parts: int, expected: str
) -> None:
    text = "O:BAG:BUD:(A;;0xf003f;;;WD)S:(AU;SA;0x4;;;WD)"
    qm.create(security=parse_sddl(text).encode())
    response = get_security(client, parts)
    told = SecurityDescriptor.decode(response.pSecurityDescriptor[: response.lpnLengthNeeded])
    wanted = parse_sddl(expected)
    assert (told.owner, told.group, told.dacl, told.sacl) == (
        wanted.owner,
        wanted.group,
        wanted.dacl,
        wanted.sacl,
    ), format_sddl(told)


@pytest.mark.conformance("MQMP-op-8")
def test_a_small_buffer_is_told_how_much_is_needed(qm: RunningQueueManager, client: Client) -> None:
    qm.create()
    small = get_security(client, OWNER | DACL, 8)
    assert small.result == HResult.MQ_ERROR_SECURITY_DESCRIPTOR_TOO_SMALL
    assert small.pSecurityDescriptor == bytes(8)
    enough = get_security(client, OWNER | DACL, small.lpnLengthNeeded)
    assert enough.result == 0
    assert get_security(client, DACL, 0).result == small.result


@pytest.mark.conformance("MQMP-op-7")
def test_parts_of_a_descriptor_are_replaced(qm: RunningQueueManager, client: Client) -> None:
    qm.create(security=parse_sddl("O:BAD:(A;;0xf003f;;;WD)").encode())
    change = parse_sddl(f"O:{BOB.sid}D:(A;;0x2;;;{ALICE.sid})").encode()
    fields = {"SDSize": len(change), "pSecurityDescriptor": change}
    status = client.status(
        "R_QMSetObjectSecurityInternal",
        pObjectFormat=object_of(ORDERS),
        SecurityInformation=DACL,
        **fields,
    )
    assert status == "MQ_OK"
    qm.restart()
    kept = SecurityDescriptor.decode(qm.find().security)
    assert str(kept.owner) == "S-1-5-32-544"
    assert kept.dacl == SecurityDescriptor.decode(change).dacl


@pytest.mark.conformance("MQMP-op-7")
@pytest.mark.parametrize(
    ("parts", "descriptor", "status"),
    [
        (0, b"x", "MQ_ERROR_INVALID_PARAMETER"),
        (0x10, b"x", "MQ_ERROR_INVALID_PARAMETER"),
        (DACL, None, "MQ_ERROR_INVALID_PARAMETER"),
        (DACL, b"no descriptor", "MQ_ERROR_ILLEGAL_SECURITY_DESCRIPTOR"),
    ],
)
def test_a_wrong_descriptor_is_refused(
    qm: RunningQueueManager, client: Client, parts: int, descriptor: bytes | None, status: str
) -> None:
    qm.create()
    fields = {"SDSize": len(descriptor or b""), "pSecurityDescriptor": descriptor}
    operation = "R_QMSetObjectSecurityInternal"
    names = {"pObjectFormat": object_of(ORDERS), "SecurityInformation": parts}
    assert client.status(operation, **names, **fields) == status


@pytest.mark.conformance("MQMP-op-7", "MQMP-op-8")
def test_permissions_are_for_who_may_see_and_change_them(
    qm: RunningQueueManager, server: CallServer
) -> None:
    qm.create(security=parse_sddl(f"O:BAD:(A;;0x20000;;;{BOB.sid})").encode())
    bob = Client(server.connect(BOB, transport=NCALRPC))
    response = get_security(bob, DACL)
    assert response.result == 0
    status = bob.status(
        "R_QMSetObjectSecurityInternal",
        pObjectFormat=object_of(ORDERS),
        SecurityInformation=DACL,
        SDSize=response.lpnLengthNeeded,
        pSecurityDescriptor=response.pSecurityDescriptor[: response.lpnLengthNeeded],
    )
    assert status == "MQ_ERROR_ACCESS_DENIED"
    alice = Client(server.connect(ALICE, transport=NCALRPC))
    assert status_name(get_security(alice, DACL).result) == "MQ_ERROR_ACCESS_DENIED"
