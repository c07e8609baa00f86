"""MSMQQueue through the door, against what RemoteRead sees of the same queue ([MC-MQAC] 3.11)."""

from concurrent.futures import Future
from dataclasses import dataclass
from itertools import count
from typing import Any

import pytest

from rpcqm.base.errors import HResult
from rpcqm.client.outgoing import OutgoingMessage
from rpcqm.codec.automation.values import EMPTY, MISSING, Variant
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.path_name import PathName
from rpcqm.codec.types.mqvalues import VARENUM, QueueAccessType
from rpcqm.mqac import coclasses
from tests.support.dcom.com_objects import (
    NO,
    QUEUE,
    STREAM,
    YES,
    Objects,
    number,
    octets,
    served_objects,
    text,
)
from tests.support.dcom.dcom_client import ALICE, ENABLED, ComError, DcomClient, Reference
from tests.support.waiting import until

POINT = "MQAC-IMSMQQueue4-"
NOW = number(0)
RECEIVE, SEND, PEEK = (
    QueueAccessType.RECEIVE_ACCESS,
    QueueAccessType.SEND_ACCESS,
    QueueAccessType.PEEK_ACCESS,
)
CONNECTOR = "{0F1E2D3C-4B5A-6978-8796-A5B4C3D2E1F0}"
MANUAL = ENABLED.replace("enabled = true", "enabled = true\nempty_is_nothing = true")


def point(*numbers: str) -> pytest.MarkDecorator:
    return pytest.mark.conformance(*(POINT + each for each in numbers))


def named(path: str = QUEUE) -> FormatName:
    return FormatName.of_path(PathName.parse(path))


def send(objects: Objects, *labels: str, path: str = QUEUE) -> None:
    """Messages with a body each, by another protocol."""
    with objects.client.open_sender(named(path)) as sender:
        for label in labels:
            sender.send(OutgoingMessage(b"body of " + label.encode(), label=label))


def labels(objects: Objects, path: str = QUEUE) -> list[str]:
    """What is in a queue, as RemoteRead sees it."""
    with objects.client.open_reader(named(path), peek_only=True) as reader:
        return [message.label for message in reader.browse()]


def identifiers(objects: Objects, path: str = QUEUE) -> list[int]:
    with objects.client.open_reader(named(path), peek_only=True) as reader:
        return [message.lookup_identifier for message in reader.browse()]


def refusal(objects: Objects, reference: Reference, operation: str, *arguments: object) -> object:
    with pytest.raises(ComError) as refused:
        objects.com.call(reference, operation, *arguments)
    return refused.value.status


def label(objects: Objects, message: object) -> object:
    assert isinstance(message, Reference)
    return objects.get(message, "Label")


# Every method that reads


@dataclass(frozen=True)
class Read:
    """A method that reads, and which of three messages it reads."""

    name: str
    opnum: int
    found: str
    removes: bool = False
    at: str = ""
    """The message whose lookup identifier it is given."""

    @property
    def has_time(self) -> bool:
        return "LookupId" not in self.name

    @property
    def is_first(self) -> bool:
        """Whether it is of the first revision, which asks for less."""
        return self.name.endswith("_v1")

    def arguments(self, identifier: Variant | None, *wanted: Variant | None) -> list[object]:
        """Its arguments, with no time to wait."""
        destination, body, connector = wanted or (None, None, None)
        made: list[object] = [identifier] if self.at else []
        made += [NOW] if self.removes else []
        made += [destination, body]
        made += [NOW] if self.has_time else []
        return made if self.is_first else [*made, connector]


