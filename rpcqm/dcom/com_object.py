"""The base of classes whose objects clients can hold and call."""

from dataclasses import dataclass, field
from typing import ClassVar
from uuid import UUID

from rpcqm.base.errors import FaultStatus, MQError, RpcFault
from rpcqm.base.identity import Identity
from rpcqm.dcom.held_octets import HeldOctets, Holding
from rpcqm.rpc.call import Call


class WaitingCalls:
    """Counts the waiting calls of each of the `callers`, up to a bound."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.callers: dict[str, int] = {}

    def __len__(self) -> int:
        return sum(self.callers.values())

    def check(self, caller: str) -> None:
        """Raise RpcFault if a caller has too many waiting calls for another one."""
        if self.callers.get(caller, 0) >= self.most:
            raise RpcFault(FaultStatus.nca_s_server_too_busy, "too many waiting calls")

    def begin(self, caller: str) -> None:
        self.callers[caller] = self.callers.get(caller, 0) + 1

    def end(self, caller: str) -> None:
        self.callers[caller] -= 1
        if not self.callers[caller]:
            del self.callers[caller]


class ComCall:
    """The caller of an object's method, and the interface that it uses.

    `waits` says whether the method may wait as long as the caller likes.
    """

    __slots__ = ("_waiting", "call", "iid", "waits")

    def __init__(self, call: Call, iid: UUID, waiting: WaitingCalls) -> None:
        self.call = call
        self.iid = iid
        self.waits = False
        self._waiting = waiting

    def check_waiting(self) -> None:
        """Let the method wait; raises RpcFault if too many calls of this caller wait."""
        self.waits = True
        self._waiting.check(self.identity.sid)

    @property
    def identity(self) -> Identity:
        return self.call.identity

    @property
    def peer(self) -> str:
        """The other end, as text for logs."""
        return self.call.peer


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a method whose HRESULT is not S_OK, but whose [out] parameters are read.

    `values` are all of the [out] parameters, in the order of the IDL. `unused` are objects that the
    method has made and the caller does not want: those that nobody holds are released. `error` is
    the reason of a refusal, for the log.
    """

    status: int
    values: tuple[object, ...] = ()
    unused: "tuple[ComObject, ...]" = ()
    error: MQError | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class RemoteReference:
    """An interface pointer to another process's object, as its OBJREF's octets."""

    objref: bytes


class ComObject:
    """An object that clients hold by references.

    `INTERFACES` names the interfaces of the IDL that it has, the newest first. A method of the
    newest has a method here of the same name (`Open`, `get_Label`, `put_Label`, `putref_…`): it
    takes a ComCall and then the [in] parameters in the order of the IDL, and returns the [out]
    parameters (one as it is, several as a tuple), or a Completion or coroutine of them. It raises
    MQError for every other HRESULT, or returns an Outcome where [out] parameters go with it. An
    older interface is served by the methods that the newest has at the same opnums.

    Parameters: str, None or bytes for a BSTR; Variant for a VARIANT; bool for VARIANT_BOOL; int;
    a ComObject or None for an interface pointer of ours, a `RemoteReference` for one of somebody
    else's, both also inside of a Variant.
    """

    INTERFACES: ClassVar[tuple[str, ...]] = ()
    WAITING: ClassVar[frozenset[str]] = frozenset()
    """The methods that wait as long as a caller likes; each caller has a bounded number of such
    calls."""

    _holding: Holding | None = None

    @property
    def interfaces(self) -> tuple[str, ...]:
        """The present interfaces, most specific first; the object's state may change them."""
        return self.INTERFACES

    def hold(
        self, held: HeldOctets, owner: str, part: str, octets: int, *, always: bool = False
    ) -> None:
        """Count the octets of a part of the object, for the first caller who puts something there.

        Raises MQ_ERROR_INSUFFICIENT_RESOURCES if that caller's objects take too much, unless it is
        too late to refuse (`always`). The exporter gives the octets back with the object.
        """
        if self._holding is None:
            self._holding = Holding(held, owner)
        self._holding.set(part, octets, always=always)

    def give_back(self) -> None:
        """Stop counting the octets of the object."""
        if self._holding is not None:
            self._holding.give_back()

    def released(self) -> None:
        """Release the object's resources: nobody holds a reference any longer."""
