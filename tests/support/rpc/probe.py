"""An interface for tests of the runtime, with codecs of its own, and a client that writes PDUs."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from rpcqm.base.completion import Completion
from rpcqm.base.errors import DecodeError
from rpcqm.base.identity import ANONYMOUS, Identity
from rpcqm.codec.interface import ContextHandleParameter, OperationCodec, TransferSyntax, Value
from rpcqm.codec.ndr.compile import Buffer, MessageCodec
from rpcqm.rpc import pdu
from rpcqm.rpc.association import ServerAssociation
from rpcqm.rpc.association_group import AssociationGroups
from rpcqm.rpc.association_states import State
from rpcqm.rpc.call import Call
from rpcqm.rpc.constants import WHOLE, AuthenticationLevel
from rpcqm.rpc.context_handle import NULL_HANDLE, ContextHandle
from rpcqm.rpc.dispatch import Dispatcher
from rpcqm.rpc.events import Event
from rpcqm.rpc.interface_registry import (
    NCACN_IP_TCP,
    InterfacePolicy,
    InterfaceSet,
    register,
)
from rpcqm.rpc.limits import Limits
from rpcqm.rpc.negotiation import Endpoint
from rpcqm.rpc.presentation import NDR
from rpcqm.rpc.security.context import NONE, SecurityProvider, unauthenticated

PROBE = pdu.SyntaxId(UUID("5f1d3b1e-8d0e-4c7b-9d9f-6a1c6b5d9a01"), 1, 2)
OTHER = pdu.SyntaxId(UUID("5f1d3b1e-8d0e-4c7b-9d9f-6a1c6b5d9a02"), 1)


class ProbeRequest(Value):
    """A handle (where the operation has one) and octets."""

    __slots__ = ("handle", "octets")

    def __init__(self, *, handle: Any = None, octets: bytes = b"") -> None:
        self.handle = handle
        self.octets = octets


class ProbeResponse(Value):
    """A handle (where the operation has one), octets, and a status."""

    __slots__ = ("handle", "octets", "result")

    def __init__(self, *, handle: Any = None, octets: bytes = b"", result: int = 0) -> None:
        self.handle = handle
        self.octets = octets
        self.result = result


def handle_parameter(
    direction: str, strict: bool = True, serialize: bool = False
) -> ContextHandleParameter:
    return ContextHandleParameter("handle", direction, "PROBE_HANDLE", strict, False, serialize)


class ProbeOperation:
    """Requests are [handle] octets, responses are [handle] octets and a status."""

    request_class = ProbeRequest
    response_class: type[Value] = ProbeResponse

    def __init__(self, opnum: int, name: str, *handles: ContextHandleParameter) -> None:
        self.opnum = opnum
        self.name = name
        self.context_handles = handles

    def _has(self, *directions: str) -> bool:
        return any(each.direction in directions for each in self.context_handles)

    def codec(self, syntax: TransferSyntax, big_endian: bool = False) -> OperationCodec:
        return OperationCodec(
            MessageCodec(self._decode, self._encode_request),
            MessageCodec(self._decode_response, self._encode),
        )

    def _decode(self, data: Buffer) -> ProbeRequest:
        stub = bytes(data)
        if stub.startswith(b"bad"):
            raise DecodeError("not a probe", 0)
        if not self._has("in", "in,out"):
            return ProbeRequest(octets=stub)
        if len(stub) < 20:
            raise DecodeError("no handle", len(stub))
        return ProbeRequest(handle=stub[:20], octets=stub[20:])

    def _encode(self, response: Value) -> bytes:
        assert isinstance(response, ProbeResponse)
        handle = response.handle if self._has("out", "in,out") else b""
        return bytes(handle) + response.octets + response.result.to_bytes(4, "little")

    def _encode_request(self, request: Value) -> bytes:
        assert isinstance(request, ProbeRequest)
        return bytes(request.handle or b"") + request.octets

    def _decode_response(self, data: Buffer) -> ProbeResponse:
        stub = bytes(data)
        size = 20 if self._has("out", "in,out") else 0
        result = int.from_bytes(stub[-4:], "little")
        return ProbeResponse(handle=stub[:size], octets=stub[size:-4], result=result)

    def failure_response(self, request: Value, result: int) -> Value:
        assert isinstance(request, ProbeRequest)
        handle = request.handle if self._has("in,out") else NULL_HANDLE
        return ProbeResponse(handle=handle, result=result)


class ProbeInterface:
    """What `register` needs of an interface."""

    def __init__(
        self,
        identifier: pdu.SyntaxId = PROBE,
        type_strict: bool = False,
        syntaxes: Iterable[pdu.SyntaxId] = (NDR,),
    ) -> None:
        lax = ContextHandleParameter("handle", "in", "ANOTHER", False, type_strict, False)
        self.name = "probe"
        self.uuid = identifier.uuid
        self.version = (identifier.major, identifier.minor)
        uuids = {each.uuid for each in syntaxes}
        self.syntaxes = tuple(each for each in TransferSyntax if each.uuid in uuids)
        self.operations = (
            ProbeOperation(0, "null"),
            ProbeOperation(1, "echo"),
            ProbeOperation(2, "wait"),
            None,
            ProbeOperation(4, "open", handle_parameter("out")),
            ProbeOperation(5, "use", handle_parameter("in")),
            ProbeOperation(6, "close", handle_parameter("in,out")),
            ProbeOperation(7, "use_in_turn", handle_parameter("in", serialize=True)),
            ProbeOperation(8, "fail"),
            ProbeOperation(9, "use_lax", lax),
            ProbeOperation(10, "wait_with", handle_parameter("in", serialize=True)),
            ProbeOperation(11, "missing"),
        )

    def operation(self, name: str) -> ProbeOperation:
        return next(each for each in self.operations if each is not None and each.name == name)


class ProbeHandlers:
    """Handlers that note what they saw."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.calls: list[Call] = []
        self.waiting: list[Completion[ProbeResponse]] = []
        self.names: list[str] = []
        self.run_down: list[str] = []
        self.minimum_level = NONE
        self.failure: Callable[[], BaseException] = RuntimeError

    def null(self, call: Call, request: ProbeRequest) -> int:
        self.calls.append(call)
        return 0

    def echo(self, call: Call, request: ProbeRequest) -> ProbeResponse:
        self.calls.append(call)
        return ProbeResponse(octets=request.octets)

    def wait(self, call: Call, request: ProbeRequest) -> Completion[ProbeResponse]:
        self.calls.append(call)
        completion: Completion[ProbeResponse] = Completion()
        self.waiting.append(completion)
        name = request.octets.decode("latin-1")
        self.names.append(name)
        call.on_cancelled(lambda: self.seen.append(f"cancelled {name}"))
        call.on_abandoned(lambda: self.seen.append(f"abandoned {name}"))
        call.on_delivery_failed(lambda: self.seen.append(f"undelivered {name}"))
        return completion

    def open(self, call: Call, request: ProbeRequest) -> ProbeResponse:
        name = request.octets.decode("latin-1")
        handle = call.open_context_handle("PROBE_HANDLE", name, self._run_down)
        handle.minimum_level = self.minimum_level
        return ProbeResponse(handle=handle)

    def _run_down(self, handle: ContextHandle) -> None:
        self.run_down.append(handle.value)

    def use(self, call: Call, request: ProbeRequest) -> ProbeResponse:
        return ProbeResponse(octets=request.handle.value.encode("latin-1"))

    use_lax = use_in_turn = use

    def wait_with(self, call: Call, request: ProbeRequest) -> Completion[ProbeResponse]:
        self.seen.append(f"started {request.octets.decode('latin-1')}")
        return self.wait(call, request)

    def close(self, call: Call, request: ProbeRequest) -> ProbeResponse:
        if request.handle is None:
            return ProbeResponse(result=6)
        call.close_context_handle(request.handle)
        self.seen.append(f"closed {request.handle.value}")
        return ProbeResponse()

    def fail(self, call: Call, request: ProbeRequest) -> ProbeResponse:
        raise self.failure()