READS = [
    Read("Receive_v1", 13, "one", True),
    Read("Peek_v1", 14, "one"),
    Read("ReceiveCurrent_v1", 17, "one", True),
    Read("PeekCurrent_v1", 19, "one"),
    Read("Receive", 20, "one", True),
    Read("Peek", 21, "one"),
    Read("ReceiveCurrent", 22, "one", True),
    Read("PeekCurrent", 24, "one"),
    Read("ReceiveByLookupId", 27, "two", True, "two"),
    Read("ReceiveNextByLookupId", 28, "three", True, "two"),
    Read("ReceivePreviousByLookupId", 29, "one", True, "two"),
    Read("ReceiveFirstByLookupId", 30, "one", True),
    Read("ReceiveLastByLookupId", 31, "three", True),
    Read("PeekByLookupId", 32, "two", False, "two"),
    Read("PeekNextByLookupId", 33, "three", False, "two"),
    Read("PeekPreviousByLookupId", 34, "one", False, "two"),
    Read("PeekFirstByLookupId", 35, "one"),
    Read("PeekLastByLookupId", 36, "three"),
    Read("ReceiveByLookupIdAllowPeek", 39, "two", True, "two"),
]
NUMBERS = count(1)
NAMES = ["one", "two", "three"]
WITH_NEXT = [*READS, Read("PeekNext_v1", 18, "two"), Read("PeekNext", 23, "two")]


def marked(each: Read) -> object:
    return pytest.param(each, id=each.name, marks=point(f"{each.opnum}-{each.name}"))


def prepared(objects: Objects, each: Read) -> tuple[Reference, Variant | None]:
    """An open queue with three messages, and the lookup identifier that a method needs."""
    send(objects, *NAMES)
    queue = objects.open(RECEIVE if each.removes else PEEK)
    if "Next" in each.name and each.has_time:
        objects.com.call(queue, "PeekCurrent", None, None, NOW, None)
    if not each.at:
        return queue, None
    return queue, text(str(identifiers(objects)[NAMES.index(each.at)]))


@pytest.mark.parametrize("each", [marked(each) for each in WITH_NEXT])
def test_a_method_reads_the_message_of_its_name(objects: Objects, each: Read) -> None:
    queue, identifier = prepared(objects, each)
    found = objects.com.call(queue, each.name, *each.arguments(identifier))
    assert label(objects, found) == each.found
    assert objects.get(found, "Body") == octets(b"body of " + each.found.encode())
    assert objects.get(found, "DestinationQueueInfo") is None
    left = [name for name in NAMES if not (each.removes and name == each.found)]
    assert labels(objects) == left


@pytest.mark.parametrize("each", [marked(each) for each in WITH_NEXT])
def test_a_method_finds_what_is_wanted_of_a_message(objects: Objects, each: Read) -> None:
    queue, identifier = prepared(objects, each)
    found = objects.com.call(queue, each.name, *each.arguments(identifier, YES, NO, YES))
    assert objects.get(found, "Body") == EMPTY
    destination = objects.get(found, "DestinationQueueInfo")
    assert isinstance(destination, Reference)
    assert str(objects.get(destination, "PathName")).endswith(r"\private$\orders")


@pytest.mark.parametrize("each", [marked(each) for each in WITH_NEXT])
def test_a_method_that_finds_nothing_says_so(objects: Objects, each: Read) -> None:
    queue, identifier = prepared(objects, each)
    objects.empty()
    status = refusal(objects, queue, each.name, *each.arguments(identifier))
    assert status is HResult.MQ_ERROR_MESSAGE_NOT_FOUND


@pytest.mark.parametrize("each", [marked(each) for each in WITH_NEXT])
def test_a_method_needs_a_queue_that_is_open_for_it(objects: Objects, each: Read) -> None:
    arguments = each.arguments(text("1") if each.at else None)
    blank = objects.create(coclasses.MSMQ_QUEUE, "IMSMQQueue4")
    assert refusal(objects, blank, each.name, *arguments) is HResult.OLE_E_BLANK
    other = objects.open(PEEK if each.removes else SEND)
    assert refusal(objects, other, each.name, *arguments) is HResult.MQ_ERROR_ACCESS_DENIED
    objects.com.call(other, "Close")
    assert refusal(objects, other, each.name, *arguments) is HResult.MQ_ERROR_INVALID_HANDLE
    if each.at:
        nothing = each.arguments(text("0"))
        assert refusal(objects, blank, each.name, *nothing) is HResult.MQ_ERROR_INVALID_PARAMETER


