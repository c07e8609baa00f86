"""Receiving, cursors, handles and closing of [MC-MQAC] 3.9, 3.11 and 3.12, through the door."""

from collections.abc import Iterator
from uuid import UUID

import pytest

from rpcqm.base.errors import HResult
from rpcqm.client.outgoing import OutgoingMessage
from rpcqm.client.queue_settings import QueueSettings
from rpcqm.codec.automation.values import MISSING, Variant
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.path_name import PathName
from rpcqm.codec.types.mqvalues import VARENUM, QueueAccessType
from rpcqm.codec.types.oaut import DISPPARAMS
from rpcqm.codec.types.oautvalues import (
    DISPATCH_METHOD,
    DISPATCH_PROPERTYGET,
    DISPATCH_zeroVarResult,
)
from tests.support.dcom import clsids
from tests.support.dcom.com_objects import (
    QUEUE,
    STREAM,
    Objects,
    create_queue,
    number,
    served_objects,
    text,
)
from tests.support.dcom.dcom_client import ComError, Reference
from tests.support.waiting import until

RECEIVE, PEEK, SEND = (
    QueueAccessType.RECEIVE_ACCESS,
    QueueAccessType.PEEK_ACCESS,
    QueueAccessType.SEND_ACCESS,
)
JOURNALED = r".\private$\journaled"
NOW = number(0)
NO_TRUTH = text("a word")
POINT = "MQAC-IMSMQQueue4-"


@pytest.fixture(scope="module")
def served() -> Iterator[Objects]:
    with served_objects() as objects:
        create_queue(objects.client, JOURNALED, QueueSettings(journal=True))
        yield objects


def named(path: str = QUEUE) -> FormatName:
    return FormatName.of_path(PathName.parse(path))


def send(objects: Objects, *labels: str, path: str = QUEUE) -> None:
    with objects.client.open_sender(named(path)) as sender:
        for label in labels:
            sender.send(OutgoingMessage(b"content", label=label))


def send_in_transaction(objects: Objects, *labels: str) -> None:
    sending = objects.client.open_sender(named(STREAM))
    with objects.client.begin_transaction() as transaction, sending as sender:
        for label in labels:
            sender.send(OutgoingMessage(label=label), transaction)


def labels(objects: Objects, name: FormatName | None = None) -> list[str]:
    with objects.client.open_reader(name or named(), peek_only=True) as reader:
        return [message.label for message in reader.browse()]


def label(objects: Objects, message: object) -> object:
    assert isinstance(message, Reference)
    return objects.get(message, "Label")


def refusal(objects: Objects, reference: Reference, operation: str, *arguments: object) -> object:
    with pytest.raises(ComError) as refused:
        objects.com.call(reference, operation, *arguments)
    return refused.value.status


def begin(objects: Objects) -> Reference:
    dispenser = objects.create(clsids.MSMQ_TRANSACTION_DISPENSER, "IMSMQTransactionDispenser3")
    made = objects.com.call(dispenser, "BeginTransaction")
    assert isinstance(made, Reference)
    return made


def dispatch(reference: Reference) -> Variant:
    return Variant(VARENUM.VT_DISPATCH, reference)


# Every method that removes: its name, and which of its arguments are Booleans

REMOVING: list[tuple[str, str, list[object], tuple[int, ...]]] = [
    ("Receive_v1", "13", [NOW, None, None, NOW], (1, 2)),
    ("ReceiveCurrent_v1", "17", [NOW, None, None, NOW], (1, 2)),
    ("Receive", "20", [NOW, None, None, NOW, None], (1, 2, 4)),
    ("ReceiveCurrent", "22", [NOW, None, None, NOW, None], (1, 2, 4)),
    ("ReceiveByLookupId", "27", [NOW, None, None, None], (1, 2, 3)),
    ("ReceiveNextByLookupId", "28", [NOW, None, None, None], (1, 2, 3)),
    ("ReceivePreviousByLookupId", "29", [NOW, None, None, None], (1, 2, 3)),
    ("ReceiveFirstByLookupId", "30", [NOW, None, None, None], (1, 2, 3)),
    ("ReceiveLastByLookupId", "31", [NOW, None, None, None], (1, 2, 3)),
    ("ReceiveByLookupIdAllowPeek", "39", [NOW, None, None, None], (1, 2, 3)),
]


def removing(name: str, opnum: str, arguments: list[object], truths: tuple[int, ...]) -> object:
    mark = pytest.mark.conformance(f"{POINT}{opnum}-{name}")
    return pytest.param(name, arguments, truths, id=name, marks=mark)


REMOVES = pytest.mark.parametrize(
    ("name", "arguments", "truths"), [removing(*each) for each in REMOVING]
)


def given_identifier(objects: Objects, name: str, path: str = QUEUE) -> list[object]:
    """The lookup identifier of the second of three messages, for the methods that want one."""
    if "LookupId" not in name or "First" in name or "Last" in name:
        return []
    with objects.client.open_reader(named(path), peek_only=True) as reader:
        found = [message.lookup_identifier for message in reader.browse()]
    return [Variant(VARENUM.VT_UI8, found[1])]


