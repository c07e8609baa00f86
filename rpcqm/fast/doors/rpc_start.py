"""R_StartReceive by templates: reads without waiting, answered at once.

`RemoteRead.R_StartReceive` stays the only definition of the call. `_starting_reads` has the steps
that both share: to find, to lock and to keep a message; here a request is recognised, and the
answer is filled into the octets of earlier ones (docs/request-templates.md).
"""

from typing import Any

from rpcqm.adm.message import Message
from rpcqm.base.errors import DecodeError, MQError
from rpcqm.codec.interface import Operation, TransferSyntax
from rpcqm.codec.types.mqvalues import ReceiveAction
from rpcqm.codec.types.remoteread import R_StartReceiveResponse
from rpcqm.fast.doors.rpc_recognition import HandleRecogniser
from rpcqm.fast.first_messages import FirstMessages
from rpcqm.fast.formats.read_response import ReadResponse
from rpcqm.fast.formats.stub_shapes import Holes
from rpcqm.fast.formats.whole_packet import WholePackets
from rpcqm.fast.turn import Turn
from rpcqm.interfaces._receive_actions import RECEIVE, check_parameters
from rpcqm.interfaces._starting_reads import OpenedQueue, StartingReads, times_at, times_of
from rpcqm.qm.readers import AT_ONCE
from rpcqm.qm.receive_actions import PEEKS
from rpcqm.rpc.call import Call
from rpcqm.rpc.interface_registry import CarefulPath

HOLES = Holes(
    values=(
        "phContext",
        "LookupId",
        "hCursor",
        "ulAction",
        "ulTimeout",
        "dwRequestId",
        "dwMaxBodySize",
        "dwMaxCompoundMessageSize",
    )
)

_AT_A_PLACE = (ReceiveAction.MQ_LOOKUP_PEEK_CURRENT, ReceiveAction.MQ_ACTION_PEEK_CURRENT)
"""Peeks whose message is found without a look at others; the second kind has no identifier."""


class StartRecogniser(HandleRecogniser[OpenedQueue]):
    """Recognises the requests of R_StartReceive in one syntax (`rpc.interface_registry`)."""

    def __init__(
        self,
        turn: Turn,
        firsts: FirstMessages,
        reads: StartingReads,
        packets: WholePackets,
        operation: Operation,
        syntax: TransferSyntax,
    ) -> None:
        super().__init__(turn, operation, syntax, HOLES)
        self._turn, self._firsts, self._reads, self._packets = turn, firsts, reads, packets
        self._encode = operation.codec(syntax).response.encode
        self._template: ReadResponse | None = None
        self._learned = False

    def carry(
        self, call: Call, path: CarefulPath, opened: OpenedQueue, values: tuple[Any, ...]
    ) -> bool:
        """Answer a read without a cursor, if there is a message and nothing is unusual.

        Requests that wait for the end of the turn can wait on: nobody sees a message before it is
        committed, and messages that are about to be removed are locked.
        """
        _, identifier, cursor, action, timeout, request_id, body_size, compound_size = values
        if cursor:
            return False
        sizes = body_size, compound_size
        try:
            if action != RECEIVE or identifier:
                check_parameters(action, identifier, cursor, timeout)
            if action in PEEKS:
                stub = self._peeked(opened, action, identifier, request_id, sizes)
            else:
                first = self._first(call, opened, request_id, sizes) if action == RECEIVE else b""
                stub = first or self._received(call, opened, action, identifier, request_id, sizes)
        except (DecodeError, MQError):  # the careful path reports it
            return False
        self._turn.count_read()
        call.association.send_response(call, stub)
        return True

    def _peeked(
        self,
        opened: OpenedQueue,
        action: int,
        identifier: int,
        request_id: int,
        sizes: tuple[int, int],
    ) -> bytes:
        """The answer to a peek; raises MQError if there is no message."""
        opened.pending.require_free(request_id)
        stub = b""
        if action in _AT_A_PLACE:
            stub = self._seen(opened, identifier, sizes)
        if stub and self._turn.shadow is None:
            return stub
        message = self._reads.find_to_peek(opened, action, identifier, AT_ONCE, request_id).result()
        if self._turn.shadow is not None and stub:
            self._turn.shadow.compare_answer(self._carefully(message, sizes), stub)
        return stub or self._answer(message, sizes)

    def _seen(self, opened: OpenedQueue, identifier: int, sizes: tuple[int, int]) -> bytes:
        """The answer to a peek at one message; empty if anything is unusual."""
        found = self._firsts.find_to_peek(opened.descriptor, identifier)
        packet = None if found is None else self._packets.of_stored(found.stored, sizes[0])
        if found is None or packet is None or self._template is None:
            return b""
        return self._template.filled(*times_at(found.arrival, found.key), packet)

    def _first(
        self, call: Call, opened: OpenedQueue, request_id: int, sizes: tuple[int, int]
    ) -> bytes:
        """The answer to a receive of the first message, locked; empty if anything is unusual."""
        first = self._firsts.find(opened.descriptor)
        packet = None if first is None else self._packets.of_stored(first.stored, sizes[0])
        if first is None or packet is None or self._template is None:
            return b""
        careful = self._rehearsed(opened, request_id, sizes)
        entry = opened.pending.begin_receive(request_id, None)
        self._firsts.lock(opened.descriptor, first)
        self._reads.hold(call, opened, entry, first.key)
        stub = self._template.filled(*times_at(first.arrival, first.key), packet)
        if self._turn.shadow is not None:
            self._turn.shadow.compare_answer(careful, stub)
        return stub

    def _rehearsed(self, opened: OpenedQueue, request_id: int, sizes: tuple[int, int]) -> bytes:
        """The careful path's answer, for a comparison; the message is given back."""
        if self._turn.shadow is None:
            return b""
        with self._turn.shadow.keeping():
            entry, beginning = self._reads.begin_receive(opened, RECEIVE, 0, AT_ONCE, request_id)
            message = beginning.result()
            entry.lookup_identifier = message.lookup_identifier
            self._reads.give_back(opened, entry, delivered=False)
        return self._carefully(message, sizes)

    def _received(
        self,
        call: Call,
        opened: OpenedQueue,
        action: int,
        identifier: int,
        request_id: int,
        sizes: tuple[int, int],
    ) -> bytes:
        """The answer to a receive whose message is there and locked; raises MQError otherwise."""
        reads = self._reads
        entry, beginning = reads.begin_receive(opened, action, identifier, AT_ONCE, request_id)
        message = beginning.result()
        reads.hold(call, opened, entry, message.lookup_identifier)
        try:
            return self._answer(message, sizes)
        except BaseException:
            reads.give_back(opened, entry, delivered=False)
            raise

    def _answer(self, message: Message, sizes: tuple[int, int]) -> bytes:
        """The octets of the answer: filled in, or encoded if the message needs several sections."""
        packet = self._packets.of(message, sizes[0])
        if not self._learned:
            self._learned = True
            self._template = ReadResponse.learn(self._encode)
        if packet is None or self._template is None:
            return self._carefully(message, sizes)
        stub = self._template.filled(*times_of(message), packet)
        if self._turn.shadow is not None:
            self._turn.shadow.compare_answer(self._carefully(message, sizes), stub)
        return stub

    def _carefully(self, message: Message, sizes: tuple[int, int]) -> bytes:
        return self._encode(self._reads.response(R_StartReceiveResponse, message, *sizes))