RECEIVES = [each for each in READS if each.removes]


@pytest.mark.parametrize("each", [marked(each) for each in RECEIVES])
def test_a_receive_in_a_transaction_is_undone_with_it(objects: Objects, each: Read) -> None:
    sending = objects.client.open_sender(named(STREAM))
    with objects.client.begin_transaction() as transaction, sending as sender:
        for name in NAMES:
            sender.send(OutgoingMessage(label=name), transaction)
    queue = objects.open(RECEIVE, STREAM)
    dispenser = objects.create(coclasses.MSMQ_TRANSACTION_DISPENSER, "IMSMQTransactionDispenser3")
    begun = objects.com.call(dispenser, "BeginTransaction")
    identifier = None
    if each.at:
        identifier = text(str(identifiers(objects, STREAM)[NAMES.index(each.at)]))
    arguments = each.arguments(identifier)
    arguments[1 if each.at else 0] = Variant(VARENUM.VT_DISPATCH, begun)
    found = objects.com.call(queue, each.name, *arguments)
    assert label(objects, found) == each.found
    others = [name for name in NAMES if name != each.found]
    visible = NAMES if "AllowPeek" in each.name else others
    assert labels(objects, STREAM) == visible
    objects.com.call(begun, "Abort", None, None)
    assert labels(objects, STREAM) == NAMES
    again = objects.com.call(dispenser, "BeginTransaction")
    objects.com.call(queue, "Reset")
    arguments[1 if each.at else 0] = Variant(VARENUM.VT_DISPATCH, again)
    objects.com.call(queue, each.name, *arguments)
    objects.com.call(again, "Commit", None, None, None)
    assert labels(objects, STREAM) == others


@point("20-Receive")
@pytest.mark.parametrize(
    ("transaction", "status"),
    [
        (number(2), HResult.MQ_ERROR_DTC_CONNECT),
        (number(4), HResult.E_INVALIDARG),
        (text("none"), HResult.DISP_E_TYPEMISMATCH),
    ],
)
def test_what_is_no_transaction_is_refused(
    objects: Objects, transaction: Variant, status: HResult
) -> None:
    send(objects, "one")
    queue = objects.open(RECEIVE)
    assert refusal(objects, queue, "Receive", transaction, None, None, NOW, None) is status
    for joined in (number(0), number(1), number(3), None, MISSING):
        send(objects, "one")
        objects.com.call(queue, "Receive", joined, None, None, NOW, None)
    assert labels(objects) == ["one"]


@point("20-Receive")
@pytest.mark.conformance("MQAC-rule-3.1.4.2")
def test_arguments_that_are_missing_have_their_defaults(objects: Objects) -> None:
    send(objects, "one")
    queue = objects.open(RECEIVE)
    found = objects.com.call(queue, "Receive", *[MISSING] * 5)
    assert objects.get(found, "Body") == octets(b"body of one")
    assert objects.get(found, "DestinationQueueInfo") is None
    assert labels(objects) == []


@point("20-Receive")
@pytest.mark.conformance("MQAC-rule-3.1.4.3")
def test_a_method_that_fails_returns_its_code_and_no_object(objects: Objects) -> None:
    queue = objects.open(RECEIVE)
    response = objects.com.response(queue, "Receive", None, None, None, NOW, None)
    assert (response.result, response.ppmsg) == (HResult.MQ_ERROR_MESSAGE_NOT_FOUND, None)
    send(objects, "one")
    response = objects.com.response(queue, "Receive", None, None, None, NOW, None)
    assert response.result == 0
    assert response.ppmsg