@dataclass
class Rig:
    """A server without a network: `served` are its handlers, `handlers` unless told otherwise."""

    handlers: ProbeHandlers = field(default_factory=ProbeHandlers)
    served: object | None = None
    policy: InterfacePolicy = field(default_factory=InterfacePolicy)
    type_strict: bool = False
    syntaxes: tuple[pdu.SyntaxId, ...] = (NDR,)
    limits: Limits = field(default_factory=Limits)
    providers: dict[int, SecurityProvider] = field(default_factory=dict)
    identity: Identity = ANONYMOUS
    level: AuthenticationLevel = NONE

    def __post_init__(self) -> None:
        self.groups = AssociationGroups(self.limits)
        self.dispatcher = Dispatcher(limits=self.limits)
        served = self.served or self.handlers
        interfaces = [
            register(
                ProbeInterface(identifier, self.type_strict, self.syntaxes), served, self.policy
            )
            for identifier in (PROBE, OTHER)
        ]
        self.endpoint = Endpoint(
            NCACN_IP_TCP,
            b"2103",
            InterfaceSet(interfaces),
            self.groups,
            self.providers,
            self.limits,
        )

    def connect(self, client: str = "192.0.2.1") -> "Wire":
        return Wire(self, client)


class Wire:
    """One connection: PDUs go in, PDUs come out, calls are dispatched on the way."""

    def __init__(self, rig: Rig, client: str) -> None:
        self.rig = rig
        self.events: list[Event] = []
        self.calls: list[Call] = []
        self.association = ServerAssociation(
            rig.endpoint,
            f"{client}:4711",
            client,
            unauthenticated(rig.identity, rig.level),
            self._dispatch,
            self.events.append,
        )

    def _dispatch(self, call: Call) -> None:
        self.calls.append(call)
        self.rig.dispatcher.dispatch(call)

    def send(self, octets: bytes) -> list[pdu.Pdu]:
        """Feed bytes; the PDUs that the server answers with."""
        self.association.receive_data(octets)
        return self.received()

    def received(self) -> list[pdu.Pdu]:
        return split(self.association.data_to_send())

    def call(self, opnum: int, stub: bytes = b"", call_id: int = 1, **fields: Any) -> pdu.Pdu:
        """One whole request; its only answer."""
        (answer,) = self.send(request(opnum, stub, call_id, **fields))
        return answer

    def bind(self, **fields: Any) -> pdu.Pdu:
        (answer,) = self.send(bind(**fields))
        return answer