@REMOVES
def test_who_asks_wrongly_loses_no_message(
    objects: Objects, name: str, arguments: list[object], truths: tuple[int, ...]
) -> None:
    send(objects, "one", "two", "three")
    queue = objects.open(RECEIVE)
    identifier = given_identifier(objects, name)
    for place in truths:
        wrong = [NO_TRUTH if at == place else each for at, each in enumerate(arguments)]
        status = refusal(objects, queue, name, *identifier, *wrong)
        assert status is HResult.DISP_E_TYPEMISMATCH
    assert labels(objects) == ["one", "two", "three"]


@REMOVES
def test_what_is_received_goes_into_the_journal(
    objects: Objects, name: str, arguments: list[object], truths: tuple[int, ...]
) -> None:
    journal = FormatName.parse("DIRECT=OS:" + JOURNALED + ";JOURNAL")
    for each in (named(JOURNALED), journal):
        with objects.client.open_reader(each) as reader:
            reader.purge()
    send(objects, "one", "two", "three", path=JOURNALED)
    queue = objects.open(RECEIVE, JOURNALED)
    identifier = given_identifier(objects, name, JOURNALED)
    found = label(objects, objects.com.call(queue, name, *identifier, *arguments))
    until(lambda: labels(objects, journal) == [found])
    assert found not in labels(objects, named(JOURNALED))


# Waiting


@pytest.mark.conformance(POINT + "20-Receive", POINT + "21-Peek", POINT + "24-PeekCurrent")
@pytest.mark.parametrize("name", ["Receive", "Peek", "PeekCurrent"])
def test_a_time_that_is_not_given_is_for_ever(objects: Objects, name: str) -> None:
    queue = objects.open(RECEIVE)
    arguments = [NOW] if name == "Receive" else []
    wait = objects.com.start(queue, name, *arguments, MISSING, MISSING, MISSING, MISSING)
    assert objects.get(queue, "IsOpen") == 1  # others are served meanwhile
    assert not wait.done()
    send(objects, "late")
    assert label(objects, wait.result(30)) == "late"


@pytest.mark.conformance(POINT + "22-ReceiveCurrent", POINT + "24-PeekCurrent")
def test_a_cursor_that_another_call_waits_with_finds_nothing_now(objects: Objects) -> None:
    queue = objects.open(RECEIVE)
    wait = objects.com.start(queue, "PeekCurrent", None, None, number(-1), None)
    objects.get(queue, "IsOpen")
    nothing, illegal = HResult.MQ_ERROR_MESSAGE_NOT_FOUND, HResult.MQ_ERROR_ILLEGAL_CURSOR_ACTION
    assert refusal(objects, queue, "PeekCurrent", None, None, NOW, None) is nothing
    assert refusal(objects, queue, "ReceiveCurrent", NOW, None, None, NOW, None) is nothing
    assert refusal(objects, queue, "PeekCurrent", None, None, number(50), None) is illegal
    send(objects, "late")
    assert label(objects, wait.result(30)) == "late"


# Locked messages that peeks may see


@pytest.mark.conformance(
    POINT + "39-ReceiveByLookupIdAllowPeek", POINT + "24-PeekCurrent", POINT + "32-PeekByLookupId"
)
def test_every_peek_sees_what_a_transaction_has_received_and_lets_be_seen(
    objects: Objects,
) -> None:
    send_in_transaction(objects, "one", "two")
    queue, begun = objects.open(RECEIVE, STREAM), begin(objects)
    first = objects.com.call(queue, "PeekCurrent", None, None, NOW, None)
    identifier = objects.get(first, "LookupId")
    objects.com.call(
        queue, "ReceiveByLookupIdAllowPeek", identifier, dispatch(begun), None, None, None
    )
    none, hidden = [None, None, None], [None, None, NOW, None]
    for name, arguments in (
        ("PeekCurrent", hidden),
        ("Peek", hidden),
        ("PeekByLookupId", [identifier, *none]),
        ("PeekFirstByLookupId", none),
    ):
        assert label(objects, objects.com.call(queue, name, *arguments)) == "one"
    assert label(objects, objects.com.call(queue, "Receive", NOW, *hidden)) == "two"
    gone = HResult.MQ_ERROR_MESSAGE_ALREADY_RECEIVED
    assert refusal(objects, queue, "ReceiveCurrent", NOW, *hidden) is gone
    objects.com.call(begun, "Commit", None, None, None)
    assert refusal(objects, queue, "PeekCurrent", *hidden) is gone
    assert labels(objects, named(STREAM)) == []


# Results that nobody wants: a statement of a script


def stated(objects: Objects, reference: Reference, name: str, *arguments: Variant) -> None:
    """A call by name whose result the script leaves alone."""
    script = objects.com.query_interface(reference, "IDispatch")
    (member,) = objects.com.call(script, "GetIDsOfNames", UUID(int=0), [name], 1, 0)
    parameters = DISPPARAMS(
        rgvarg=list(reversed(arguments)) or None,
        rgdispidNamedArgs=None,
        cArgs=len(arguments),
        cNamedArgs=0,
    )
    flags = DISPATCH_METHOD | DISPATCH_PROPERTYGET | DISPATCH_zeroVarResult
    response = objects.com.response(
        script, "Invoke", member, UUID(int=0), 0x409, flags, parameters, 0, [], []
    )
    assert response.result == 0
    objects.com.release(script)


