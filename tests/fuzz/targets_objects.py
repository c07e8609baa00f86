"""The target of calls of objects: stub data of every method of MSMQ's, and of calls by names.

The octets of an input: the method (2), the transfer syntax, the object (0 for one of the method's
interface), and the stub. MARK in a stub stands for an object that the client holds.
"""

import tempfile
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

from rpcqm.base.completion import start
from rpcqm.base.metrics import Metrics
from rpcqm.codec.automation.objref import ObjRefStandard, StdObjRef
from rpcqm.codec.automation.values import MISSING, SafeArray, Variant
from rpcqm.codec.idl.tree import InterfacePointer, WireMarshal
from rpcqm.codec.interface import Operation, TransferSyntax, load
from rpcqm.codec.ndr.classes import message
from rpcqm.codec.types.dcom import COMVERSION, ORPCTHIS
from rpcqm.codec.types.oautvalues import VT_ARRAY, VT_BSTR, VT_DISPATCH, VT_I4, VT_UI1
from rpcqm.config import Configuration
from rpcqm.dcom.com_object import ComCall, ComObject
from rpcqm.dcom.object_interfaces import IDISPATCH, object_interfaces
from rpcqm.mqac.coclasses import MSMQ_QUEUE_INFO, coclasses
from rpcqm.mqac.collection import MSMQCollection
from rpcqm.mqac.queue_info import MSMQQueueInfo
from rpcqm.rpc.interface_registry import NCACN_IP_TCP, InterfaceSet
from rpcqm.rpc.negotiation import Endpoint
from rpcqm.rpc.pdu import SyntaxId
from rpcqm.service import interfaces
from rpcqm.service.dcom import DcomDoor
from tests.fuzz.mutation import mutated
from tests.fuzz.target import Run, Target, Violation
from tests.fuzz.targets_calls import outcome_of
from tests.fuzz.targets_codec import examples
from tests.support.dcom.fake_com import call_of
from tests.support.queue_manager import MEMORY, RunningQueueManager
from tests.support.rpc.callers import ADMINISTRATOR, Caller, CallServer, PendingCall, Served

SYNTAXES = tuple(TransferSyntax)
CALLS_OF_A_CLIENT = 64
"""After so many calls a client is lost, and its objects are given back."""

THIS = ORPCTHIS(
    version=COMVERSION(MajorVersion=5, MinorVersion=7),
    flags=0,
    reserved1=0,
    cid=UUID(int=1),
    extensions=None,
)
MARK = StdObjRef(0, 0, 0x5EA1ED0000000001, 0x5EA1ED0000000002, b"an object's IPID")
NEWEST = (
    *("IMSMQQueueInfo4", "IMSMQQueue4", "IMSMQMessage4", "IMSMQApplication3", "IMSMQDestination"),
    *("IMSMQManagement", "IMSMQQueueManagement", "IMSMQOutgoingQueueManagement"),
    *("IMSMQQuery4", "IMSMQQueueInfos4", "IMSMQTransaction3", "IMSMQTransactionDispenser3"),
    *("IMSMQCollection", "IMSMQPrivateDestination"),
)
ATTACKED = r"private$\attacked"
NAME = r".\private$\attacked"


@cache
def methods() -> tuple[tuple[str, Operation], ...]:
    """Each method with the place of its interface; those of IDispatch and of references too."""
    places = [object_interfaces()[name].place for name in ("IDispatch", *NEWEST)]
    places += ["dcom.IRemUnknown2"]
    return tuple(
        (place, operation)
        for place in places
        for operation in load(place).operations
        if operation is not None and (operation.opnum > 6 or not place.startswith("mqac"))
    )


class Objects:
    """A queue manager whose objects one client after the other holds."""

    def __init__(self, qm: RunningQueueManager) -> None:
        self.qm = qm
        nowhere = cast(Any, SimpleNamespace(providers={}, metrics=Metrics()))
        self.door = DcomDoor(qm.engine, nowhere, Configuration(), classes={})
        self.classes = coclasses(interfaces.machine(qm.engine))
        self.server = CallServer(qm)
        served = SimpleNamespace
        self.server.interfaces = {
            place: cast(Served, served(interface=load(place)))
            for place in dict.fromkeys(place for place, _ in methods())
        }
        endpoint = Endpoint(
            NCACN_IP_TCP, b"2103", InterfaceSet(self.door.objects), self.server.groups
        )
        self.server._endpoints[NCACN_IP_TCP] = endpoint
        self.precious = qm.create(r"private$\precious")
        qm.send(self.precious, b"precious")

    @property
    def failures(self) -> int:
        return self.server.dispatcher.metrics.snapshot().get("rpc.failures", 0)

    def check(self) -> None:
        """Nothing failed inside, and who has nothing to do with it has lost nothing."""
        if self.failures:
            raise Violation("a call failed inside")
        if self.qm.bodies(self.precious) != [b"precious"]:
            raise Violation("a stranger's message is gone")

    def held(self) -> dict[str, StdObjRef]:
        """Objects for a client, by their newest interface: of each class, and an open queue."""
        if self.qm.engine.registry.find_by_path(NAME) is None:
            self.qm.create(ATTACKED)
        self.qm.send(self.qm.find(ATTACKED), b"a message")
        made = [make() for make in self.classes.values()]
        made += [self._open_queue(), MSMQCollection({"a": Variant(3, 1)})]
        found = {}
        for each in made:
            name = each.interfaces[0]
            iid = object_interfaces()[name].iid
            found[name] = self.door.exporter.marshal(each, iid, ADMINISTRATOR.sid)
        return found

    def _open_queue(self) -> ComObject:
        info = self.classes[MSMQ_QUEUE_INFO]()
        assert isinstance(info, MSMQQueueInfo)
        call: ComCall = call_of(ADMINISTRATOR)
        info.put_PathName(call, NAME)
        opened: Any = info.Open(call, 1, 0)
        queue = self.qm.done(start(opened))
        assert isinstance(queue, ComObject)
        return queue


