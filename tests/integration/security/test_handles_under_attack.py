"""Handles of others, queues of others, and interfaces that are not for everybody."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from impacket import uuid as impacket_uuid
from impacket.dcerpc.v5 import mgmt, transport
from impacket.dcerpc.v5.rpcrt import DCERPCException

from rpcqm.base.errors import FaultStatus, HResult
from rpcqm.client.names import format_name
from rpcqm.codec.interface import load
from rpcqm.codec.properties import NULL_VARIANT, ManagementMachineProperty, QueueProperty
from rpcqm.codec.propvariant import propvariant_of
from rpcqm.codec.types.qmmgmt import MGMT_OBJECT, MGMT_OBJECT_u
from rpcqm.testing import PrivateQueueManager
from tests.integration.security.conftest import Connect, allow, bodies, filled
from tests.support.rpc.callers import Fault
from tests.support.rpc.dependent_client import (
    SEND_ACCESS,
    Client,
    object_of,
    open_remote,
    receiving_buffer,
)
from tests.support.rpc.network_caller import NetworkCaller, RefusedError
from tests.support.rpc.remote_reader import (
    LOOKUP_RECEIVE_CURRENT,
    LOOKUP_RECEIVE_NEXT,
    LOOKUP_RECEIVE_PREV,
    PEEK_ACCESS,
    RECEIVE_ACCESS,
    SEQUENCE,
    Reader,
    status_name,
)

REFUSED = {"RPC_S_ACCESS_DENIED", "MQ_ERROR_ACCESS_DENIED", "STATUS_ACCESS_DENIED"}
FOREIGN = int(FaultStatus.nca_s_fault_context_mismatch)


def here(name: str) -> str:
    return f"DIRECT=OS:.\\private$\\{name}"


def outcome(attempt: Callable[[], Any]) -> str:
    """The name of what a call returned or threw."""
    try:
        answer = attempt()
    except Fault as fault:
        if fault.status in FaultStatus._value2member_map_:
            return FaultStatus(fault.status).name
        return status_name(fault.status)
    if isinstance(answer, str):
        return answer
    return status_name(getattr(answer, "result", HResult.MQ_OK))


# Handles of others


def reading(caller: NetworkCaller) -> Reader:
    return Reader(caller.caller)


def uses_of(handle: bytes) -> list[tuple[str, dict[str, Any]]]:
    """Every call of RemoteRead that takes a queue's handle."""
    read = {"LookupId": 0, "hCursor": 0, "ulAction": 0, "ulTimeout": 0, "dwRequestId": 7}
    sizes = {"dwMaxBodySize": SEQUENCE & 0xFFFF, "dwMaxCompoundMessageSize": 0xFFFF}
    return [
        ("R_PurgeQueue", {"phContext": handle}),
        ("R_CreateCursor", {"phContext": handle}),
        ("R_StartReceive", {"phContext": handle, **read, **sizes}),
        ("R_CancelReceive", {"phContext": handle, "dwRequestId": 7}),
        ("R_EndReceive", {"phContext": handle, "dwAck": 2, "dwRequestId": 7}),
        ("R_CloseQueue", {"pphContext": handle}),
    ]


@pytest.mark.parametrize("user", ["bob", "alice", ""], ids=["bob", "alice again", "nobody"])
def test_a_handle_of_another_association_is_worth_nothing(
    connect: Connect, queue_manager: PrivateQueueManager, queue: str, user: str
) -> None:
    alice = reading(connect("remoteread", user="alice"))
    handle = alice.open(here(queue))
    other = connect("remoteread", user=user)
    for operation, fields in uses_of(handle):
        with pytest.raises(Fault) as caught:
            other.call(operation, **fields)
        assert caught.value.status == (FOREIGN if user else FaultStatus.RPC_S_ACCESS_DENIED)
    assert alice.body(handle) == b"secret"


