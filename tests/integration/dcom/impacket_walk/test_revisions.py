"""impacket asks every older revision of an interface what it asks the newest, opnum by opnum."""

import pytest

from rpcqm.dcom.object_interfaces import object_interfaces
from rpcqm.mqac import coclasses
from tests.integration.dcom.impacket_walk import test_queue
from tests.support.dcom import clsids
from tests.support.dcom.com_objects import NO, YES, number
from tests.support.dcom.dcom_client import ComError
from tests.support.dcom.impacket_place import Place
from tests.support.dcom.impacket_walker import Held, Walker, Way, newest_interfaces
from tests.support.qm.directories import OWN_QUEUE

OLDER = {
    name: each.family
    for name, each in sorted(object_interfaces().items())
    if name.startswith("IMSMQ") and newest_interfaces()[each.family].name != name
}
"""Every interface that has a newer revision."""


def _object(place: Place, walker: Walker, family: str) -> Held:
    """An object in a state in which it has something to tell."""
    newest = newest_interfaces()[family].name
    if family == "IMSMQQueueInfo":
        info = walker.queue_info(f"PUBLIC={OWN_QUEUE}")
        walker.call(info, "Refresh")
        return info
    if family not in ("IMSMQQueue", "IMSMQMessage"):
        return walker.create(CLASSES[family], newest)
    path = place.queue()
    place.send(path, "one")
    queue = walker.open(path, test_queue.RECEIVE)
    if family == "IMSMQQueue":
        return queue
    found: Held = walker.call(queue, "Peek", YES, YES, number(0), YES)
    return found


CLASSES = {
    "IMSMQApplication": coclasses.MSMQ_APPLICATION,
    "IMSMQCoordinatedTransactionDispenser": clsids.MSMQ_COORDINATED_TRANSACTION_DISPENSER,
    "IMSMQEvent": coclasses.MSMQ_EVENT,
    "IMSMQQuery": coclasses.MSMQ_QUERY,
    "IMSMQQueueInfos": coclasses.MSMQ_QUEUE_INFOS,
    "IMSMQTransaction": clsids.MSMQ_TRANSACTION,
    "IMSMQTransactionDispenser": clsids.MSMQ_TRANSACTION_DISPENSER,
}


def _answer(walker: Walker, held: Held, operation: str) -> object:
    """What a property is, the kind of object that it is, or the code of its refusal."""
    try:
        value = walker.call(held, operation)
    except ComError as refused:
        return ("refused", refused.status)
    return value.interface.rstrip("0123456789") if isinstance(value, Held) else value


@pytest.mark.parametrize("interface", OLDER)
def test_impacket_reads_and_writes_the_properties_of_older_revisions(
    place: Place, interface: str
) -> None:
    family = OLDER[interface]
    newest = newest_interfaces()[family].load().operations
    with place.walk(Way.OPNUMS, ()) as walker:
        made = _object(place, walker, family)
        older = walker.query(made, interface)
        operations = [each for each in object_interfaces()[interface].load().operations if each]
        gets = [each for each in operations if each.name.startswith("get_")]
        told = {each.name[4:]: _answer(walker, older, each.name) for each in gets}
        for each in gets:
            same = newest[each.opnum]
            assert same is not None
            assert told[each.name[4:]] == _answer(walker, made, same.name), each.name
        if family == "IMSMQMessage":  # what was received is not all that can be sent
            older = walker.query(walker.message(), interface)
        for name in (each.name for each in operations if each.name.startswith("put_")):
            _written_back(walker, older, name)


def _written_back(walker: Walker, held: Held, operation: str) -> None:
    """Write a property as it is."""
    name = "get" + operation.removeprefix("put")
    has_get = object_interfaces()[held.interface].load().operations
    value = None
    if name in {each.name for each in has_get if each is not None}:
        value = _answer(walker, held, name)
    if isinstance(value, str | int):
        walker.call(held, operation, value)
        assert _answer(walker, held, name) == value


@pytest.mark.parametrize("revision", ["", "2", "3"])
def test_impacket_reads_messages_by_older_revisions(place: Place, revision: str) -> None:
    older = object_interfaces()[f"IMSMQQueue{revision}"].load().operations
    newest = newest_interfaces()["IMSMQQueue"].load()
    with place.walk(Way.OPNUMS, ()) as walker:
        path = place.queue()
        queue = walker.open(path, test_queue.RECEIVE)
        held = walker.query(queue, f"IMSMQQueue{revision}")
        for each in test_queue.READS:
            opnum = newest.operation(each.name).opnum
            operation = older[opnum] if opnum < len(older) else None
            if operation is None:
                continue
            place.send(path, *test_queue.NAMES)
            second = place.browse(path)[1].lookup_identifier
            if "Next" in each.name and not each.two:
                walker.call(queue, "PeekCurrent", NO, NO, number(0), NO)
            found = walker.call(held, operation.name, *each.arguments(second))
            expected = "IMSMQMessage" if each.name.endswith("_v1") else f"IMSMQMessage{revision}"
            assert found.interface == expected
            assert walker.get(found, "Label") == each.found
            walker.call(queue, "Purge")
            walker.call(queue, "Reset")
