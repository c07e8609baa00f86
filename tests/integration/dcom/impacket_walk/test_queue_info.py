"""impacket calls every method of MSMQQueueInfo, and gets what qmcomm and qmmgmt tell."""

import pytest

from rpcqm.base.errors import HResult
from rpcqm.client.queue_settings import QueueProperties
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.types.mqvalues import VARENUM
from tests.support.dcom.com_objects import NO, YES, number
from tests.support.dcom.impacket_place import REPORTS, Place, named
from tests.support.dcom.impacket_walker import Held, Walker, Way
from tests.support.qm.directories import OWN_QUEUE, THEIR_QUEUE

WALKED = ("IMSMQQueueInfo",)
OWN, THEIRS = f"PUBLIC={OWN_QUEUE}", f"PUBLIC={THEIR_QUEUE}"
GUID = "{0F1E2D3C-4B5A-6978-8796-A5B4C3D2E1F0}"
NO_GUID = "{00000000-0000-0000-0000-000000000000}"
TOLD = {
    "Label": "label",
    "PrivLevel": "privacy",
    "Journal": "journal",
    "Quota": "quota",
    "Authenticate": "authenticate",
    "JournalQuota": "journal_quota",
}
"""Properties that qmcomm tells too, under its client's names."""
FIRST = {
    "ServiceTypeGuid": GUID,
    "Label": "höst",
    "PrivLevel": 2,
    "Journal": 1,
    "Quota": 100,
    "Authenticate": 1,
    "JournalQuota": 200,
    "MulticastAddress": "234.1.1.1:8001",
}
SECOND = {
    "ServiceTypeGuid": NO_GUID,
    "Label": "another",
    "PrivLevel": 1,
    "Journal": 0,
    "Quota": -1,
    "Authenticate": 0,
    "JournalQuota": -1,
    "MulticastAddress": "",
}
RECEIVE, SEND = 1, 2


@pytest.mark.parametrize("way", Way)
def test_impacket_calls_every_method_of_queue_infos(place: Place, way: Way) -> None:
    with place.walk(way, WALKED) as walker:
        path = _made_and_changed(place, walker)
        _named(place, walker, path)
        _kinds(place, walker)
        _public(place, walker)
        _opened_and_deleted(place, walker, path)
        place.refused(walker, walker.queue_info(path), number(1))


def _compare(walker: Walker, info: Held, expected: dict[str, object], told: object) -> None:
    for name, value in expected.items():
        assert walker.get(info, name) == value, name
    for name, attribute in TOLD.items():
        found = getattr(told, attribute)
        assert expected[name] == (-1 if found == 0xFFFFFFFF else found), name


def _made_and_changed(place: Place, walker: Walker) -> str:
    path = place.new_path()
    info = walker.queue_info(path)
    for name, value in FIRST.items():
        walker.put(info, name, value)
    walker.call(info, "Create", NO, YES)
    assert walker.refusal(info, "Create", NO, YES) == HResult.MQ_ERROR_QUEUE_EXISTS
    told = place.properties(named(path))
    other = walker.queue_info(path)
    _compare(walker, other, FIRST, told)
    _times(walker, other, told)
    for name, value in SECOND.items():
        walker.put(other, name, value)
    assert walker.refusal(other, "put_BasePriority", 1) == HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE
    walker.call(other, "Update")
    walker.call(info, "Refresh")
    _compare(walker, info, SECOND, place.properties(named(path)))
    return path


def _times(walker: Walker, info: Held, told: QueueProperties) -> None:
    for name, expected in (("CreateTime", told.create_time), ("ModifyTime", told.modify_time)):
        moment = walker.get(info, name)
        assert moment.vt == VARENUM.VT_DATE
        assert round((moment.value - 25_569) * 86_400) == expected > 0


def _named(place: Place, walker: Walker, path: str) -> None:
    full = path.replace(".", "WORKSTATION", 1)
    info = walker.queue_info(place.private_name(path))
    assert walker.get(info, "FormatName") == place.private_name(path)
    assert walker.get(info, "PathName") == full == place.information(path).path_name
    assert walker.get(walker.queue_info(path), "FormatName") == f"DIRECT=OS:{full}"
    guid = walker.get(info, "QueueGuid")
    assert (guid[0], guid[-1], len(guid)) == ("{", "}", 38)
    private = HResult.MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION
    assert walker.refusal(info, "get_PathNameDNS") == private
    assert walker.refusal(info, "get_ADsPath") == private


def _kinds(place: Place, walker: Walker) -> None:
    for transactional, readable in ((True, False), (False, True)):
        path = place.new_path()
        info = walker.queue_info(path)
        asked = [YES if each else NO for each in (transactional, readable)]
        walker.call(info, "Create", *asked)
        assert place.information(path).transactional is transactional
        for told in (info, walker.queue_info(path)):
            assert walker.get(told, "IsTransactional") == int(transactional)
            assert walker.get(told, "IsTransactional2") is transactional
            assert walker.get(told, "IsWorldReadable") == int(readable)
            assert walker.get(told, "IsWorldReadable2") is readable


def _public(place: Place, walker: Walker) -> None:
    info = walker.queue_info(OWN)
    assert walker.get(info, "QueueGuid") == f"{{{OWN_QUEUE}}}".upper()
    assert walker.get(info, "ADsPath") == REPORTS
    priority = -7 if walker.way is Way.NAMES else 8
    walker.put(info, "BasePriority", priority)
    walker.call(info, "Update")
    told = place.properties(FormatName.parse(OWN))
    assert walker.get(walker.queue_info(OWN), "BasePriority") == priority == told.base_priority
    assert walker.get(info, "Label") == told.label
    theirs = walker.queue_info(THEIRS)
    assert walker.get(theirs, "PathNameDNS") == r"server.example.org\orders"
    assert walker.refusal(theirs, "Delete") == HResult.MQ_ERROR_ACCESS_DENIED


def _opened_and_deleted(place: Place, walker: Walker, path: str) -> None:
    info = walker.queue_info(path)
    exclusive = walker.call(info, "Open", RECEIVE, 1)
    assert walker.refusal(info, "Open", RECEIVE, 0) == HResult.MQ_ERROR_SHARING_VIOLATION
    walker.call(exclusive, "Close")
    queue = walker.call(info, "Open", SEND, 0)
    assert (walker.get(queue, "Access"), walker.get(queue, "ShareMode")) == (SEND, 0)
    walker.call(queue, "Close")
    walker.call(info, "Delete")
    gone = HResult.MQ_ERROR_QUEUE_NOT_FOUND
    for operation in ("Delete", "Refresh"):
        assert walker.refusal(walker.queue_info(path), operation) == gone
    assert walker.refusal(walker.queue_info(path), "Open", RECEIVE, 0) == gone
    with pytest.raises(Exception, match=r"(?i)not.found"):
        place.properties(named(path))
    assert walker.refusal(walker.queue_info(""), "Update") == (
        HResult.MQ_ERROR_ILLEGAL_QUEUE_PATHNAME
    )
