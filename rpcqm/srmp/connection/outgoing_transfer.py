"""The way of one outgoing queue to its HTTP name ([MC-MQSRM] 3.1.7, 3.1.6.1, 3.1.6.2, 3.1.6.4).

A posted message is locked until its answer has come. Messages are posted one at a time, except
where many wait that are in no stream, or where the receiver takes several in one request (G691). A
message of a stream has a number that is durable before it leaves, and stays until its receipt.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from rpcqm.adm.enums import OutgoingQueueState
from rpcqm.adm.message import FLAG_TRANSACTIONAL, Message, MessagePosition
from rpcqm.adm.queue import OutgoingQueue, OutgoingTransferInfo
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.base.clock import Clock, Timer, Timers
from rpcqm.base.completion import Completion
from rpcqm.base.errors import DecodeError, HResult, MQError
from rpcqm.base.log import get_logger
from rpcqm.base.retry import RetryTimer
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.enums import MessageClass
from rpcqm.codec.types.mqvalues import ConnectionStatus
from rpcqm.qm.acknowledgement_queues import AcknowledgementQueues
from rpcqm.qm.connection_failures import connect_failure, error_of
from rpcqm.qm.dispatcher import SendDispatcher
from rpcqm.qm.message_trace import MessageTrace
from rpcqm.qm.names import next_hop_text, plain_address
from rpcqm.qm.outgoing import Outgoing
from rpcqm.qm.positions import Positions
from rpcqm.qm.protocol_records import Changes, ProtocolRecords
from rpcqm.qm.sessions import OPEN, OPENING, SessionView
from rpcqm.qm.transfer import Transfer, cannot_reach_queue, is_stamped_here
from rpcqm.srmp.bunch import MOST, OCTETS, OFFER, read_statuses, write_bunch
from rpcqm.srmp.connection.network import Answer, MayConnect, SrmpNetwork
from rpcqm.srmp.connection.queue_stream import QueueStream, Streaming
from rpcqm.srmp.elements import Stream, StreamId
from rpcqm.srmp.multipart import Headers
from rpcqm.srmp.outgoing import is_relayed
from rpcqm.srmp.redirection import find_redirection, matches_any
from rpcqm.srmp.settings import SrmpSettings
from rpcqm.srmp.urls import request_url, to_uri
from rpcqm.store.transaction import StoreTransaction

_log = get_logger("srmp")

Write = Callable[[Message, FormatName, Stream | None], tuple[Headers, bytes]]
"""Gives the headers and the content by which a message travels; raises DecodeError, MQError."""

_STOPPED = frozenset({OutgoingQueueState.ON_HOLD, OutgoingQueueState.LOCKED})
_OK = 200
_OF_THE_SERVER = 500
"""The lowest status by which a request may succeed another time."""
_NOT_UNDERSTOOD = 0
QUESTION: Headers = ((OFFER, str(MOST)),)
_REFUSED = frozenset({400, 413, 414})
"""Statuses that will be the same each time (G221)."""

MANY_WAITING = 64
"""The number of waiting messages from which on several are posted at once; these may overtake each
other (G198)."""
POSTS_AT_ONCE = 32
"""Posts at a time: one bunch travels while the receiver makes the one before it durable."""
BUNCH = 16
"""Posts that leave together, so that they share a sync of the receiver's disk."""
NUMBERED_AT_ONCE = 64
"""Messages of a stream whose numbers share a sync of our disk."""


@dataclass(eq=False, repr=False)
class Posting:
    """The collaborators that the transfers of all outgoing queues share."""

    clock: Clock
    timers: Timers
    settings: Callable[[], SrmpSettings]
    queue_manager: QueueManager
    outgoing: Outgoing
    positions: Positions
    dispatcher: SendDispatcher
    transfer: Transfer
    records: ProtocolRecords
    message_trace: MessageTrace
    acknowledgement_queues: AcknowledgementQueues
    network: SrmpNetwork
    may_connect: Callable[[OutgoingQueue], MayConnect | None]
    """Which addresses may be connected to for a queue; None for all."""
    writer: Callable[[], Write]
    """Gives the writer of a queue's messages, which is used for one connection."""
    stopping: bool = False


