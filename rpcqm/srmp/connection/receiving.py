"""The way of a posted request to a queue ([MC-MQSRM] 3.1.5.1).

A request is answered with 200 when its message is on the disk together with the record that it was
taken: a stream's or the history's. A message that is refused for good counts as taken.
"""

import hashlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from rpcqm.adm.message import Message
from rpcqm.adm.queue import OutgoingQueue, Queue
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.base.clock import Clock
from rpcqm.base.completion import Completion, completed, start
from rpcqm.base.errors import DecodeError, MQError
from rpcqm.base.identity import Identity
from rpcqm.base.log import get_logger
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.enums import MessageClass
from rpcqm.http.exchange import HttpRequest
from rpcqm.qm.arrivals import Arrivals
from rpcqm.qm.directory import Directory
from rpcqm.qm.forwarded import Forwarded
from rpcqm.qm.message_trace import MessageTrace
from rpcqm.qm.outgoing_bounds import TooManyOutgoingQueuesError
from rpcqm.qm.protection import Protection, RejectedError
from rpcqm.qm.protocol_records import ProtocolRecords
from rpcqm.qm.sender_rights import identity_of
from rpcqm.qm.standing_orders import MaintenanceError
from rpcqm.srmp.connection.destinations import BadRequestError, Destination, Destinations
from rpcqm.srmp.connection.incoming_streams import IncomingStreams, StreamReceiver
from rpcqm.srmp.connection.known_messages import Arrived, Changes, KnownMessages, nothing
from rpcqm.srmp.connection.outgoing_transfers import OutgoingTransfers
from rpcqm.srmp.connection.owed_receipts import told_as
from rpcqm.srmp.connection.signed_senders import NOBODY, Signed, packet_of, signed
from rpcqm.srmp.elements import Envelope, SrmpRequest, Stream
from rpcqm.srmp.hops import MAXIMUM_HOPS, hops_of
from rpcqm.srmp.incoming import attributes_of, expires_at, is_url, name_of
from rpcqm.srmp.message_types import MessageType, identify
from rpcqm.srmp.reading import ReadEnvelope, parse_envelope, read_request
from rpcqm.srmp.streams import IncomingStream
from rpcqm.store.store import Store

_TAKEN = 200
_BAD_REQUEST = 400
_NO_ROOM = 500
_UNAVAILABLE = 503

_STREAM_RECEIPTS = frozenset({MessageType.STREAM_RECEIPT, MessageType.FINAL_STREAM_RECEIPT})

_log = get_logger("srmp")

T = TypeVar("T")


