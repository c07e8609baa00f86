"""Names and criteria of queues through the door, read again ([MC-MQAC] 3.1.6.2, 3.10, 3.13)."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from rpcqm.base.errors import HResult
from rpcqm.codec.automation.values import Variant
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.types.mqvalues import VARENUM, QueueAccessType
from rpcqm.mqac import coclasses
from rpcqm.rpc.security.ntlm import NtlmCredentials
from tests.support.accounts import PASSWORD
from tests.support.dcom.com_objects import (
    ADMINISTRATOR,
    NO,
    YES,
    Objects,
    number,
    served_objects,
    text,
)
from tests.support.dcom.dcom_client import ENABLED, ComError, DcomClient, Reference
from tests.support.qm.directories import DIRECTORY, OWN_QUEUE, THEIR_QUEUE, write_directory

OWN, THEIRS = f"PUBLIC={OWN_QUEUE}", f"PUBLIC={THEIR_QUEUE}"
TYPE = "{0F1E2D3C-4B5A-6978-8796-A5B4C3D2E1F0}"
BOB = NtlmCredentials("bob", PASSWORD)
RECEIVE, SEND, PEEK = (
    int(access)
    for access in (
        QueueAccessType.RECEIVE_ACCESS,
        QueueAccessType.SEND_ACCESS,
        QueueAccessType.PEEK_ACCESS,
    )
)
ADMIN = 0x80
NOW = number(0)
NOTES = "PUBLIC=99999999-9999-4999-8999-999999999999"
LISTED = (
    DIRECTORY.replace('label = "Reports"', "label = \"Reports\"\nsddl = 'D:(A;;GA;;;WD)'")
    + f"""
