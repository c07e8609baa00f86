"""MSMQDestination, dispensers and transactions, through the door ([MC-MQAC] 3.6 to 3.12)."""

from collections.abc import Iterator
from uuid import UUID

import pytest

from rpcqm.base.errors import HResult
from rpcqm.codec.automation.values import EMPTY, Variant
from rpcqm.codec.types.mqvalues import VARENUM, QueueAccessType
from tests.support.dcom import clsids
from tests.support.dcom.com_objects import (
    ADMINISTRATOR,
    NO,
    QUEUE,
    STREAM,
    YES,
    Objects,
    number,
    octets,
    served_objects,
)
from tests.support.dcom.dcom_client import ENABLED, ComError, DcomClient, Reference
from tests.support.waiting import until

DIRECT = "DIRECT=OS:" + QUEUE
DIRECTORY = """
[[queue_manager]]
name = "here"
identifier = "aaaaaaaa-0000-0000-0000-000000000003"
[[queue]]
path = "here\\\\unplaced"
identifier = "aaaaaaaa-0000-0000-0000-000000000004"
[[queue]]
path = "here\\\\invoices"
identifier = "aaaaaaaa-0000-0000-0000-000000000001"
directory_path = "LDAP://server/CN=invoices,CN=msmq"
full_path = "CN=invoices,CN=msmq,CN=here"
sddl = "D:(A;;GA;;;WD)"
[[distribution_list]]
name = "all"
identifier = "aaaaaaaa-0000-0000-0000-000000000002"
members = ["PUBLIC=aaaaaaaa-0000-0000-0000-000000000001"]
directory_path = "LDAP://server/CN=all,OU=lists"
full_path = "CN=all,OU=lists,CN=here"
[[queue_alias]]
name = "shop"
identifier = "aaaaaaaa-0000-0000-0000-000000000005"
format_name = 'DIRECT=OS:.\\private$\\orders'
directory_path = "LDAP://server/CN=shop,OU=aliases"
full_path = "CN=shop,OU=aliases,CN=here"
"""
PUBLIC = "PUBLIC=aaaaaaaa-0000-0000-0000-000000000001"
EVERYBODY = "DL=aaaaaaaa-0000-0000-0000-000000000002"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Objects]:
    directory = tmp_path_factory.mktemp("directory") / "directory.toml"
    directory.write_text(DIRECTORY)
    with served_objects(f'name = "here"\ndirectory_file = "{directory}"\n{ENABLED}') as objects:
        yield objects


def refusal(objects: Objects, reference: Reference, operation: str, *arguments: object) -> object:
    with pytest.raises(ComError) as refused:
        objects.com.call(reference, operation, *arguments)
    return refused.value.status


def hresult(objects: Objects, reference: Reference, operation: str) -> int:
    """The HRESULT of a method, also one of success."""
    result: int = objects.com.response(reference, operation).result
    return result


# Destinations


def new_destination(objects: Objects) -> Reference:
    return objects.create(clsids.MSMQ_DESTINATION, "IMSMQDestination")


@pytest.mark.conformance(
    "MQAC-IMSMQDestination-7-Open",
    "MQAC-IMSMQDestination-8-Close",
    "MQAC-IMSMQDestination-9-IsOpen",
    "MQAC-coclass-MSMQDestination",
)
def test_a_destination_is_open_between_open_and_close(objects: Objects) -> None:
    made = new_destination(objects)
    assert refusal(objects, made, "Open") is HResult.MQ_ERROR_ILLEGAL_FORMATNAME
    objects.put(made, "FormatName", DIRECT)
    assert hresult(objects, made, "Close") == HResult.S_FALSE
    assert objects.get(made, "IsOpen") is False
    assert hresult(objects, made, "Open") == 0
    assert hresult(objects, made, "Open") == HResult.S_FALSE
    assert objects.get(made, "IsOpen") is True
    objects.send(objects.message(), made)
    assert objects.bodies() == [b""]
    assert hresult(objects, made, "Close") == 0
    assert objects.get(made, "IsOpen") is False


