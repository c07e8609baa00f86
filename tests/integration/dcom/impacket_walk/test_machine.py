"""impacket calls every method of the objects for machines and for queues under administration.

What they tell is what qmmgmt and the directory tell.
"""

from typing import Any

import pytest

from rpcqm.base.errors import HResult
from rpcqm.client.outgoing import OutgoingMessage
from rpcqm.client.queue_settings import QueueSettings
from rpcqm.codec.automation.values import Variant
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.properties import ManagementMachineProperty, ManagementQueueProperty
from rpcqm.codec.types.mqvalues import VARENUM, QueueAccessType
from rpcqm.mqac import coclasses
from tests.support.dcom import clsids
from tests.support.dcom.com_objects import number, octets, text
from tests.support.dcom.impacket_place import ELSEWHERE, Place
from tests.support.dcom.impacket_walker import Held, Walker, Way
from tests.support.qm.directories import OWN_QUEUE, ROUTER, THEIR_QUEUE, WORKSTATION

APPLICATION = ("IMSMQApplication",)
DIRECTORY = ("IMSMQQuery", "IMSMQQueueInfos")
MANAGEMENT = (
    *("IMSMQManagement", "IMSMQQueueManagement", "IMSMQOutgoingQueueManagement"),
    "IMSMQCollection",
)
WALKED = (*APPLICATION, *DIRECTORY, *MANAGEMENT)
OWN, THEIRS = f"PUBLIC={OWN_QUEUE}", f"PUBLIC={THEIR_QUEUE}"
M, P = ManagementMachineProperty, ManagementQueueProperty
RECEIVE = QueueAccessType.RECEIVE_ACCESS


# MSMQApplication


@pytest.mark.parametrize("way", Way)
def test_impacket_calls_every_method_of_applications(place: Place, way: Way) -> None:
    with place.walk(way, APPLICATION) as walker:
        made = walker.create(coclasses.MSMQ_APPLICATION, "IMSMQApplication3")
        _machines(place, walker, made)
        _contents(place, walker, made)
        _network(place, walker, made)
        _certificates(place, walker, made)
        place.refused(walker, made)
        walker.put(made, "Machine", "ROUTER")
        assert walker.get(made, "Machine") == "ROUTER"
        away = HResult.MQ_ERROR_ACCESS_DENIED  # no account is configured for it
        assert walker.refusal(made, "get_IsConnected") == away


def _machines(place: Place, walker: Walker, made: Held) -> None:
    assert walker.call(made, "MachineIdOfMachineName", "router") == str(ROUTER)
    assert walker.call(made, "MachineNameOfMachineId", str(ROUTER)) == "ROUTER"
    assert walker.call(made, "MachineIdOfMachineName", "WORKSTATION") == str(WORKSTATION)
    unknown = HResult.MQ_ERROR_MACHINE_NOT_FOUND
    assert walker.refusal(made, "MachineIdOfMachineName", "nobody") == unknown
    assert walker.refusal(made, "MachineNameOfMachineId", "x") == HResult.E_INVALIDARG
    shown = place.machine.run("--version").stdout.split()[-1].split(".")
    told = [walker.get(made, f"MSMQVersion{part}") for part in ("Major", "Minor", "Build")]
    major, minor, patch = (int(part) for part in shown[:3])
    assert told == [4, 1, 10_000 * major + 100 * minor + patch]
    assert walker.get(made, "IsDsEnabled") is True
    assert walker.get(made, "Machine") == "WORKSTATION"


def _contents(place: Place, walker: Walker, made: Held) -> None:
    place.queue()
    walker.call(walker.message(), "Send", walker.destination(ELSEWHERE), None)
    for operation, identifier in (
        ("ActiveQueues", M.PROPID_MGMT_MSMQ_ACTIVEQUEUES),
        ("get_PrivateQueues", M.PROPID_MGMT_MSMQ_PRIVATEQ),
    ):
        listed = walker.call(made, operation)
        assert listed.vt == VARENUM.VT_ARRAY | VARENUM.VT_BSTR
        (names,) = place.told(None, identifier)
        assert sorted(listed.value.values) == sorted(names) != []
    (size,) = place.told(None, M.PROPID_MGMT_MSMQ_BYTES_IN_ALL_QUEUES)
    assert walker.get(made, "BytesInAllQueues") == Variant(VARENUM.VT_I8, size)
    assert size


