"""impacket calls every method of MSMQQueue, and finds what RemoteRead sees of the queue."""

from dataclasses import dataclass

import pytest

from rpcqm.base.errors import HResult
from rpcqm.codec.types.mqvalues import VARENUM, QueueAccessType
from rpcqm.mqac import coclasses
from tests.support.dcom.com_objects import NO, YES, number, octets, text
from tests.support.dcom.impacket_place import Place
from tests.support.dcom.impacket_walker import Held, Walker, Way

WALKED = ("IMSMQQueue",)
RECEIVE, SEND, PEEK = (
    QueueAccessType.RECEIVE_ACCESS,
    QueueAccessType.SEND_ACCESS,
    QueueAccessType.PEEK_ACCESS,
)
NAMES = ["one", "two", "three"]


@dataclass(frozen=True)
class Read:
    """A method that reads, and which of three messages it reads.

    `two`: it is given the lookup identifier of the second one.
    """

    name: str
    found: str
    two: bool = False

    @property
    def removes(self) -> bool:
        return self.name.startswith("Receive")

    def arguments(self, identifier: int) -> list[object]:
        """With no time to wait, and everything wanted of the message."""
        made: list[object] = [text(str(identifier))] if self.two else []
        made += [None] if self.removes else []
        made += [YES, YES]
        made += [] if "LookupId" in self.name else [number(0)]
        return made if self.name.endswith("_v1") else [*made, YES]


READS = [
    Read("Receive_v1", "one"),
    Read("Peek_v1", "one"),
    Read("ReceiveCurrent_v1", "one"),
    Read("PeekNext_v1", "two"),
    Read("PeekCurrent_v1", "one"),
    Read("Receive", "one"),
    Read("Peek", "one"),
    Read("ReceiveCurrent", "one"),
    Read("PeekNext", "two"),
    Read("PeekCurrent", "one"),
    Read("ReceiveByLookupId", "two", two=True),
    Read("ReceiveNextByLookupId", "three", two=True),
    Read("ReceivePreviousByLookupId", "one", two=True),
    Read("ReceiveFirstByLookupId", "one"),
    Read("ReceiveLastByLookupId", "three"),
    Read("PeekByLookupId", "two", two=True),
    Read("PeekNextByLookupId", "three", two=True),
    Read("PeekPreviousByLookupId", "one", two=True),
    Read("PeekFirstByLookupId", "one"),
    Read("PeekLastByLookupId", "three"),
    Read("ReceiveByLookupIdAllowPeek", "two", two=True),
]


@pytest.mark.parametrize("way", Way)
def test_impacket_calls_every_method_of_queues(place: Place, way: Way) -> None:
    with place.walk(way, WALKED) as walker:
        path = place.queue()
        queue = walker.open(path, RECEIVE)
        for each in READS:
            _read(place, walker, path, queue, each)
        _nothing_to_read(place, walker, path, queue)
        _notified(walker, queue)
        _told(place, walker, path)
        _closed(walker, queue)
        place.refused(walker, queue)


def _filled(place: Place, walker: Walker, path: str, queue: Held) -> int:
    """Three messages in a queue, and the lookup identifier of the second."""
    walker.call(queue, "Purge")
    walker.call(queue, "Reset")
    assert place.browse(path) == []
    place.send(path, *NAMES)
    return place.browse(path)[1].lookup_identifier


def _read(place: Place, walker: Walker, path: str, queue: Held, each: Read) -> None:
    second = _filled(place, walker, path, queue)
    told = {message.label: message for message in place.browse(path)}
    if "Next" in each.name and not each.two:
        walker.call(queue, "PeekCurrent", NO, NO, number(0), NO)
    found = walker.call(queue, each.name, *each.arguments(second))
    assert walker.get(found, "Label") == each.found
    assert walker.get(found, "Body") == octets(told[each.found].body)
    assert walker.get(found, "Id") == octets(told[each.found].identifier.encode())
    left = [name for name in NAMES if not (each.removes and name == each.found)]
    assert place.labels(path) == left


def _nothing_to_read(place: Place, walker: Walker, path: str, queue: Held) -> None:
    walker.call(queue, "Purge")
    walker.call(queue, "Reset")
    sending = walker.open(path, SEND)
    for each in READS:
        steps = "Next" in each.name and not each.two
        status = walker.refusal(queue, each.name, *each.arguments(1))
        assert status == (
            HResult.MQ_ERROR_ILLEGAL_CURSOR_ACTION if steps else HResult.MQ_ERROR_MESSAGE_NOT_FOUND
        )
        denied = walker.refusal(sending, each.name, *each.arguments(1))
        assert denied == HResult.MQ_ERROR_ACCESS_DENIED
    assert place.browse(path) == []


def _notified(walker: Walker, queue: Held) -> None:
    """Who hears of it: test_events.py."""
    event = walker.create(coclasses.MSMQ_EVENT, "IMSMQEvent3")
    walker.call(queue, "EnableNotification", event, number(0), number(60_000))
    wrong = walker.refusal(queue, "EnableNotification", event, number(3), None)
    assert wrong == HResult.E_INVALIDARG


def _told(place: Place, walker: Walker, path: str) -> None:
    info = walker.queue_info(path)
    queue = walker.call(info, "Open", int(PEEK), 0)
    assert (walker.get(queue, "Access"), walker.get(queue, "ShareMode")) == (32, 0)
    same = walker.get(queue, "QueueInfo")
    assert walker.get(same, "FormatName") == place.information(path).format_name
    handle = walker.get(queue, "Handle2")
    assert handle.vt == VARENUM.VT_I8
    assert walker.get(queue, "Handle") & 0xFFFFFFFF == handle.value
    assert walker.refusal(queue, "Purge") == HResult.MQ_ERROR_ACCESS_DENIED


def _closed(walker: Walker, queue: Held) -> None:
    assert (walker.get(queue, "IsOpen"), walker.get(queue, "IsOpen2")) == (1, True)
    walker.call(queue, "Close")
    assert (walker.get(queue, "IsOpen"), walker.get(queue, "IsOpen2")) == (0, False)
    told = "get_Access get_ShareMode get_QueueInfo get_Handle get_Handle2"
    for operation in f"Close Reset Purge {told}".split():
        assert walker.refusal(queue, operation) == HResult.MQ_ERROR_INVALID_HANDLE
    blank = walker.create(coclasses.MSMQ_QUEUE, "IMSMQQueue4")
    for operation in ("Close", "get_IsOpen", "get_IsOpen2"):
        assert walker.refusal(blank, operation) == HResult.OLE_E_BLANK
