"""Events of queues at a client's own object, and who is connected to them ([MC-MQAC] 3.16)."""

import asyncio
from collections.abc import Iterator
from typing import cast
from uuid import UUID

import pytest

from rpcqm.base.errors import HResult
from rpcqm.codec.automation.objref import ObjRefStandard, unpack_objref
from rpcqm.codec.automation.values import MISSING, Variant
from rpcqm.codec.types.mqvalues import QueueAccessType
from rpcqm.codec.types.oautvalues import VT_DISPATCH, VT_I4
from rpcqm.mqac.coclasses import MSMQ_EVENT, MSMQ_QUEUE
from rpcqm.rpc.server import RpcServer
from tests.support.dcom.com_objects import Objects, number, served_objects
from tests.support.dcom.com_sink import ComSink
from tests.support.dcom.dcom_client import ComError, DcomClient, Reference
from tests.support.loop_thread import LoopThread

EVENTS = UUID("d7d6e078-dccd-11d0-aa4b-0060970debae")
ARRIVED, ARRIVED_ERROR = 0, 1
FIRST, CURRENT, NEXT = 0, 1, 2


@pytest.fixture(scope="module")
def objects() -> Iterator[Objects]:
    with served_objects() as found:
        yield found


class Listener:
    """A program that listens: its sink, and the connection point that it is connected to."""

    def __init__(self, objects: Objects) -> None:
        self.objects = objects
        self.thread = LoopThread(asyncio.new_event_loop())
        self.server = RpcServer()
        self.sink = ComSink(EVENTS)
        self.thread.run(self.sink.listen(self.server))
        self.event = objects.create(MSMQ_EVENT, "IMSMQEvent3")
        self.container = objects.com.query_interface(self.event, "IConnectionPointContainer")
        self.point = self.call(self.container, "FindConnectionPoint", EVENTS)

    def call(self, reference: Reference, operation: str, *arguments: object) -> Reference:
        return cast(Reference, self.objects.com.call(reference, operation, *arguments))

    def advise(self) -> int:
        return cast(int, self.call(self.point, "Advise", self.sink.objref()))

    def told(self, count: int = 1) -> list[tuple[int, list[Variant]]]:
        self.thread.until(lambda: len(self.sink.told) >= count)
        return self.sink.told

    def end(self) -> None:
        self.thread.run(self.server.stop())
        self.thread.end()


@pytest.fixture
def listener(objects: Objects) -> Iterator[Listener]:
    made = Listener(objects)
    yield made
    made.end()
    objects.empty()


def queue_of(argument: Variant) -> Reference:
    assert argument.vt == VT_DISPATCH
    assert isinstance(argument.value, bytes)
    return DcomClient.reference(argument.value)


def send(objects: Objects, label: str) -> None:
    message = objects.message()
    objects.put(message, "Label", label)
    objects.send(message, objects.open(QueueAccessType.SEND_ACCESS))


@pytest.mark.conformance("MQAC-_DMSMQEventEvents-7-Arrived")
@pytest.mark.conformance("MQAC-IConnectionPoint-5-Advise")
def test_a_client_hears_of_a_message_and_reads_it_from_the_queue_that_it_is_told(
    objects: Objects, listener: Listener
) -> None:
    queue = objects.open(QueueAccessType.RECEIVE_ACCESS)
    cookies = listener.advise(), listener.advise()
    assert len({*cookies, 0}) == 3
    objects.com.call(queue, "EnableNotification", listener.event, MISSING, number(60_000))
    send(objects, "here I am")
    for member, (told, cursor) in listener.told(2):
        assert (member, cursor) == (ARRIVED, Variant(VT_I4, FIRST))
        again = objects.com.query_interface(queue_of(told), "IMSMQQueue4")
        message = objects.com.call(again, "Peek", MISSING, MISSING, number(0), MISSING)
        assert objects.get(message, "Label") == "here I am"


@pytest.mark.conformance("MQAC-_DMSMQEventEvents-8-ArrivedError")
def test_a_client_hears_that_no_message_came_in_time(objects: Objects, listener: Listener) -> None:
    queue = objects.open(QueueAccessType.PEEK_ACCESS)
    listener.advise()
    objects.com.call(queue, "EnableNotification", listener.event, MISSING, number(1))
    ((member, (told, error, cursor)),) = listener.told()
    assert (member, cursor) == (ARRIVED_ERROR, Variant(VT_I4, FIRST))
    assert error == Variant(VT_I4, HResult.MQ_ERROR_IO_TIMEOUT - (1 << 32))
    again = objects.com.query_interface(queue_of(told), "IMSMQQueue4")
    assert objects.get(again, "Access") == QueueAccessType.PEEK_ACCESS


