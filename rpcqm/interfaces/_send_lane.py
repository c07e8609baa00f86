"""Sends of one connection that come one behind the other (`_handle_lane`)."""

from rpcqm.adm.queue import Queue
from rpcqm.base.errors import MQError
from rpcqm.interfaces._client_handles import ClientHandles
from rpcqm.interfaces._handle_lane import HandleLane
from rpcqm.interfaces._recognition import Recognition
from rpcqm.interfaces._sent_values import TemplatedSend, values_of
from rpcqm.rpc.call import Call
from rpcqm.rpc.interface_registry import CarefulPath


class SendLane(HandleLane[Queue]):
    """Keeps the one queue that is open for sending behind each handle."""

    __slots__ = ("_handles",)

    def __init__(
        self, call: Call, path: CarefulPath, recognition: Recognition, handles: ClientHandles
    ) -> None:
        super().__init__(call, path, recognition, handles.admission)
        self._handles = handles

    def take(self, call: Call) -> bool:
        """Put a message into the turn, if nothing has changed since the last one."""
        if not (self._turn.is_on and self.fits(call)):
            return False
        call.durations = self._durations
        found = self._find(call.stub_data)
        if found is None:
            return False
        shape, holes = found
        known = self.known(holes[0])
        if known is None:
            return False
        handle, queue = known
        record = handle.value
        descriptor = record.open_queue_descriptor_reference
        template = record.templates.get((shape, holes[1:3]))
        if (
            template is None
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
