"""MSMQQueueInfo through the door, against what qmcomm and RemoteRead tell ([MC-MQAC] 3.10)."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest

from rpcqm.base.errors import HResult
from rpcqm.codec.automation.values import Variant
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.path_name import PathName
from rpcqm.codec.types.mqvalues import VARENUM, QueueAccessType
from rpcqm.rpc.security.ntlm import NtlmCredentials
from tests.support.accounts import PASSWORD
from tests.support.dcom.com_objects import NO, QUEUE, YES, Objects, number, served_objects
from tests.support.dcom.dcom_client import ENABLED, ComError, DcomClient, Reference
from tests.support.qm.directories import (
    DIRECTORY,
    OWN_QUEUE,
    THEIR_QUEUE,
    WORKSTATION,
    write_directory,
)

POINT = "MQAC-IMSMQQueueInfo4-"
LISTED = DIRECTORY.replace(
    'label = "Reports"',
    "label = \"Reports\"\nsddl = 'D:(A;;GA;;;WD)'\ndirectory_path = 'LDAP://CN=r'",
)
OWN_NAME, THEIR_NAME = f"PUBLIC={OWN_QUEUE}", f"PUBLIC={THEIR_QUEUE}"
BOB = NtlmCredentials("bob", PASSWORD)
NAMES = count(1)


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Objects]:
    directory: Path = write_directory(tmp_path_factory.mktemp("directory"), LISTED)
    configuration = f"name = 'WORKSTATION'\ndirectory_file = '{directory}'\n{ENABLED}"
    with served_objects(configuration) as served:
        given = PASSWORD + "\n"
        served.machine.run("user", "add", "bob", "--password-stdin", input=given)
        yield served


@pytest.fixture
def bob(objects: Objects) -> Iterator[Objects]:
    """The same queue manager for an account that owns nothing."""
    with DcomClient(objects.machine.endpoint("epm"), BOB) as com:
        yield Objects(objects.machine, com, objects.client)


def point(*numbers: str) -> pytest.MarkDecorator:
    return pytest.mark.conformance(*(POINT + each for each in numbers))


def new_path() -> str:
    return rf".\private$\made-{next(NAMES)}"


def made(objects: Objects, *arguments: Variant, path: str = "") -> tuple[str, Reference]:
    """A queue that alice has made, and its object."""
    path = path or new_path()
    info = objects.queue_info(path)
    objects.com.call(info, "Create", *(arguments or (None, None)))
    return path, info


def named(path: str) -> FormatName:
    return FormatName.of_path(PathName.parse(path))


def refusal(objects: Objects, reference: Reference, operation: str, *arguments: object) -> object:
    with pytest.raises(ComError) as refused:
        objects.com.call(reference, operation, *arguments)
    return refused.value.status


def by_name(objects: Objects, name: str) -> Reference:
    info = objects.queue_info()
    objects.put(info, "FormatName", name)
    return info


# Properties


@dataclass(frozen=True)
class Property:
    """A property: its opnums, what is put, and what qmcomm calls it."""

    name: str
    get: int
    put: int
    first: object
    second: object
    attribute: str = ""


GUID = "{0F1E2D3C-4B5A-6978-8796-A5B4C3D2E1F0}"
NO_GUID = "{00000000-0000-0000-0000-000000000000}"
PROPERTIES = [
    Property("ServiceTypeGuid", 8, 9, GUID, NO_GUID),
    Property("Label", 10, 11, "höst 𝄞", "", "label"),
    Property("PrivLevel", 17, 18, 2, 0, "privacy"),
    Property("Journal", 19, 20, 1, 0, "journal"),
    Property("Quota", 21, 22, 100, -1, "quota"),
    Property("Authenticate", 27, 28, 1, 0, "authenticate"),
    Property("JournalQuota", 29, 30, 200, -1, "journal_quota"),
    Property("MulticastAddress", 43, 44, "234.1.1.1:8001", ""),
]


_ELEMENTS = {
    "PrivLevel": "MQPRIVLEVEL",
    "Journal": "MQJOURNAL",
    "Authenticate": "MQAUTHENTICATE",
}


def marked(each: Property) -> object:
    numbers = (f"{each.get}-{each.name}", f"{each.put}-{each.name}", "36-Update")
    element = _ELEMENTS.get(each.name)
    elements = [pytest.mark.conformance(f"MQAC-element-{element}")] if element else []
    return pytest.param(each, id=each.name, marks=[point(*numbers), *elements])


@pytest.mark.parametrize("each", [marked(each) for each in PROPERTIES])
def test_a_property_is_made_told_and_changed(objects: Objects, each: Property) -> None:
    path = new_path()
    info = objects.queue_info(path)
    objects.put(info, each.name, each.first)
    objects.com.call(info, "Create", None, None)
    for value in (each.first, each.second):
        assert objects.get(objects.queue_info(path), each.name) == value
        if each.attribute:
            told = getattr(
                objects.client.run(objects.client.queues.properties(named(path))), each.attribute
            )
            assert told == (0xFFFFFFFF if value == -1 else value)
        other = objects.queue_info(path)
        objects.com.call(other, "Refresh")
        objects.put(other, each.name, each.second)
        assert objects.get(other, each.name) == each.second
        objects.com.call(other, "Update")


@point("36-Update", "18-PrivLevel", "9-ServiceTypeGuid")
def test_what_a_property_cannot_be_is_refused_by_update(objects: Objects) -> None:
    _, info = made(objects)
    for name, value in (("PrivLevel", 9), ("ServiceTypeGuid", "none")):
        objects.com.call(info, "Refresh")
        objects.put(info, name, value)
        status = refusal(objects, info, "Update")
        assert status is HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE


@point("7-QueueGuid", "25-CreateTime", "26-ModifyTime", "35-Refresh")
def test_what_nobody_sets_is_told_as_qmcomm_tells_it(objects: Objects) -> None:
    path, info = made(objects)
    told = objects.client.run(objects.client.queues.properties(named(path)))
    guid = objects.get(info, "QueueGuid")
    assert isinstance(guid, str)
    assert (guid[0], guid[-1], len(guid)) == ("{", "}", 38)
    for name, expected in (("CreateTime", told.create_time), ("ModifyTime", told.modify_time)):
        moment = objects.get(info, name)
        assert isinstance(moment, Variant)
        assert isinstance(moment.value, float)
        assert moment.vt == VARENUM.VT_DATE
        assert round((moment.value - 25_569) * 86_400) == expected > 0


@point("7-QueueGuid", "8-ServiceTypeGuid", "10-Label", "21-Quota", "26-ModifyTime", "35-Refresh")
def test_a_queue_of_the_system_has_no_properties_of_an_application(objects: Objects) -> None:
    info = by_name(objects, f"MACHINE={WORKSTATION};DEADLETTER")
    assert objects.get(info, "QueueGuid") is None
    assert objects.get(info, "ServiceTypeGuid") == NO_GUID
    assert objects.get(info, "Label") == ""
    assert objects.get(info, "Quota") == -1 == objects.get(info, "JournalQuota")
    assert objects.get(info, "PrivLevel") == 1
    assert objects.get(info, "Journal") == 0 == objects.get(info, "Authenticate")
    assert objects.get(info, "ModifyTime") == Variant(VARENUM.VT_DATE, 25_569.0)


# Names


@point("12-PathName", "13-PathName", "14-FormatName", "15-FormatName")
@pytest.mark.conformance("MQAC-event-update_queue_format_name")
def test_a_name_leads_to_the_other(objects: Objects) -> None:
    path = new_path()
    info = objects.queue_info(path)
    assert objects.get(info, "PathName") == path
    objects.com.call(info, "Create", None, None)
    full = path.replace(".", "WORKSTATION", 1)
    assert objects.get(info, "PathName") == full
    assert objects.get(info, "FormatName") == f"DIRECT=OS:{full}"
    for name in (objects.private_name(path), f"direct=tcp:127.0.0.1{full[11:]}"):
        other = by_name(objects, name)
        assert objects.get(other, "FormatName") == name
        assert objects.get(other, "PathName") == full
    objects.put(other, "PathName", QUEUE)
    assert objects.get(other, "FormatName") == r"DIRECT=OS:WORKSTATION\private$\orders"


@point("12-PathName", "15-FormatName", "34-Open", "8-ServiceTypeGuid")
def test_an_object_that_names_nothing_can_do_nothing(objects: Objects) -> None:
    info = by_name(objects, "")
    nothing = HResult.MQ_ERROR_ILLEGAL_QUEUE_PATHNAME
    for operation, arguments in (
        ("get_PathName", ()),
        ("get_Label", ()),
        ("get_ServiceTypeGuid", ()),
        ("Open", (1, 0)),
        ("Refresh", ()),
        ("Update", ()),
        ("Delete", ()),
        ("Create", (None, None)),
    ):
        assert refusal(objects, info, operation, *arguments) is nothing
    objects.put(info, "FormatName", "nonsense")
    assert refusal(objects, info, "Open", 1, 0) is HResult.MQ_ERROR_ILLEGAL_FORMATNAME
    objects.put(info, "PathName", "nonsense")
    assert refusal(objects, info, "Create", None, None) is nothing


@point("33-Delete", "35-Refresh", "36-Update", "34-Open")
@pytest.mark.parametrize(
    "name",
    [
        r"DIRECT=http://somewhere/msmq/private$/x",
        "MULTICAST=234.1.1.1:8001",
        r"DIRECT=OS:a\private$\x,DIRECT=OS:b\private$\x",
    ],
)
def test_what_is_only_sent_to_has_no_properties(objects: Objects, name: str) -> None:
    info = by_name(objects, name)
    unsupported = HResult.MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION
    for operation, arguments in (("Refresh", ()), ("Update", ()), ("Delete", ()), ("Open", (1, 0))):
        assert refusal(objects, info, operation, *arguments) is unsupported


@point("33-Delete", "35-Refresh", "36-Update")
def test_a_private_queue_of_another_machine_is_out_of_reach(objects: Objects) -> None:
    info = by_name(objects, r"DIRECT=OS:elsewhere\private$\x")
    for operation in ("Refresh", "Update", "Delete"):
        assert refusal(objects, info, operation) is HResult.MQ_ERROR_UNSUPPORTED_OPERATION


# Create and Delete


@point("32-Create", "16-IsTransactional", "41-IsTransactional2")
@pytest.mark.conformance("MQAC-element-MQTRANSACTIONAL")
@pytest.mark.parametrize("transactional", [False, True])
def test_a_queue_is_transactional_if_create_says_so(objects: Objects, transactional: bool) -> None:
    path, info = made(objects, YES if transactional else NO, NO)
    assert objects.get(info, "IsTransactional") == int(transactional)
    assert objects.get(info, "IsTransactional2") is transactional
    found = objects.client.run(objects.client.management.queue_information(named(path)))
    assert found.transactional is transactional
    assert refusal(objects, info, "Create", None, None) is HResult.MQ_ERROR_QUEUE_EXISTS


@point("32-Create", "31-IsWorldReadable", "42-IsWorldReadable2")
@pytest.mark.conformance("MQAC-rule-3.10.4.1.26.1")
@pytest.mark.parametrize("readable", [False, True])
def test_others_read_a_queue_if_create_says_so(
    objects: Objects, bob: Objects, readable: bool
) -> None:
    path, info = made(objects, NO, YES if readable else NO)
    other = objects.queue_info(path)
    objects.com.call(other, "Refresh")
    for told in (info, other):
        assert objects.get(told, "IsWorldReadable") == int(readable)
        assert objects.get(told, "IsWorldReadable2") is readable
    theirs = bob.queue_info(path)
    assert bob.get(theirs, "Label") == ""
    bob.open(QueueAccessType.SEND_ACCESS, path)
    if readable:
        bob.open(QueueAccessType.RECEIVE_ACCESS, path)
        return
    assert refusal(bob, theirs, "Open", 1, 0) is HResult.MQ_ERROR_ACCESS_DENIED


@point("32-Create")
def test_a_queue_is_made_here_and_only_under_a_name_of_applications(objects: Objects) -> None:
    illegal = HResult.MQ_ERROR_ILLEGAL_QUEUE_PATHNAME
    for path in (r"elsewhere\private$\x", r".\private$\x$", r".\private$\x;journal"):
        assert refusal(objects, objects.queue_info(path), "Create", None, None) is illegal


@point("33-Delete")
def test_a_deleted_queue_is_gone_and_the_object_is_as_new(objects: Objects, bob: Objects) -> None:
    path, info = made(objects)
    denied = refusal(bob, bob.queue_info(path), "Delete")
    assert denied is HResult.MQ_ERROR_ACCESS_DENIED
    objects.com.call(info, "Delete")
    assert objects.get(info, "FormatName") is None
    gone = HResult.MQ_ERROR_QUEUE_NOT_FOUND
    for operation, arguments in (("Delete", ()), ("Refresh", ()), ("Open", (1, 0))):
        assert refusal(objects, objects.queue_info(path), operation, *arguments) is gone
    system = by_name(objects, f"MACHINE={WORKSTATION};DEADLETTER")
    assert refusal(objects, system, "Delete") is HResult.MQ_ERROR_ACCESS_DENIED
    journal = by_name(objects, objects.private_name() + ";JOURNAL")
    unsupported = HResult.MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION
    assert refusal(objects, journal, "Delete") is unsupported


# Open


@point("34-Open")
@pytest.mark.conformance("MQAC-element-MQSHARE", "MQAC-element-MQACCESS")
def test_a_queue_is_opened_in_the_ways_that_there_are(objects: Objects) -> None:
    _, info = made(objects)
    exclusive = objects.com.call(info, "Open", int(QueueAccessType.RECEIVE_ACCESS), 1)
    assert objects.get(exclusive, "ShareMode") == 1
    violated = refusal(objects, info, "Open", int(QueueAccessType.RECEIVE_ACCESS), 0)
    assert violated is HResult.MQ_ERROR_SHARING_VIOLATION
    objects.com.call(exclusive, "Close")
    for access in (1, 2, 32):
        opened = objects.com.call(info, "Open", access, 0)
        assert (objects.get(opened, "Access"), objects.get(opened, "ShareMode")) == (access, 0)
    for access, share in ((2, 1), (4, 0), (0, 0), (128, 0), (130, 0), (3, 0), (33, 0), (1, 2)):
        status = refusal(objects, info, "Open", access, share)
        assert status is HResult.MQ_ERROR_INVALID_PARAMETER
    assert refusal(objects, objects.queue_info(new_path()), "Open", 1, 0) is (
        HResult.MQ_ERROR_QUEUE_NOT_FOUND
    )


@point("34-Open")
@pytest.mark.conformance("MQAC-element-MQACCESS")
def test_a_queue_is_open_for_what_its_access_says(objects: Objects) -> None:
    _, info = made(objects)
    receiving, sending, peeking = (objects.com.call(info, "Open", each, 0) for each in (1, 2, 32))
    denied = HResult.MQ_ERROR_ACCESS_DENIED
    for queue in (receiving, peeking):
        assert refusal(objects, objects.message(), "Send", queue, None) is denied
    objects.send(objects.message(), sending)
    now = number(0)
    arguments = {"Peek": (NO, NO, now, NO), "Receive": (None, NO, NO, now, NO)}
    for queue, read in ((sending, "Peek"), (sending, "Receive"), (peeking, "Receive")):
        assert refusal(objects, queue, read, *arguments[read]) is denied
    for queue, read in ((peeking, "Peek"), (receiving, "Peek"), (receiving, "Receive")):
        objects.com.call(queue, read, *arguments[read])
    gone = refusal(objects, peeking, "Peek", *arguments["Peek"])
    assert gone is HResult.MQ_ERROR_MESSAGE_NOT_FOUND


# Public queues


@point(
    "7-QueueGuid", "12-PathName", "23-BasePriority", "35-Refresh", "37-PathNameDNS", "45-ADsPath"
)
def test_a_public_queue_is_as_the_directory_says(objects: Objects) -> None:
    info = by_name(objects, OWN_NAME)
    assert objects.get(info, "QueueGuid") == f"{{{OWN_QUEUE}}}".upper()
    assert objects.get(info, "PathName") == r"WORKSTATION\reports"
    assert objects.get(info, "Label") == "Reports"
    assert objects.get(info, "ADsPath") == "LDAP://CN=r"
    other = objects.queue_info(r".\reports")
    objects.com.call(other, "Refresh")
    assert objects.get(other, "FormatName") == OWN_NAME
    theirs = by_name(objects, THEIR_NAME)
    assert objects.get(theirs, "PathNameDNS") == r"server.example.org\orders"
    assert objects.get(theirs, "BasePriority") == 7
    private = objects.queue_info()
    assert objects.get(private, "BasePriority") == 0
    for operation in ("get_PathNameDNS", "get_ADsPath"):
        status = refusal(objects, private, operation)
        assert status is HResult.MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION


@point("24-BasePriority", "36-Update")
def test_a_base_priority_is_of_public_queues_only(objects: Objects) -> None:
    info = by_name(objects, OWN_NAME)
    objects.com.call(info, "Refresh")
    illegal = HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE
    for value in (-32_769, 32_768):
        assert refusal(objects, info, "put_BasePriority", value) is illegal
    objects.put(info, "BasePriority", -32_768)
    objects.com.call(info, "Update")
    assert objects.get(by_name(objects, OWN_NAME), "BasePriority") == -32_768
    told = objects.client.run(objects.client.queues.properties(FormatName.parse(OWN_NAME)))
    assert told.base_priority == -32_768
    assert refusal(objects, objects.queue_info(), "put_BasePriority", 0) is illegal


@point("33-Delete", "36-Update")
def test_the_file_of_the_directory_is_not_written(objects: Objects) -> None:
    theirs = by_name(objects, THEIR_NAME)
    objects.com.call(theirs, "Refresh")
    for operation in ("Update", "Delete"):
        assert refusal(objects, theirs, operation) is HResult.MQ_ERROR_ACCESS_DENIED
    unknown = by_name(objects, "PUBLIC=99999999-9999-4999-8999-999999999999")
    assert refusal(objects, unknown, "Refresh") is HResult.MQ_ERROR_QUEUE_NOT_FOUND


# What is only a name


@pytest.mark.parametrize(
    ("operation", "arguments"),
    [
        pytest.param("get_Properties", (), marks=point("38-Properties")),
        pytest.param("get_Security", (), marks=point("39-Security")),
        pytest.param("put_Security", (number(1),), marks=point("40-Security")),
    ],
)
def test_what_is_only_a_name_says_so(
    objects: Objects, operation: str, arguments: tuple[object, ...]
) -> None:
    assert refusal(objects, objects.queue_info(), operation, *arguments) is HResult.E_NOTIMPL


@pytest.mark.conformance("MQAC-coclass-MSMQQueueInfo")
@pytest.mark.parametrize("revision", ["", "2", "3", "4"])
def test_every_revision_serves_the_same_queue(objects: Objects, revision: str) -> None:
    info = objects.com.query_interface(objects.queue_info(), f"IMSMQQueueInfo{revision}")
    assert objects.get(info, "PathName") == r"WORKSTATION\private$\orders"
    queue = objects.com.call(info, "Open", 32, 0)
    assert queue.interface == f"IMSMQQueue{revision}"
    assert objects.com.call(queue, "get_QueueInfo").interface == f"IMSMQQueueInfo{revision}"