@pytest.mark.conformance("MQAC-IMSMQQueueInfo4-34-Open", POINT + "12-Close")
def test_a_queue_that_nobody_takes_is_closed(objects: Objects) -> None:
    info = objects.queue_info(r".\private$\alone")
    objects.com.call(info, "Create", None, None)
    stated(objects, info, "Open", number(RECEIVE), number(1))
    again = objects.com.call(info, "Open", int(RECEIVE), 1)  # nobody keeps it out
    stated(objects, again, "QueueInfo")
    assert objects.get(again, "IsOpen") == 1
    assert objects.get(info, "PathName") == objects.get(
        objects.com.call(again, "get_QueueInfo"), "PathName"
    )


@pytest.mark.conformance("MQAC-IMSMQTransaction3-12-ITransaction")
def test_a_transaction_that_nobody_takes_is_no_reason_to_stay_open(objects: Objects) -> None:
    send_in_transaction(objects, "one")
    queue, begun = objects.open(RECEIVE, STREAM), begin(objects)
    objects.com.call(queue, "Receive", dispatch(begun), None, None, NOW, None)
    stated(objects, begun, "ITransaction")
    assert labels(objects, named(STREAM)) == []
    objects.com.release(begun)
    until(lambda: labels(objects, named(STREAM)) == ["one"])


# Destinations


def new_destination(objects: Objects) -> Reference:
    return objects.create(clsids.MSMQ_DESTINATION, "IMSMQDestination")


@pytest.mark.conformance(
    "MQAC-IMSMQDestination-16-FormatName",
    "MQAC-IMSMQDestination-17-FormatName",
    "MQAC-IMSMQDestination-7-Open",
)
def test_a_format_name_is_kept_as_it_is_given_and_looked_at_when_it_is_opened(
    objects: Objects,
) -> None:
    made = new_destination(objects)
    for given in ("direct=os:" + QUEUE, "DIRECT=nonsense", ""):
        objects.put(made, "FormatName", given)
        assert objects.get(made, "FormatName") == given
    illegal = HResult.MQ_ERROR_ILLEGAL_FORMATNAME
    objects.put(made, "FormatName", "DIRECT=nonsense")
    assert refusal(objects, made, "Open") is illegal
    objects.put(made, "FormatName", "direct=os:" + QUEUE)
    objects.com.call(made, "Open")
    assert refusal(objects, made, "put_FormatName", "DIRECT=nonsense") is illegal
    assert objects.get(made, "IsOpen") is False
    assert objects.get(made, "FormatName") == "DIRECT=nonsense"


@pytest.mark.conformance(
    "MQAC-IMSMQPrivateDestination-8-Handle", "MQAC-IMSMQDestination-9-IsOpen", POINT + "10-Handle"
)
def test_a_handle_of_32_bits_is_that_of_the_queue_until_it_is_closed(objects: Objects) -> None:
    made = new_destination(objects)
    private = objects.com.query_interface(made, "IMSMQPrivateDestination")
    kinds = set()
    for _ in range(64):  # half of all handles are negative as a long
        queue = objects.open(SEND)
        handle = objects.get(queue, "Handle")
        assert isinstance(handle, int)
        kinds.add(handle < 0)
        objects.put(private, "Handle", number(handle))
        assert objects.get(made, "IsOpen") is True
        assert objects.get(private, "Handle") == objects.get(queue, "Handle2")
        if len(kinds) == 2:
            break
        objects.com.call(queue, "Close")
    objects.send(objects.message(), made)
    assert len(labels(objects)) == 1
    objects.com.call(queue, "Close")
    assert objects.get(made, "IsOpen") is False
    assert objects.get(private, "Handle") == Variant(VARENUM.VT_I8, -1)
    with pytest.raises(ComError) as refused:
        objects.send(objects.message(), made)
    assert refused.value.status is HResult.MQ_ERROR_INVALID_HANDLE
    assert objects.com.response(made, "Close").result == HResult.S_FALSE


# Revisions


@pytest.mark.conformance(POINT + "9-QueueInfo", POINT + "20-Receive")
@pytest.mark.parametrize("revision", ["", "2", "3", "4"])
def test_every_revision_returns_objects_of_its_own_revision(
    objects: Objects, revision: str
) -> None:
    send(objects, "one", "two")
    queue = objects.com.query_interface(objects.open(RECEIVE), f"IMSMQQueue{revision}")
    info = objects.com.call(queue, "get_QueueInfo")
    assert info.interface == f"IMSMQQueueInfo{revision}"
    connector = () if revision == "" else (None,)
    found = objects.com.call(queue, "Receive", NOW, None, None, NOW, *connector)
    assert (found.interface, label(objects, found)) == (f"IMSMQMessage{revision}", "one")
    transaction = objects.com.query_interface(begin(objects), "IMSMQTransaction")
    objects.com.call(transaction, "Abort", None, None)