@pytest.mark.parametrize("user", ["bob", ""], ids=["bob", "nobody"])
def test_joining_the_group_of_a_client_does_not_give_its_handles(
    connect: Connect, queue_manager: PrivateQueueManager, queue: str, user: str
) -> None:
    """From the same address, which is all that a group is bound to besides."""
    first = connect("remoteread", user="alice")
    handle = reading(first).open(here(queue))
    other = connect("remoteread", user=user, group_id=first.group_id)
    for operation, fields in uses_of(handle):
        with pytest.raises(Fault) as caught:
            other.call(operation, **fields)
        assert caught.value.status in (FOREIGN, FaultStatus.RPC_S_ACCESS_DENIED)
    assert reading(first).body(handle) == b"secret"


@pytest.mark.parametrize(
    ("interface", "operation", "parameter"),
    [
        ("qmcomm", "rpc_ACCloseHandle", "phQueue"),
        ("qmcomm", "rpc_ACPurgeQueue", "hQueue"),
        ("qm2qm", "RemoteQMCloseQueue", "pphContext"),
        ("rpcqm_bulk", "R_BulkClose", "pphContext"),
        ("qm2qm", "RemoteQMEndReceive", "pphContext"),
    ],
)
def test_a_handle_is_no_good_on_another_interface(
    connect: Connect,
    supporting: PrivateQueueManager,
    interface: str,
    operation: str,
    parameter: str,
) -> None:
    name = filled(supporting, f"crossed-{operation}")
    caller = connect("remoteread", interface, user="alice", server=supporting)
    handle = reading(caller).open(here(name))
    more = {"dwAck": 2} if operation == "RemoteQMEndReceive" else {}
    with pytest.raises(Fault) as caught:
        caller.call(operation, **{parameter: handle}, **more)
    assert caught.value.status == FOREIGN
    assert reading(caller).body(handle) == b"secret"


def test_a_number_of_qm2qm_is_its_openers_only(
    connect: Connect, queue_manager: PrivateQueueManager, restricted: str
) -> None:
    """RemoteQMPurgeQueue names a queue by a number, which bob has seen go by."""
    alice = connect("qmcomm", "qm2qm", user="alice")
    number = open_remote(Client(alice.caller), here(restricted)).phQueue
    bob = connect("qmcomm", "qm2qm", user="bob")
    with pytest.raises(Fault):
        bob.call("RemoteQMPurgeQueue", hQueue=number)
    assert bodies(queue_manager, restricted) == [b"secret"]


def test_nobody_ends_the_read_of_another(
    connect: Connect, queue_manager: PrivateQueueManager, queue: str
) -> None:
    """Bob may use the queue, but a message that alice is receiving stays hers."""
    alice, bob = (reading(connect("remoteread", user=user)) for user in ("alice", "bob"))
    hers, his = alice.open(here(queue)), bob.open(here(queue))
    assert alice.body(hers, request_id=7) == b"secret"
    assert outcome(lambda: bob.end(his, 7, acknowledgement=1)) != "MQ_OK"
    assert outcome(lambda: bob.body(his).decode()) == "MQ_ERROR_IO_TIMEOUT"
    assert alice.end(hers, 7, acknowledgement=1) == "MQ_OK"
    assert bodies(queue_manager, queue) == [b"secret"]


# Queues of others


PARTS = pytest.mark.parametrize(
    "part", ["", ";journal", ";hidden"], ids=["queue", "journal", "subqueue"]
)
OTHERS = pytest.mark.parametrize("user", ["bob", ""], ids=["bob", "nobody"])


@OTHERS
@PARTS
@pytest.mark.parametrize("access", [RECEIVE_ACCESS, PEEK_ACCESS])
def test_a_restricted_queue_its_journal_and_subqueues_are_closed_to_others(
    connect: Connect,
    queue_manager: PrivateQueueManager,
    restricted: str,
    part: str,
    access: int,
    user: str,
) -> None:
    other = reading(connect("remoteread", user=user))
    assert outcome(lambda: other.open(here(restricted + part), access)) in REFUSED
    assert bodies(queue_manager, restricted) == [b"secret"]


@OTHERS
@pytest.mark.parametrize("part", ["", ";hidden"], ids=["queue", "subqueue"])
def test_nobody_moves_messages_into_the_queue_of_another(
    connect: Connect, restricted: str, part: str, user: str
) -> None:
    other = reading(connect("remoteread", user=user))
    assert outcome(lambda: other.open_for_move(here(restricted + part))) in REFUSED


