"""MSMQManagement and its children, against what qmmgmt tells ([MC-MQAC] 3.3 to 3.5)."""

from collections.abc import Iterator
from typing import Any

import pytest

from rpcqm.base.errors import HResult
from rpcqm.client.outgoing import OutgoingMessage
from rpcqm.client.queue_settings import QueueSettings
from rpcqm.codec.automation.values import SafeArray, Variant
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.types import SequenceInfo
from rpcqm.codec.properties import ManagementQueueProperty
from rpcqm.codec.types.mqvalues import VARENUM, QueueAccessType
from rpcqm.testing import private_queue_manager
from tests.support.dcom import clsids
from tests.support.dcom.com_objects import (
    ADMINISTRATOR,
    QUEUE,
    STREAM,
    Objects,
    create_queue,
    number,
    served_objects,
    text,
)
from tests.support.dcom.dcom_client import ENABLED, ComError, DcomClient, Reference
from tests.support.waiting import until

ELSEWHERE = r"DIRECT=OS:elsewhere\private$\orders"
PEERS = '[binary]\npeers = "elsewhere=127.0.0.1:1"\n'
"""Nobody listens there."""
OUTGOING = "IMSMQOutgoingQueueManagement"
HERE = "IMSMQQueueManagement"


@pytest.fixture(scope="module")
def served() -> Iterator[Objects]:
    """As an administrator, with a queue elsewhere that messages wait for."""
    with (
        served_objects(f'name = "here"\n{PEERS}{ENABLED}') as alice,
        DcomClient(alice.machine.endpoint("epm"), ADMINISTRATOR) as com,
    ):
        objects = Objects(alice.machine, com, alice.client)
        with (
            alice.client.begin_transaction() as transaction,
            alice.client.open_sender(FormatName.parse(ELSEWHERE)) as sender,
        ):
            sender.send(OutgoingMessage(b"waits"), transaction)
        yield objects


def management(objects: Objects, interface: str = "IMSMQManagement") -> Reference:
    clsid = {
        "IMSMQManagement": clsids.MSMQ_MANAGEMENT,
        HERE: clsids.MSMQ_QUEUE_MANAGEMENT,
        OUTGOING: clsids.MSMQ_OUTGOING_QUEUE_MANAGEMENT,
    }[interface]
    return objects.create(clsid, interface)


def managed(objects: Objects, name: str, interface: str = "IMSMQManagement") -> Reference:
    made = management(objects)
    objects.com.call(made, "Init", None, None, text(name))
    return made if interface == "IMSMQManagement" else objects.com.query_interface(made, interface)


def told(objects: Objects, name: str, *properties: ManagementQueueProperty) -> list[Any]:
    """What qmmgmt tells of a queue."""
    asked = objects.client.management._information(FormatName.parse(name), properties)
    return objects.client.run(asked)


def refusal(objects: Objects, reference: Reference, operation: str, *arguments: object) -> object:
    with pytest.raises(ComError) as refused:
        objects.com.call(reference, operation, *arguments)
    return refused.value.status


P = ManagementQueueProperty

# Before Init, and Init itself


@pytest.mark.conformance("MQAC-IMSMQManagement-7-Init")
def test_nothing_is_told_before_init(objects: Objects) -> None:
    operations = {
        "IMSMQManagement": "FormatName Machine MessageCount ForeignStatus QueueType IsLocal"
        " TransactionalStatus BytesInQueue",
        HERE: "JournalMessageCount BytesInJournal",
        OUTGOING: "State NextHops",
    }
    methods = {HERE: ["EodGetReceiveInfo"], OUTGOING: ["EodGetSendInfo", "Pause", "EodResend"]}
    for interface, names in operations.items():
        made = management(objects, interface)
        for operation in [f"get_{name}" for name in names.split()] + methods.get(interface, []):
            blank = refusal(objects, made, operation)
            assert blank is HResult.MQ_ERROR_UNINITIALIZED_OBJECT, operation


