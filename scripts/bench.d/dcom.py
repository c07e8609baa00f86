"""COM objects: calls by IPID against the null call, sending, live objects, and pings.

The null call is R_GetServerPort. Both are sealed by NTLM (PKT_PRIVACY) at 16 connections, and
figures are by the server's processor time. Sending is of recoverable messages of 1 KiB against
rpc_ACSendMessageEx, sealed too: Send alone, and with put_Body before each. Objects and pings are
measured in this process, without a network: 100,000 objects in ping sets of 20,000, in one period.
"""

import gc
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from uuid import UUID, uuid4

from authenticated import ACCOUNT, PRIVACY, Connection
from durable_calls import QUEUE, message, opening_for_sending
from figures import Figure, attempt, figure
from harness import BUILD, computed, few, load_streams, pairs, pin, server_cpu
from served import EVERYONE, Served, serving

from rpcqm.codec.automation.objref import ObjRefStandard
from rpcqm.codec.automation.type_library import describe
from rpcqm.codec.automation.values import MISSING, SafeArray, Variant
from rpcqm.codec.interface import Interface, TransferSyntax
from rpcqm.codec.interface import load as load_interface
from rpcqm.codec.types import remoteread
from rpcqm.codec.types.dcom import COMVERSION, ORPCTHIS
from rpcqm.codec.types.mqacvalues import MQ_DENY_NONE, MQ_SEND_ACCESS, MQMSG_DELIVERY_RECOVERABLE
from rpcqm.codec.types.oaut import DISPPARAMS
from rpcqm.codec.types.oautvalues import DISPATCH_PROPERTYGET, VT_ARRAY, VT_UI1
from rpcqm.dcom.com_object import ComObject
from rpcqm.dcom.exporter import ExporterLimits, ObjectExporter
from rpcqm.dcom.object_interfaces import object_interfaces
from rpcqm.dcom.ping_sets import EXPIRY, LOOK, PING_PERIOD, PingSets
from tests.support.clock import SimulatedClock
from tests.support.dcom.dcom_client import DcomClient, Reference

MSMQ_MESSAGE = UUID("d7d6e075-dccd-11d0-aa4b-0060970debae")
MSMQ_QUEUE_INFO = UUID("d7d6e07c-dccd-11d0-aa4b-0060970debae")
INTERFACE = "IMSMQMessage4"
CONFIGURATION = """\
[dcom]
enabled = true
[security]
supporting_server = true
[limits]
request_templates = false
"""
"""Both go the careful way: objects know no other."""
SIZE = 1024
CONNECTIONS = 16
OBJECTS = 100_000
SET = 20_000
IID = UUID(int=1)
ROWS = (
    "a live object in a ping set",
    f"pings of {OBJECTS:,} objects in sets, in a period",
    f"the end of {OBJECTS:,} objects whose client is gone",
)
PROPERTY = f"property get by {{}} over the null call, PKT_PRIVACY, {CONNECTIONS} connections"
SENT = f"of recoverable 1 KiB over rpc_ACSendMessageEx, PKT_PRIVACY, {CONNECTIONS} connections"


@dataclass(frozen=True, slots=True)
class Prepared:
    """A call that may be made over and over on one connection."""

    opnum: int
    stub: bytes
    ipid: UUID | None = None
    context: int = 0


@dataclass(frozen=True, slots=True)
class Amount:
    """How many calls are sealed on each connection, and the seconds that they have at most."""

    calls: int = 4_000
    seconds: float | None = 1.0


USUAL = Amount()
Prepare = Callable[[Connection], Sequence[Prepared]]
"""Makes a connection ready, and tells which calls it makes in turns."""