@point("20-Receive")
def test_a_transaction_receives_from_transactional_queues_only(objects: Objects) -> None:
    send(objects, "one")
    dispenser = objects.create(coclasses.MSMQ_TRANSACTION_DISPENSER, "IMSMQTransactionDispenser3")
    begun = objects.com.call(dispenser, "BeginTransaction")
    joined = Variant(VARENUM.VT_DISPATCH, begun)
    queue = objects.open(RECEIVE)
    status = refusal(objects, queue, "Receive", joined, None, None, NOW, None)
    assert status is HResult.MQ_ERROR_TRANSACTION_USAGE
    objects.com.call(begun, "Abort", None, None)
    queue = objects.open(RECEIVE, STREAM)
    status = refusal(objects, queue, "Receive", joined, None, None, NOW, None)
    assert status is HResult.MQ_ERROR_TRANSACTION_SEQUENCE


@point("20-Receive", "21-Peek")
def test_a_connector_is_told_to_who_asks_for_it(objects: Objects) -> None:
    message = objects.message()
    objects.put(message, "ConnectorTypeGuid", CONNECTOR)
    objects.send(message, objects.destination())
    queue = objects.open(RECEIVE)
    nothing = "{00000000-0000-0000-0000-000000000000}"
    for wanted, expected in ((YES, CONNECTOR), (None, nothing)):
        found = objects.com.call(queue, "Peek", None, None, NOW, wanted)
        assert objects.get(found, "ConnectorTypeGuid") == expected


# Waiting

WAITS = [each for each in READS if each.has_time]


def waiting(objects: Objects, queue: Reference, each: Read, time: Variant) -> "Future[Any]":
    arguments = each.arguments(None)
    arguments[-1 if each.is_first else -2] = time
    return objects.com.start(queue, each.name, *arguments)


@pytest.mark.parametrize("each", [marked(each) for each in WAITS])
def test_a_method_waits_for_a_message(objects: Objects, each: Read) -> None:
    queue = objects.open(RECEIVE if each.removes else PEEK)
    forever = waiting(objects, queue, each, number(-1))
    assert objects.get(queue, "IsOpen") == 1  # others are served meanwhile
    assert not forever.done()
    send(objects, "late")
    assert label(objects, forever.result(30)) == "late"
    assert labels(objects) == ([] if each.removes else ["late"])


@pytest.mark.parametrize("each", [marked(each) for each in WAITS])
def test_a_method_waits_no_longer_than_it_is_told(objects: Objects, each: Read) -> None:
    queue = objects.open(RECEIVE if each.removes else PEEK)
    with pytest.raises(ComError) as over:
        waiting(objects, queue, each, number(20)).result(30)
    assert over.value.status is HResult.MQ_ERROR_IO_TIMEOUT


@point("12-Close", "20-Receive")
def test_closing_a_queue_ends_its_waits(objects: Objects) -> None:
    queue = objects.open(RECEIVE)
    waits = [waiting(objects, queue, each, number(-1)) for each in (WAITS[0], WAITS[1])]
    objects.get(queue, "IsOpen")
    objects.com.call(queue, "Close")
    for wait in waits:
        with pytest.raises(ComError) as ended:
            wait.result(30)
        assert ended.value.status is HResult.MQ_ERROR_OPERATION_CANCELLED


@point("20-Receive")
def test_who_vanishes_in_a_wait_takes_no_message(objects: Objects) -> None:
    with DcomClient(objects.machine.endpoint("epm"), ALICE) as com:
        gone = Objects(objects.machine, com, objects.client)
        wait = waiting(gone, gone.open(RECEIVE), WAITS[0], number(-1))
        gone.com.call(gone.queue_info(), "Refresh")
        com.drop()
        with pytest.raises(Exception):  # noqa: B017, PT011 - however the client learns it
            wait.result(30)
    send(objects, "kept")
    assert labels(objects) == ["kept"]


# The cursor


