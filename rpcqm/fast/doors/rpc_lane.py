"""Calls of one connection that come one behind the other, with what does not change between them.

The recogniser of an operation decides which calls templates take. Once it has taken one, the next
ones of the connection come to its lane first: what follows from the connection and its security is
not asked again, what may have changed is (docs/request-templates.md). What is taken here would be
taken there; what is not taken here goes there.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from rpcqm.base.metrics import stopwatch
from rpcqm.codec.interface import Operation, TransferSyntax
from rpcqm.fast.doors.rpc_recognition import Recognition
from rpcqm.fast.formats.stub_shapes import Holes
from rpcqm.fast.turn import Turn
from rpcqm.interfaces._authentication import CallAdmission
from rpcqm.rpc.association import ServerAssociation
from rpcqm.rpc.call import Call
from rpcqm.rpc.context_handle import ContextHandle
from rpcqm.rpc.interface_registry import CarefulPath
from rpcqm.rpc.presentation import PresentationContext
from rpcqm.rpc.security.context import SecurityContext
from rpcqm.rpc.security.verification import may_be_verified

OF_LANE = 64
"""Open queues that a connection remembers; who uses more begins anew."""

Known = TypeVar("Known")


class HandleLane(ABC, Generic[Known]):
    """What calls of one connection, operation and security have in common.

    With each open handle it keeps what its recogniser has found behind it.
    """

    __slots__ = (
        "_admission",
        "_find",
        "_level",
        "_open",
        "_turn",
        "_under",
        "context",
        "durations",
        "opnum",
        "path",
        "security",
    )

    def __init__(
        self, call: Call, path: CarefulPath, recognition: Recognition, admission: CallAdmission
    ) -> None:
        self._admission, self._under = admission, admission.security
        self.context, self.security, self.opnum = call.context, call.security, call.opnum
        self._level = call.security.assured_level
        self.path, self._turn = path, recognition.turn
        self.durations = call.durations
        self._find = recognition.shapes.find
        self._open: dict[bytes, tuple[ContextHandle, Known]] = {}

    def __len__(self) -> int:
        return len(self._open)

    def fits(self, context: PresentationContext | None, security: SecurityContext) -> bool:
        """Whether a call has the lane's context and security, under settings that still hold."""
        return (
            security is self.security
            and context is self.context
            and self._admission.security is self._under
        )

    def _may_take(
        self,
        association: ServerAssociation,
        context: PresentationContext | None,
        security: SecurityContext,
        stub: bytes,
    ) -> bool:
        """Whether a request may be looked at, and one more may wait; each connection may have one.

        Once no template has taken a call of the connection, its recogniser is asked first.
        """
        path, pending = self.path, association.pending
        return (
            self.fits(context, security)
            and self._turn.is_on
            and not association.unrecognised
            and (not pending or (pending < path.most_of_one and path.pending < path.most_pending))
            and not (security.auth_type and may_be_verified(stub))
        )

    def remember(self, wire: bytes, handle: ContextHandle, known: Known) -> None:
        """Take further calls with a handle, which has been found for one of this lane."""
        if len(self._open) >= OF_LANE:
            self._open.clear()
        self._open[wire] = handle, known

    def known(self, wire: bytes) -> tuple[ContextHandle, Known] | None:
        """A handle that is open still, at a level that will do; None for the recogniser."""
        known = self._open.get(wire)
        if known is None:
            return None
        handle = known[0]
        if handle.closed:
            del self._open[wire]
            return None
        return None if handle.closing or handle.minimum_level > self._level else known

    @abstractmethod
    def take(
        self,
        association: ServerAssociation,
        call_id: int,
        context: PresentationContext | None,
        security: SecurityContext,
        stub: bytes,
    ) -> bool:
        """Take a request that is like the last one (`rpc.interface_registry.Lane`)."""


class CarryingLane(HandleLane[Known]):
    """A lane whose recogniser asks anew for all that follows from the queue."""

    __slots__ = ("_carry",)

    def __init__(
        self, call: Call, path: CarefulPath, recogniser: "HandleRecogniser[Known]"
    ) -> None:
        super().__init__(call, path, recogniser.recognition, recogniser.admission)
        self._carry = recogniser.carry

    def take(
        self,
        association: ServerAssociation,
        call_id: int,
        context: PresentationContext | None,
        security: SecurityContext,
        stub: bytes,
    ) -> bool:
        """Have a request carried out by the recogniser, if it is like the last one."""
        if not self._may_take(association, context, security, stub):
            return False
        found = self._find(stub)
        known = None if found is None else self.known(found[1][0])
        if found is None or known is None:
            return False
        call = Call(association, call_id, self.context, self.opnum, security, stub)
        call.begun, call.durations = stopwatch(), self.durations
        association.calls[call_id] = call
        if not self._carry(call, self.path, known[1], found[1]):
            del association.calls[call_id]
            return False
        self.path.calls += 1
        return True


class HandleRecogniser(ABC, Generic[Known]):
    """Recognises the requests of an operation whose first hole is a handle, and has lanes for it.

    `Known` is what the handle stands for.
    """

    def __init__(
        self,
        turn: Turn,
        admission: CallAdmission,
        operation: Operation,
        syntax: TransferSyntax,
        holes: Holes,
    ) -> None:
        self.admission = admission
        self.recognition = Recognition(turn, operation, syntax, holes)

    @abstractmethod
    def carry(self, call: Call, path: CarefulPath, known: Known, values: tuple[Any, ...]) -> bool:
        """Carry out a call with the values of its holes; False if anything is unusual."""

    def take(self, call: Call, path: CarefulPath) -> bool:
        """Carry out a call that is like one before, and let the next ones come by its lane."""
        found = self.recognition.of(call)
        if found is None:
            return False
        values = found[1]
        handle = self.recognition.handle(call, values[0])
        if handle is None or not self.carry(call, path, handle.value, values):
            return False
        lane = lane_of(call, CarryingLane, lambda: CarryingLane(call, path, self))
        lane.remember(values[0], handle, handle.value)
        return True


AnyLane = TypeVar("AnyLane", bound=HandleLane[Any])


def lane_of(call: Call, kind: type[AnyLane], make: Callable[[], AnyLane]) -> AnyLane:
    """The lane of a call's connection, which takes the next ones; made if there is none."""
    found = call.association.lanes.get(call.opnum)
    if isinstance(found, kind) and found.fits(call.context, call.security):
        return found
    lane = call.association.lanes[call.opnum] = make()
    return lane