[[queue]]
path = 'WORKSTATION\\notes'
identifier = "{NOTES[7:]}"
label = "Notes"
"""
)


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Objects]:
    directory: Path = write_directory(tmp_path_factory.mktemp("directory"), LISTED)
    configuration = f"name = 'WORKSTATION'\ndirectory_file = '{directory}'\n{ENABLED}"
    with served_objects(configuration) as served:
        served.machine.run("user", "add", "bob", "--password-stdin", input=PASSWORD + "\n")
        yield served


@pytest.fixture
def boss(objects: Objects) -> Iterator[Objects]:
    with DcomClient(objects.machine.endpoint("epm"), ADMINISTRATOR) as com:
        yield Objects(objects.machine, com, objects.client)


@pytest.fixture
def bob(objects: Objects) -> Iterator[Objects]:
    with DcomClient(objects.machine.endpoint("epm"), BOB) as com:
        yield Objects(objects.machine, com, objects.client)


def point(*names: str) -> pytest.MarkDecorator:
    return pytest.mark.conformance(*(f"MQAC-{name}" for name in names))


def by_name(objects: Objects, name: str) -> Reference:
    info = objects.queue_info()
    objects.put(info, "FormatName", name)
    return info


def refusal(objects: Objects, reference: Reference, operation: str, *arguments: object) -> object:
    with pytest.raises(ComError) as refused:
        objects.com.call(reference, operation, *arguments)
    return refused.value.status


# Names


@point("event-get_queue_format_name_from_pathname", "event-update_queue_format_name")
def test_a_part_of_a_public_queue_is_named_by_its_queue(objects: Objects) -> None:
    for path, name in (
        (r"WORKSTATION\reports;sub", r"DIRECT=OS:WORKSTATION\reports;sub"),
        (r"WORKSTATION\reports;journal", f"{OWN};JOURNAL"),
        (r"SERVER\orders;sub", r"DIRECT=OS:SERVER\orders;sub"),
    ):
        assert objects.get(objects.queue_info(path), "FormatName") == name
        assert objects.get(sent_to(objects, path), "FormatName") == name
    reading = objects.com.call(objects.queue_info(r".\reports;sub"), "Open", RECEIVE, 0)
    empty = refusal(objects, reading, "Receive", None, None, None, NOW, None)
    assert empty is HResult.MQ_ERROR_MESSAGE_NOT_FOUND
    unknown = refusal(objects, objects.queue_info(r".\none;sub"), "Open", RECEIVE, 0)
    assert unknown is HResult.MQ_ERROR_QUEUE_NOT_FOUND


def sent_to(objects: Objects, path: str) -> Reference:
    made = objects.create(coclasses.MSMQ_DESTINATION, "IMSMQDestination")
    objects.put(made, "PathName", path)
    return made


@point("IMSMQQueueInfo4-35-Refresh", "IMSMQQueueInfo4-7-QueueGuid", "IMSMQQueueInfo4-12-PathName")
@pytest.mark.parametrize("name", ["DEADLETTER", "DEADXACT", "JOURNAL"])
def test_a_direct_name_leads_to_a_queue_of_the_system(objects: Objects, name: str) -> None:
    info = by_name(objects, rf"DIRECT=OS:.\system$;{name}")
    objects.com.call(info, "Refresh")
    assert objects.get(info, "QueueGuid") is None
    assert objects.get(info, "Quota") == -1
    assert str(objects.get(info, "PathName")).upper() == rf"WORKSTATION\SYSTEM$;{name}"


@point("IMSMQQueueInfo4-35-Refresh", "IMSMQQueueInfo4-37-PathNameDNS")
def test_a_direct_name_leads_to_a_public_queue_elsewhere(objects: Objects) -> None:
    info = by_name(objects, r"DIRECT=OS:server\orders")
    assert objects.get(info, "QueueGuid") == f"{{{THEIR_QUEUE}}}"
    assert objects.get(info, "PathNameDNS") == r"server.example.org\orders"
    assert objects.get(info, "IsTransactional") == 1
    unknown = by_name(objects, r"DIRECT=OS:server\none")
    assert refusal(objects, unknown, "Refresh") is HResult.MQ_ERROR_QUEUE_NOT_FOUND
    assert refusal(objects, info, "Update") is HResult.MQ_ERROR_ACCESS_DENIED


# Rights


@point("IMSMQQueueInfo4-31-IsWorldReadable", "IMSMQQueueInfo4-42-IsWorldReadable2")
def test_whether_others_may_read_is_looked_up_and_changes_nothing(objects: Objects) -> None:
    for path, readable in ((r".\private$\closed", NO), (r".\private$\open", YES)):
        objects.com.call(objects.queue_info(path), "Create", None, readable)
        other = objects.queue_info(path)
        objects.put(other, "Label", "set")
        assert objects.get(other, "IsWorldReadable2") is (readable is YES)
        assert objects.get(other, "IsWorldReadable") == int(readable is YES)
        objects.com.call(other, "Update")
        assert objects.get(objects.queue_info(path), "Label") == "set"


@point("IMSMQQueueInfo4-35-Refresh", "rule-3.1.4.1")
def test_a_public_queue_here_is_shown_to_those_who_may_look(boss: Objects, bob: Objects) -> None:
    for told in (NOTES, r"DIRECT=OS:.\notes"):
        assert bob.get(by_name(bob, told), "Label") == "Notes"
    boss.machine.run("queue", "acl", "deny", NOTES, "bob", "get-properties")
    for told in (NOTES, r"DIRECT=OS:.\notes"):
        assert refusal(bob, by_name(bob, told), "Refresh") is HResult.MQ_ERROR_ACCESS_DENIED
        assert boss.get(by_name(boss, told), "Label") == "Notes"


# Public queues that are made here


@point(
    "IMSMQQueueInfo4-32-Create",
    "IMSMQQueueInfo4-33-Delete",
    "IMSMQQueueInfo4-34-Open",
    "IMSMQQueueInfo4-36-Update",
    "IMSMQQuery4-9-LookupQueue",
)
def test_a_public_queue_is_made_found_changed_and_deleted(boss: Objects) -> None:
    info = boss.queue_info(r".\bills")
    boss.put(info, "Label", "Bills")
    boss.put(info, "ServiceTypeGuid", TYPE)
    boss.com.call(info, "Create", YES, NO)
    assert refusal(boss, info, "Create", None, None) is HResult.MQ_ERROR_QUEUE_EXISTS
    (name,) = found(boss, Label=text("Bills"))
    assert boss.get(info, "FormatName") == name
    assert boss.get(info, "QueueGuid") == f"{{{name[7:]}}}".upper()
    assert boss.get(info, "PathNameDNS")
    told = boss.client.run(boss.client.queues.properties(FormatName.parse(name)))
    assert (told.label, boss.get(info, "IsTransactional")) == ("Bills", 1)
    queue = boss.com.call(info, "Open", SEND, 0)
    boss.send(boss.message(), queue, number(3))
    assert boss.bodies(r".\bills") == [b""]
    boss.put(info, "Label", "Old bills")
    boss.com.call(info, "Update")
    assert found(boss, Label=text("Bills")) == []
    assert found(boss, Label=text("old BILLS")) == [name]
    boss.com.call(info, "Delete")
    assert found(boss, Label=text("Old bills")) == []
    assert refusal(boss, by_name(boss, name), "Refresh") is HResult.MQ_ERROR_QUEUE_NOT_FOUND


# Criteria

_CRITERIA = ("ServiceType", "Label", "CreateTime", "ModifyTime")
_PARAMETERS = (
    "QueueGuid",
    "ServiceTypeGuid",
    *_CRITERIA[1:],
    *(f"Rel{name}" for name in _CRITERIA),
    "MulticastAddress",
    "RelMulticastAddress",
)


def found(objects: Objects, **given: Variant) -> list[str]:
    """What LookupQueue finds, and LookupQueue_v2 where it can be asked the same."""
    query = objects.create(coclasses.MSMQ_QUERY, "IMSMQQuery4")
    arguments = [given.get(name) for name in _PARAMETERS]
    names = names_in(objects, objects.com.call(query, "LookupQueue", *arguments))
    if not {"MulticastAddress", "RelMulticastAddress"} & given.keys():
        older = objects.com.call(query, "LookupQueue_v2", *arguments[:9])
        assert names_in(objects, older) == names
    return names


def names_in(objects: Objects, infos: Reference) -> list[str]:
    names = []
    while (info := objects.com.call(infos, "Next")) is not None:
        names.append(str(objects.get(info, "FormatName")))
    return names


RELATIONS = range(1, 7)
"""REL_EQ, REL_NEQ, REL_LT, REL_GT, REL_LE, REL_GE."""
EQUAL, LESS, GREATER = {1, 5, 6}, {2, 3, 5}, {2, 4, 6}
"""The relations that hold for a value of a queue that is equal, less or greater."""


def relations(objects: Objects, name: str, attribute: str, value: Variant) -> set[int]:
    """For which relations a queue is found."""
    relation = "Rel" + attribute.removesuffix("Guid")
    return {
        each
        for each in RELATIONS
        if name in found(objects, **{attribute: value, relation: number(each)})
    }


@pytest.fixture(scope="module")
def dated(objects: Objects) -> Objects:
    """The queue here has been changed after it was made."""
    info = by_name(objects, OWN)
    objects.com.call(info, "Refresh")
    objects.put(info, "ServiceTypeGuid", TYPE)
    objects.put(info, "MulticastAddress", "234.1.1.5:8001")
    objects.com.call(info, "Update")
    return objects


@point("IMSMQQuery4-7-LookupQueue_v2", "IMSMQQuery4-9-LookupQueue", "element-RELOPS")
@pytest.mark.parametrize(
    ("attribute", "equal", "less", "greater"),
    [
        ("Label", "REPORTS", "S", "Report"),
        (
            "ServiceTypeGuid",
            TYPE,
            "{FF1E2D3C-4B5A-6978-8796-A5B4C3D2E1F0}",
            "{" + 8 * "0" + TYPE[9:],
        ),
        ("MulticastAddress", "234.1.1.5:8001", "234.1.1.6:8001", "234.1.1.4:8001"),
    ],
)
def test_every_relation_is_looked_at(
    dated: Objects, attribute: str, equal: str, less: str, greater: str
) -> None:
    for value, expected in ((equal, EQUAL), (less, LESS), (greater, GREATER)):
        assert relations(dated, OWN, attribute, text(value)) == expected, value


@point(
    "IMSMQQuery4-7-LookupQueue_v2",
    "IMSMQQuery4-9-LookupQueue",
    "IMSMQQueueInfos4-8-Next",
    "element-RELOPS",
)
@pytest.mark.parametrize("attribute", ["CreateTime", "ModifyTime"])
def test_the_times_of_a_queue_here_are_looked_at(dated: Objects, attribute: str) -> None:
    moment = dated.get(by_name(dated, OWN), attribute)
    assert isinstance(moment, Variant)
    assert isinstance(moment.value, float)
    for days, expected in ((0.0, EQUAL), (1.0, LESS), (-1.0, GREATER)):
        value = Variant(VARENUM.VT_DATE, moment.value + days)
        assert relations(dated, OWN, attribute, value) == expected, days
    assert moment.value > 45_000
