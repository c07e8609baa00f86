"""Administrators ask and order another queue manager through objects ([MC-MQAC] 3.2, 3.3.6)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rpcqm.base.errors import HResult
from rpcqm.client.blocking import BlockingClient
from rpcqm.client.outgoing import OutgoingMessage
from rpcqm.client.passwords import nt_hash
from rpcqm.codec.automation.values import SafeArray, Variant
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.properties import ManagementMachineProperty, ManagementQueueProperty
from rpcqm.codec.types.mqvalues import VARENUM
from rpcqm.mqac import coclasses
from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.accounts import PASSWORD
from tests.support.dcom.com_objects import ADMINISTRATOR, EVERYBODY, Objects, served_objects, text
from tests.support.dcom.dcom_client import ENABLED, ComError, DcomClient, Reference

M, Q = ManagementMachineProperty, ManagementQueueProperty
FAR = r"other\private$\far"
SILENT = r"DIRECT=OS:silent\private$\x"
TEXTS = VARENUM.VT_ARRAY | VARENUM.VT_BSTR
HERE, OUTGOING = "IMSMQQueueManagement", "IMSMQOutgoingQueueManagement"


@pytest.fixture(scope="module")
def other() -> Iterator[PrivateQueueManager]:
    """It has a message for itself, and one that waits for a machine that is not there."""
    configuration = 'name = "other"\n[binary]\npeers = "silent=127.0.0.1:1"\n'
    with private_queue_manager((), configuration) as made:
        made.run("queue", "create", "far", "--sddl", EVERYBODY)
        yield made


@pytest.fixture(scope="module")
def far(other: PrivateQueueManager) -> Iterator[BlockingClient]:
    with other.client() as client:
        client.run(client.accounts.add("keeper", nt_hash(PASSWORD), ["administrators"]))
        for name in (r"DIRECT=OS:.\private$\far", SILENT):
            with client.open_sender(FormatName.parse(name)) as sender:
                sender.send(OutgoingMessage(b"waits"))
        yield client


@pytest.fixture(scope="module")
def alice(
    other: PrivateQueueManager, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Objects]:
    accounts: Path = tmp_path_factory.mktemp("accounts") / "remote.toml"
    accounts.touch(0o600)
    accounts.write_text(f"[OTHER]\nuser = 'keeper'\npassword = '{PASSWORD}'\n")
    host, port = other.endpoint("epm")
    remote = f'[remote]\npeers = "other={host}:{port}"\ncredentials_file = "{accounts}"\n'
    with served_objects(ENABLED + remote) as served:
        yield served


@pytest.fixture(scope="module")
def boss(alice: Objects, far: BlockingClient) -> Iterator[Objects]:
    with DcomClient(alice.machine.endpoint("epm"), ADMINISTRATOR) as com:
        yield Objects(alice.machine, com, alice.client)


def point(*names: str) -> pytest.MarkDecorator:
    return pytest.mark.conformance(*(f"MQAC-{name}" for name in names))


def application(objects: Objects, machine: str = "OTHER") -> Reference:
    made = objects.create(coclasses.MSMQ_APPLICATION, "IMSMQApplication3")
    objects.put(made, "Machine", machine)
    return made


def managed(
    objects: Objects, interface: str, path: Variant | None, name: Variant | None = None
) -> Reference:
    made = objects.create(coclasses.MSMQ_MANAGEMENT, "IMSMQManagement")
    objects.com.call(made, "Init", text("other"), path, name)
    return objects.com.query_interface(made, interface)


def told(
    far: BlockingClient,
    identifier: ManagementMachineProperty | ManagementQueueProperty,
    name: str = "",
) -> Any:
    """What qmmgmt tells over there."""
    subject = FormatName.parse(name) if name else None
    return far.run(far.management.property_of(subject, identifier))


def refusal(objects: Objects, reference: Reference, operation: str, *arguments: object) -> object:
    with pytest.raises(ComError) as refused:
        objects.com.call(reference, operation, *arguments)
    return refused.value.status


@point(
    "IMSMQApplication3-15-ActiveQueues",
    "IMSMQApplication3-16-PrivateQueues",
    "IMSMQApplication3-17-DirectoryServiceServer",
    "IMSMQApplication3-19-BytesInAllQueues",
    "IMSMQApplication3-20-Machine",
    "event-qmmgmt_get_info",
)
def test_a_machine_elsewhere_is_told_of(boss: Objects, far: BlockingClient) -> None:
    made = application(boss)
    assert boss.get(made, "PrivateQueues") == Variant(TEXTS, SafeArray(VARENUM.VT_BSTR, [FAR]))
    active = boss.com.call(made, "ActiveQueues")
    assert list(active.value.values) == list(told(far, M.PROPID_MGMT_MSMQ_ACTIVEQUEUES) or ())
    assert SILENT in active.value.values
    size = boss.get(made, "BytesInAllQueues")
    assert size == Variant(VARENUM.VT_I8, told(far, M.PROPID_MGMT_MSMQ_BYTES_IN_ALL_QUEUES))
    assert refusal(boss, made, "get_DirectoryServiceServer") is HResult.MQ_ERROR_NO_DS


@point(
    "IMSMQApplication3-18-IsConnected",
    "IMSMQApplication3-22-Connect",
    "IMSMQApplication3-23-Disconnect",
    "IMSMQApplication3-24-Tidy",
    "event-qmmgmt_action",
)
def test_a_machine_elsewhere_is_taken_off_the_network(boss: Objects, far: BlockingClient) -> None:
    made = application(boss)
    assert boss.get(made, "IsConnected") is True
    boss.com.call(made, "Disconnect")
    assert boss.get(made, "IsConnected") is False
    assert told(far, M.PROPID_MGMT_MSMQ_CONNECTED) == "DISCONNECTED"
    assert boss.get(application(boss, "localhost"), "IsConnected") is True
    boss.com.call(made, "Connect")
    assert told(far, M.PROPID_MGMT_MSMQ_CONNECTED) == "CONNECTED"
    boss.com.call(made, "Tidy")


@point(
    "IMSMQManagement-7-Init",
    "IMSMQManagement-9-Machine",
    "IMSMQManagement-10-MessageCount",
    "IMSMQManagement-13-IsLocal",
    "IMSMQManagement-15-BytesInQueue",
    "IMSMQQueueManagement-16-JournalMessageCount",
    "IMSMQQueueManagement-18-EodGetReceiveInfo",
    "event-qmmgmt_get_info",
)
def test_a_queue_elsewhere_is_told_of(boss: Objects, far: BlockingClient) -> None:
    made = managed(boss, HERE, text(FAR))
    name = f"DIRECT=OS:{FAR}"
    assert (boss.get(made, "Machine"), boss.get(made, "FormatName")) == ("other", name)
    assert boss.get(made, "MessageCount") == 1 == told(far, Q.PROPID_MGMT_QUEUE_MESSAGE_COUNT, name)
    size = Variant(VARENUM.VT_UI8, told(far, Q.PROPID_MGMT_QUEUE_BYTES_IN_QUEUE, name))
    assert boss.get(made, "BytesInQueue") == size
    codes = [boss.get(made, each) for each in ("ForeignStatus", "QueueType", "TransactionalStatus")]
    assert codes == [1, 1, 1]
    assert boss.get(made, "IsLocal") is True
    assert boss.get(made, "JournalMessageCount") == 0
    assert boss.com.call(made, "EodGetReceiveInfo").value.values == []


@point(
    "IMSMQManagement-7-Init",
    "IMSMQOutgoingQueueManagement-16-State",
    "IMSMQOutgoingQueueManagement-18-EodGetSendInfo",
    "IMSMQOutgoingQueueManagement-19-Resume",
    "IMSMQOutgoingQueueManagement-20-Pause",
    "event-qmmgmt_action",
)
def test_what_waits_elsewhere_is_held_and_released(boss: Objects, far: BlockingClient) -> None:
    made = managed(boss, OUTGOING, None, text(SILENT))
    boss.com.call(made, "Pause")
    assert boss.get(made, "State") == 4
    assert told(far, Q.PROPID_MGMT_QUEUE_STATE, SILENT) == "ONHOLD"
    assert boss.get(made, "IsLocal") is False
    collection = boss.com.call(made, "EodGetSendInfo")
    assert boss.get(collection, "Count") == 11
    boss.com.call(made, "Resume")
    assert told(far, Q.PROPID_MGMT_QUEUE_STATE, SILENT) != "ONHOLD"


@point("IMSMQManagement-7-Init", "IMSMQApplication3-18-IsConnected", "rule-3.1.4.1")
def test_nobody_else_asks_and_nobody_is_asked_without_an_account(
    boss: Objects, alice: Objects
) -> None:
    denied = HResult.MQ_ERROR_ACCESS_DENIED
    assert refusal(alice, application(alice), "get_IsConnected") is denied
    assert refusal(boss, application(boss, "stranger"), "get_IsConnected") is denied
    for objects, machine in ((alice, "other"), (boss, "stranger")):
        made = objects.create(coclasses.MSMQ_MANAGEMENT, "IMSMQManagement")
        assert refusal(objects, made, "Init", text(machine), text(FAR), None) is denied
    made = boss.create(coclasses.MSMQ_MANAGEMENT, "IMSMQManagement")
    gone = text(r"other\private$\none")
    assert (
        refusal(boss, made, "Init", text("other"), gone, None) is HResult.MQ_ERROR_QUEUE_NOT_FOUND
    )
    blank = refusal(boss, made, "get_MessageCount")
    assert blank is HResult.MQ_ERROR_UNINITIALIZED_OBJECT
