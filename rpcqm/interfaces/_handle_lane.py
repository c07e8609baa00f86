"""Calls of one connection that come one behind the other, with what does not change between them.

The recogniser of an operation decides which calls templates take. Once it has taken one, the next
ones of the connection come to its lane first: what follows from the connection and its security is
not asked again, what may have changed is (docs/request-templates.md). What is taken here would be
taken there; what is not taken here goes there.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from rpcqm.codec.interface import Operation, TransferSyntax
from rpcqm.codec.ndr.shapes import Holes
from rpcqm.interfaces._authentication import CallAdmission
from rpcqm.interfaces._recognition import Recognition
from rpcqm.qm.turn import Turn
from rpcqm.rpc.call import Call
from rpcqm.rpc.context_handle import ContextHandle
from rpcqm.rpc.interface_registry import CarefulPath

OF_LANE = 64
"""Open queues that a connection remembers; who uses more begins anew."""

Known = TypeVar("Known")


class HandleLane(ABC, Generic[Known]):
    """What calls of one connection, operation and security have in common.

    With each open handle it keeps what its recogniser has found behind it.
    """

    __slots__ = (
        "_admission",
        "_context",
        "_durations",
        "_find",
        "_level",
        "_open",
        "_path",
        "_security",
        "_turn",
        "_under",
    )

    def __init__(
        self, call: Call, path: CarefulPath, recognition: Recognition, admission: CallAdmission
    ) -> None:
        self._admission, self._under = admission, admission.security
        self._context, self._security = call.context, call.security
        self._level = call.security.assured_level
        self._path, self._turn = path, recognition.turn
        self._durations = call.durations
        self._find = recognition.shapes.find
        self._open: dict[bytes, tuple[ContextHandle, Known]] = {}

    def __len__(self) -> int:
        return len(self._open)

    def fits(self, call: Call) -> bool:
        """Whether a call has the lane's context and security, under settings that still hold."""
        return (
            call.security is self._security
            and call.context is self._context
            and self._admission.security is self._under
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
    def take(self, call: Call) -> bool:
        """Take a call that is like the last one (`rpc.interface_registry.Lane`)."""


class CarryingLane(HandleLane[Known]):
    """A lane whose recogniser asks anew for all that follows from the queue."""

    __slots__ = ("_carry",)

    def __init__(
        self, call: Call, path: CarefulPath, recogniser: "HandleRecogniser[Known]"
    ) -> None:
        super().__init__(call, path, recogniser.recognition, recogniser.admission)
        self._carry = recogniser.carry

    def take(self, call: Call) -> bool:
        """Have a call carried out by the recogniser, if it is like the last one."""
        if not (self._turn.is_on and self.fits(call)):
            return False
        call.durations = self._durations
        found = self._find(call.stub_data)
        if found is None:
            return False
        known = self.known(found[1][0])
        return known is not None and self._carry(call, self._path, known[1], found[1])


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
    if isinstance(found, kind) and found.fits(call):
        return found
    lane = call.association.lanes[call.opnum] = make()
    return lane