def rate(
    served: Served,
    port: int,
    interfaces: Sequence[Interface],
    prepare: Prepare,
    amount: Amount,
) -> float:
    """Calls per second of processor time, of connections with calls sealed beforehand."""
    made = [Connection(port, interfaces[0], PRIVACY, *interfaces[1:]) for _ in range(CONNECTIONS)]
    with tempfile.TemporaryDirectory(dir=served.data.parent) as directory:
        streams: dict[int, Path] = {}
        for connection in made:
            calls = prepare(connection)
            path = streams[connection.socket.fileno()] = Path(directory) / f"{len(streams)}"
            with path.open("wb") as file:
                for each in islice(cycle(calls), few(amount.calls)):
                    connection.association.request(each.context, each.opnum, each.stub, each.ipid)
                    file.write(connection.association.data_to_send())
        before = computed(served.pid)
        seen = load_streams(streams, amount.seconds, warm_up=0)
        took = computed(served.pid) - before
    for connection in made:
        connection.close()
    return seen.calls / took


def null_call(served: Served) -> float:
    interface = load_interface("remoteread")
    operation = interface.operation("R_GetServerPort")
    stub = operation.encode_request(TransferSyntax.NDR, remoteread.R_GetServerPortRequest())
    called = Prepared(operation.opnum, stub)
    return rate(served, served.port, [interface], lambda _: [called], USUAL)


def property_get(served: Served, com: DcomClient, ipid: bytes, amount: Amount = USUAL) -> float:
    interface = load_interface(f"mqac.{INTERFACE}")
    operation = interface.operation("get_Priority")
    version = COMVERSION(MajorVersion=5, MinorVersion=7)
    this = ORPCTHIS(version=version, flags=0, reserved1=0, cid=uuid4(), extensions=None)
    stub = operation.encode_request(TransferSyntax.NDR, operation.request_class(orpcthis=this))
    assert com.exporter is not None
    called = Prepared(operation.opnum, stub, UUID(bytes_le=ipid))
    return rate(served, com.exporter[1], [interface], lambda _: [called], amount)


def property_get_by_name(
    served: Served, com: DcomClient, ipid: bytes, amount: Amount = USUAL
) -> float:
    """The same property by IDispatch::Invoke, whose number the client has asked for before."""
    interface = load_interface("oaut.IDispatch")
    operation = interface.operation("Invoke")
    members = describe(INTERFACE).members
    request = operation.request_class(
        orpcthis=ORPCTHIS(version=COMVERSION(MajorVersion=5, MinorVersion=7), cid=uuid4()),
        dispIdMember=next(each.dispid for each in members if each.name == "Priority"),
        riid=UUID(int=0),
        lcid=0,
        dwFlags=DISPATCH_PROPERTYGET,
        pDispParams=DISPPARAMS(rgvarg=None, rgdispidNamedArgs=None, cArgs=0, cNamedArgs=0),
        cVarRef=0,
        rgVarRefIdx=[],
        rgVarRef=[],
    )
    stub = operation.encode_request(TransferSyntax.NDR, request)
    assert com.exporter is not None
    called = Prepared(operation.opnum, stub, UUID(bytes_le=ipid))
    return rate(served, com.exporter[1], [interface], lambda _: [called], amount)


def send_by_object(
    served: Served, com: DcomClient, queue: Reference, *, body: bool, amount: Amount = USUAL
) -> float:
    """Messages by Send of an MSMQMessage for each connection, whose body may be put each time."""
    interface = load_interface(f"mqac.{INTERFACE}")
    octets = Variant(VT_ARRAY | VT_UI1, SafeArray(VT_UI1, bytes(SIZE)))

    def prepared(ipid: bytes, name: str, **fields: object) -> Prepared:
        operation = interface.operation(name)
        version = COMVERSION(MajorVersion=5, MinorVersion=7)
        this = ORPCTHIS(version=version, flags=0, reserved1=0, cid=uuid4(), extensions=None)
        request = operation.request_class(orpcthis=this, **fields)
        stub = operation.encode_request(TransferSyntax.NDR, request)
        return Prepared(operation.opnum, stub, UUID(bytes_le=ipid))

    def prepare(_: Connection) -> list[Prepared]:
        message = com.create(MSMQ_MESSAGE, INTERFACE)
        com.call(message, "put_Body", octets)
        com.call(message, "put_Delivery", MQMSG_DELIVERY_RECOVERABLE)
        std = replace(queue.std, public_refs=0)
        named = ObjRefStandard(object_interfaces()["IDispatch"].iid, std).pack()
        send = prepared(message.ipid, "Send", DestinationQueue=named, Transaction=MISSING)
        return [prepared(message.ipid, "put_Body", varBody=octets), send] if body else [send]

    assert com.exporter is not None
    return rate(served, com.exporter[1], [interface], prepare, amount) / (2 if body else 1)


