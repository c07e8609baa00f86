"""The interfaces of a server: their operations prepared for dispatch, and who may reach them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol
from uuid import UUID

from rpcqm.base.metrics import Histogram, Metrics
from rpcqm.codec.interface import (
    ContextHandleParameter,
    OperationCodec,
    TransferSyntax,
    Value,
)
from rpcqm.rpc.call import Call
from rpcqm.rpc.constants import AuthenticationLevel
from rpcqm.rpc.pdu import SyntaxId
from rpcqm.rpc.presentation import NDR64
from rpcqm.rpc.security.context import NONE

NCACN_IP_TCP = "ncacn_ip_tcp"
NCALRPC = "ncalrpc"


Handler = Callable[[Call, Any], Any]
"""Takes a request of its method; returns a response or a status, or a completion of either."""


class ServedOperation(Protocol):
    """The members of an operation that dispatch uses; codec.interface provides them."""

    @property
    def name(self) -> str: ...

    @property
    def context_handles(self) -> Sequence[ContextHandleParameter]: ...

    @property
    def response_class(self) -> type[Value]: ...

    def codec(self, syntax: TransferSyntax, big_endian: bool = False) -> OperationCodec: ...

    def failure_response(self, request: Value, result: int) -> Value: ...


class ServedInterface(Protocol):
    """The members of an interface that a server uses; codec.interface provides them."""

    @property
    def name(self) -> str: ...

    @property
    def uuid(self) -> UUID: ...

    @property
    def version(self) -> tuple[int, int]: ...

    @property
    def syntaxes(self) -> Sequence[TransferSyntax]: ...

    @property
    def operations(self) -> Sequence[ServedOperation | None]: ...


class CarefulPath(Protocol):
    """Runs calls that no shortcut takes.

    `calls` counts those that have come, `pending` those that wait, which are at most
    `most_pending`, of one connection `most_of_one`.
    """

    calls: int
    pending: int
    most_pending: int
    most_of_one: int

    def pend(self, call: Call, change: int) -> None: ...

    def run_carefully(self, call: Call) -> None: ...


class Shortcut(Protocol):
    """Carries out calls of one operation in fewer steps than its handler, with the same outcome."""

    def take(self, call: Call, path: CarefulPath) -> bool:
        """Take a call, to be answered later; False leaves it as it was, for the careful path."""


ShortcutOf = Callable[[ServedOperation, TransferSyntax], Shortcut | None]
"""Gives the shortcut of an operation in one syntax, or None if the operation has no shortcut."""

CallCheck = Callable[[Call], None]
"""Raises RpcFault to refuse a call before it is decoded."""


@dataclass(frozen=True, slots=True)
class InterfacePolicy:
    """What a server asks of the callers of one interface.

    minimum_level: what every call needs; below it the fault is RPC_S_ACCESS_DENIED.
    transports: where the interface can be bound at all.
    throws: methods whose refusals are faults although they return a status.
    annotation: what the endpoint mapper says of the interface, at most 63 characters.
    advertised: whether it says anything of it; a client may look where another interface is.
    check: called before a request is decoded.
    check_of: as `check`, for one method of the handlers, by its name; None for no check.
    shortcut: asked once for each operation; None where every call goes the careful path.
    of_process: what its methods tell is of this process, and holds whatever other nodes of a
        cluster do.
    """

    minimum_level: AuthenticationLevel = NONE
    transports: frozenset[str] = frozenset({NCACN_IP_TCP, NCALRPC})
    throws: frozenset[str] = frozenset()
    annotation: str = ""
    advertised: bool = True
    check: CallCheck | None = None
    check_of: Callable[[object, str], CallCheck | None] | None = None
    shortcut: ShortcutOf | None = None
    of_process: bool = False


class OperationEntry:
    """One operation in one transfer syntax, with its handler.

    Its codec is compiled when the first call comes (G577).
    """

    __slots__ = (
        "_codec",
        "_only_status",
        "check",
        "decode",
        "durations",
        "encode",
        "handler",
        "handles_in",
        "handles_out",
        "minimum_level",
        "name",
        "of_process",
        "operation",
        "response_class",
        "returns_status",
        "shortcut",
    )

    def __init__(
        self,
        operation: ServedOperation,
        syntax: TransferSyntax,
        handler: Handler,
        policy: InterfacePolicy,
        check: CallCheck | None,
        shortcut: Shortcut | None = None,
    ) -> None:
        handles = tuple(operation.context_handles)
        self.name = operation.name
        self.operation = operation
        self.handler = handler
        self.decode: Callable[[bytes], Value] = self._decode_first
        self.encode: Callable[[Value], bytes] = self._encode_first
        self.response_class = operation.response_class
        self.handles_in = tuple(each for each in handles if each.direction != "out")
        self.handles_out = tuple(each.name for each in handles if each.direction != "in")
        self.minimum_level = policy.minimum_level
        self.of_process = policy.of_process
        self.durations = Histogram()
        self.check = check
        self.shortcut = shortcut
        self.returns_status = (
            operation.name not in policy.throws and "result" in self.response_class.__slots__
        )
        self._only_status = tuple(self.response_class.__slots__) == ("result",)
        self._codec = partial(operation.codec, syntax)

    def _decode_first(self, stub: bytes) -> Value:
        self.decode = self._codec().request.decode
        request: Value = self.decode(stub)
        return request

    def _encode_first(self, response: Value) -> bytes:
        self.encode = self._codec().response.encode
        return self.encode(response)

    def response_of_status(self, request: Value, status: object) -> Value:
        """The response of a method that reports only a status; None means success."""
        if not isinstance(status, int):
            if status is not None:
                raise TypeError(f"a {type(status).__name__} is no response of {self.name}")
            status = 0
        if self._only_status:
            return self.response_class(result=int(status))
        return self.operation.failure_response(request, int(status))

    def decode_big_endian(self, stub: bytes) -> Value:
        """The request of a big-endian client; its codec is compiled when the first one comes."""
        request: Value = self._codec(big_endian=True).request.decode(stub)
        return request


@dataclass(frozen=True, slots=True, eq=False)
class RegisteredInterface:
    """An interface with its handlers, as an endpoint offers it.

    `tables` are the operations by transfer syntax, the preferred syntax first.
    """

    name: str
    syntax: SyntaxId
    tables: Mapping[SyntaxId, tuple[OperationEntry | None, ...]]
    policy: InterfacePolicy


def register(
    interface: ServedInterface, handlers: object, policy: InterfacePolicy
) -> RegisteredInterface:
    """Prepare an interface for dispatch, from its IDL and an object with a method per operation.

    An operation without a method is answered as an opnum out of range.
    """
    tables = {
        SyntaxId(syntax.uuid, syntax.version): tuple(
            _entry(operation, syntax, handlers, policy) for operation in interface.operations
        )
        for syntax in _preferred_first(interface)
    }
    identifier = SyntaxId(interface.uuid, *interface.version)
    return RegisteredInterface(interface.name, identifier, tables, policy)


def _preferred_first(interface: ServedInterface) -> list[TransferSyntax]:
    return sorted(interface.syntaxes, key=lambda syntax: syntax.uuid != NDR64.uuid)


class LazyTables(Mapping[SyntaxId, tuple[OperationEntry | None, ...]]):
    """The tables of an interface, prepared when the first client binds it."""

    def __init__(self, syntaxes: Iterable[SyntaxId], make: Callable[[], RegisteredInterface]):
        self._syntaxes = tuple(syntaxes)
        self._make = make
        self._made: RegisteredInterface | None = None

    def __getitem__(self, syntax: SyntaxId) -> tuple[OperationEntry | None, ...]:
        if syntax not in self._syntaxes:
            raise KeyError(syntax)
        if self._made is None:
            self._made = self._make()
        return self._made.tables[syntax]

    def __iter__(self) -> Iterator[SyntaxId]:
        return iter(self._syntaxes)

    def __len__(self) -> int:
        return len(self._syntaxes)


def time_calls(registered: RegisteredInterface, metrics: Metrics, subject: str) -> None:
    """Count the durations of calls of an operation in one histogram, whatever their syntax."""
    for table in registered.tables.values():
        for entry in table:
            if entry is not None:
                entry.durations = metrics.histogram(subject, registered.name, entry.name)


def _entry(
    operation: ServedOperation | None,
    syntax: TransferSyntax,
    handlers: object,
    policy: InterfacePolicy,
) -> OperationEntry | None:
    if operation is None:
        return None
    handler = getattr(handlers, operation.name, None)
    if handler is None:
        return None
    check = policy.check
    if policy.check_of is not None:
        check = policy.check_of(handlers, operation.name)
    shortcut = None if policy.shortcut is None else policy.shortcut(operation, syntax)
    return OperationEntry(operation, syntax, handler, policy, check, shortcut)


class InterfaceSet:
    """The interfaces that can be bound at one endpoint."""

    def __init__(self, interfaces: Iterable[RegisteredInterface] = ()) -> None:
        self._by_uuid: dict[UUID, list[RegisteredInterface]] = {}
        for interface in interfaces:
            self.add(interface)

    def __iter__(self) -> Iterator[RegisteredInterface]:
        for versions in self._by_uuid.values():
            yield from versions

    def add(self, interface: RegisteredInterface) -> None:
        self._by_uuid.setdefault(interface.syntax.uuid, []).append(interface)

    def find(self, abstract_syntax: SyntaxId) -> RegisteredInterface | None:
        """The interface with this major version, and at least this minor one."""
        for interface in self._by_uuid.get(abstract_syntax.uuid, ()):
            offered = interface.syntax
            if offered.major == abstract_syntax.major and offered.minor >= abstract_syntax.minor:
                return interface
        return None
