"""Objects for events whose clients answer our calls with what they should not."""

import asyncio
import json
import socket
from collections.abc import Iterator
from typing import Any, cast
from uuid import UUID, uuid4

import pytest

from rpcqm.base.errors import FaultStatus, HResult, RpcFault
from rpcqm.codec.automation.objref import NCACN_IP_TCP, DualStringArray, StringBinding
from rpcqm.codec.automation.values import Variant
from rpcqm.codec.types.dcom import DUALSTRINGARRAY
from rpcqm.codec.types.mqvalues import QueueAccessType
from rpcqm.codec.types.oautvalues import VT_BSTR
from rpcqm.mqac.coclasses import MSMQ_EVENT
from rpcqm.rpc.call import Call
from rpcqm.rpc.server import RpcServer
from tests.support.dcom.com_objects import Objects, served_objects
from tests.support.dcom.com_sink import ComSink
from tests.support.dcom.dcom_client import Reference
from tests.support.loop_thread import LoopThread

EVENTS = UUID("d7d6e078-dccd-11d0-aa4b-0060970debae")
TOO_LONG = 9 << 20
"""Characters: in UTF-16 more octets than any answer may have."""


def bindings(address: str, tower: int = NCACN_IP_TCP) -> DUALSTRINGARRAY:
    octets, offset = DualStringArray((StringBinding(tower, address),)).entries
    words = [int.from_bytes(octets[at : at + 2], "little") for at in range(0, len(octets), 2)]
    return DUALSTRINGARRAY(wNumEntries=len(words), wSecurityOffset=offset, aStringArray=words)


class WrongSink(ComSink):
    """A client's object that answers as `wrong` says."""

    wrong = ""

    def ResolveOxid2(self, call: Call, request: Any) -> object:
        answer: Any = super().ResolveOxid2(call, request)
        places = {
            "no port": bindings("127.0.0.1"),
            "another protocol": bindings(f"127.0.0.1[{self.port}]", tower=31),
            "a port that cannot be": bindings("127.0.0.1[99999]"),
            "a port of nobody": bindings("127.0.0.1[1]"),
        }
        if self.wrong in places:
            answer.ppdsaOxidBindings = places[self.wrong]
        return answer

    def RemQueryInterface(self, call: Call, request: Any) -> object:
        if self.wrong == "a fault":
            raise RpcFault(FaultStatus.RPC_S_ACCESS_DENIED)
        answer: Any = super().RemQueryInterface(call, request)
        if self.wrong == "an object of another exporter":
            answer.ppQIResults[0].std.oxid = 0x3333
            answer.ppQIResults[0].std.oid = 0x4444
        return answer

    def Invoke(self, call: Call, request: Any) -> object:
        answer: Any = super().Invoke(call, request)
        if self.wrong == "a fault":
            raise RpcFault(FaultStatus.RPC_S_ACCESS_DENIED)
        if self.wrong == "too much":
            answer.pVarResult = Variant(VT_BSTR, "x" * TOO_LONG)
        if self.wrong == "a failure":
            answer.result = 0xFFFF_FFFF
        return answer


class Attacker:
    """A program with such an object, and the connection point that it is connected to."""

    def __init__(self, objects: Objects) -> None:
        self.objects = objects
        self.thread = LoopThread(asyncio.new_event_loop())
        self.server = RpcServer()
        self.sink = WrongSink(EVENTS)
        self.thread.run(self.sink.listen(self.server))
        self.event = objects.create(MSMQ_EVENT, "IMSMQEvent3")
        container = objects.com.query_interface(self.event, "IConnectionPointContainer")
        self.point = self.call(container, "FindConnectionPoint", EVENTS)
        self.private = objects.com.query_interface(self.event, "IMSMQPrivateEvent")

    def call(self, reference: Reference, operation: str, *arguments: object) -> Reference:
        return cast(Reference, self.objects.com.call(reference, operation, *arguments))

    def advise(self) -> int:
        """The result of Advise."""
        response = self.objects.com.response(self.point, "Advise", self.sink.objref())
        return int(response.result)

    def fire(self, cursor: int) -> None:
        """Let the event be raised, and wait until the object has been called."""
        told = len(self.sink.told)
        queue = self.objects.open(QueueAccessType.PEEK_ACCESS)
        self.call(self.private, "FireArrivedEvent", queue, cursor)
        self.thread.until(lambda: len(self.sink.told) > told)

    def end(self) -> None:
        self.thread.run(self.server.stop())
        self.thread.end()


@pytest.fixture(scope="module")
def objects() -> Iterator[Objects]:
    with served_objects() as found:
        yield found


@pytest.fixture
def attacker(objects: Objects) -> Iterator[Attacker]:
    made = Attacker(objects)
    yield made
    made.end()
    objects.empty()


def lines(objects: Objects, event: str) -> list[dict[str, Any]]:
    written = map(json.loads, objects.machine.log.splitlines())
    return [line for line in written if line["event"] == event]


def mistakes_of_ours(objects: Objects) -> list[str]:
    written = map(json.loads, objects.machine.log.splitlines())
    return [str(line) for line in written if line["level"] in ("error", "critical")]


@pytest.mark.parametrize(
    "wrong",
    [
        *("no port", "another protocol", "a port that cannot be", "a port of nobody"),
        "a fault",
    ],
)
def test_an_object_that_cannot_be_called_is_not_connected(
    objects: Objects, attacker: Attacker, wrong: str
) -> None:
    attacker.sink.wrong = wrong
    before = len(lines(objects, "a sink cannot be called"))
    assert attacker.advise() == HResult.CONNECT_E_CANNOTCONNECT
    assert len(lines(objects, "a sink cannot be called")) == before + 1
    attacker.sink.wrong = ""
    assert attacker.advise() == 0
    assert mistakes_of_ours(objects) == []


@pytest.mark.parametrize("wrong", ["a fault", "a failure", "too much"])
def test_an_answer_that_should_not_be_loses_one_event(
    objects: Objects, attacker: Attacker, wrong: str
) -> None:
    assert attacker.advise() == 0
    for cursor, answered in ((0, wrong), (1, ""), (2, "")):
        attacker.sink.wrong = answered
        attacker.fire(cursor)
    assert [arguments[-1].value for _, arguments in attacker.sink.told] == [0, 1, 2]
    assert mistakes_of_ours(objects) == []


def test_an_object_of_another_exporter_leads_nowhere_else(
    objects: Objects, attacker: Attacker
) -> None:
    """Neither its exporter nor its host is asked for: events go where the interface came from."""
    attacker.sink.wrong = "an object of another exporter"
    attacker.sink.host = "127.0.0.2"
    with socket.create_server(("127.0.0.2", attacker.sink.port)) as third:
        third.setblocking(False)
        assert attacker.advise() == 0
        attacker.fire(1)
        assert len(attacker.sink.callers) == 1
        with pytest.raises(BlockingIOError):
            third.accept()


def test_a_reference_to_our_own_exporter_is_no_object_of_others(
    objects: Objects, attacker: Attacker
) -> None:
    """It names an object that nobody has, or one of ours, which takes no events."""
    attacker.sink.oxid = attacker.point.std.oxid
    assert attacker.advise() != 0
    attacker.sink.unknown = uuid4()
    assert attacker.advise() != 0
    assert mistakes_of_ours(objects) == []