@point("16-Reset", "18-PeekNext_v1", "22-ReceiveCurrent", "23-PeekNext", "24-PeekCurrent")
@pytest.mark.conformance("MQAC-IMSMQQueue4-20-Receive")
def test_a_cursor_goes_through_a_queue(objects: Objects) -> None:
    send(objects, *NAMES)
    queue = objects.open(RECEIVE)
    illegal = HResult.MQ_ERROR_ILLEGAL_CURSOR_ACTION
    assert refusal(objects, queue, "PeekNext", None, None, NOW, None) is illegal
    assert refusal(objects, queue, "PeekNext_v1", None, None, NOW) is illegal

    def step(operation: str) -> object:
        arguments = [NOW] if operation.startswith("Receive") else []
        made = objects.com.call(queue, operation, *arguments, None, None, NOW, None)
        return label(objects, made)

    assert [step("PeekCurrent"), step("PeekNext"), step("PeekCurrent")] == ["one", "two", "two"]
    assert [step("Receive"), step("PeekCurrent"), step("ReceiveCurrent")] == ["one", "two", "two"]
    assert step("PeekCurrent") == "three"
    send(objects, "four")
    objects.com.call(queue, "Reset")
    assert refusal(objects, queue, "PeekNext", None, None, NOW, None) is illegal
    assert [step("PeekCurrent"), step("PeekNext")] == ["three", "four"]
    assert labels(objects) == ["three", "four"]


@point("22-ReceiveCurrent", "24-PeekCurrent")
def test_a_message_that_somebody_else_has_received_is_gone_for_the_cursor(
    objects: Objects,
) -> None:
    send(objects, *NAMES)
    queue = objects.open(RECEIVE)
    objects.com.call(queue, "PeekCurrent", None, None, NOW, None)
    objects.read()
    gone = HResult.MQ_ERROR_MESSAGE_ALREADY_RECEIVED
    assert refusal(objects, queue, "PeekCurrent", None, None, NOW, None) is gone
    assert refusal(objects, queue, "ReceiveCurrent", NOW, None, None, NOW, None) is gone


# Lookup identifiers


@point("27-ReceiveByLookupId", "32-PeekByLookupId")
def test_a_lookup_identifier_is_a_number_or_its_digits(objects: Objects) -> None:
    send(objects, "one")
    queue = objects.open(PEEK)
    (identifier,) = identifiers(objects)
    for given in (text(str(identifier)), Variant(VARENUM.VT_UI8, identifier)):
        found = objects.com.call(queue, "PeekByLookupId", given, None, None, None)
        assert label(objects, found) == "one"
        assert objects.get(found, "LookupId") == text(str(identifier))
    for wrong in (text("x"), text(""), text("18446744073709551616"), EMPTY):
        status = refusal(objects, queue, "PeekByLookupId", wrong, None, None, None)
        assert status is HResult.MQ_ERROR_INVALID_PARAMETER


# Properties


def alone(objects: Objects) -> Reference:
    """A new queue, which nobody else has open."""
    info = objects.queue_info(rf".\private$\alone-{next(NUMBERS)}")
    objects.com.call(info, "Create", None, None)
    return info


@point("7-Access", "8-ShareMode", "9-QueueInfo", "10-Handle", "26-Handle2")
def test_an_open_queue_tells_how_it_is_open(objects: Objects) -> None:
    info = alone(objects)
    queue = objects.com.call(info, "Open", int(PEEK), 1)
    assert (objects.get(queue, "Access"), objects.get(queue, "ShareMode")) == (32, 1)
    same = objects.get(queue, "QueueInfo")
    assert isinstance(same, Reference)
    assert same.std.oid == info.std.oid
    handle = objects.get(queue, "Handle2")
    assert isinstance(handle, Variant)
    assert isinstance(handle.value, int)
    assert handle.vt == VARENUM.VT_I8
    number_of_32_bits = objects.get(queue, "Handle")
    assert isinstance(number_of_32_bits, int)
    assert number_of_32_bits & 0xFFFFFFFF == handle.value
    objects.com.call(queue, "Close")