@pytest.mark.conformance("MQAC-IMSMQDestination-7-Open")
def test_a_queue_that_is_not_there_cannot_be_opened(objects: Objects) -> None:
    made = new_destination(objects)
    objects.put(made, "FormatName", DIRECT + "x")
    assert refusal(objects, made, "Open") is HResult.MQ_ERROR_QUEUE_NOT_FOUND
    assert objects.get(made, "IsOpen") is False


@pytest.mark.conformance(
    "MQAC-IMSMQDestination-16-FormatName", "MQAC-IMSMQDestination-17-FormatName"
)
@pytest.mark.conformance("MQAC-IMSMQDestination-7-Open")
def test_another_format_name_is_opened_in_place_of_the_old_one(objects: Objects) -> None:
    made = new_destination(objects)
    assert objects.get(made, "FormatName") == ""
    objects.put(made, "PathName", QUEUE)
    objects.com.call(made, "Open")
    objects.put(made, "FormatName", "DIRECT=OS:" + STREAM)
    assert objects.get(made, "FormatName") == "DIRECT=OS:" + STREAM
    assert objects.get(made, "PathName") == ""
    assert objects.get(made, "IsOpen") is True
    objects.send(objects.message(), made, number(3))
    assert (objects.bodies(), objects.bodies(STREAM)) == ([], [b""])
    wrong = refusal(objects, made, "put_FormatName", "DIRECT=")
    assert wrong is HResult.MQ_ERROR_ILLEGAL_FORMATNAME


@pytest.mark.conformance(
    "MQAC-IMSMQDestination-14-PathName",
    "MQAC-IMSMQDestination-15-PathName",
    "MQAC-event-get_queue_format_name_from_pathname",
)
@pytest.mark.parametrize(
    ("path", "name"),
    [(QUEUE, DIRECT), (r".\invoices", PUBLIC), (r"HERE\Invoices", PUBLIC)],
)
def test_a_path_name_leads_to_a_format_name(objects: Objects, path: str, name: str) -> None:
    made = new_destination(objects)
    objects.put(made, "FormatName", DIRECT)
    objects.put(made, "PathName", path)
    assert objects.get(made, "PathName") == path
    assert objects.get(made, "FormatName") == name
    objects.com.call(made, "Open")


@pytest.mark.conformance(
    "MQAC-IMSMQDestination-15-PathName", "MQAC-event-get_queue_format_name_from_pathname"
)
@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("orders", HResult.MQ_ERROR_ILLEGAL_QUEUE_PATHNAME),
        (r".\system$;deadletter", HResult.MQ_ERROR_ILLEGAL_QUEUE_PATHNAME),
        (r".\unknown", HResult.MQ_ERROR_QUEUE_NOT_FOUND),
    ],
)
def test_a_path_name_of_no_queue_is_refused(objects: Objects, path: str, status: HResult) -> None:
    assert refusal(objects, new_destination(objects), "put_PathName", path) is status


