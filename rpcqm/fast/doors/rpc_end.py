"""R_EndReceive by templates: the ends of reads in a turn, carried out together.

`RemoteRead.R_EndReceive` stays the only definition of the call. This module removes a message whose
removal has no further consequences (docs/request-templates.md).
"""

from typing import Any, Protocol

from rpcqm.adm.descriptor import OpenQueueDescriptor
from rpcqm.codec.interface import Operation, TransferSyntax
from rpcqm.codec.types.mqvalues import RR_ACK
from rpcqm.codec.types.remoteread import R_EndReceiveResponse
from rpcqm.fast.doors.rpc_recognition import HandleRecogniser, TemplatedCall
from rpcqm.fast.formats.stub_shapes import Holes
from rpcqm.fast.turn import Turn
from rpcqm.interfaces._pending import PendingRequestEntry, PendingRequestTable
from rpcqm.rpc.call import Call
from rpcqm.rpc.interface_registry import CarefulPath

HOLES = Holes(values=("phContext", "dwAck", "dwRequestId"))


class Opened(Protocol):
    """The object behind a queue context handle."""

    descriptor: OpenQueueDescriptor
    pending: PendingRequestTable


class TemplatedEnd(TemplatedCall):
    """The end of a read whose message is removed (`fast.turn`)."""

    __slots__ = ("_opened", "descriptor", "entry", "response")

    def __init__(
        self,
        call: Call,
        path: CarefulPath,
        opened: Opened,
        entry: PendingRequestEntry,
        response: bytes,
    ) -> None:
        super().__init__(call, path)
        self.descriptor = opened.descriptor
        self._opened, self.entry, self.response = opened, entry, response
        self._end()

    def _end(self) -> None:
        """End the read for all calls behind this one."""
        self._opened.pending.remove(self.entry)
        self.descriptor.two_phase_reads.discard(self.entry.lookup_identifier)

    def _go_on(self) -> None:
        """Reopen the read, for the careful path to end it."""
        self._opened.pending.restore(self.entry)
        self.descriptor.two_phase_reads.add(self.entry.lookup_identifier)

    def removing(self) -> None:
        """Drop the request: the removal is on its way."""
        self.call.stub_data = b""

    def removed(self) -> None:
        """Answer the call."""
        self.answer(self.response)

    def carefully(self) -> None:
        """Have the careful path answer the call."""
        self._go_on()
        super().carefully()


class EndRecogniser(HandleRecogniser[Opened]):
    """Recognises the requests of R_EndReceive in one syntax (`rpc.interface_registry`)."""

    def __init__(self, turn: Turn, operation: Operation, syntax: TransferSyntax) -> None:
        super().__init__(turn, operation, syntax, HOLES)
        self._turn = turn
        self._answer = operation.codec(syntax).response.encode(R_EndReceiveResponse(result=0))

    def carry(self, call: Call, path: CarefulPath, opened: Opened, values: tuple[Any, ...]) -> bool:
        """Put a removal into the turn, if the read has a message and nothing is unusual."""
        _, acknowledgement, request_id = values
        entry = opened.pending.of(request_id)
        queue = opened.descriptor.queue_reference
        if (
            acknowledgement != RR_ACK
            or queue is None
            or entry is None
            or entry.transaction
            or not entry.lookup_identifier
        ):
            return False
        removal = TemplatedEnd(call, path, opened, entry, self._answer)
        self._turn.remove(queue, entry.lookup_identifier, removal)
        return True