@pytest.mark.conformance("MQAC-IMSMQQueue4-15-EnableNotification")
@pytest.mark.conformance("MQAC-element-MQMSGCURSOR")
def test_notifications_follow_the_cursor_and_come_once(
    objects: Objects, listener: Listener
) -> None:
    queue = objects.open(QueueAccessType.PEEK_ACCESS)
    listener.advise()

    def ask(cursor: int, time: int) -> None:
        arguments = listener.event, number(cursor), number(time)
        objects.com.call(queue, "EnableNotification", *arguments)

    ask(NEXT, 0)
    ask(CURRENT, 60_000)
    send(objects, "one")
    send(objects, "two")
    ask(NEXT, 60_000)
    ask(FIRST, 0)
    codes = [(member, arguments[-1].value) for member, arguments in listener.told(4)]
    assert codes == [(ARRIVED_ERROR, NEXT), (ARRIVED, CURRENT), (ARRIVED, NEXT), (ARRIVED, FIRST)]
    missing = listener.told(4)[0][1][1]
    assert missing == Variant(VT_I4, HResult.MQ_ERROR_MESSAGE_NOT_FOUND - (1 << 32))
    found = objects.com.call(queue, "PeekCurrent", MISSING, MISSING, number(0), MISSING)
    assert objects.get(found, "Label") == "two"


@pytest.mark.conformance("MQAC-IMSMQQueue4-15-EnableNotification")
def test_notifications_need_an_event_and_a_queue_to_look_at(
    objects: Objects, listener: Listener
) -> None:
    def refusal(queue: Reference, event: Reference | None, cursor: int) -> object:
        with pytest.raises(ComError) as refused:
            objects.com.call(queue, "EnableNotification", event, number(cursor), MISSING)
        return refused.value.status

    queue = objects.open(QueueAccessType.PEEK_ACCESS)
    assert refusal(queue, None, FIRST) == HResult.E_INVALIDARG
    assert refusal(queue, listener.event, 3) == HResult.E_INVALIDARG
    sending = objects.open(QueueAccessType.SEND_ACCESS)
    assert refusal(sending, listener.event, FIRST) == HResult.MQ_ERROR_ACCESS_DENIED
    objects.com.call(queue, "Close")
    assert refusal(queue, listener.event, FIRST) == HResult.MQ_ERROR_INVALID_HANDLE
    blank = objects.create(MSMQ_QUEUE, "IMSMQQueue4")
    assert refusal(blank, listener.event, FIRST) == HResult.OLE_E_BLANK


@pytest.mark.conformance("MQAC-IConnectionPoint-5-Advise")
def test_sinks_are_refused_that_are_none_or_lack_the_interface(listener: Listener) -> None:
    def refusal(sink: bytes | None) -> object:
        response = listener.objects.com.response(listener.point, "Advise", sink)
        assert response.pdwCookie == 0
        return response.result

    assert refusal(None) == HResult.E_POINTER
    listener.sink.has_interface = False
    assert refusal(listener.sink.objref()) == HResult.CONNECT_E_CANNOTCONNECT
    assert refusal(listener.event.pack()) == HResult.CONNECT_E_CANNOTCONNECT
    listener.sink.has_interface = True
    for _ in range(16):
        listener.advise()
    assert refusal(listener.sink.objref()) == HResult.CONNECT_E_ADVISELIMIT


@pytest.mark.conformance("MQAC-IConnectionPoint-6-Unadvise")
def test_who_has_disconnected_hears_no_more(objects: Objects, listener: Listener) -> None:
    cookie = listener.advise()
    listener.call(listener.point, "Unadvise", cookie)
    listener.thread.until(lambda: len(listener.sink.released) == 2)
    with pytest.raises(ComError) as refused:
        listener.call(listener.point, "Unadvise", cookie)
    assert refused.value.status == HResult.CONNECT_E_NOCONNECTION
    private = objects.com.query_interface(listener.event, "IMSMQPrivateEvent")
    queue = objects.open(QueueAccessType.PEEK_ACCESS)
    listener.call(private, "FireArrivedEvent", queue, NEXT)
    listener.advise()
    listener.call(private, "FireArrivedEvent", queue, CURRENT)
    assert [arguments[1].value for _, arguments in listener.told()] == [CURRENT]


@pytest.mark.conformance("MQAC-IConnectionPoint-3-GetConnectionInterface")
@pytest.mark.conformance("MQAC-IConnectionPoint-4-GetConnectionPointContainer")
@pytest.mark.conformance("MQAC-IConnectionPointContainer-4-FindConnectionPoint")
def test_point_and_container_find_each_other(objects: Objects, listener: Listener) -> None:
    assert listener.call(listener.point, "GetConnectionInterface") == EVENTS
    container = listener.call(listener.point, "GetConnectionPointContainer")
    assert container.interface == "IConnectionPointContainer"
    point = listener.call(container, "FindConnectionPoint", EVENTS)
    assert (point.interface, point.std.oid) == ("IConnectionPoint", listener.point.std.oid)
    with pytest.raises(ComError) as refused:
        listener.call(container, "FindConnectionPoint", UUID(int=0))
    assert refused.value.status == HResult.CONNECT_E_NOCONNECTION