def send_by_call(served: Served) -> float:
    """The same messages by rpc_ACSendMessageEx."""
    interfaces = [load_interface(name) for name in ("qmcomm", "qmcomm2")]
    operation = interfaces[1].operation("rpc_ACSendMessageEx")

    def prepare(connection: Connection) -> list[Prepared]:
        opened = connection.call("rpc_QMOpenQueueInternal", opening_for_sending())
        request = message(SIZE, opened.phQueue)
        stub = operation.encode_request(TransferSyntax.NDR, request)
        return [Prepared(operation.opnum, stub, context=1)]

    return rate(served, served.port, interfaces, prepare, USUAL)


def opened_queue(com: DcomClient) -> Reference:
    """The queue of the bench, open for sending."""
    info = com.create(MSMQ_QUEUE_INFO, "IMSMQQueueInfo4")
    com.call(info, "put_PathName", rf".\private$\{QUEUE}")
    opened: Reference = com.call(info, "Open", MQ_SEND_ACCESS, MQ_DENY_NONE)
    return opened


Rate = Callable[[], float]


def over(served: Served, name: str, ours: Rate, theirs: Rate, rounds: int) -> Iterator[Figure]:
    """One row."""
    yield from attempt(name, lambda: pairs(ours, theirs, rounds).figure(name, served.pid))


def rows(served: Served, com: DcomClient) -> Iterator[Figure]:
    made = com.create(MSMQ_MESSAGE, INTERFACE)
    null, by_call = partial(null_call, served), partial(send_by_call, served)
    direct = partial(property_get, served, com, made.ipid)
    yield from over(served, PROPERTY.format("vtable"), direct, null, 3)
    named = partial(property_get_by_name, served, com, made.ipid)
    yield from over(served, PROPERTY.format("IDispatch"), named, null, 3)
    served.command("queue", "create", QUEUE, "--sddl", EVERYONE)
    queue = opened_queue(com)
    for body, name in ((False, f"Send {SENT}"), (True, f"put_Body and Send {SENT}")):
        by_object = partial(send_by_object, served, com, queue, body=body)
        yield from over(served, name, by_object, by_call, 5)


def calls() -> Iterator[Figure]:
    doors = ("--epm-port", "0", "--dcom-port", "0")
    BUILD.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(dir=BUILD) as name,
        serving(Path(name), CONFIGURATION, options=doors) as served,
        DcomClient(("127.0.0.1", served.endpoints["epm"][1]), ACCOUNT) as com,
    ):
        pin(served.pid, server_cpu)
        yield from rows(served, com)


class Thing(ComObject):
    """An object without anything."""

    __slots__ = ()


def objects() -> list[Figure]:
    """What live objects and their pings take."""
    clock = SimulatedClock()
    limits = ExporterLimits(objects=OBJECTS, objects_per_caller=OBJECTS)
    exporter = ObjectExporter(clock, lambda *_: True, limits)
    pings = PingSets(exporter, clock.timers)
    gc.collect()
    tracemalloc.start()
    oids = [exporter.marshal(Thing(), IID, "S-1-5-21-1").oid for _ in range(OBJECTS)]
    sets = [
        pings.complex_ping(0, 0, oids[first : first + SET], (), "S-1-5-21-1")[0]
        for first in range(0, OBJECTS, SET)
    ]
    size = tracemalloc.get_traced_memory()[0] / OBJECTS
    tracemalloc.stop()
    began = time.process_time()
    for set_id in sets:
        pings.simple_ping(set_id)
    clock.advance(PING_PERIOD)
    period = time.process_time() - began
    began = time.process_time()
    clock.advance(EXPIRY + LOOK)
    ended = time.process_time() - began
    assert len(exporter) == 0
    return [figure(name, value) for name, value in zip(ROWS, (size, period, ended), strict=True)]


def run() -> Iterator[Figure]:
    yield from calls()
    yield from attempt(ROWS, objects)