class Receiver:
    """Takes messages from all peers."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        queue_manager: QueueManager,
        directory: Directory,
        records: ProtocolRecords,
        arrivals: Arrivals,
        protection: Protection,
        message_trace: MessageTrace,
        destinations: Destinations,
        streams: IncomingStreams,
        known: KnownMessages,
        transfers: OutgoingTransfers,
        forwarded: Forwarded,
    ) -> None:
        self._store, self._clock, self._queue_manager = store, clock, queue_manager
        self._directory, self._records, self._arrivals = directory, records, arrivals
        self._protection, self._message_trace = protection, message_trace
        self._destinations, self._streams, self._known = destinations, streams, known
        self._transfers, self._forwarded = transfers, forwarded
        self.read_envelope: Callable[[bytes], ReadEnvelope] = parse_envelope
        self.packet_of: Callable[[SrmpRequest, Destination, Signed], bytes] = self.build_packet
        self.signer_of: Callable[[str], Identity] = identity_of
        """Who signs with a certificate that the directory knows (G776)."""

    def stop(self) -> None:
        """Stop the timers."""
        self._known.stop()
        self._streams.stop()

    def receive(self, request: HttpRequest) -> Completion[int]:
        """The status to answer with, once the message is as durable as it asks for.

        500 when the queue manager has no room, 503 when it was taken off the network (G460), or
        takes no new message (G631): nothing has changed then, and the peer sends again.
        """
        if not self._queue_manager.connection_active:
            return completed(_UNAVAILABLE)
        try:
            return self._take(read_request(request, self.read_envelope), request.peer)
        except MaintenanceError:
            return completed(_UNAVAILABLE)
        except (DecodeError, BadRequestError) as error:
            _log.info("an HTTP request was refused", peer=request.peer, reason=str(error))
            return completed(_BAD_REQUEST)
        except MQError as error:
            return _no_room(request.peer, error)

    def _take(self, request: SrmpRequest, peer: str) -> Completion[int]:
        """[MC-MQSRM] 3.1.5.1.3 to .5. Raises MaintenanceError as `Arrivals.store` does."""
        destination = self._destinations.find(request.envelope.to)
        if destination.others:
            return self._take_at_each(request, destination, peer)
        return self._take_at(request, destination, peer)

    def _take_at_each(
        self, request: SrmpRequest, destination: Destination, peer: str
    ) -> Completion[int]:
        """Take one copy for each queue of a multicast address (G461).

        500 if one queue has no room: the message comes again, and is a repetition for the others.
        Raises BadRequestError if no queue takes messages of its kind.
        """
        answers: list[Completion[int]] = []
        refusals: list[BadRequestError] = []
        for each in (destination, *destination.others):
            try:
                answers.append(self._take_at(request, each, peer))
            except BadRequestError as error:
                refusals.append(error)
            except MaintenanceError:
                raise  # for each queue alike
            except MQError as error:
                answers.append(_no_room(peer, error))
        if not answers:
            raise refusals[0]
        return start(_highest_of(answers))

    def _take_at(
        self, request: SrmpRequest, destination: Destination, peer: str
    ) -> Completion[int]:
        """Take a message at one destination; for receipts, too, a destination that is no queue is
        400."""
        arrived = self._deserialized(request, destination, peer)
        if not destination.is_here:
            return self._forward(arrived, destination.name)
        kind = identify(request.envelope)
        in_stream = request.envelope.stream is not None
        try:
            queue = self._destinations.queue_here(destination.name, in_stream)
        except RejectedError as error:
            if kind in _STREAM_RECEIPTS:
                return self._stream_receipt(request.envelope, peer)
            return self._refuse(arrived, error.reason)
        if kind in _STREAM_RECEIPTS:
            return self._stream_receipt(request.envelope, peer)
        if kind is None:
            return self._drop(arrived, "its kind is unknown")
        return self._take_user_message(arrived, queue)

    def _deserialized(self, request: SrmpRequest, destination: Destination, peer: str) -> Arrived:
        """[MC-MQSRM] 3.1.5.1.1; a forwarded message has the URL of the inbound map (G215)."""
        sender = NOBODY
        if destination.is_here:
            sender = signed(request, self._directory, self.signer_of)
        message = Message(self.packet_of(request, destination, sender))
        message.source_address = peer
        return Arrived(request, message, peer, sender, destination.listener)

    def build_packet(self, request: SrmpRequest, destination: Destination, sender: Signed) -> bytes:
        """The packet of a message; raises DecodeError if no packet can hold it."""
        now, name = self._clock.now() // 1000, self._shown_name(request, destination)
        attributes = attributes_of(request, now, name)
        try:
            return packet_of(attributes, sender, request.body_offset)
        except MQError as error:
            raise DecodeError(f"no packet can hold it: {error}") from error

    def _shown_name(self, request: SrmpRequest, destination: Destination) -> FormatName:
        """The URL in <to> where that is a queue's and stays here, else the name found for it."""
        to = request.envelope.to
        written = name_of(to) if destination.is_here and is_url(to) else None
        return written or destination.name

    # Stream receipts

    def _stream_receipt(self, envelope: Envelope, peer: str) -> Completion[int]:
        """Take a receipt for the queue manager itself; it goes into no queue (G462).

        Source: [MC-MQSRM] 3.1.5.1.8, .9.
        """
        receipt, commitment = envelope.stream_receipt, envelope.commitment_receipt
        assert receipt is not None
        if commitment is None:
            told = self._transfers.stream_receipt(receipt.stream_id, receipt.last_ordinal, peer)
        else:
            assert envelope.msmq is not None
            told = self._transfers.final_stream_receipt(
                receipt.stream_id,
                receipt.last_ordinal,
                MessageClass(envelope.msmq.message_class),
                peer,
            )
        return _answered(told)

    # Forwarding

    def _forward(self, arrived: Arrived, name: FormatName) -> Completion[int]:
        """Put a message for another machine into an outgoing queue ([MC-MQSRM] 3.1.5.1.3, G216)."""
        message, stream = arrived.message, arrived.envelope.stream
        if len(hops_of(arrived.request.compound)) >= MAXIMUM_HOPS:
            raise BadRequestError(f"it has come by {MAXIMUM_HOPS} hosts")
        if expires_at(arrived.envelope) < self._clock.now() // 1000:
            return self._drop(arrived, "it has expired")
        if stream is not None:
            return self._forward_in_stream(arrived, name, stream)
        if self._known.includes(arrived):
            return _answered(self._known.repeated(arrived))
        queue = self._destinations.outgoing_queue(name, message)
        changes, undo = self._known.remember(arrived)
        return self._commit(queue, message, changes, undo)

    def _forward_in_stream(
        self, arrived: Arrived, name: FormatName, stream: Stream
    ) -> Completion[int]:
        """Forward a message in a stream as often as it comes: its destination answers its sender.

        It is not stored again while the same message still waits here (G155).
        """
        printed = hashlib.blake2b(
            repr((stream.stream_id, stream.current, str(name))).encode("utf-8", "surrogatepass"),
            digest_size=16,
        ).digest()
        if printed in self._forwarded:
            return completed(_TAKEN)
        queue = self._destinations.outgoing_queue(name, arrived.message)

        def settled(answer: Completion[int]) -> None:
            if answer.error is None and answer.result() == _TAKEN:
                self._forwarded.add(printed, arrived.message)

        answer = self._commit(queue, arrived.message, {}, nothing)
        answer.add_done_callback(settled)
        return answer

    # Messages for local queues

    def _take_user_message(self, arrived: Arrived, queue: Queue) -> Completion[int]:
        """[MC-MQSRM] 3.1.5.1.6, .11, .12; receipts for applications go the same way (.7, .10)."""
        stream = arrived.envelope.stream
        repeated = self._known.includes(arrived)
        if stream is not None:
            return self._take_in_stream(arrived, queue, stream, repeated)
        if repeated:
            return _answered(self._known.repeated(arrived))
        changes, undo = self._known.remember(arrived)
        return self._keep(arrived, queue, changes, undo, None)

    def _take_in_stream(
        self, arrived: Arrived, queue: Queue, stream: Stream, repeated: bool
    ) -> Completion[int]:
        """Take a message exactly once and in order ([MC-MQSRM] 3.1.5.1.6.3); others are dropped.

        A message that was taken in an earlier stream counts in this one (3.1.5.1.6), and is not
        stored again: only its sender knows its content, so that nobody else can use up its number
        (G236).
        """
        self._streams.check(arrived.envelope)
        receiver = self._streams.of(stream.stream_id.guid, arrived.envelope.to)
        before = receiver.state.copy()
        is_late = stream.stream_id.ordinal < before.ordinal
        sent_again = repeated and not is_late and self._known.is_same(arrived)
        if not receiver.accept(stream, arrived.peer, repeated and not sent_again):
            self._streams.show(receiver)
            return completed(_TAKEN)
        if sent_again:
            return self._count(arrived, queue, stream, receiver, before)
        changes, forget = self._known.remember(arrived)

        def undo() -> None:
            forget()
            self._streams.restore(receiver, before)

        changes |= self._streams.took(receiver, queue)
        answer = self._keep(arrived, queue, changes, undo, receiver)
        answer.add_done_callback(partial(_settled, receiver, stream))
        return answer

    def _count(
        self,
        arrived: Arrived,
        queue: Queue,
        stream: Stream,
        receiver: StreamReceiver,
        before: IncomingStream,
    ) -> Completion[int]:
        """Advance a stream by a message that was taken before."""
        changes = self._streams.took(receiver, queue) | self._known.refresh(arrived)
        written = self._records.write(changes)
        answer = _answered(written, partial(self._streams.restore, receiver, before))
        answer.add_done_callback(partial(_settled, receiver, stream))
        return answer

    def _keep(
        self,
        arrived: Arrived,
        queue: Queue,
        changes: Changes,
        undo: Callable[[], None],
        receiver: StreamReceiver | None,
    ) -> Completion[int]:
        try:
            self._check(arrived, queue)
            stored = self._arrivals.store(queue, arrived.message, changes)
        except RejectedError as error:
            if receiver is None and error.sender_is_unproved:
                undo()
            return self._refuse(arrived, error.reason, changes, undo, receiver)
        except Exception:
            undo()
            raise
        if self._message_trace:
            self._message_trace.arrived(queue, arrived.message)
        return _answered(stored, undo)

    def _check(self, arrived: Arrived, queue: Queue) -> None:
        """Raise unless the sender may write; unsigned, it is Anonymous ([MC-MQSRM] 3.1.5.1.6.1,
        .12).

        Raises RejectedError.
        """
        sender = arrived.sender
        if expires_at(arrived.envelope) < self._clock.now() // 1000:
            raise RejectedError(MessageClass.MQMSG_CLASS_NACK_REACH_QUEUE_TIMEOUT)
        if sender.is_wrong:
            raise RejectedError(MessageClass.MQMSG_CLASS_NACK_BAD_SIGNATURE)
        self._protection.check_arrived(queue, bool(sender.sid), False)
        self._arrivals.check_access(queue, sender.identity)

    def _commit(
        self, queue: OutgoingQueue, message: Message, changes: Changes, undo: Callable[[], None]
    ) -> Completion[int]:
        try:
            return _answered(self._arrivals.store(queue, message, changes), undo)
        except RejectedError as error:
            undo()
            raise BadRequestError(error.reason.name) from error
        except Exception:
            undo()
            raise

    def _drop(self, arrived: Arrived, reason: str) -> Completion[int]:
        _log.info(
            "a message that came by HTTP was not taken",
            peer=arrived.peer,
            reason=reason,
            queue=arrived.envelope.to,
            id=str(arrived.message.attributes.identifier),
        )
        return completed(_TAKEN)

    def _refuse(
        self,
        arrived: Arrived,
        reason: MessageClass,
        changes: Changes | None = None,
        undo: Callable[[], None] | None = None,
        receiver: StreamReceiver | None = None,
    ) -> Completion[int]:
        """Refuse a message for good: it counts as taken, and its sender is told where it asks
        (G218)."""
        self._drop(arrived, reason.name)
        told = told_as(reason)
        try:
            if receiver is not None and arrived.message.attributes.negative_journaling_requested:
                # Before the commit by which it counts as taken: a receipt may go out twice, but
                # must not be missing.
                with self._store.transaction("final stream receipt") as change:
                    receiver.send_final_receipt(change, arrived.envelope, told, arrived.peer)
            refused = self._arrivals.reject(arrived.message, told, changes, reason)
            return _answered(refused, undo)
        except Exception:
            if undo is not None:
                undo()
            raise


def _answered(outcome: Completion[T], undo: Callable[[], None] | None = None) -> Completion[int]:
    """200 when the commit is durable; 500 when it has failed, and has had no effect."""
    answer: Completion[int] = Completion()

    def done(outcome: Completion[T]) -> None:
        if outcome.error is None:
            answer.succeed(_TAKEN)
            return
        if undo is not None:
            undo()
        _log.warning("a message that came by HTTP was not kept", error=str(outcome.error))
        answer.succeed(_NO_ROOM)

    outcome.add_done_callback(done)
    return answer


async def _highest_of(answers: Sequence[Completion[int]]) -> int:
    """The highest status of several answers, once all have come."""
    return max([await each for each in answers])


def _no_room(peer: str, error: MQError) -> Completion[int]:
    if not isinstance(error, TooManyOutgoingQueuesError):  # (logged once a minute)
        _log.warning("no room for a message that came by HTTP", peer=peer, reason=str(error))
    return completed(_NO_ROOM)


def _settled(receiver: StreamReceiver, stream: Stream, answer: Completion[int]) -> None:
    if answer.error is None and answer.result() == _TAKEN:
        receiver.state.settled(stream)