def is_fault(answer: pdu.Pdu, status: int, flags: int = WHOLE) -> bool:
    return isinstance(answer, pdu.Fault) and (answer.status, answer.pfc_flags) == (status, flags)


def ended(wire: Wire) -> bool:
    return wire.association.state is State.CLOSED


def split(octets: bytes) -> list[pdu.Pdu]:
    """The PDUs in a run of bytes."""
    pdus = []
    while octets:
        length = pdu.unpack_header(octets).frag_length
        pdus.append(pdu.unpack(octets[:length]))
        octets = octets[length:]
    return pdus


def element(
    context_id: int = 0,
    abstract: pdu.SyntaxId = PROBE,
    transfers: Iterable[pdu.SyntaxId] = (NDR,),
) -> pdu.ContextElement:
    return pdu.ContextElement(context_id, abstract, tuple(transfers))


def bind(**fields: Any) -> bytes:
    """A bind to the probe interface as context 0, unless told otherwise."""
    values: dict[str, Any] = {
        "call_id": 0,
        "max_xmit_frag": 5840,
        "max_recv_frag": 5840,
        "p_context_elem": (element(),),
    }
    return pdu.Bind(**values | fields).pack()


def alter(**fields: Any) -> bytes:
    values: dict[str, Any] = {
        "call_id": 0,
        "max_xmit_frag": 5840,
        "max_recv_frag": 5840,
        "p_context_elem": (element(),),
    }
    return pdu.AlterContext(**values | fields).pack()


def request(opnum: int, stub: bytes = b"", call_id: int = 1, **fields: Any) -> bytes:
    values: dict[str, Any] = {"p_cont_id": 0, "alloc_hint": len(stub), "stub_data": stub}
    return pdu.Request(call_id=call_id, opnum=opnum, **values | fields).pack()