@pytest.mark.conformance("MQAC-IConnectionPointContainer-3-EnumConnectionPoints")
@pytest.mark.conformance("MQAC-IEnumConnectionPoints-3-Next")
@pytest.mark.conformance("MQAC-IEnumConnectionPoints-4-Skip")
@pytest.mark.conformance("MQAC-IEnumConnectionPoints-5-Reset")
@pytest.mark.conformance("MQAC-IEnumConnectionPoints-6-Clone")
def test_connection_points_are_enumerated(objects: Objects, listener: Listener) -> None:
    com = objects.com
    points = listener.call(listener.container, "EnumConnectionPoints")
    untouched = listener.call(points, "Clone")
    response = com.response(points, "Next", 2)
    assert (response.pcFetched, response.result) == (1, HResult.S_FALSE)
    (octets,) = response.ppCP
    assert DcomClient.reference(octets).std.oid == listener.point.std.oid
    assert com.response(points, "Next", 1).ppCP == []
    assert com.response(points, "Skip", 1).result == HResult.S_FALSE
    listener.call(points, "Reset")
    assert com.response(points, "Skip", 1).result == HResult.MQ_OK
    assert com.response(points, "Next", 1).pcFetched == 0
    assert com.response(untouched, "Next", 1).pcFetched == 1
    assert com.response(listener.call(untouched, "Clone"), "Next", 1).pcFetched == 0
    with pytest.raises(ComError) as refused:
        listener.call(points, "Next", 0)
    assert refused.value.status == HResult.E_INVALIDARG


@pytest.mark.conformance("MQAC-IConnectionPoint-7-EnumConnections")
@pytest.mark.conformance("MQAC-IEnumConnections-3-Next")
@pytest.mark.conformance("MQAC-IEnumConnections-4-Skip")
@pytest.mark.conformance("MQAC-IEnumConnections-5-Reset")
@pytest.mark.conformance("MQAC-IEnumConnections-6-Clone")
def test_connections_are_enumerated_as_they_were(objects: Objects, listener: Listener) -> None:
    com = objects.com
    cookies = [listener.advise() for _ in range(3)]
    connections = listener.call(listener.point, "EnumConnections")
    listener.call(listener.point, "Unadvise", cookies[0])
    response = com.response(connections, "Next", 2)
    assert (response.pcFetched, response.result) == (2, HResult.MQ_OK)
    assert [each.dwCookie for each in response.rgcd] == cookies[:2]
    for each in response.rgcd:
        reference = unpack_objref(each.pUnk)
        assert isinstance(reference, ObjRefStandard)
        assert reference.std.ipid == listener.sink.unknown.bytes_le
    behind_two = listener.call(connections, "Clone")
    assert [each.dwCookie for each in com.response(behind_two, "Next", 9).rgcd] == cookies[2:]
    assert com.response(connections, "Skip", 2).result == HResult.S_FALSE
    listener.call(connections, "Reset")
    assert com.response(connections, "Skip", 1).result == HResult.MQ_OK
    assert [each.dwCookie for each in com.response(connections, "Next", 1).rgcd] == cookies[1:2]


@pytest.mark.conformance("MQAC-IMSMQPrivateEvent-7-Hwnd")
@pytest.mark.conformance("MQAC-IMSMQPrivateEvent-8-FireArrivedEvent")
@pytest.mark.conformance("MQAC-IMSMQPrivateEvent-9-FireArrivedErrorEvent")
def test_events_can_be_raised_from_outside(objects: Objects, listener: Listener) -> None:
    listener.advise()
    private = objects.com.query_interface(listener.event, "IMSMQPrivateEvent")
    assert objects.get(private, "Hwnd") == 0
    queue = objects.open(QueueAccessType.PEEK_ACCESS)
    listener.call(private, "FireArrivedEvent", queue, NEXT)
    listener.call(private, "FireArrivedErrorEvent", queue, HResult.MQ_ERROR_QUEUE_DELETED, CURRENT)
    first, second = listener.told(2)
    assert (first[0], first[1][1]) == (ARRIVED, Variant(VT_I4, NEXT))
    code = Variant(VT_I4, HResult.MQ_ERROR_QUEUE_DELETED - (1 << 32))
    assert (second[0], *second[1][1:]) == (ARRIVED_ERROR, code, Variant(VT_I4, CURRENT))
    for _, arguments in (first, second):
        assert queue_of(arguments[0]).std.oid == queue.std.oid
    with pytest.raises(ComError) as refused:
        listener.call(private, "FireArrivedEvent", None, NEXT)
    assert refused.value.status == HResult.E_POINTER


@pytest.mark.conformance("MQAC-IMSMQEvent2-7-Properties")
def test_an_event_has_no_properties(objects: Objects, listener: Listener) -> None:
    for interface in ("IMSMQEvent3", "IMSMQEvent2"):
        event = objects.com.query_interface(listener.event, interface)
        with pytest.raises(ComError) as refused:
            objects.get(event, "Properties")
        assert refused.value.status == HResult.E_NOTIMPL


def test_an_event_that_nobody_holds_gives_its_sinks_back(
    objects: Objects, listener: Listener
) -> None:
    listener.advise()
    for reference in (listener.event, listener.container, listener.point):
        objects.com.release(reference)
    listener.thread.until(lambda: len(listener.sink.released) == 2)