@pytest.mark.conformance("MQAC-IMSMQManagement-7-Init")
@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        ((None, None, None), HResult.MQ_ERROR_INVALID_PARAMETER),
        ((None, text(QUEUE), text("DIRECT=OS:" + QUEUE)), HResult.MQ_ERROR_INVALID_PARAMETER),
        ((None, text("orders"), None), HResult.MQ_ERROR_ILLEGAL_QUEUE_PATHNAME),
        ((None, None, text("orders")), HResult.MQ_ERROR_ILLEGAL_FORMATNAME),
        ((None, None, text("DIRECT=OS:" + QUEUE)), HResult.MQ_ERROR_QUEUE_NOT_ACTIVE),
        ((None, None, text("DIRECT=OS:" + QUEUE + "x")), HResult.MQ_ERROR_QUEUE_NOT_FOUND),
        (
            (text("another"), None, text(ELSEWHERE)),
            HResult.MQ_ERROR_ACCESS_DENIED,
        ),
        ((None, None, number(1)), HResult.E_INVALIDARG),
    ],
)
def test_init_refuses_what_is_no_active_queue(
    objects: Objects, arguments: tuple[object, ...], status: HResult
) -> None:
    made = management(objects)
    assert refusal(objects, made, "Init", *arguments) is status
    blank = refusal(objects, made, "get_MessageCount")
    assert blank is HResult.MQ_ERROR_UNINITIALIZED_OBJECT


@pytest.mark.conformance("MQAC-IMSMQManagement-7-Init", "MQAC-rule-3.1.4.1")
def test_only_administrators_are_told(objects: Objects) -> None:
    with DcomClient(objects.machine.endpoint("epm")) as com:
        alice = Objects(objects.machine, com, objects.client)
        made = management(alice)
        # Nor which queues there are: whether one is active or there at all would be said first.
        for name in (ELSEWHERE, "DIRECT=OS:" + QUEUE, "DIRECT=OS:" + QUEUE + "x"):
            denied = refusal(alice, made, "Init", None, None, text(name))
            assert denied is HResult.MQ_ERROR_ACCESS_DENIED, name


@pytest.mark.conformance(
    "MQAC-coclass-MSMQManagement",
    "MQAC-coclass-MSMQQueueManagement",
    "MQAC-coclass-MSMQOutgoingQueueManagement",
)
def test_an_object_has_the_interface_of_its_queue(objects: Objects) -> None:
    objects.open(QueueAccessType.RECEIVE_ACCESS)
    made = management(objects)
    for interface in (HERE, OUTGOING):
        with pytest.raises(ComError) as refused:
            objects.com.query_interface(made, interface)
        assert refused.value.status is HResult.E_NOINTERFACE
    for name, has, lacks in (
        ("DIRECT=OS:" + QUEUE, HERE, OUTGOING),
        (ELSEWHERE, OUTGOING, HERE),
    ):
        made = managed(objects, name)
        objects.com.query_interface(made, has)
        with pytest.raises(ComError) as refused:
            objects.com.query_interface(made, lacks)
        assert refused.value.status is HResult.E_NOINTERFACE


# Every queue

PLACES = ["DIRECT=OS:" + QUEUE, "DIRECT=OS:" + STREAM, ELSEWHERE]


@pytest.fixture
def opened(objects: Objects) -> Objects:
    """The queues here are open, and have messages."""
    for path in (QUEUE, STREAM):
        objects.open(QueueAccessType.RECEIVE_ACCESS, path)
        objects.send(
            objects.message(),
            objects.destination("DIRECT=OS:" + path),
            number(3) if path == STREAM else None,
        )
    return objects


CODES = [
    (
        "ForeignStatus",
        11,
        P.PROPID_MGMT_QUEUE_FOREIGN,
        {"YES": 0, "NO": 1, "UNKNOWN": 2},
    ),
    (
        "QueueType",
        12,
        P.PROPID_MGMT_QUEUE_TYPE,
        {"PUBLIC": 0, "PRIVATE": 1, "MACHINE": 2, "CONNECTOR": 3, "MULTICAST": 4},
    ),
    ("IsLocal", 13, P.PROPID_MGMT_QUEUE_LOCATION, {"LOCAL": True, "REMOTE": False}),
    (
        "TransactionalStatus",
        14,
        P.PROPID_MGMT_QUEUE_XACT,
        {"YES": 0, "NO": 1, "UNKNOWN": 2},
    ),
    ("MessageCount", 10, P.PROPID_MGMT_QUEUE_MESSAGE_COUNT, None),
]


@pytest.mark.parametrize(
    ("name", "identifier", "codes"),
    [
        pytest.param(
            name,
            identifier,
            codes,
            id=name,
            marks=pytest.mark.conformance(
                f"MQAC-IMSMQManagement-{opnum}-{name}", "MQAC-event-qmmgmt_get_info"
            ),
        )
        for name, opnum, identifier, codes in CODES
    ],
)
def test_a_queue_is_told_of_as_by_qmmgmt(
    opened: Objects, name: str, identifier: P, codes: dict[str, int] | None
) -> None:
    answers = set()
    for place in PLACES:
        (asked,) = told(opened, place, identifier)
        answer = opened.get(managed(opened, place), name)
        assert answer == (asked if codes is None else codes[asked])
        answers.add(asked)
    assert codes is None or len(answers) > 1 or name in ("ForeignStatus", "QueueType")


