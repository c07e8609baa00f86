"""Calls of clients' objects: events ([MS-DCOM] 3.2, [MS-OAUT] 3.2).

A client's reference is followed to the address that the client itself calls from, whatever the
reference says: to its object resolver there, and to the port that the resolver names. We log on
only where an account is configured for that address (G264).
"""

import asyncio
import re
import struct
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from uuid import UUID

from rpcqm.base.clock import Timer, Timers
from rpcqm.base.completion import Completion
from rpcqm.base.errors import DecodeError, HResult, MQError, RpcFault
from rpcqm.base.log import get_logger
from rpcqm.codec.automation.objref import (
    NCACN_IP_TCP,
    SORF_NOPING,
    DualStringArray,
    ObjRefCustom,
    ObjRefStandard,
    StdObjRef,
    unpack_objref,
)
from rpcqm.codec.automation.values import Variant
from rpcqm.codec.interface import TransferSyntax, Value, load
from rpcqm.codec.types.dcom import (
    DUALSTRINGARRAY,
    REMINTERFACEREF,
    ComplexPingRequest,
    IRemUnknown_RemQueryInterfaceRequest,
    IRemUnknown_RemReleaseRequest,
    ResolveOxid2Request,
    SimplePingRequest,
)
from rpcqm.dcom.com_object import ComObject
from rpcqm.dcom.event_interfaces import Dispatched, EventInterface, this
from rpcqm.dcom.exporter import ObjectExporter
from rpcqm.dcom.ping_sets import PING_PERIOD
from rpcqm.rpc.call import Call
from rpcqm.rpc.client import Binding, RpcClient
from rpcqm.rpc.security.context import AuthenticationError, Credentials

MOST_SINKS = 1_000
"""Sinks of all callers.

Each has a connection, and a service has 4,096 of those.

Bound `dcom.sinks` [sinks]: more get CONNECT_E_ADVISELIMIT.
"""
MOST_SINKS_PER_CALLER = 64
"""Sinks of one caller, each with a connection to it.

A program has one for each queue that it watches.

Bound `dcom.sinks_per_caller` [sinks]: more get CONNECT_E_ADVISELIMIT.
"""
MOST_WAITING = 64
"""Events that wait for one sink.

A queue has 16 notifications, and each is an event once.

Bound `dcom.events_of_a_sink` [events]: more are dropped, with a line of the log.
"""

CONNECT_SECONDS = 10.0
"""For all steps before a sink can be called: the machine has just called us."""
CALL_SECONDS = 30.0
"""For one event: a program may show a window, but others' events do not wait for it."""
RELEASE_SECONDS = 5.0
"""For giving a reference back; a client that does not answer loses nothing by it."""

_RESOLVER_PORT = 135
_REFERENCES = 5
"""Public references that are requested with an interface, as DCOM's own clients do."""
_LOOK_FOR_PORT = re.compile(r"(.+)\[(\d{1,5})\]")
_FAILURE = 0x8000_0000

_FAILURES = (OSError, RpcFault, MQError, AuthenticationError, DecodeError, ValueError, TimeoutError)
"""Failures of a client's machine; mistakes of ours raise other errors."""

_log = get_logger("dcom")