@OTHERS
@PARTS
@pytest.mark.parametrize("access", [RECEIVE_ACCESS, PEEK_ACCESS])
def test_the_older_way_to_read_is_closed_to_others_too(
    connect: Connect,
    queue_manager: PrivateQueueManager,
    restricted: str,
    part: str,
    user: str,
    access: int,
) -> None:
    client = Client(connect("qmcomm", "qm2qm", user=user).caller)
    assert outcome(lambda: open_remote(client, here(restricted + part), access)) in REFUSED
    assert bodies(queue_manager, restricted) == [b"secret"]


def test_alice_reads_her_own_queue(
    connect: Connect, queue_manager: PrivateQueueManager, restricted: str
) -> None:
    """Without this the refusals above would prove nothing."""
    alice = reading(connect("remoteread", user="alice"))
    assert alice.receive(alice.open(here(restricted))) == b"secret"


@pytest.fixture
def dependent(connect: Connect, supporting: PrivateQueueManager, name: str) -> tuple[Client, str]:
    """Bob as a dependent client, and a queue that is alice's."""
    filled(supporting, name, journal=True)
    allow(supporting, name)
    caller = connect("qmcomm", "qmcomm2", user="bob", server=supporting)
    return Client(caller.caller), name


def test_a_dependent_client_does_not_use_the_queue_of_another(
    dependent: tuple[Client, str], supporting: PrivateQueueManager
) -> None:
    bob, name = dependent
    wishes = [(name, RECEIVE_ACCESS), (name, PEEK_ACCESS), (name, SEND_ACCESS)]
    wishes += [(f"{name};journal", RECEIVE_ACCESS), (f"{name};hidden", RECEIVE_ACCESS)]
    for wish, access in wishes:
        assert outcome(partial(bob.send_open, here(wish), access)) in REFUSED
    assert bodies(supporting, name) == [b"secret"]


def test_a_dependent_client_does_not_change_the_queue_of_another(
    dependent: tuple[Client, str], supporting: PrivateQueueManager
) -> None:
    bob, name = dependent
    attempts: list[Callable[[], Any]] = [
        lambda: bob.status("R_QMDeleteObject", pObjectFormat=object_of(here(name))),
        lambda: bob.set_properties(here(name), {QueueProperty.PROPID_Q_LABEL: "mine"}),
        lambda: bob.get_properties(here(name), QueueProperty.PROPID_Q_LABEL),
        lambda: bob.status(
            "R_QMGetObjectSecurityInternal",
            pObjectFormat=object_of(here(name)),
            RequestedInformation=4,
            nLength=1024,
        ),
        lambda: bob.status(
            "R_QMSetObjectSecurityInternal",
            pObjectFormat=object_of(here(name)),
            SecurityInformation=1,
            SDSize=20,
            pSecurityDescriptor=b"\1\0\0\x80" + bytes(16),
        ),
    ]
    for attempt in attempts:
        assert outcome(attempt) in REFUSED
    assert bodies(supporting, name) == [b"secret"]


# Less than was asked for


def lookup_identifier(queue_manager: PrivateQueueManager, name: str) -> int:
    """That of the first message."""
    with queue_manager.client() as client, client.open_reader(format_name(name)) as reader:
        return reader.peek(0).lookup_identifier


def test_a_handle_for_peeking_does_not_receive(
    connect: Connect, queue_manager: PrivateQueueManager, queue: str
) -> None:
    alice = reading(connect("remoteread", user="alice"))
    handle = alice.open(here(queue), PEEK_ACCESS)
    assert alice.body(handle, 0x80000000) == b"secret"
    identifier = lookup_identifier(queue_manager, queue)
    for action in (LOOKUP_RECEIVE_CURRENT, LOOKUP_RECEIVE_NEXT, LOOKUP_RECEIVE_PREV):
        attempt = partial(alice.read, handle, action, lookup_identifier=identifier)
        assert outcome(attempt) in REFUSED
    assert outcome(lambda: alice.read(handle)) in REFUSED
    assert outcome(lambda: alice.caller.call("R_PurgeQueue", phContext=handle)) in REFUSED
    assert bodies(queue_manager, queue) == [b"secret"]