@pytest.mark.conformance(
    "MQAC-IMSMQManagement-8-FormatName",
    "MQAC-IMSMQManagement-9-Machine",
    "MQAC-IMSMQManagement-15-BytesInQueue",
    "MQAC-event-get_management_object_from_queue_format_name",
)
def test_names_and_bytes_are_told(opened: Objects) -> None:
    for place in PLACES:
        made = managed(opened, place)
        assert opened.get(made, "FormatName") == place
        assert opened.get(made, "Machine") == "here"
        (size,) = told(opened, place, P.PROPID_MGMT_QUEUE_BYTES_IN_QUEUE)
        assert opened.get(made, "BytesInQueue") == Variant(VARENUM.VT_UI8, size)
        assert size > 0
    made = management(opened)
    opened.com.call(made, "Init", text("HERE"), text(QUEUE), None)
    assert opened.get(made, "Machine") == "HERE"
    assert opened.get(made, "FormatName") == "DIRECT=OS:" + QUEUE


# Queues here


@pytest.mark.conformance(
    "MQAC-IMSMQQueueManagement-16-JournalMessageCount",
    "MQAC-IMSMQQueueManagement-17-BytesInJournal",
)
def test_the_journal_is_told_of(objects: Objects) -> None:
    path = r".\private$\kept"
    create_queue(objects.client, path, QueueSettings(journal=True))
    objects.send(objects.message(), objects.destination("DIRECT=OS:" + path))
    queue = objects.open(QueueAccessType.RECEIVE_ACCESS, path)
    made = managed(objects, "DIRECT=OS:" + path, HERE)
    assert objects.get(made, "JournalMessageCount") == 0
    assert objects.get(made, "BytesInJournal") == Variant(VARENUM.VT_UI8, 0)
    objects.com.call(queue, "Receive", None, None, None, number(0), None)
    count, size = told(
        objects,
        "DIRECT=OS:" + path,
        P.PROPID_MGMT_QUEUE_JOURNAL_MESSAGE_COUNT,
        P.PROPID_MGMT_QUEUE_BYTES_IN_JOURNAL,
    )
    assert objects.get(made, "JournalMessageCount") == count == 1
    assert objects.get(made, "BytesInJournal") == Variant(VARENUM.VT_UI8, size)
    assert size > 0


@pytest.mark.conformance(
    "MQAC-IMSMQQueueManagement-18-EodGetReceiveInfo",
    "MQAC-packet-IncomingTransactionalTransferInfo",
)
def test_who_sends_in_transactions_is_told_of(objects: Objects) -> None:
    _, port = objects.machine.endpoint("binary")
    configuration = f'name = "other"\n[binary]\npeers = "here=127.0.0.1:{port}"\n'
    with private_queue_manager((), configuration) as other:
        other.run("send", r"here\private$\stream", "--body", "x", "--transactional")
        until(lambda: objects.bodies(STREAM) != [])
    objects.open(QueueAccessType.RECEIVE_ACCESS, STREAM)
    made = managed(objects, "DIRECT=OS:" + STREAM, HERE)
    (columns,) = told(objects, "DIRECT=OS:" + STREAM, P.PROPID_MGMT_QUEUE_EOD_SOURCE_INFO)
    (row,) = zip(*(column.value for column in columns), strict=True)
    array = objects.com.call(made, "EodGetReceiveInfo")
    assert array.vt == VARENUM.VT_ARRAY | VARENUM.VT_VARIANT
    (info,) = array.value.values
    assert info.vt == VARENUM.VT_DISPATCH
    collection = collection_of(objects, info.value)
    name, sender, sequence, last, accessed, rejected = row
    assert items(objects, collection, INCOMING) == {
        "QueueFormatName": text(name),
        "SenderID": text(f"{{{sender}}}".upper()),
        "SeqID": Variant(VARENUM.VT_UI8, sequence),
        "SeqNo": Variant(VARENUM.VT_I4, last),
        "LastAccessTime": Variant(VARENUM.VT_I4, accessed),
        "RejectCount": Variant(VARENUM.VT_I4, rejected),
    }


INCOMING = "QueueFormatName SenderID SeqID SeqNo LastAccessTime RejectCount"


def collection_of(objects: Objects, octets: bytes) -> Reference:
    reference = DcomClient.reference(octets)
    return objects.com.query_interface(reference, "IMSMQCollection")


def items(objects: Objects, collection: Reference, names: str) -> dict[str, Any]:
    """All elements of a collection, which has those names."""
    found = {name: objects.com.call(collection, "Item", text(name)) for name in names.split()}
    assert objects.get(collection, "Count") == len(found)
    return found