class OutboundCalls:
    """The objects of clients that we call; `close` ends all.

    `credentials` gives the account for logging on at an address, or None; `resolver` gives the
    bindings, as octets, by which a client that has reached us at an address finds our objects.
    """

    def __init__(
        self,
        exporter: ObjectExporter,
        resolver: Callable[[str], bytes],
        credentials: Callable[[str], Credentials | None],
        timers: Timers,
    ) -> None:
        self.exporter = exporter
        self.resolver = resolver
        self._credentials = credentials
        self.timers = timers
        self._tasks: set[asyncio.Task[None]] = set()
        self._sinks: dict[Sink, str] = {}

    def __len__(self) -> int:
        return len(self._sinks)

    def sink(
        self, objref: bytes, call: Call, iid: UUID, otherwise: Sequence[EventInterface] = ()
    ) -> "Sink":
        """An object of the caller, to be connected: its dispinterface `iid`, or another one.

        Raises MQError: CONNECT_E_CANNOTCONNECT for a reference that cannot be followed,
        CONNECT_E_ADVISELIMIT for one too many.
        """
        owner, address = call.identity.sid, _address(call)
        held = sum(1 for each in self._sinks.values() if each == owner)
        if held >= MOST_SINKS_PER_CALLER or len(self._sinks) >= MOST_SINKS:
            raise MQError(HResult.CONNECT_E_ADVISELIMIT, "too many sinks")
        try:
            reference = unpack_objref(objref)
        except DecodeError as error:
            raise MQError(HResult.CONNECT_E_CANNOTCONNECT, str(error)) from error
        if isinstance(reference, ObjRefCustom) or not address:
            raise MQError(HResult.CONNECT_E_CANNOTCONNECT, "no reference to follow")
        port = _resolver_port(reference.bindings, address)
        place = Place(address, port, owner, call.local_address)
        found = Sink(self, place, reference.std, (Dispatched(iid), *otherwise))
        self._sinks[found] = owner
        return found

    async def connect(self, place: "Place", port: int) -> RpcClient:
        """A connection to a port of a client's machine; the first bind logs on if it can."""
        credentials = self._credentials(place.address)
        return await RpcClient.connect_tcp(place.address, port, credentials=credentials)

    def forget(self, sink: "Sink") -> None:
        self._sinks.pop(sink, None)

    def spawn(self, coroutine: Coroutine[object, object, None]) -> "asyncio.Task[None]":
        """Run a task that ends with the service."""
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def close(self) -> None:
        """End everything, without notice to clients."""
        for sink in list(self._sinks):
            sink.drop()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@dataclass(frozen=True, slots=True)
class Place:
    """A client: its machine's address and its object resolver's port there, its SID, and the
    address at which it has reached us.
    """

    address: str
    resolver_port: int
    owner: str
    reached: str