@pytest.mark.conformance("MQAC-coclass-MSMQQueue", "MQAC-rule-3.11.1.1")
@point("11-IsOpen", "12-Close", "38-IsOpen2", "7-Access", "8-ShareMode", "9-QueueInfo", "10-Handle")
def test_a_closed_queue_is_of_no_use(objects: Objects) -> None:
    queue = objects.open(RECEIVE)
    assert (objects.get(queue, "IsOpen"), objects.get(queue, "IsOpen2")) == (1, True)
    active = objects.client.run(objects.client.management.queue_information(named()))
    objects.com.call(queue, "Close")
    assert (objects.get(queue, "IsOpen"), objects.get(queue, "IsOpen2")) == (0, False)
    assert active.path_name.endswith("orders")
    closed = HResult.MQ_ERROR_INVALID_HANDLE
    for operation in (
        *("Close", "Reset", "Purge", "get_Access", "get_ShareMode"),
        *("get_QueueInfo", "get_Handle", "get_Handle2"),
    ):
        assert refusal(objects, queue, operation) is closed
    blank = objects.create(coclasses.MSMQ_QUEUE, "IMSMQQueue4")
    for operation in ("get_IsOpen", "get_IsOpen2", "Close", "get_Access", "Reset", "Purge"):
        assert refusal(objects, blank, operation) is HResult.OLE_E_BLANK


@point("12-Close")
def test_a_closed_queue_keeps_nobody_out(objects: Objects) -> None:
    info = alone(objects)
    exclusive = objects.com.call(info, "Open", int(RECEIVE), 1)
    status = refusal(objects, info, "Open", int(RECEIVE), 0)
    assert status is HResult.MQ_ERROR_SHARING_VIOLATION
    objects.com.call(exclusive, "Close")
    objects.com.call(info, "Open", int(RECEIVE), 0)


@point("12-Close")
def test_a_queue_that_nobody_refers_to_is_closed(objects: Objects) -> None:
    info = alone(objects)
    exclusive = objects.com.call(info, "Open", int(RECEIVE), 1)
    objects.com.release(exclusive)
    objects.com.call(info, "Open", int(RECEIVE), 0)


@point("25-Properties")
def test_what_is_only_a_name_says_so(objects: Objects) -> None:
    assert refusal(objects, objects.open(PEEK), "get_Properties") is HResult.E_NOTIMPL


@point("37-Purge")
def test_a_purge_removes_what_nobody_holds(objects: Objects) -> None:
    send(objects, *NAMES)
    queue = objects.open(RECEIVE)
    assert refusal(objects, objects.open(PEEK), "Purge") is HResult.MQ_ERROR_ACCESS_DENIED
    with objects.client.open_reader(named()) as reader:
        pending = reader.receive(0)
        objects.com.call(queue, "Purge")
        with pending as message:
            assert message.label == "one"
    until(lambda: labels(objects) == [])


@point("14-Peek_v1", "21-Peek")
@pytest.mark.parametrize("revision", ["", "2", "3", "4"])
def test_every_revision_reads_the_same_queue(objects: Objects, revision: str) -> None:
    send(objects, "one")
    queue = objects.com.query_interface(objects.open(RECEIVE), f"IMSMQQueue{revision}")
    connector = () if revision == "" else (None,)
    found = objects.com.call(queue, "Peek", None, None, NOW, *connector)
    assert found.interface == f"IMSMQMessage{revision}"
    assert label(objects, found) == "one"


# What an operator can choose


@point("20-Receive", "21-Peek")
def test_an_empty_queue_is_nothing_where_the_operator_says_so() -> None:
    with served_objects(MANUAL) as objects:
        queue = objects.open(RECEIVE)
        assert objects.com.call(queue, "Receive", None, None, None, NOW, None) is None
        assert objects.com.call(queue, "Peek", None, None, number(10), None) is None
        status = refusal(objects, queue, "PeekFirstByLookupId", None, None, None)
        assert status is HResult.MQ_ERROR_MESSAGE_NOT_FOUND
