"""Sends of one connection that come one behind the other, with what does not change between them.

`SendRecogniser` decides which calls templates take. Once it has taken one, the next ones of the
connection come here first: what follows from the connection, its security and the open queue is
not asked again, what may have changed is (docs/request-templates.md). What is taken here would be
taken there; what is not taken here goes there.
"""

from rpcqm.adm.queue import Queue
from rpcqm.base.errors import MQError
from rpcqm.codec.ndr.shapes import StubShapes
from rpcqm.interfaces._client_handles import ClientHandles
from rpcqm.interfaces._sent_values import TemplatedSend, values_of
from rpcqm.qm.turn import Turn
from rpcqm.rpc.call import Call
from rpcqm.rpc.context_handle import ContextHandle
from rpcqm.rpc.interface_registry import CarefulPath

OF_LANE = 64
"""Open queues that a connection remembers; who sends to more begins anew."""


class SendLane:
    """Takes calls like one that was taken: of the same connection, operation and security."""

    __slots__ = (
        "_context",
        "_durations",
        "_find",
        "_handles",
        "_level",
        "_open",
        "_path",
        "_security",
        "_turn",
        "_under",
    )

    def __init__(
        self, call: Call, path: CarefulPath, turn: Turn, shapes: StubShapes, handles: ClientHandles
    ) -> None:
        self._under = handles.admission.security
        self._context, self._security = call.context, call.security
        self._level = call.security.assured_level
        self._path, self._turn, self._handles = path, turn, handles
        self._durations = call.durations
        self._find = shapes.find
        self._open: dict[bytes, tuple[ContextHandle, Queue]] = {}

    def __len__(self) -> int:
        return len(self._open)

    def fits(self, call: Call) -> bool:
        """Whether a call has the lane's context and security, under settings that still hold."""
        return (
            call.security is self._security
            and call.context is self._context
            and self._handles.admission.security is self._under
        )

    def remember(self, wire: bytes, handle: ContextHandle, queue: Queue) -> None:
        """Take further calls with a handle, which has been found for one of this lane."""
        if len(self._open) >= OF_LANE:
            self._open.clear()
        self._open[wire] = handle, queue

    def take(self, call: Call) -> bool:
        """Put a message into the turn, if nothing has changed since the last one."""
        if not (self._turn.is_on and self.fits(call)):
            return False
        call.durations = self._durations
        found = self._find(call.stub_data)
        if found is None:
            return False
        shape, holes = found
        known = self._open.get(holes[0])
        if known is None:
            return False
        handle, queue = known
        if handle.closed:
            del self._open[holes[0]]
            return False
        record = handle.value
        descriptor = record.open_queue_descriptor_reference
        template = record.templates.get((shape, holes[1:3]))
        if (
            template is None
            or handle.closing
            or handle.minimum_level > self._level
            or descriptor.queue_reference is not queue
            or descriptor.application_deadletter_queue
            or not self._is_admitted(call)
        ):
            return False
        values = values_of(holes)
        if values is None or not handle.join():
            return False
        message = TemplatedSend(call, self._path, handle, template, values)
        self._turn.add(queue, template.kind, message)
        return True

    def _is_admitted(self, call: Call) -> bool:
        """Whether the queue manager serves such callers; it may have ceased to."""
        try:
            self._handles.admit(call)
        except MQError:
            return False
        return True