class Session:
    """Clients, one after the other, each in both syntaxes."""

    def __init__(self, objects: Objects) -> None:
        self.objects = objects
        self.calls = 0
        self.callers: list[Caller] = []
        self.held: dict[str, StdObjRef] = {}

    def run(self, octets: bytes) -> Hashable:
        """One call, answered or waiting; what failed inside is a violation."""
        if self.calls % CALLS_OF_A_CLIENT == 0:
            self._begin()
        self.calls += 1
        index, syntax, which = int.from_bytes(octets[:2], "little"), *(octets[2:4] + b"\0\0")[:2]
        place, operation = methods()[index % len(methods())]
        chosen = self._object(place, which)
        stub = octets[4:].replace(_identifiers(MARK), _identifiers(self._object(place, index)))
        caller = self.callers[syntax % len(SYNTAXES)]
        call = _send(caller, place, operation, stub, chosen.ipid)
        caller.settle()
        if self.objects.failures:
            raise Violation(f"{operation.name} failed inside")
        return operation.name, outcome_of(call)

    def _object(self, place: str, which: int) -> StdObjRef:
        if place.startswith("dcom."):
            exporter = self.objects.door.exporter
            return StdObjRef(0, 0, exporter.oxid, 0, exporter.rem_unknown)
        own = self.held.get(place.partition(".")[2])
        others = list(self.held.values())
        return own if own is not None and not which else others[which % len(others)]

    def _begin(self) -> None:
        for caller in self.callers:
            caller.lose()
        exporter = self.objects.door.exporter
        for std in self.held.values():
            exporter.release(std.ipid, 1 << 20, 0, ADMINISTRATOR.sid)
        self.objects.check()
        self.held = self.objects.held()
        for name, std in list(self.held.items()):
            self.held[name + " by names"] = exporter.query(std.ipid, IDISPATCH, 5)
        self.callers = [
            self.objects.server.connect(ADMINISTRATOR, syntax=each) for each in SYNTAXES
        ]


def _identifiers(std: StdObjRef) -> bytes:
    return std.oxid.to_bytes(8, "little") + std.oid.to_bytes(8, "little") + std.ipid


def _send(
    caller: Caller, place: str, operation: Operation, stub: bytes, ipid: bytes
) -> PendingCall:
    interface = load(place)
    context = caller.client.context_of(SyntaxId(interface.uuid, *interface.version))
    assert context is not None, f"{place} was not accepted"
    object_uuid = UUID(bytes_le=ipid)
    call_id = caller.client.request(context[0], operation.opnum, stub, object_uuid)
    call = caller.pending[call_id] = PendingCall(operation, caller.syntax, call_id)
    caller.protocol()
    return call


def _seeds() -> Iterable[bytes]:
    """Requests of each method in both syntaxes, with objects that the client holds."""
    for index, (place, operation) in enumerate(methods()):
        if not place.startswith("mqac"):
            for request in examples(operation.declaration, False):
                request.orpcthis = THIS
                yield from _inputs(index, operation, request)
        else:
            for variant in VARIANTS:
                yield from _inputs(index, operation, _request(operation, variant))


def _inputs(index: int, operation: Operation, request: Any) -> Iterator[bytes]:
    for number, syntax in enumerate(SYNTAXES):
        head = index.to_bytes(2, "little") + bytes((number, 0))
        yield head + operation.encode_request(syntax, request)


REFERENCE = ObjRefStandard(IDISPATCH, MARK).pack()
VARIANTS = (
    Variant(VT_DISPATCH, REFERENCE),
    Variant(VT_BSTR, NAME),
    Variant(VT_I4, 1),
    Variant(VT_ARRAY | VT_UI1, SafeArray(VT_UI1, bytes(20))),
    MISSING,
)


def _request(operation: Operation, variant: Variant) -> Any:
    """A request that a method of MSMQ's can make something of."""
    fields: dict[str, object] = {"orpcthis": THIS}
    for parameter in message(operation.declaration, response=False).parameters[1:]:
        match parameter.type:
            case InterfacePointer():
                fields[parameter.name] = REFERENCE
            case WireMarshal(name="VARIANT"):
                fields[parameter.name] = variant
            case WireMarshal():
                fields[parameter.name] = NAME
            case _:
                fields[parameter.name] = 1
    return operation.request_class(**fields)


@contextmanager
def _opened() -> Iterator[Run]:
    with tempfile.TemporaryDirectory(dir=MEMORY) as directory:
        qm = RunningQueueManager(Path(directory))
        try:
            yield Session(Objects(qm)).run
        finally:
            qm.stop()


def _call_mutated(random: Random, octets: bytes, others: Sequence[bytes]) -> bytes:
    """As it is at times, for its effects, or for another object; else mostly the same method."""
    chosen = random.random()
    if chosen < 0.1:
        return octets
    if chosen < 0.15:
        return octets[:3] + bytes((random.randrange(256),)) + octets[4:]
    if chosen < 0.17:
        return mutated(random, octets, others)
    return octets[:4] + mutated(random, octets[4:], [octets[4:]])


TARGETS = (Target("object-call", _seeds, _opened, mutate=_call_mutated, share=10, lifetime=2_000),)