@pytest.mark.conformance(
    "MQAC-IMSMQDestination-12-ADsPath",
    "MQAC-IMSMQDestination-13-ADsPath",
    "MQAC-event-get_queue_format_name_from_adspath",
)
@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("LDAP://server/CN=invoices,CN=msmq", PUBLIC),
        ("LDAP://CN=invoices,CN=msmq,CN=here", PUBLIC),
        ("LDAP://any/CN=invoices,CN=msmq,CN=here", PUBLIC),
        ("LDAP://<GUID=aaaaaaaa000000000000000000000001>", PUBLIC),
        ("LDAP://<GUID={aaaaaaaa-0000-0000-0000-000000000002}>", EVERYBODY),
        ("LDAP://server/CN=all,OU=lists", EVERYBODY),
        ("LDAP://any/CN=all,OU=lists,CN=here", EVERYBODY),
        ("LDAP://<GUID=aaaaaaaa-0000-0000-0000-000000000005>", DIRECT),
        ("LDAP://server/CN=shop,OU=aliases", DIRECT),
        ("LDAP://CN=shop,OU=aliases,CN=here", DIRECT),
        ("LDAP://server", None),
        ("LDAP://server/", None),
        ("LDAP://CN=nobody", None),
        ("CN=invoices,CN=msmq,CN=here", None),
    ],
)
def test_a_path_in_the_directory_leads_to_a_format_name(
    objects: Objects, path: str, name: str | None
) -> None:
    made = new_destination(objects)
    if name is None:
        unknown = refusal(objects, made, "put_ADsPath", path)
        assert unknown is HResult.MQ_ERROR_QUEUE_NOT_FOUND
        return
    objects.put(made, "ADsPath", path)
    assert objects.get(made, "ADsPath") == path
    assert objects.get(made, "FormatName") == name
    objects.com.call(made, "Open")
    objects.put(made, "FormatName", DIRECT)
    assert objects.get(made, "ADsPath") == ""


@pytest.mark.parametrize(
    ("operation", "arguments"),
    [
        pytest.param(
            operation, arguments, marks=pytest.mark.conformance(f"MQAC-IMSMQDestination-{point}")
        )
        for operation, arguments, point in [
            ("get_IADs", (), "10-IADs"),
            ("putref_IADs", (None,), "11-IADs"),
            ("get_Destinations", (), "18-Destinations"),
            ("putref_Destinations", (None,), "19-Destinations"),
            ("get_Properties", (), "20-Properties"),
        ]
    ],
)
def test_what_is_only_a_name_is_not_implemented(
    objects: Objects, operation: str, arguments: tuple[object, ...]
) -> None:
    made = new_destination(objects)
    assert refusal(objects, made, operation, *arguments) is HResult.E_NOTIMPL


@pytest.mark.conformance(
    "MQAC-IMSMQPrivateDestination-7-Handle", "MQAC-IMSMQPrivateDestination-8-Handle"
)
def test_a_handle_leads_its_caller_to_what_is_open_by_it(objects: Objects) -> None:
    first = objects.destination()
    private = objects.com.query_interface(first, "IMSMQPrivateDestination")
    handle = objects.get(private, "Handle")
    assert isinstance(handle, Variant)
    assert handle.vt == VARENUM.VT_I8
    second = new_destination(objects)
    other = objects.com.query_interface(second, "IMSMQPrivateDestination")
    assert objects.get(other, "Handle") == Variant(VARENUM.VT_I8, -1)
    objects.put(other, "Handle", handle)
    objects.send(objects.message(), second)
    assert objects.bodies() == [b""]
    objects.put(other, "Handle", Variant(VARENUM.VT_I8, -1))
    assert objects.get(second, "IsOpen") is False
    with DcomClient(objects.machine.endpoint("epm"), ADMINISTRATOR) as com:
        boss = Objects(objects.machine, com, objects.client)
        thief = com.query_interface(new_destination(boss), "IMSMQPrivateDestination")
        boss.put(thief, "Handle", handle)
        assert boss.get(thief, "Handle") == Variant(VARENUM.VT_I8, -1)
    sending = objects.open(QueueAccessType.SEND_ACCESS)
    objects.put(other, "Handle", objects.get(sending, "Handle2"))
    objects.send(objects.message(), second)
    assert objects.bodies() == [b"", b""]