class Sink:
    """One object of a client, called by the first interface of events that it has.

    Events are sent in their order, one at a time; a lost connection is made again.
    """

    def __init__(
        self,
        calls: OutboundCalls,
        place: Place,
        std: StdObjRef,
        interfaces: Sequence[EventInterface],
    ) -> None:
        self._calls = calls
        self._place = place
        self._std = std
        self._interfaces = interfaces
        self._called = interfaces[0]
        self._client: RpcClient | None = None
        self._remote_unknown: UUID | None = None
        self._held: StdObjRef | None = None
        self._events: Binding | None = None
        self._waiting: deque[tuple[int, list[Variant]]] = deque()
        self._worker: asyncio.Task[None] | None = None
        self._ping: Timer | None = None
        self._set_id = 0
        self._closed = False
        self._finished = False

    # Called by connection points

    def connect(self) -> Completion[None]:
        """Find the interface of events at the client; CONNECT_E_CANNOTCONNECT if there is none."""
        outcome: Completion[None] = Completion()
        self._worker = self._calls.spawn(self._first_connect(outcome))
        return outcome

    def fire(self, member: int, arguments: Sequence[Variant]) -> None:
        """Call a member of the interface, after the events before it."""
        if self._closed or len(self._waiting) >= MOST_WAITING:
            _log.warning("an event was dropped", peer=self._place.address, member=member)
            return
        self._waiting.append((member, list(arguments)))
        if self._worker is None:
            self._worker = self._calls.spawn(self._tell_all())

    def finish(self) -> None:
        """Give the references back when the waiting events have been sent."""
        self._finished = True
        if self._worker is None:
            self.close()

    def close(self) -> None:
        """Call the object no more, and give its references back."""
        if not self._closed:
            client, unknown = self._client, self._remote_unknown
            self._client = None
            self.drop()
            if client is not None and unknown is not None:
                self._calls.spawn(self._give_back(client, unknown))

    def drop(self) -> None:
        """Call the object no more."""
        self._closed = True
        self._calls.forget(self)
        if self._client is not None:
            self._client.close()
        self._waiting.clear()
        if self._ping is not None:
            self._ping.cancel()
        if self._worker is not None:
            self._worker.cancel()

    # Finding the client

    async def _first_connect(self, outcome: Completion[None]) -> None:
        try:
            await self._connected()
        except Exception as error:  # whatever the error is, Advise must be answered
            reason = str(error) or type(error).__name__
            _log.info("a sink cannot be called", peer=self._place.address, reason=reason)
            self.drop()
            outcome.fail(MQError(HResult.CONNECT_E_CANNOTCONNECT, reason))
        except asyncio.CancelledError:
            outcome.fail(MQError(HResult.CONNECT_E_CANNOTCONNECT, "released meanwhile"))
            raise
        else:
            self._worker = None
            self._schedule_ping()
            outcome.succeed(None)

    async def _connected(self) -> Binding:
        """The binding for events, over a live connection."""
        if self._events is not None and self._events.client.connected:
            return self._events
        async with asyncio.timeout(CONNECT_SECONDS):
            port, unknown = await self._resolve()
            client = await self._calls.connect(self._place, port)
            try:
                if self._held is None:
                    self._held = await self._query_interface(client, unknown)
                self._events = await client.bind(self._called.interface(), TransferSyntax.NDR)
            except BaseException:
                client.close()
                raise
        self._client, self._remote_unknown = client, unknown
        return self._events

    async def _resolve(self) -> tuple[int, UUID]:
        """The port of the object's exporter, and the IPID of its IRemUnknown."""
        async with await self._calls.connect(self._place, self._place.resolver_port) as client:
            binding = await client.bind(load("dcom.IObjectExporter"), TransferSyntax.NDR)
            request = ResolveOxid2Request(
                pOxid=self._std.oxid, cRequestedProtseqs=1, arRequestedProtseqs=[NCACN_IP_TCP]
            )
            response = await binding.send(request).response()
        if response.result:
            raise ValueError(f"its resolver answers {response.result}")
        return _exporter_port(response.ppdsaOxidBindings), response.pipidRemUnknown

    async def _query_interface(self, client: RpcClient, unknown: UUID) -> StdObjRef:
        """The reference to an interface of events ([MS-DCOM] 3.1.1.5.6.1.1)."""
        binding = await client.bind(load("dcom.IRemUnknown"), TransferSyntax.NDR)
        for each in self._interfaces:
            request = IRemUnknown_RemQueryInterfaceRequest(
                orpcthis=this(),
                ripid=UUID(bytes_le=self._std.ipid),
                cRefs=_REFERENCES,
                cIids=1,
                iids=[each.iid],
            )
            operation = request.operation.name
            response = await binding.start(operation, request, unknown).response()
            results = response.ppQIResults
            if not response.result and results and not results[0].hResult:
                self._called, std = each, results[0].std
                return StdObjRef(std.flags, std.cPublicRefs, std.oxid, std.oid, std.ipid.bytes_le)
        raise MQError(HResult.E_NOINTERFACE, str(self._called.iid))

    # Sending events

    async def _tell_all(self) -> None:
        while self._waiting:
            member, arguments = self._waiting.popleft()
            try:
                await self._tell(member, arguments)
            except Exception as error:  # later events are sent all the same
                reason = str(error) or type(error).__name__
                _log.warning("an event was lost", peer=self._place.address, reason=reason)
        self._worker = None
        if self._finished:
            self.close()

    async def _tell(self, member: int, arguments: list[Variant]) -> None:
        binding = await self._connected()
        given: list[StdObjRef] = []
        try:
            passed = partial(self._passed, given)
            await self._call(binding, *self._called.request(member, arguments, passed))
        except BaseException:
            # The client has not got these references, so that nobody would ever give them back.
            for std in given:
                self._calls.exporter.release(std.ipid, std.public_refs, 0, self._place.owner)
            raise

    def _passed(self, given: list[StdObjRef], found: ComObject, iid: UUID) -> bytes:
        """A reference to an object of ours."""
        std = self._calls.exporter.marshal(found, iid, self._place.owner)
        given.append(std)
        array, _ = DualStringArray.unpack(self._calls.resolver(self._place.reached))
        return ObjRefStandard(iid, std, array).pack()

    async def _call(self, binding: Binding, operation: str, request: Value) -> None:
        assert self._held is not None
        async with asyncio.timeout(CALL_SECONDS):
            ipid = UUID(bytes_le=self._held.ipid)
            response: Any = await binding.start(operation, request, ipid).response()
        if response.result & _FAILURE:
            raise RpcFault(HResult.DISP_E_EXCEPTION, f"the sink answers {response.result:#010x}")

    # Pings, and the end

    def _schedule_ping(self) -> None:
        if not self._std.flags & SORF_NOPING and not self._closed:
            self._ping = self._calls.timers.call_later(PING_PERIOD, self._begin_ping)

    def _begin_ping(self) -> None:
        self._calls.spawn(self._tell_that_we_live())

    async def _tell_that_we_live(self) -> None:
        """Ping the client's resolver ([MS-DCOM] 3.2.2.1), in a set of its own for each object."""
        resolver = self._place.resolver_port
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                async with await self._calls.connect(self._place, resolver) as client:
                    binding = await client.bind(load("dcom.IObjectExporter"), TransferSyntax.NDR)
                    await self._pinged(binding)
        except _FAILURES as error:
            self._set_id = 0
            _log.info("a sink was not pinged", peer=self._place.address, reason=str(error))
        self._schedule_ping()

    async def _pinged(self, binding: Binding) -> None:
        if self._set_id:
            answer = await binding.send(SimplePingRequest(pSetId=self._set_id)).response()
            if not answer.result:
                return
        request = ComplexPingRequest(
            pSetId=0,
            SequenceNum=1,
            cAddToSet=1,
            cDelFromSet=0,
            AddToSet=[self._std.oid],
            DelFromSet=None,
        )
        response = await binding.send(request).response()
        self._set_id = response.pSetId if not response.result else 0

    async def _give_back(self, client: RpcClient, unknown: UUID) -> None:
        """Release the references that we hold ([MS-DCOM] 3.1.1.5.6.1.3)."""
        held = [each for each in (self._std, self._held) if each is not None]
        request = IRemUnknown_RemReleaseRequest(
            orpcthis=this(),
            cInterfaceRefs=len(held),
            InterfaceRefs=[
                REMINTERFACEREF(
                    ipid=UUID(bytes_le=std.ipid), cPublicRefs=std.public_refs, cPrivateRefs=0
                )
                for std in held
            ],
        )
        try:
            async with asyncio.timeout(RELEASE_SECONDS):
                binding = await client.bind(load("dcom.IRemUnknown"), TransferSyntax.NDR)
                await binding.start(request.operation.name, request, unknown).response()
        except _FAILURES as error:
            _log.info("a sink was not released", peer=self._place.address, reason=str(error))
        finally:
            client.close()


