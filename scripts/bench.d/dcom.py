"""COM objects: calls by IPID against the null call, live objects, and pings.

The null call is R_GetServerPort. Both are sealed by NTLM (PKT_PRIVACY) at 16 connections, and
figures are by the server's processor time. Objects and pings are measured in this process, without
a network: 100,000 objects in ping sets of 20,000, over one period.
"""

import gc
import tempfile
import time
import tracemalloc
from functools import partial
from pathlib import Path
from uuid import UUID, uuid4

from authenticated import ACCOUNT, PRIVACY, Connection
from harness import Figure, load_streams, pairs, pin, processor_seconds, server_cpu
from served import Served, serving

from rpcqm.codec.automation.type_library import describe
from rpcqm.codec.interface import Interface, TransferSyntax
from rpcqm.codec.interface import load as load_interface
from rpcqm.codec.types import remoteread
from rpcqm.codec.types.dcom import COMVERSION, ORPCTHIS
from rpcqm.codec.types.oaut import DISPPARAMS
from rpcqm.codec.types.oautvalues import DISPATCH_PROPERTYGET
from rpcqm.dcom.com_object import ComObject
from rpcqm.dcom.exporter import ExporterLimits, ObjectExporter
from rpcqm.dcom.ping_sets import EXPIRY, LOOK, PING_PERIOD, PingSets
from tests.support.clock import SimulatedClock
from tests.support.dcom_client import DcomClient

MSMQ_MESSAGE = UUID("d7d6e075-dccd-11d0-aa4b-0060970debae")
INTERFACE = "IMSMQMessage4"
CONFIGURATION = "[dcom]\nenabled = true\n"
CONNECTIONS = 16
CALLS = 4_000
SECONDS = 1.0
OBJECTS = 100_000
SET = 20_000
IID = UUID(int=1)


def rate(
    served: Served, port: int, interface: Interface, stub: bytes, opnum: int, ipid: UUID | None
) -> float:
    """Calls per second of processor time, of connections with calls sealed beforehand."""
    made = [Connection(port, interface, PRIVACY) for _ in range(CONNECTIONS)]
    with tempfile.TemporaryDirectory(dir=served.data.parent) as directory:
        streams: dict[int, Path] = {}
        for connection in made:
            path = streams[connection.socket.fileno()] = Path(directory) / f"{len(streams)}"
            with path.open("wb") as file:
                for _ in range(CALLS):
                    connection.association.request(0, opnum, stub, ipid)
                    file.write(connection.association.data_to_send())
        before = processor_seconds(served.pid)
        seen = load_streams(streams, SECONDS, warm_up=0)
        took = processor_seconds(served.pid) - before
    for connection in made:
        connection.close()
    return seen.calls / took


def null_call(served: Served) -> float:
    interface = load_interface("remoteread")
    operation = interface.operation("R_GetServerPort")
    stub = operation.encode_request(TransferSyntax.NDR, remoteread.R_GetServerPortRequest())
    return rate(served, served.port, interface, stub, operation.opnum, None)


def property_get(served: Served, com: DcomClient, ipid: bytes) -> float:
    interface = load_interface(f"mqac.{INTERFACE}")
    operation = interface.operation("get_Priority")
    version = COMVERSION(MajorVersion=5, MinorVersion=7)
    this = ORPCTHIS(version=version, flags=0, reserved1=0, cid=uuid4(), extensions=None)
    stub = operation.encode_request(TransferSyntax.NDR, operation.request_class(orpcthis=this))
    assert com.exporter is not None
    port = com.exporter[1]
    return rate(served, port, interface, stub, operation.opnum, UUID(bytes_le=ipid))


def property_get_by_name(served: Served, com: DcomClient, ipid: bytes) -> float:
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
    port = com.exporter[1]
    return rate(served, port, interface, stub, operation.opnum, UUID(bytes_le=ipid))


def calls() -> list[Figure]:
    doors = ("--epm-port", "0", "--dcom-port", "0")
    with (
        tempfile.TemporaryDirectory() as name,
        serving(Path(name), CONFIGURATION, options=doors) as served,
        DcomClient(("127.0.0.1", served.endpoints["epm"][1]), ACCOUNT) as com,
    ):
        pin(served.pid, server_cpu)
        made = com.create(MSMQ_MESSAGE, INTERFACE)
        null = partial(null_call, served)
        direct = pairs(partial(property_get, served, com, made.ipid), null, rounds=3)
        named = pairs(partial(property_get_by_name, served, com, made.ipid), null, rounds=3)
    over = f"over the null call, PKT_PRIVACY, {CONNECTIONS} connections"
    return [
        Figure(f"property get by vtable {over}", direct.ratio, 0.6, note=direct.spread),
        Figure(f"property get by IDispatch {over}", named.ratio, 0.35, note=named.spread),
    ]


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
    return [
        Figure("a live object in a ping set", size, 1024, "octets", at_most=True),
        Figure(f"pings of {OBJECTS:,} objects in sets, in a period", period, 1, "s", at_most=True),
        Figure(
            f"the end of {OBJECTS:,} objects whose client is gone", ended, None, "s", at_most=True
        ),
    ]


def run() -> list[Figure]:
    return [*calls(), *objects()]


if __name__ == "__main__":
    from driver import line

    for figure in run():
        print(line(figure))