# Outgoing queues


@pytest.mark.conformance(
    "MQAC-IMSMQOutgoingQueueManagement-16-State",
    "MQAC-IMSMQOutgoingQueueManagement-17-NextHops",
    "MQAC-IMSMQOutgoingQueueManagement-19-Resume",
    "MQAC-IMSMQOutgoingQueueManagement-20-Pause",
    "MQAC-event-qmmgmt_action",
    "MQAC-element-QUEUE_STATE",
)
def test_an_outgoing_queue_is_held_and_released(objects: Objects) -> None:
    made = managed(objects, ELSEWHERE, OUTGOING)
    objects.com.call(made, "Pause")
    assert objects.get(made, "State") == 4
    assert told(objects, ELSEWHERE, P.PROPID_MGMT_QUEUE_STATE) == ["ONHOLD"]
    hops = objects.get(made, "NextHops")
    assert hops == Variant(VARENUM.VT_ARRAY | VARENUM.VT_BSTR, SafeArray(VARENUM.VT_BSTR, []))
    objects.com.call(made, "Resume")
    assert objects.get(made, "State") != 4
    (state,) = told(objects, ELSEWHERE, P.PROPID_MGMT_QUEUE_STATE)
    assert state != "ONHOLD"


@pytest.mark.conformance("MQAC-IMSMQOutgoingQueueManagement-21-EodResend")
def test_what_waits_is_sent_again_when_an_administrator_orders_it(objects: Objects) -> None:
    made = managed(objects, ELSEWHERE, OUTGOING)
    objects.com.call(made, "EodResend")
    objects.com.call(made, "Pause")
    objects.com.call(made, "EodResend")
    assert objects.get(made, "State") == 4
    objects.com.call(made, "Resume")


SEQUENCES = {
    "EodLastAck": P.PROPID_MGMT_QUEUE_EOD_LAST_ACK,
    "EodFirstNonAck": P.PROPID_MGMT_QUEUE_EOD_FIRST_NON_ACK,
    "EodLastNonAck": P.PROPID_MGMT_QUEUE_EOD_LAST_NON_ACK,
    "EodNextSeq": P.PROPID_MGMT_QUEUE_EOD_NEXT_SEQ,
}
NUMBERS = {
    "EodLastAckTime": (P.PROPID_MGMT_QUEUE_EOD_LAST_ACK_TIME, VARENUM.VT_I4),
    "EodLastAckCount": (P.PROPID_MGMT_QUEUE_EOD_LAST_ACK_COUNT, VARENUM.VT_UI4),
    "EodNoReadCount": (P.PROPID_MGMT_QUEUE_EOD_NO_READ_COUNT, VARENUM.VT_UI4),
    "EodNoAckCount": (P.PROPID_MGMT_QUEUE_EOD_NO_ACK_COUNT, VARENUM.VT_UI4),
    "EodResendTime": (P.PROPID_MGMT_QUEUE_EOD_RESEND_TIME, VARENUM.VT_I4),
    "EodResendInterval": (P.PROPID_MGMT_QUEUE_EOD_RESEND_INTERVAL, VARENUM.VT_UI4),
    "EodResendCount": (P.PROPID_MGMT_QUEUE_EOD_RESEND_COUNT, VARENUM.VT_UI4),
}


@pytest.mark.conformance(
    "MQAC-IMSMQOutgoingQueueManagement-18-EodGetSendInfo",
    "MQAC-packet-OutgoingTransferInfo",
    "MQAC-packet-SequenceInfoCollection",
)
def test_what_waits_for_acknowledgements_is_told_of(objects: Objects) -> None:
    made = managed(objects, ELSEWHERE, OUTGOING)
    collection = objects.com.call(made, "EodGetSendInfo")
    found = items(objects, collection, " ".join([*SEQUENCES, *NUMBERS]))
    for name, (identifier, vt) in NUMBERS.items():
        (value,) = told(objects, ELSEWHERE, identifier)
        assert found[name] == Variant(vt, value or 0), name
    for name, identifier in SEQUENCES.items():
        (octets,) = told(objects, ELSEWHERE, identifier)
        if octets is None:
            assert found[name] == Variant(VARENUM.VT_NULL), name
            continue
        info = SequenceInfo.decode(octets)
        inner = collection_of(objects, found[name].value)
        assert items(objects, inner, "SeqID SeqNo PrevNo") == {
            "SeqID": Variant(VARENUM.VT_UI8, info.seq_id),
            "SeqNo": Variant(VARENUM.VT_I4, info.seq_no),
            "PrevNo": Variant(VARENUM.VT_I4, info.prev_no),
        }, name
