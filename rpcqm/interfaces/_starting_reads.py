"""The beginnings of RemoteRead's reads ([MS-MQRR] 3.1.4.7).

The handlers interpret the request, and wait where they must.
"""

from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from rpcqm.adm.descriptor import Cursor, OpenQueueDescriptor
from rpcqm.adm.message import Message, MessagePosition
from rpcqm.adm.transaction import Transaction
from rpcqm.base.clock import Deadlines
from rpcqm.base.completion import Completion
from rpcqm.base.errors import MQError
from rpcqm.codec.packet.types import SEQUENTIAL_MASK
from rpcqm.codec.types.remoteread import R_StartReceiveResponse, R_StartTransactionalReceiveResponse
from rpcqm.interfaces._message_packet import MessagePackets
from rpcqm.interfaces._pending import PendingRequestEntry, PendingRequestTable
from rpcqm.interfaces._receive_actions import PEEK_NEXT
from rpcqm.qm.messages import MessageEvents
from rpcqm.qm.receive_actions import SEEKS
from rpcqm.rpc.association_group import AssociationGroup
from rpcqm.rpc.call import Call

StartResponse = R_StartReceiveResponse | R_StartTransactionalReceiveResponse


class OpenedQueue:
    """The object behind a queue context handle ([MS-MQRR] 2.2.4)."""

    __slots__ = ("association_group", "descriptor", "move_context", "owner", "pending")

    def __init__(self, call: Call, descriptor: OpenQueueDescriptor) -> None:
        self.descriptor = descriptor
        self.association_group: AssociationGroup = call.association_group
        self.owner = call.identity.sid
        self.pending = PendingRequestTable()
        self.move_context = 0


@dataclass(eq=False, repr=False)
class StartingReads:
    """Finds, locks and hands out messages; `cleanup` ends reads whose clients do not end them."""

    _messages: MessageEvents
    packets: MessagePackets
    _cleanup: Deadlines

    def begin_receive(
        self,
        opened: OpenedQueue,
        action: int,
        lookup_identifier: int,
        timeout: int,
        request_id: int,
        cursor: Cursor | None = None,
        transaction: Transaction | None = None,
    ) -> tuple[PendingRequestEntry, Completion[Message]]:
        """Begin to receive under a request id; the message is locked when there is one.

        Raises MQError where the read ends at once, which leaves nothing behind.
        """
        descriptor, seek = opened.descriptor, SEEKS.get(action)
        entry = opened.pending.begin_receive(request_id, transaction)
        try:
            if seek is None:
                tag = (descriptor.handle, request_id)
                completion = self._messages.dequeue_message_begin(
                    descriptor, timeout, cursor, tag, transaction
                )
            else:
                completion = self._messages.read_message_by_lookup_identifier(
                    descriptor, lookup_identifier, False, seek, transaction, True
                )
            if completion.done:
                completion.result()
        except BaseException:
            opened.pending.remove(entry)
            raise
        return entry, completion

    def find_to_peek(
        self,
        opened: OpenedQueue,
        action: int,
        lookup_identifier: int,
        timeout: int,
        request_id: int,
        cursor: Cursor | None = None,
    ) -> Completion[Message]:
        """The message of a peek, which has an entry only while it waits (G52)."""
        opened.pending.require_free(request_id)
        descriptor, seek = opened.descriptor, SEEKS.get(action)
        if seek is not None:
            return self._messages.read_message_by_lookup_identifier(
                descriptor, lookup_identifier, True, seek
            )
        tag = (descriptor.handle, request_id)
        if cursor is not None and action == PEEK_NEXT:
            return self._messages.peek_next_message(descriptor, cursor, timeout, tag)
        return self._messages.peek_message(descriptor, timeout, cursor, tag)

    def hold(self, call: Call, opened: OpenedQueue, entry: PendingRequestEntry, key: int) -> None:
        """Keep a locked message until its read ends, and start the Pending Request Cleanup Timer.

        The message is given back when the timer expires, or if it cannot be delivered.
        """
        entry.lookup_identifier = key
        give_back = partial(self.give_back, opened, entry)
        entry.cleanup = self._cleanup
        self._cleanup.add(entry, give_back)
        call.on_delivery_failed(give_back)

    def response(
        self,
        kind: type[StartResponse],
        message: Message,
        maximum_body_size: int,
        maximum_compound_size: int,
    ) -> StartResponse:
        """The message in the form of [MS-MQRR] 3.1.4.7, with both out-parameters set (G33)."""
        sections = self.packets.sections(message, maximum_body_size, maximum_compound_size)
        arrival, sequence = times_of(message)
        return kind(
            pdwArriveTime=arrival,
            pSequenceId=sequence,
            pdwNumberOfSections=len(sections),
            ppPacketSections=sections,
            result=0,
        )

    def give_back(
        self, opened: OpenedQueue, entry: PendingRequestEntry, delivered: bool = True
    ) -> None:
        """Pending Request Cleanup Timer Event ([MS-MQRR] 3.1.5.1), and every other early end."""
        queue = opened.descriptor.queue_reference
        if opened.pending.remove(entry) and queue is not None:
            position = MessagePosition(queue, entry.lookup_identifier)
            with suppress(MQError):  # the message may have been removed meanwhile
                self._messages.dequeue_message_end(
                    opened.descriptor, position, False, entry.transaction, delivered
                )


def times_of(message: Message) -> tuple[int, int]:
    """pdwArriveTime, in seconds since 1970, and pSequenceId."""
    return times_at(message.arrival_time, message.lookup_identifier)


def times_at(arrival: int, key: int) -> tuple[int, int]:
    """The same for a message that arrived so many milliseconds after 1970."""
    return arrival // 1000, key & SEQUENTIAL_MASK