def test_what_shares_a_handle_is_closed_with_it(objects: Objects) -> None:
    """The queue knows that it is closed, by whichever object that was done (G294)."""
    queue = objects.open(QueueAccessType.SEND_ACCESS)
    destination = new_destination(objects)
    shared = objects.com.query_interface(destination, "IMSMQPrivateDestination")
    objects.put(shared, "Handle", objects.get(queue, "Handle2"))
    assert objects.get(destination, "IsOpen") is True
    objects.com.call(destination, "Close")
    assert objects.get(queue, "IsOpen2") is False
    assert objects.get(queue, "IsOpen") == 0
    for operation in ("Close", "get_Access"):
        assert refusal(objects, queue, operation) is HResult.MQ_ERROR_INVALID_HANDLE
    message = objects.message()
    for target in (queue, destination):
        status = refusal(objects, message, "Send", target, None)
        assert status is HResult.MQ_ERROR_INVALID_HANDLE
    other = objects.open(QueueAccessType.SEND_ACCESS)
    objects.put(shared, "Handle", objects.get(other, "Handle2"))
    objects.com.call(other, "Close")
    assert objects.get(destination, "IsOpen") is False
    assert refusal(objects, message, "Send", destination, None) is HResult.MQ_ERROR_INVALID_HANDLE


# Transactions


def begin(objects: Objects) -> Reference:
    dispenser = objects.create(clsids.MSMQ_TRANSACTION_DISPENSER, "IMSMQTransactionDispenser3")
    made = objects.com.call(dispenser, "BeginTransaction")
    assert isinstance(made, Reference)
    return made


def dispatch(reference: Reference) -> Variant:
    return Variant(VARENUM.VT_DISPATCH, reference)


def send_in(objects: Objects, transaction: Reference) -> None:
    objects.send(
        objects.message(), objects.destination("DIRECT=OS:" + STREAM), dispatch(transaction)
    )


@pytest.mark.conformance(
    "MQAC-IMSMQTransactionDispenser3-7-BeginTransaction",
    "MQAC-IMSMQTransaction-8-Commit",
    "MQAC-coclass-MSMQTransactionDispenser",
)
def test_what_a_transaction_has_sent_is_there_after_its_commit(objects: Objects) -> None:
    transaction = begin(objects)
    assert transaction.interface == "IMSMQTransaction3"
    send_in(objects, transaction)
    assert objects.bodies(STREAM) == []
    objects.com.call(transaction, "Commit", NO, number(2), number(0))
    assert objects.bodies(STREAM) == [b""]
    again = refusal(objects, transaction, "Commit", None, None, None)
    assert again is HResult.MQ_ERROR_TRANSACTION_SEQUENCE
    late = refusal(objects, transaction, "Abort", None, None)
    assert late is HResult.MQ_ERROR_TRANSACTION_SEQUENCE


@pytest.mark.conformance("MQAC-IMSMQTransaction-9-Abort")
def test_what_a_transaction_has_done_is_undone_by_its_abort(objects: Objects) -> None:
    kept = objects.message()
    objects.put(kept, "Body", octets(b"kept"))
    objects.send(kept, objects.destination("DIRECT=OS:" + STREAM), number(3))
    transaction = begin(objects)
    send_in(objects, transaction)
    queue = objects.open(QueueAccessType.RECEIVE_ACCESS, STREAM)
    arguments = (dispatch(transaction), None, None, number(0), None)
    objects.com.call(queue, "Receive", *arguments)
    assert objects.bodies(STREAM) == []
    objects.com.call(transaction, "Abort", NO, NO)
    until(lambda: objects.bodies(STREAM) == [b"kept"])


@pytest.mark.conformance("MQAC-IMSMQTransaction-8-Commit", "MQAC-element-XACTTC")
@pytest.mark.parametrize(
    "arguments",
    [(YES, None, None), (None, number(1), None), (None, number(4), None), (None, None, number(1))],
)
def test_a_commit_of_another_kind_is_not_supported(
    objects: Objects, arguments: tuple[object, ...]
) -> None:
    transaction = begin(objects)
    refused = refusal(objects, transaction, "Commit", *arguments)
    assert refused is HResult.XACT_E_NOTSUPPORTED
    objects.com.call(transaction, "Abort", None, None)