def test_a_handle_for_peeking_does_not_move(
    connect: Connect, queue_manager: PrivateQueueManager, queue: str
) -> None:
    alice = reading(connect("remoteread", user="alice"))
    handle = alice.open(here(queue), PEEK_ACCESS)
    target, _ = alice.open_for_move(here(f"{queue};mine"))
    identifier = lookup_identifier(queue_manager, queue)
    assert outcome(lambda: alice.move(handle, target, identifier)) in REFUSED
    assert bodies(queue_manager, queue) == [b"secret"]


def test_a_dependent_client_that_peeks_does_not_receive(
    connect: Connect, supporting: PrivateQueueManager
) -> None:
    name = filled(supporting, "peeked-at")
    alice = Client(connect("qmcomm", "qmcomm2", user="alice", server=supporting).caller)
    handle, context = alice.open(here(name), PEEK_ACCESS)
    assert outcome(lambda: alice.receive(context, receiving_buffer())[0]) in REFUSED
    assert outcome(lambda: alice.status("rpc_ACPurgeQueue", hQueue=handle)) in REFUSED
    assert bodies(supporting, name) == [b"secret"]


# Interfaces that are not for everybody


@pytest.mark.parametrize("user", ["", "alice", "admin"])
@pytest.mark.parametrize("door", ["rpc", "qm2qm", "epm"])
def test_the_administrative_interface_is_not_on_the_network(
    connect: Connect, queue_manager: PrivateQueueManager, user: str, door: str
) -> None:
    """Not even for administrators, at no port."""
    try:
        caller = connect("rpcqm_admin", user=user, door=door)
    except (RefusedError, Fault):
        return
    assert caller.client.contexts == {}


def management(port: int, level: int = 1) -> Any:
    """impacket's connection to the management interface of the runtime."""
    binding = transport.DCERPCTransportFactory(f"ncacn_ip_tcp:127.0.0.1[{port}]")
    dce = binding.get_dce_rpc()
    if level > 1:
        binding.set_credentials("admin", "4dmin pass")
        dce.set_auth_level(level)
    dce.connect()
    dce.bind(mgmt.MSRPC_UUID_MGMT)
    return dce


@pytest.mark.parametrize(
    ("door", "level"), [("rpc", 1), ("rpc", 6), ("qm2qm", 1), ("qm2qm", 6), ("epm", 1)]
)
def test_the_server_cannot_be_stopped_over_the_network(
    queue_manager: PrivateQueueManager, door: str, level: int
) -> None:
    dce = management(queue_manager.endpoint(door)[1], level)
    with pytest.raises(DCERPCException, match="rpc_s_access_denied"):
        mgmt.hstop_server_listening(dce)
    listed = mgmt.hinq_if_ids(dce)["if_id_vector"]["if_id"]
    served = {impacket_uuid.bin_to_string(each["Data"]["Uuid"]).lower() for each in listed}
    assert str(load("rpcqm_admin").uuid) not in served


MACHINE = MGMT_OBJECT(type=1, u=MGMT_OBJECT_u(1, 0))


@pytest.mark.parametrize(("user", "level"), [("alice", 6), ("", 1)], ids=["alice", "nobody"])
def test_management_is_for_administrators(
    connect: Connect, queue_manager: PrivateQueueManager, user: str, level: int
) -> None:
    caller = connect("qmmgmt", user=user, level=level)
    values = [propvariant_of(NULL_VARIANT)]
    asked = [int(ManagementMachineProperty.PROPID_MGMT_MSMQ_ACTIVEQUEUES)]
    attempts: list[Callable[[], Any]] = [
        lambda: caller.call(
            "R_QMMgmtGetInfo", pObjectFormat=MACHINE, cp=1, aProp=asked, apVar=values
        ),
        lambda: caller.call("R_QMMgmtAction", pObjectFormat=MACHINE, lpwszAction="DISCONNECT"),
        lambda: caller.call("R_QMMgmtAction", pObjectFormat=MACHINE, lpwszAction="TIDY"),
    ]
    for attempt in attempts:
        assert outcome(attempt) in REFUSED