def _network(place: Place, walker: Walker, made: Held) -> None:
    walker.call(made, "Disconnect")
    assert walker.get(made, "IsConnected") is False
    assert place.told(None, M.PROPID_MGMT_MSMQ_CONNECTED) == ["DISCONNECTED"]
    walker.call(made, "Connect")
    assert walker.get(made, "IsConnected") is True
    assert place.told(None, M.PROPID_MGMT_MSMQ_CONNECTED) == ["CONNECTED"]
    walker.call(made, "Tidy")
    assert place.told(None, M.PROPID_MGMT_MSMQ_DSSERVER) == [None]
    assert walker.refusal(made, "get_DirectoryServiceServer") == HResult.MQ_ERROR_NO_DS


def _certificates(place: Place, walker: Walker, made: Held) -> None:
    walker.call(made, "RegisterCertificate", None, octets(place.certificate))
    broken = walker.refusal(made, "RegisterCertificate", None, octets(b"broken"))
    assert broken == HResult.MQ_ERROR_INVALID_CERTIFICATE


# MSMQQuery and MSMQQueueInfos


@pytest.mark.parametrize("way", Way)
def test_impacket_calls_every_method_of_queries(place: Place, way: Way) -> None:
    with place.walk(way, DIRECTORY) as walker:
        query = walker.create(coclasses.MSMQ_QUERY, "IMSMQQuery4")
        public = place.client.run(place.client.queues.public())
        names = [each.format_name for each in public]
        infos = walker.call(query, "LookupQueue", *[None] * 11)
        assert _names(walker, infos) == names == [OWN, THEIRS]
        walker.call(infos, "Reset")
        assert walker.get(walker.call(infos, "Next"), "Label") == public[0].label
        theirs = text(f"{{{THEIR_QUEUE}}}")
        older = walker.call(query, "LookupQueue_v2", theirs, *[None] * 8)
        assert _names(walker, older) == [THEIRS]
        assert walker.refusal(query, "LookupQueue", text("x"), *[None] * 10) == HResult.E_INVALIDARG
        assert walker.refusal(query, "LookupQueue_v2", text("x"), *[None] * 8) == (
            HResult.E_INVALIDARG
        )
        blank = walker.create(coclasses.MSMQ_QUEUE_INFOS, "IMSMQQueueInfos4")
        for operation in ("Next", "Reset"):
            assert walker.refusal(blank, operation) == HResult.MQ_ERROR_UNINITIALIZED_OBJECT
        place.refused(walker, blank)
        place.refused(walker, query)


def _names(walker: Walker, infos: Held) -> list[object]:
    found = []
    while (info := walker.call(infos, "Next")) is not None:
        found.append(walker.get(info, "FormatName"))
    return found


# MSMQManagement, MSMQQueueManagement, MSMQOutgoingQueueManagement, MSMQCollection


@pytest.mark.parametrize("way", Way)
def test_impacket_calls_every_method_of_management(place: Place, way: Way) -> None:
    with place.walk(way, MANAGEMENT) as walker:
        _blank(walker)
        path = place.queue(QueueSettings(journal=True))
        name = "DIRECT=OS:" + path
        walker.call(walker.message(), "Send", walker.destination(name), None)
        queue = walker.open(path, RECEIVE)
        walker.call(walker.message(), "Send", walker.destination(name), None)
        walker.call(queue, "Receive", None, None, None, number(0), None)
        _every_queue(place, walker, name)
        _here(place, walker, name)
        with (
            place.client.begin_transaction() as transaction,
            place.client.open_sender(FormatName.parse(ELSEWHERE)) as sender,
        ):
            sender.send(OutgoingMessage(b"waits"), transaction)
        _every_queue(place, walker, ELSEWHERE)
        _outgoing(place, walker)


def _blank(walker: Walker) -> None:
    made = walker.create(clsids.MSMQ_MANAGEMENT, "IMSMQManagement")
    assert walker.refusal(made, "get_MessageCount") == HResult.MQ_ERROR_UNINITIALIZED_OBJECT
    nothing = walker.refusal(made, "Init", None, None, None)
    assert nothing == HResult.MQ_ERROR_INVALID_PARAMETER