@pytest.mark.conformance("MQAC-IMSMQTransaction-9-Abort")
@pytest.mark.parametrize("arguments", [(YES, None), (None, YES)])
def test_an_abort_of_another_kind_is_not_supported(
    objects: Objects, arguments: tuple[object, ...]
) -> None:
    transaction = begin(objects)
    refused = refusal(objects, transaction, "Abort", *arguments)
    assert refused is HResult.XACT_E_NOTSUPPORTED
    objects.com.call(transaction, "Commit", None, None, None)


@pytest.mark.conformance(
    "MQAC-IMSMQTransaction2-10-InitNew",
    "MQAC-IMSMQTransaction3-12-ITransaction",
    "MQAC-coclass-MSMQTransaction",
)
@pytest.mark.conformance("MQAC-IMSMQTransaction-8-Commit", "MQAC-element-XACTTC")
def test_a_new_object_stands_for_a_transaction_that_exists(objects: Objects) -> None:
    transaction = begin(objects)
    made = objects.create(clsids.MSMQ_TRANSACTION, "IMSMQTransaction3")
    for operation, arguments in (("Commit", 3), ("Abort", 2)):
        blank = refusal(objects, made, operation, *[None] * arguments)
        assert blank is HResult.E_INVALIDARG
    assert objects.get(made, "ITransaction") == EMPTY
    for wrong in (EMPTY, number(1), dispatch(objects.message())):
        assert refusal(objects, made, "InitNew", wrong) is HResult.E_INVALIDARG
    inner = inner_of(objects, transaction)
    objects.com.call(made, "InitNew", Variant(VARENUM.VT_UNKNOWN, inner))
    used = refusal(objects, made, "InitNew", Variant(VARENUM.VT_UNKNOWN, inner))
    assert used is HResult.MQ_ERROR_TRANSACTION_USAGE
    send_in(objects, made)
    objects.com.call(transaction, "Commit", None, None, None)
    assert objects.bodies(STREAM) == [b""]


def unknown_of(objects: Objects, transaction: Reference) -> Reference:
    """What get_ITransaction gives."""
    told = objects.get(transaction, "ITransaction")
    assert isinstance(told, Variant)
    assert isinstance(told.value, bytes)
    assert told.vt == VARENUM.VT_UNKNOWN
    return DcomClient.reference(told.value)


def inner_of(objects: Objects, transaction: Reference) -> Reference:
    """The ITransaction of an MSMQTransaction."""
    return objects.com.query_interface(unknown_of(objects, transaction), "ITransaction")


@pytest.mark.conformance(
    "MQAC-ITransaction-3-Commit",
    "MQAC-ITransaction-5-GetTransactionInfo",
    "MQAC-coclass-TransactionImpl",
    "MQAC-packet-BOID",
    "MQAC-packet-XACTTRANSINFO",
)
def test_the_transaction_itself_commits_and_tells_who_it_is(objects: Objects) -> None:
    transaction = begin(objects)
    inner = inner_of(objects, transaction)
    info = objects.com.call(inner, "GetTransactionInfo")
    assert UUID(bytes_le=bytes(info.uow.rgb)).version == 4
    rest = (info.isoLevel, info.isoFlags, info.grfTCSupported, info.grfRMSupported)
    assert rest == (0, 0, 0, 0)
    assert (info.grfTCSupportedRetaining, info.grfRMSupportedRetaining) == (0, 0)
    send_in(objects, transaction)
    assert refusal(objects, inner, "Commit", 1, 2, 0) is HResult.XACT_E_NOTSUPPORTED
    objects.com.call(inner, "Commit", 0, 2, 0)
    assert objects.bodies(STREAM) == [b""]
    again = refusal(objects, inner, "Commit", 0, 2, 0)
    assert again is HResult.MQ_ERROR_TRANSACTION_SEQUENCE


