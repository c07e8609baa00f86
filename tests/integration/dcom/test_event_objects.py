"""Objects that are told of events by [MC-MQAC] 3.11.4.1.9 and 3.16, through the door."""

import asyncio
from collections.abc import Iterator
from typing import cast
from uuid import UUID

import pytest

from rpcqm.base.errors import HResult
from rpcqm.codec.automation.values import MISSING, Variant
from rpcqm.codec.types.mqvalues import QueueAccessType
from rpcqm.codec.types.oautvalues import VT_I4
from rpcqm.mqac.coclasses import MSMQ_EVENT
from rpcqm.rpc.server import RpcServer
from tests.support.dcom.com_objects import Objects, number, text
from tests.support.dcom.com_sink import ComSink, PrivateEvent
from tests.support.dcom.dcom_client import ComError, DcomClient, Reference
from tests.support.loop_thread import LoopThread

EVENTS = UUID("d7d6e078-dccd-11d0-aa4b-0060970debae")
ARRIVED, ARRIVED_ERROR = 0, 1
PEEK = QueueAccessType.PEEK_ACCESS
POINT = pytest.mark.conformance("MQAC-IMSMQQueue4-15-EnableNotification")
HELD = 2
"""Interfaces of a sink that a reference is given back of: what was handed over, and events."""


class Program:
    """A client's program with an object of its own that takes events."""

    def __init__(self, objects: Objects) -> None:
        self.objects = objects
        self.thread = LoopThread(asyncio.new_event_loop())
        self.servers: list[RpcServer] = []

    def serve(self, sink: ComSink) -> None:
        self.servers.append(RpcServer())
        self.thread.run(sink.listen(self.servers[-1]))

    def enable(self, queue: Reference, event: object, cursor: Variant, time: Variant) -> None:
        self.objects.com.call(queue, "EnableNotification", event, cursor, time)

    def refusal(self, queue: Reference, event: object, cursor: Variant = MISSING) -> object:
        with pytest.raises(ComError) as refused:
            self.enable(queue, event, cursor, MISSING)
        return refused.value.status

    def end(self) -> None:
        for server in self.servers:
            self.thread.run(server.stop())
        self.thread.end()


@pytest.fixture
def program(objects: Objects) -> Iterator[Program]:
    made = Program(objects)
    yield made
    made.end()


def send(objects: Objects, label: str) -> None:
    message = objects.message()
    objects.put(message, "Label", label)
    objects.send(message, objects.open(QueueAccessType.SEND_ACCESS))


def peeked(objects: Objects, queue: object) -> object:
    """The label of the first message of the queue that an event tells of."""
    assert isinstance(queue, bytes)
    told = objects.com.query_interface(DcomClient.reference(queue), "IMSMQQueue4")
    message = objects.com.call(told, "Peek", MISSING, MISSING, number(0), MISSING)
    return objects.get(message, "Label")


@POINT
@pytest.mark.conformance(
    "MQAC-_DMSMQEventEvents-7-Arrived", "MQAC-_DMSMQEventEvents-8-ArrivedError"
)
def test_an_object_that_takes_events_is_told_without_an_event_of_ours(
    objects: Objects, program: Program
) -> None:
    sink = ComSink(EVENTS)
    program.serve(sink)
    queue = objects.open(PEEK)
    program.enable(queue, sink.objref(), number(1), number(60_000))
    send(objects, "here I am")
    program.thread.until(lambda: len(sink.released) == HELD)
    ((member, (told, cursor)),) = sink.told
    assert (member, cursor) == (ARRIVED, Variant(VT_I4, 1))
    assert peeked(objects, told.value) == "here I am"
    program.enable(queue, sink.objref(), number(2), number(1))
    program.thread.until(lambda: len(sink.released) == 2 * HELD)
    member, (_, code, cursor) = sink.told[1]
    assert (member, cursor) == (ARRIVED_ERROR, Variant(VT_I4, 2))
    assert code == Variant(VT_I4, HResult.MQ_ERROR_IO_TIMEOUT - (1 << 32))


@POINT
def test_an_msmq_event_of_the_client_itself_is_told_by_its_methods(
    objects: Objects, program: Program
) -> None:
    event = PrivateEvent()
    program.serve(event)
    queue = objects.open(PEEK)
    program.enable(queue, event.objref(), MISSING, number(1))
    program.thread.until(lambda: len(event.released) == HELD)
    program.enable(queue, event.objref(), MISSING, MISSING)
    send(objects, "here I am")
    program.thread.until(lambda: len(event.released) == 2 * HELD)
    (_, code, cursor), (told, none, first) = event.fired
    assert (code, cursor, none, first) == (HResult.MQ_ERROR_IO_TIMEOUT, 0, None, 0)
    assert peeked(objects, told) == "here I am"


@POINT
def test_what_takes_no_events_is_no_event(objects: Objects, program: Program) -> None:
    sink = ComSink(EVENTS, has_interface=False)
    program.serve(sink)
    queue = objects.open(PEEK)
    assert program.refusal(queue, sink.objref()) == HResult.CONNECT_E_CANNOTCONNECT
    assert program.refusal(queue, queue) == HResult.E_INVALIDARG  # of ours, and no event
    event = objects.create(MSMQ_EVENT, "IMSMQEvent3")
    assert program.refusal(queue, event, text("next")) == HResult.E_INVALIDARG
    sending = objects.open(QueueAccessType.SEND_ACCESS)
    assert program.refusal(sending, sink.objref()) == HResult.MQ_ERROR_ACCESS_DENIED
    objects.com.call(queue, "Close")
    assert program.refusal(queue, sink.objref()) == HResult.MQ_ERROR_INVALID_HANDLE


@POINT
@pytest.mark.conformance("MQAC-IMSMQQueue4-12-Close")
def test_a_closed_queue_gives_clients_their_events_back_untold(
    objects: Objects, program: Program
) -> None:
    sink = ComSink(EVENTS)
    program.serve(sink)
    queue = objects.open(PEEK)
    program.enable(queue, sink.objref(), MISSING, MISSING)
    objects.com.call(queue, "Close")
    program.thread.until(lambda: len(sink.released) == HELD)
    send(objects, "too late")
    assert sink.told == []


@POINT
@pytest.mark.conformance("MQAC-_DMSMQEventEvents-8-ArrivedError")
def test_who_waits_for_a_queue_hears_that_it_was_deleted(
    objects: Objects, program: Program
) -> None:
    sink = ComSink(EVENTS)
    program.serve(sink)
    event = objects.create(MSMQ_EVENT, "IMSMQEvent3")
    container = objects.com.query_interface(event, "IConnectionPointContainer")
    point = cast(Reference, objects.com.call(container, "FindConnectionPoint", EVENTS))
    objects.com.call(point, "Advise", sink.objref())
    info = objects.queue_info(r".\private$\doomed")
    objects.com.call(info, "Create", None, None)
    queue = objects.com.call(info, "Open", int(PEEK), 0)
    program.enable(queue, event, MISSING, MISSING)
    objects.com.call(info, "Delete")
    program.thread.until(lambda: len(sink.told) == 1)
    ((member, (_, code, _)),) = sink.told
    expected = Variant(VT_I4, HResult.MQ_ERROR_QUEUE_DELETED - (1 << 32))
    assert (member, code) == (ARRIVED_ERROR, expected)