class OutgoingTransfer:
    """Posts the messages of one outgoing queue."""

    def __init__(self, posting: Posting, streaming: Streaming, queue: OutgoingQueue) -> None:
        self._shared = posting
        self._clock, self._timers = posting.clock, posting.timers
        self._queue_manager, self._outgoing = posting.queue_manager, posting.outgoing
        self._transfer, self._dispatcher = posting.transfer, posting.dispatcher
        self._records, self._message_trace = posting.records, posting.message_trace
        self.queue = queue
        self.name = FormatName.parse(queue.destination_format_name)
        self.uri = to_uri(self.name)
        self._url = request_url(self.uri)
        self._posting: set[int] = set()
        """The messages that are posted and not answered: one transactional message, or others."""
        self._posting_transactional = False
        self._numbering = False
        self._at_most = 1
        """Messages in one request, as the receiver has said on this connection."""
        self._has_asked = self._has_heard = self._refuses_bunches = False
        self._failures = 0
        self._changing_state = False
        self._retry = RetryTimer(
            posting.timers, lambda: posting.settings().retry, self._retransmission_timer
        )
        self._cleanup: Timer | None = None
        self._answered_at = 0
        self._since = self._taken = 0
        self._address = ""
        self._write = posting.writer()
        self.stream = QueueStream(streaming, queue, self.resend)

    @property
    def stopped(self) -> bool:
        """Whether nothing may be sent: on hold, locked, or the queue manager is offline."""
        offline = self._shared.stopping or not self._queue_manager.connection_active
        return offline or self.queue.state in _STOPPED

    def _can_send(self, at_most: int) -> bool:
        """Whether the next message may be posted beside `at_most` others (G198)."""
        if self._numbering or self._retry.runs or self.stopped:
            return False
        return not self._posting or (len(self._posting) <= at_most and self._may_join())

    def _may_join(self) -> bool:
        """Whether many wait, and neither the next message nor those posted are transactional."""
        positions = self.queue.message_position_list
        if self._posting_transactional or positions.available < MANY_WAITING:
            return False
        if not self._has_heard:  # the request that asks whether more may go at once (G691)
            return False
        key = positions.first_available()
        position = None if key is None else positions.position(key)
        return position is not None and not position.flags & FLAG_TRANSACTIONAL

    def wake(self) -> None:
        """Have the next message sent in its turn ([MC-MQSRM] 3.1.7.7).

        While others are posted only a whole bunch follows.
        """
        if not self._can_send(self._at_most if self._at_most > 1 else POSTS_AT_ONCE - BUNCH):
            return
        key = self.queue.message_position_list.first_available()
        if key is not None:
            position = MessagePosition(self.queue, key)
            self._dispatcher.add_message_to_dispatch_collection(None, position)

    # Sending

    def send(self) -> None:
        """Send the first messages that have not expired ([MC-MQSRM] 3.1.7.2)."""
        while self._can_send(self._at_most if self._at_most > 1 else POSTS_AT_ONCE - 1):
            bunch = self._next_bunch()
            if not bunch:
                return
            self._begin(bunch)

    def _next_bunch(self) -> list[Message]:
        """Lock and return the messages of the next request, as many as the receiver takes."""
        bunch: list[Message] = []
        octets = 0
        while not bunch or self._may_follow(bunch, octets):
            message = self._transfer.lock_next(self.queue, self)
            if message is None:
                break
            if not self._expired(message):
                bunch.append(message)
                octets += len(message.packet)
        return bunch

    def _may_follow(self, bunch: Sequence[Message], octets: int) -> bool:
        """Whether the next message fits into the same request.

        Messages of a stream do when all are numbered, or none is: a message whose number was never
        answered may be the first of the stream (G226).
        """
        positions = self.queue.message_position_list
        key = positions.first_available() if len(bunch) < self._at_most else None
        position = None if key is None else positions.position(key)
        if key is None or position is None or octets + position.size > OCTETS:
            return False
        first = bunch[0]
        if not first.envelope.transactional:
            return not position.flags & FLAG_TRANSACTIONAL
        if not position.flags & FLAG_TRANSACTIONAL or not self.stream.is_under_way:
            return False
        return self.stream.awaits_receipt(key) == self.stream.awaits_receipt(
            first.lookup_identifier
        )

    def _expired(self, message: Message) -> bool:
        """[MC-MQSRM] 3.1.7.2.1; whether the time to reach the queue is over."""
        over = cannot_reach_queue(message, self._clock.now() // 1000)
        if over:
            reason = MessageClass.MQMSG_CLASS_NACK_REACH_QUEUE_TIMEOUT
            self._transfer.failed(self.queue, message.lookup_identifier, reason)
        return over

    def _begin(self, bunch: Sequence[Message]) -> None:
        """Post messages; those of a stream leave when their numbers are durable ([MC-MQSRM]
        3.1.7.2.3)."""
        changes = self._numbers_for(bunch)
        if not changes:
            self._post(bunch)
            return
        self._numbering = True
        self._records.write(changes).add_done_callback(partial(self._numbered, bunch))

    def _numbers_for(self, bunch: Sequence[Message]) -> Changes:
        """The records that become durable before messages leave: their numbers and the next ones.

        Nothing comes after number 1 before that has been answered (G226).
        """
        keys = [message.lookup_identifier for message in bunch if self._is_streamed(message)]
        if not keys or self.stream.awaits_receipt(keys[0]):
            return {}
        left = NUMBERED_AT_ONCE - len(bunch) if self.stream.is_under_way else 0
        return self.stream.number((*keys, *self._following(bunch[-1].lookup_identifier, left)))

    def _following(self, key: int, limit: int) -> Iterator[int]:
        """The keys behind a message in its stream, up to the first message outside a stream."""
        positions = self.queue.message_position_list
        for _ in range(limit):
            following = positions.next(key)
            if following is None:
                return
            key = following
            if not self._is_streamed(self._shared.positions.message_at(self.queue, key)):
                return
            yield key

    def _is_streamed(self, message: Message) -> bool:
        """Whether a message goes in a stream of ours; a relayed message is in its sender's."""
        own = is_stamped_here(message, self._queue_manager.identifier)
        return own and not is_relayed(message.attributes)

    def _numbered(self, bunch: Sequence[Message], outcome: Completion[None]) -> None:
        self._numbering = False
        if outcome.error is None and not self.stopped:
            self._post(bunch)
            self.wake()
        else:
            for message in bunch:
                self._release(message.lookup_identifier)

    def _post(self, bunch: Sequence[Message]) -> None:
        """[MC-MQSRM] 3.1.7.2.4, .5."""
        requests = {message: self._request(message) for message in bunch}
        posted = [message for message, request in requests.items() if request is not None]
        if not posted:
            return
        for message in posted:
            self._posting.add(message.lookup_identifier)
            self.stream.note_posted(message.lookup_identifier)
            self._message_trace.leaves(self.queue, message, self.uri)
        self._posting_transactional = posted[0].envelope.transactional
        self._establish()
        written = [request for request in requests.values() if request is not None]
        headers, body = written[0] if len(written) == 1 else write_bunch(written)
        shared = self._shared
        answered = shared.network.post(
            self._url,
            self._connect_to,
            headers + self._question(),
            body,
            timeout=shared.settings().retry,
            may_connect=shared.may_connect(self.queue),
            senders=self.queue.named_by,
        )
        answered.add_done_callback(partial(self._answered, posted))

    def _question(self) -> Headers:
        """The header that asks, once a connection, whether the receiver takes bunches (G691)."""
        if self._has_asked or self._refuses_bunches:
            return ()
        self._has_asked = True
        return QUESTION

    def _request(self, message: Message) -> tuple[Headers, bytes] | None:
        """[MC-MQSRM] 3.1.7.2.4; None for a message that cannot be written; it has failed then."""
        key = message.lookup_identifier
        try:
            return self._write(message, self.name, self.stream.element(key, self.uri))
        except (DecodeError, MQError) as error:
            _log.warning("a message cannot be written", queue=self.uri, error=str(error))
            self._transfer.failed(self.queue, key, MessageClass.MQMSG_CLASS_NACK_BAD_DST_Q)
            return None

    def _establish(self) -> None:
        """[MC-MQSRM] 3.1.7.9."""
        self._since = self._since or self._clock.now()
        if self.queue.state is not OutgoingQueueState.CONNECTED:
            self._set_state(OutgoingQueueState.WAITING)
            self._record(ConnectionStatus.IN_PROCESS)

    @property
    def _connect_to(self) -> str:
        """The place to connect to instead, "" for the host itself ([MC-MQSRM] 3.1.7.9, G224)."""
        settings = self._shared.settings()
        if matches_any(settings.outbound_exceptions, self.uri):
            return ""
        return find_redirection(settings.outbound, self.uri) or ""

    # Answers

    def _answered(self, posted: Sequence[Message], outcome: Completion[Answer]) -> None:
        """Take an answer ([MC-MQSRM] 3.1.7.2.5); after `stop` the next start sends all again."""
        self._posting.difference_update(message.lookup_identifier for message in posted)
        if self._shared.stopping:
            return
        error = outcome.error
        if error is not None:
            failure = connect_failure(error)
            for message in posted:
                self._not_received(message.lookup_identifier, *failure, repr(error))
            return
        answer, self._has_heard = outcome.result(), True
        if not self._refuses_bunches and answer.offered > 1:
            self._at_most = answer.offered
        statuses = self._statuses(posted, answer)
        if _OK in statuses or not _REFUSED.isdisjoint(statuses):
            self._reached(answer.address)
        self._settle(posted, statuses, answer.address)
        self.wake()

    def _statuses(self, posted: Sequence[Message], answer: Answer) -> list[int]:
        """The status of each message; a bunch that was not understood has no statuses.

        That may be the answer of a proxy: messages go alone from now on, as to anybody else.
        """
        if len(posted) == 1 or answer.status >= _OF_THE_SERVER:
            return [answer.status] * len(posted)
        if answer.status == _OK:
            try:
                return read_statuses(answer.content, len(posted))
            except DecodeError:
                pass
        _log.info(
            "a request with several messages was refused", queue=self.uri, status=answer.status
        )
        self._refuses_bunches, self._at_most = True, 1
        return [_NOT_UNDERSTOOD] * len(posted)

    def _settle(self, posted: Sequence[Message], statuses: Sequence[int], address: str) -> None:
        """Settle each message by its status."""
        taken = [message for message, status in zip(posted, statuses, strict=True) if status == _OK]
        self._accepted(taken, address)
        for message, status in zip(posted, statuses, strict=True):
            if status in _REFUSED:
                self._refused(message, status, address)
            elif status == _NOT_UNDERSTOOD:
                self._release(message.lookup_identifier)
            elif status != _OK:
                failure = ConnectionStatus.UNKNOWN_FAILURE
                reason = f"the answer is {status}"
                key = message.lookup_identifier
                self._not_received(key, failure, error_of(failure), reason, address)

    def _reached(self, address: str) -> None:
        """Note that the host has answered: the connection stays until it is idle for long."""
        self._failures = 0
        self._address = address
        if address:
            self.queue.next_hops = [next_hop_text(address)]
        if self.queue.state is not OutgoingQueueState.CONNECTED:
            self._record(ConnectionStatus.ESTABLISHED, address=address)
            self._set_state(OutgoingQueueState.CONNECTED)
        if not self.stopped:
            self._restart_cleanup()
            self.stream.wait()

    def _accepted(self, taken: Sequence[Message], address: str) -> None:
        """Remove accepted messages; those of a stream stay until their receipts."""
        gone = []
        self._taken += len(taken)
        for message in taken:
            key = message.lookup_identifier
            self._message_trace.sent(self.queue, message, address)
            if self.stream.awaits_receipt(key):
                self._await_receipt(key)
            elif not self.stream.awaits_decision(key):
                self._message_trace.acknowledged(self.queue, key, "by the next hop")
                gone.append(key)
        if len(gone) > 1 and self._transfer.delivered_together(self.queue, gone):
            return
        for key in gone:
            self._unless_gone(partial(self._transfer.delivered, self.queue, key))

    def _await_receipt(self, key: int) -> None:
        if self.stopped:
            self._release(key)
        else:
            self.stream.transmitted(key)

    def _refused(self, message: Message, status: int, address: str) -> None:
        key = message.lookup_identifier
        _log.warning("a message was refused", queue=self.uri, status=status)
        self._message_trace.leaves(self.queue, message, address)
        self._message_trace.refused(self.queue, message, next_hop_text(address), status)
        reason = MessageClass.MQMSG_CLASS_NACK_BAD_DST_Q
        self._unless_gone(partial(self._transfer.failed, self.queue, key, reason))

    def _unless_gone(self, remove: "partial[Completion[None]]") -> None:
        """Call `remove`; an administrator or a receipt may have removed the message meanwhile."""
        try:
            remove()
        except MQError as error:
            if error.status is not HResult.MQ_ERROR_MESSAGE_NOT_FOUND:
                raise

    def _not_received(
        self, key: int, status: ConnectionStatus, error: int, reason: str, address: str = ""
    ) -> None:
        """Try again after the Retransmission Timer; strangers' hosts less and less often (G225)."""
        if self._retry.runs:  # others that were posted with it have failed before
            self._release(key)
            return
        if not self._failures:  # once, until the host answers again
            _log.info("a message was not received", queue=self.uri, reason=reason)
        self._record(status, error, address)
        self._failures += 1
        if not self.stopped:
            is_strangers = self.queue in self._shared.acknowledgement_queues
            self._retry.start(self._failures if is_strangers else 1)
        self.stream.stop()
        self._disconnect(OutgoingQueueState.INACTIVE)
        self._dispatcher.remove_messages_from_dispatch_collection_by_queue(self.queue)
        self._release(key)

    def _release(self, key: int) -> None:
        """Unlock a message that awaits no decision."""
        if not self.stream.awaits_decision(key):
            self._transfer.release(self.queue, key)

    # Connections

    def _retransmission_timer(self) -> None:
        """[MC-MQSRM] 3.1.6.1; failed messages may be gone, those sent before remain (G168)."""
        self.stream.wait()
        self.wake()

    def _restart_cleanup(self) -> None:
        """Start the Session Cleanup Timer anew, unless it runs."""
        self._since = self._since or self._clock.now()
        self._answered_at = self._clock.monotonic()
        if self._cleanup is None:
            self._cleanup_after(self._shared.settings().session_cleanup)

    def _cleanup_after(self, delay: int) -> None:
        self._cleanup = self._timers.call_later(delay, self._session_cleanup_timer)

    def _session_cleanup_timer(self) -> None:
        """[MC-MQSRM] 3.1.6.4; a connection with a post under way is not idle."""
        delay = self._shared.settings().session_cleanup
        left = self._answered_at + delay - self._clock.monotonic()
        if self._posting:
            self._cleanup_after(delay)
        elif left > 0:
            self._cleanup_after(left)
        else:
            self._disconnect(OutgoingQueueState.DISCONNECTED)

    def _disconnect(self, state: OutgoingQueueState) -> None:
        if self._cleanup is not None:
            self._cleanup.cancel()
            self._cleanup = None
        self._write = self._shared.writer()
        self._since = self._taken = 0
        self._address = ""
        self._at_most, self._has_asked, self._has_heard = 1, False, False
        self._shared.network.close(self._url, self._connect_to)
        self._set_state(state)

    # Administrators

    def hold(self) -> None:
        """Put the queue on hold: posts under way end, no more follow ([MC-MQSRM] 3.1.7.4)."""
        self.disconnect()

    def disconnect(self) -> None:
        """Send nothing more until `try_now`; messages that await receipts can be purged (G168)."""
        self._stop_timers()
        if self.stopped:
            self.resend()

    def _stop_timers(self) -> None:
        self._retry.cancel()
        self.stream.stop()
        self._disconnect(OutgoingQueueState.DISCONNECTED)

    def resume(self) -> None:
        """[MC-MQSRM] 3.1.7.5; no effect where the protocol itself has made the queue inactive."""
        if not self._changing_state:
            self.try_now()

    def try_now(self) -> None:
        """Send all unacknowledged messages now, whatever their delays."""
        self._retry.cancel()
        self._failures = 0
        self.resend()
        self.stream.wait()

    def resend_now(self) -> None:
        """Send unacknowledged messages again, on an administrator's order."""
        if self.stopped:
            return
        self._retry.cancel()
        self.stream.resend_now()
        self.wake()

    def stop(self) -> None:
        """Stop the timers, at the queue manager's end."""
        self._stop_timers()

    # Streams

    def resend(self) -> None:
        """Send every message again that awaits its stream receipt ([MC-MQSRM] 3.1.6.2)."""
        with self._dispatcher.gathering:
            for key in self.stream.take_sent():
                if key not in self._posting:
                    self._transfer.release(self.queue, key)
            self.wake()

    def stream_receipt(self, stream: StreamId, last_ordinal: int) -> bool:
        """[MC-MQSRM] 3.1.5.1.8; False if the stream is another one."""
        known = self.stream.receipt(stream, last_ordinal, self)
        if self.stopped:
            self.stream.stop()
        elif known:
            self.wake()
        return known

    def removed(self, change: StoreTransaction, key: int) -> None:
        """Note that a message has left the queue, for example by expiry."""
        self.stream.removed(change, key)

    # Shown to administrators

    def session(self) -> SessionView | None:
        """The connection to the host; None without one, and while one is being opened."""
        if not self._since or self.queue.deleted:
            return None
        return SessionView(
            self.uri.partition(":")[0],
            plain_address(self._address),
            "",
            True,
            OPEN if self.queue.state is OutgoingQueueState.CONNECTED else OPENING,
            (self.queue.destination_format_name,),
            self._taken,
            0,
            len(self._posting.union(self.stream.sent)),
            self.queue.message_count,
            self._since,
        )

    def show(self, info: OutgoingTransferInfo) -> None:
        """Fill in the progress of the stream."""
        self.stream.show(info)

    def _record(
        self, status: ConnectionStatus, error: int | None = None, address: str = ""
    ) -> None:
        addresses = (plain_address(address),) if address else ()
        number = error_of(status) if error is None else error
        self._outgoing.record_connection(self.queue, status, number, addresses)

    def _set_state(self, state: OutgoingQueueState) -> None:
        if self.queue.state in _STOPPED or self.queue.state is state:
            return
        self._changing_state = True
        try:
            self._outgoing.set_state(self.queue, state)
        finally:
            self._changing_state = False