@pytest.mark.conformance("MQAC-ITransaction-4-Abort")
@pytest.mark.conformance("MQAC-IMSMQTransaction-8-Commit")
def test_the_transaction_itself_aborts(objects: Objects) -> None:
    transaction = begin(objects)
    inner = inner_of(objects, transaction)
    send_in(objects, transaction)
    assert refusal(objects, inner, "Abort", None, 1, 0) is HResult.XACT_E_NOTSUPPORTED
    assert refusal(objects, inner, "Abort", None, 0, 1) is HResult.XACT_E_NOTSUPPORTED
    objects.com.call(inner, "Abort", None, 0, 0)
    ended = refusal(objects, transaction, "Commit", None, None, None)
    assert ended is HResult.MQ_ERROR_TRANSACTION_SEQUENCE
    assert objects.bodies(STREAM) == []


def test_a_transaction_that_is_released_unfinished_is_aborted(objects: Objects) -> None:
    objects.send(objects.message(), objects.destination("DIRECT=OS:" + STREAM), number(3))
    transaction = begin(objects)
    queue = objects.open(QueueAccessType.RECEIVE_ACCESS, STREAM)
    objects.com.call(queue, "Receive", dispatch(transaction), None, None, number(0), None)
    inner = unknown_of(objects, transaction)
    objects.com.release(transaction)
    assert objects.bodies(STREAM) == []
    objects.com.release(inner)
    until(lambda: objects.bodies(STREAM) == [b""])


@pytest.mark.conformance(
    "MQAC-IMSMQTransaction-7-Transaction",
    "MQAC-IMSMQTransaction2-11-Properties",
    "MQAC-IMSMQTransactionDispenser3-8-Properties",
    "MQAC-IMSMQCoordinatedTransactionDispenser3-8-Properties",
)
def test_what_transactions_only_name_is_not_implemented(objects: Objects) -> None:
    made = objects.create(clsids.MSMQ_TRANSACTION, "IMSMQTransaction3")
    assert refusal(objects, made, "get_Transaction") is HResult.E_NOTIMPL
    assert refusal(objects, made, "get_Properties") is HResult.E_NOTIMPL
    for clsid, interface in (
        (clsids.MSMQ_TRANSACTION_DISPENSER, "IMSMQTransactionDispenser3"),
        (
            clsids.MSMQ_COORDINATED_TRANSACTION_DISPENSER,
            "IMSMQCoordinatedTransactionDispenser3",
        ),
    ):
        dispenser = objects.create(clsid, interface)
        assert refusal(objects, dispenser, "get_Properties") is HResult.E_NOTIMPL


@pytest.mark.conformance(
    "MQAC-IMSMQCoordinatedTransactionDispenser3-7-BeginTransaction",
    "MQAC-coclass-MSMQCoordinatedTransactionDispenser",
)
def test_there_is_no_coordinator_of_transactions(objects: Objects) -> None:
    dispenser = objects.create(
        clsids.MSMQ_COORDINATED_TRANSACTION_DISPENSER, "IMSMQCoordinatedTransactionDispenser3"
    )
    none = refusal(objects, dispenser, "BeginTransaction")
    assert none is HResult.MQ_ERROR_DTC_CONNECT


def test_a_transaction_is_of_use_to_its_caller_only(objects: Objects) -> None:
    """As by qmcomm (G87), whatever reference somebody else has."""
    transaction = begin(objects)
    with DcomClient(objects.machine.endpoint("epm"), ADMINISTRATOR) as com:
        boss = Objects(objects.machine, com, objects.client)
        target = boss.destination("DIRECT=OS:" + STREAM)
        with pytest.raises(ComError) as refused:
            boss.send(boss.message(), target, dispatch(transaction))
    assert refused.value.status in (
        HResult.MQ_ERROR_TRANSACTION_SEQUENCE,
        HResult.E_NOINTERFACE,
        HResult.E_ACCESSDENIED,
    )
    objects.com.call(transaction, "Abort", None, None)