def _managed(walker: Walker, name: str, interface: str = "IMSMQManagement") -> Held:
    made = walker.create(clsids.MSMQ_MANAGEMENT, "IMSMQManagement")
    walker.call(made, "Init", None, None, text(name))
    return made if interface == "IMSMQManagement" else walker.query(made, interface)


CODES: dict[str, tuple[ManagementQueueProperty, dict[str, Any] | None]] = {
    "MessageCount": (P.PROPID_MGMT_QUEUE_MESSAGE_COUNT, None),
    "ForeignStatus": (P.PROPID_MGMT_QUEUE_FOREIGN, {"YES": 0, "NO": 1, "UNKNOWN": 2}),
    "QueueType": (P.PROPID_MGMT_QUEUE_TYPE, {"PUBLIC": 0, "PRIVATE": 1}),
    "IsLocal": (P.PROPID_MGMT_QUEUE_LOCATION, {"LOCAL": True, "REMOTE": False}),
    "TransactionalStatus": (P.PROPID_MGMT_QUEUE_XACT, {"YES": 0, "NO": 1, "UNKNOWN": 2}),
}


def _every_queue(place: Place, walker: Walker, name: str) -> None:
    made = _managed(walker, name)
    assert walker.get(made, "FormatName") == name
    assert walker.get(made, "Machine") == "WORKSTATION"
    for each, (identifier, codes) in CODES.items():
        (told,) = place.told(name, identifier)
        assert walker.get(made, each) == (told if codes is None else codes[told]), each
    (size,) = place.told(name, P.PROPID_MGMT_QUEUE_BYTES_IN_QUEUE)
    assert walker.get(made, "BytesInQueue") == Variant(VARENUM.VT_UI8, size)
    assert size > 0


def _here(place: Place, walker: Walker, name: str) -> None:
    made = _managed(walker, name, "IMSMQQueueManagement")
    count, size = place.told(
        name, P.PROPID_MGMT_QUEUE_JOURNAL_MESSAGE_COUNT, P.PROPID_MGMT_QUEUE_BYTES_IN_JOURNAL
    )
    assert walker.get(made, "JournalMessageCount") == count == 1
    assert walker.get(made, "BytesInJournal") == Variant(VARENUM.VT_UI8, size)
    sources = walker.call(made, "EodGetReceiveInfo")
    assert sources.vt == VARENUM.VT_ARRAY | VARENUM.VT_VARIANT
    assert sources.value.values == []


def _outgoing(place: Place, walker: Walker) -> None:
    made = _managed(walker, ELSEWHERE, "IMSMQOutgoingQueueManagement")
    walker.call(made, "Pause")
    assert walker.get(made, "State") == 4
    assert place.told(ELSEWHERE, P.PROPID_MGMT_QUEUE_STATE) == ["ONHOLD"]
    assert walker.get(made, "NextHops").value.values == []
    walker.call(made, "EodResend")
    walker.call(made, "Resume")
    (state,) = place.told(ELSEWHERE, P.PROPID_MGMT_QUEUE_STATE)
    assert state != "ONHOLD"
    assert walker.get(made, "State") != 4
    collection = walker.call(made, "EodGetSendInfo")
    for name, identifier in (
        ("EodNoReadCount", P.PROPID_MGMT_QUEUE_EOD_NO_READ_COUNT),
        ("EodNoAckCount", P.PROPID_MGMT_QUEUE_EOD_NO_ACK_COUNT),
        ("EodResendCount", P.PROPID_MGMT_QUEUE_EOD_RESEND_COUNT),
    ):
        (told,) = place.told(ELSEWHERE, identifier)
        assert walker.call(collection, "Item", text(name)) == Variant(VARENUM.VT_UI4, told or 0)
    unknown = walker.refusal(collection, "Item", text("x"))
    assert unknown == HResult.MQ_ERROR_INVALID_PARAMETER
    assert walker.get(collection, "Count") == 11
    unknown = walker.call(collection, "_NewEnum")
    assert walker.query(unknown, "IEnumVARIANT").reference.get_iPid()
