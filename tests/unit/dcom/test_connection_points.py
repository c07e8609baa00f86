"""Events go to the clients that have asked for them, and nowhere else ([MC-MQAC] 3.16.4.5)."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest

from rpcqm.base.completion import Completion
from rpcqm.base.errors import HResult, MQError
from rpcqm.base.identity import ANONYMOUS
from rpcqm.codec.automation.objref import (
    DualStringArray,
    ObjRefStandard,
    StringBinding,
    unpack_objref,
)
from rpcqm.codec.automation.values import Variant
from rpcqm.codec.types.mqac import CONNECTDATA
from rpcqm.codec.types.oautvalues import VT_DISPATCH, VT_I4
from rpcqm.dcom.client import MOST_SINKS, MOST_SINKS_PER_CALLER, MOST_WAITING, OutboundCalls
from rpcqm.dcom.com_object import ComCall, ComObject, RemoteReference, WaitingCalls
from rpcqm.dcom.connection_points import CONNECTION_LIMIT, LONGEST_REFERENCE, EventSource
from rpcqm.dcom.exporter import ObjectExporter
from rpcqm.dcom.ping_sets import PING_PERIOD
from rpcqm.rpc.server import RpcServer
from tests.support.clock import SimulatedClock
from tests.support.dcom.com_sink import ComSink
from tests.support.loop_thread import LoopThread
from tests.support.rpc.callers import ALICE

EVENTS = UUID("d7d6e078-dccd-11d0-aa4b-0060970debae")


class Source(EventSource):
    INTERFACES = ("IMSMQEvent3", "IConnectionPointContainer", "IConnectionPoint")
    EVENTS = EVENTS


class World:
    """A source of events, and a client with a sink, on one loop."""

    def __init__(self) -> None:
        self.thread = LoopThread(asyncio.new_event_loop())
        self.clock = SimulatedClock()
        self.server = RpcServer()
        self.sink = ComSink(EVENTS)
        self.exporter = ObjectExporter(self.clock, lambda *_: True)
        self.credentials_asked: list[str] = []
        self.outbound = OutboundCalls(
            self.exporter,
            lambda _: DualStringArray().pack(),
            self.credentials_asked.append,
            self.clock.timers,
        )
        self.source = Source(self.outbound)
        self.thread.run(self.sink.listen(self.server))

    def end(self) -> None:
        self.thread.run(self.outbound.close())
        self.thread.run(self.server.stop())
        self.thread.end()

    def call(self, peer: str = "127.0.0.1:5000", transport: str = "ncacn_ip_tcp") -> ComCall:
        call = SimpleNamespace(
            peer=peer, transport=transport, identity=ALICE, local_address="127.0.0.1"
        )
        return ComCall(cast(Any, call), EVENTS, WaitingCalls(1))

    def advise(self, objref: bytes | None = None, **caller: str) -> int:
        reference = RemoteReference(self.sink.objref() if objref is None else objref)

        async def ask() -> int:
            outcome: Completion[int] = self.source.Advise(self.call(**caller), reference)
            answered = asyncio.Event()
            outcome.add_done_callback(lambda _: answered.set())
            async with asyncio.timeout(20):
                await answered.wait()
            return outcome.result()

        return self.thread.run(ask())

    def fire(self, *arguments: Variant, member: int = 0) -> None:
        self.thread.do(lambda: self.source.raise_event(member, *arguments))

    def told(self, count: int) -> list[tuple[int, list[Variant]]]:
        self.thread.until(lambda: len(self.sink.told) >= count)
        return self.sink.told


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    yield made
    made.end()


def refused(world: World, *arguments: Any, **caller: Any) -> HResult:
    with pytest.raises(MQError) as error:
        world.advise(*arguments, **caller)
    assert isinstance(error.value.status, HResult)
    return error.value.status


def test_an_event_is_told_to_the_sink_with_an_object_that_it_can_call(world: World) -> None:
    assert world.advise() == 1
    queue = ComObject()
    world.fire(Variant(VT_DISPATCH, queue), Variant(VT_I4, -7), Variant(VT_I4, 1), member=1)
    ((member, (object_, error, cursor)),) = world.told(1)
    assert (member, error, cursor) == (1, Variant(VT_I4, -7), Variant(VT_I4, 1))
    assert isinstance(object_.value, bytes)
    reference = unpack_objref(object_.value)
    assert isinstance(reference, ObjRefStandard)
    found = world.exporter.find(reference.std.ipid)
    assert found is not None
    assert (found.object.com_object, found.public) == (queue, 5)


def test_events_come_in_their_order_and_every_sink_gets_them(world: World) -> None:
    assert (world.advise(), world.advise()) == (1, 2)
    for number in range(5):
        world.fire(Variant(VT_I4, number))
    numbers = [arguments[0].value for _, arguments in world.told(10)]
    assert sorted(cast(list[int], numbers)) == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]


def test_nobody_is_logged_on_without_an_account_for_the_address(world: World) -> None:
    world.advise()
    world.fire(Variant(VT_I4, 1))
    world.told(1)
    assert set(world.credentials_asked) == {"127.0.0.1"}
    assert set(world.sink.callers) == {ANONYMOUS.name}


def test_only_the_address_of_the_caller_is_connected_to(world: World) -> None:
    """The reference names another host, and its resolver too: neither is asked."""
    world.sink.host = "192.0.2.1"
    assert world.advise() == 1
    asked = world.sink.objref("192.0.2.1")
    assert refused(world, asked, peer="127.0.0.2:99") == HResult.CONNECT_E_CANNOTCONNECT
    assert set(world.credentials_asked) == {"127.0.0.1", "127.0.0.2"}


def test_a_sink_without_the_interface_is_refused(world: World) -> None:
    world.sink.has_interface = False
    assert refused(world) == HResult.CONNECT_E_CANNOTCONNECT
    assert len(world.outbound) == 0


@pytest.mark.parametrize("objref", [b"", b"MEOW" * 20])
def test_a_reference_that_is_none_is_refused(world: World, objref: bytes) -> None:
    assert refused(world, objref) == HResult.CONNECT_E_CANNOTCONNECT


def padded(objref: bytes, length: int) -> bytes:
    """A reference with one more address, which nobody follows."""
    reference = unpack_objref(objref)
    assert isinstance(reference, ObjRefStandard)
    missing = (length - len(objref) - 4) // 2
    strings = (*reference.bindings.strings, StringBinding(7, "x" * missing))
    return replace(reference, bindings=replace(reference.bindings, strings=strings)).pack()


@pytest.mark.bound("dcom.longest_reference_to_a_sink")
def test_a_reference_has_so_many_octets_and_no_more(world: World) -> None:
    """It is kept for as long as the sink is connected."""
    longest = padded(world.sink.objref(), LONGEST_REFERENCE)
    assert len(longest) == LONGEST_REFERENCE
    assert world.advise(longest) == 1
    longer = padded(world.sink.objref(), LONGEST_REFERENCE + 2)
    assert refused(world, longer) is HResult.CONNECT_E_CANNOTCONNECT


def test_a_caller_over_the_local_socket_has_no_address(world: World) -> None:
    status = refused(world, peer="local alice", transport="ncalrpc")
    assert status == HResult.CONNECT_E_CANNOTCONNECT


def test_no_sink_and_an_object_of_ours_are_refused(world: World) -> None:
    with pytest.raises(MQError, match="E_POINTER"):
        world.source.Advise(world.call(), None)
    with pytest.raises(MQError, match="CONNECT_E_CANNOTCONNECT"):
        world.source.Advise(world.call(), ComObject())


@pytest.mark.bound("dcom.sinks_of_an_object")
def test_one_sink_beyond_the_limit_is_refused(world: World) -> None:
    for cookie in range(CONNECTION_LIMIT):
        assert world.advise() == cookie + 1
    assert refused(world) == HResult.CONNECT_E_ADVISELIMIT


def test_after_unadvise_nothing_is_told_and_the_references_are_given_back(world: World) -> None:
    cookie = world.advise()
    world.thread.do(lambda: world.source.Unadvise(world.call(), cookie))
    world.thread.until(lambda: len(world.sink.released) == 2)
    assert dict(world.sink.released) == {world.sink.unknown: 5, world.sink.events: 5}
    world.fire(Variant(VT_I4, 1))
    assert len(world.outbound) == 0
    with pytest.raises(MQError, match="CONNECT_E_NOCONNECTION"):
        world.source.Unadvise(world.call(), cookie)


def test_who_is_connected_is_told_without_handing_references_over(world: World) -> None:
    cookie = world.advise()
    found, count = world.source.EnumConnections(world.call()).Next(world.call(), 5).values
    (data,) = cast(list[CONNECTDATA], found)
    assert (count, data.dwCookie) == (1, cookie)
    assert data.pUnk is not None
    reference = unpack_objref(data.pUnk)
    assert isinstance(reference, ObjRefStandard)
    assert (reference.std.ipid, reference.std.public_refs) == (world.sink.unknown.bytes_le, 0)


def test_a_source_is_its_own_connection_point(world: World) -> None:
    source, call = world.source, world.call()
    assert source.FindConnectionPoint(call, EVENTS) is source
    assert source.GetConnectionPointContainer(call) is source
    assert source.GetConnectionInterface(call) == EVENTS
    assert source.EnumConnectionPoints(call).Next(call, 2).values == ([source], 1)
    with pytest.raises(MQError, match="CONNECT_E_NOCONNECTION"):
        source.FindConnectionPoint(call, UUID(int=1))


def test_a_released_source_calls_nobody_any_more(world: World) -> None:
    world.advise()
    world.thread.do(world.source.released)
    world.thread.until(lambda: len(world.sink.released) == 2)
    assert len(world.outbound) == 0


@pytest.mark.bound("dcom.events_of_a_sink")
def test_a_sink_that_does_not_answer_holds_a_bounded_number_of_events(world: World) -> None:
    world.advise()
    world.sink.silent = True
    world.fire(Variant(VT_I4, 0))
    world.told(1)
    for number in range(MOST_WAITING + 10):
        world.fire(Variant(VT_I4, number))
    (connection,) = world.source._connections.values()
    assert len(connection.sink._waiting) == MOST_WAITING


def test_a_sink_is_called_again_after_its_connection_was_lost(world: World) -> None:
    world.advise()
    (connection,) = world.source._connections.values()
    client = connection.sink._client
    assert client is not None
    world.thread.do(client.close)
    world.thread.run(client.wait_closed())
    world.fire(Variant(VT_I4, 3))
    assert world.told(1) == [(0, [Variant(VT_I4, 3)])]


def test_the_client_hears_that_we_live(world: World) -> None:
    world.advise()
    world.thread.do(lambda: world.clock.advance(PING_PERIOD))
    world.thread.until(lambda: world.sink.pinged == [world.sink.oid])
    world.thread.until(lambda: len(world.clock.timers) == 1)
    world.thread.do(lambda: world.clock.advance(PING_PERIOD))
    world.thread.until(lambda: world.sink.pinged == [world.sink.oid, -7])


@pytest.mark.bound("dcom.sinks_per_caller")
def test_one_caller_has_a_bounded_number_of_sinks(world: World) -> None:
    reference, call = world.sink.objref(), world.call().call
    for _ in range(MOST_SINKS_PER_CALLER):
        world.outbound.sink(reference, call, EVENTS)
    with pytest.raises(MQError, match="CONNECT_E_ADVISELIMIT"):
        world.outbound.sink(reference, call, EVENTS)


@pytest.mark.bound("dcom.sinks")
def test_all_callers_together_have_a_bounded_number_of_sinks(world: World) -> None:
    reference = world.sink.objref()

    def sink(number: int) -> None:
        call = world.call().call
        cast(Any, call).identity = replace(ALICE, sid=f"S-1-5-21-{number}")
        world.outbound.sink(reference, call, EVENTS)

    for number in range(MOST_SINKS):
        sink(number)
    with pytest.raises(MQError, match="CONNECT_E_ADVISELIMIT"):
        sink(MOST_SINKS)
