"""impacket hears the events of queues, at an object of its own."""

from collections.abc import Iterator
from uuid import UUID

import pytest

from rpcqm.base.errors import HResult
from rpcqm.codec.automation.values import Variant
from rpcqm.codec.types.mqvalues import VARENUM, QueueAccessType
from rpcqm.mqac import coclasses
from tests.support.dcom.com_objects import number, octets
from tests.support.dcom.impacket_place import Place
from tests.support.dcom.impacket_sink import ImpacketSink, impacket_sink
from tests.support.dcom.impacket_walker import Held, Walker, Way
from tests.support.waiting import until

EVENTS = UUID("d7d6e078-dccd-11d0-aa4b-0060970debae")
ARRIVED, ARRIVED_ERROR = 0, 1
FIRST = 0


@pytest.fixture
def sink() -> Iterator[ImpacketSink]:
    with impacket_sink(EVENTS) as listening:
        yield listening


def _point(walker: Walker, event: Held) -> Held:
    container = walker.query(event, "IConnectionPointContainer")
    found: Held = walker.call(container, "FindConnectionPoint", EVENTS)
    return found


def _told(walker: Walker, argument: Variant) -> Held:
    """The queue that an event tells of."""
    assert argument.vt == VARENUM.VT_DISPATCH
    assert isinstance(argument.value, bytes)
    found = walker.held(argument.value, "IDispatch")
    assert found is not None
    return walker.known_as(found, "IMSMQQueue4")


@pytest.mark.conformance("MQAC-_DMSMQEventEvents-7-Arrived")
@pytest.mark.conformance("MQAC-_DMSMQEventEvents-8-ArrivedError")
@pytest.mark.conformance("MQAC-IMSMQQueue4-15-EnableNotification")
@pytest.mark.parametrize("way", Way)
def test_impacket_hears_of_a_message_and_that_none_came_in_time(
    place: Place, way: Way, sink: ImpacketSink
) -> None:
    with place.walk(way, ()) as walker:
        path = place.queue()
        event = walker.create(coclasses.MSMQ_EVENT, "IMSMQEvent3")
        point = _point(walker, event)
        cookie = walker.call(point, "Advise", sink.objref())
        queue = walker.open(path, QueueAccessType.RECEIVE_ACCESS)
        walker.call(queue, "EnableNotification", event, None, number(60_000))
        place.send(path, "here I am")
        until(lambda: len(sink.told) == 1)
        member, (told, cursor) = sink.told[0]
        assert (member, cursor) == (ARRIVED, Variant(VARENUM.VT_I4, FIRST))
        message = walker.call(_told(walker, told), "Receive", None, None, None, number(0), None)
        assert walker.get(message, "Body") == octets(b"body of here I am")
        assert place.browse(path) == []
        walker.call(queue, "EnableNotification", event, number(FIRST), number(1))
        until(lambda: len(sink.told) == 2)
        member, (told, error, cursor) = sink.told[1]
        assert (member, cursor) == (ARRIVED_ERROR, Variant(VARENUM.VT_I4, FIRST))
        assert error == Variant(VARENUM.VT_I4, HResult.MQ_ERROR_IO_TIMEOUT - (1 << 32))
        assert walker.get(_told(walker, told), "IsOpen2") is True
        walker.call(point, "Unadvise", cookie)
        until(lambda: sink.released == 10)  # five that were handed over, five that were asked for
        again = walker.refusal(point, "Unadvise", cookie)
        assert again == HResult.CONNECT_E_NOCONNECTION