def without_references(objref: bytes) -> bytes:
    """A reference that passes no references on: its receiver asks for references of his own."""
    reference = unpack_objref(objref)
    if isinstance(reference, ObjRefCustom):
        return objref
    return replace(reference, std=replace(reference.std, public_refs=0)).pack()


def _address(call: Call) -> str:
    """The address that a call comes from; empty for one over the local socket."""
    return call.peer.rpartition(":")[0] if call.transport == "ncacn_ip_tcp" else ""


def _resolver_port(bindings: DualStringArray, address: str) -> int:
    """The resolver's port at an address: that of its binding, else the usual one."""
    for binding in bindings.strings:
        found = _LOOK_FOR_PORT.fullmatch(binding.address)
        if found and binding.tower_id == NCACN_IP_TCP and found[1] == address:
            return _valid_port(found[2])
    return _RESOLVER_PORT


def _exporter_port(array: DUALSTRINGARRAY) -> int:
    """The first port that a resolver names; its host is ignored."""
    octets = struct.pack(f"<{len(array.aStringArray)}H", *array.aStringArray)
    for binding in DualStringArray.of_entries(octets, array.wSecurityOffset).strings:
        found = _LOOK_FOR_PORT.fullmatch(binding.address)
        if found and binding.tower_id == NCACN_IP_TCP:
            return _valid_port(found[2])
    raise ValueError("its resolver names no port")


def _valid_port(text: str) -> int:
    port = int(text)
    if not 0 < port < 0x10000:
        raise ValueError(f"no port: {port}")
    return port
