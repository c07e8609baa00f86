"""Messages over HTTP of one queue manager: what is sent, what is received, and its streams.

Nothing here knows sockets: an `SrmpNetwork` posts, so that tests can simulate one.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from rpcqm.adm.enums import OutgoingQueueState
from rpcqm.adm.message import Message, MessagePosition
from rpcqm.adm.queue import OutgoingQueue, OutgoingTransferInfo, Queue
from rpcqm.base.completion import Completion, completed
from rpcqm.base.log import get_logger
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.enums import MessageClass
from rpcqm.codec.packet.message import MessageAttributes
from rpcqm.http.exchange import HttpRequest, HttpResponse
from rpcqm.qm.protocol_records import Changes
from rpcqm.qm.sessions import SessionView
from rpcqm.srmp.connection.network import MayConnect, SrmpNetwork
from rpcqm.srmp.connection.outgoing_transfer import OutgoingTransfer, Write
from rpcqm.srmp.connection.own_urls import OwnUrls
from rpcqm.srmp.connection.receiving import Receiver
from rpcqm.srmp.connection.stranger_urls import StrangerUrls
from rpcqm.srmp.connection.stream_records import (
    as_last_stream,
    last_stream,
    queues_with_streams,
    without_queues,
)
from rpcqm.srmp.elements import Stream, StreamId
from rpcqm.srmp.hops import via
from rpcqm.srmp.multipart import Headers, write_request
from rpcqm.srmp.outgoing import is_relayed, signature_of, written
from rpcqm.srmp.outgoing_stream import next_stream
from rpcqm.srmp.redirection import find_redirection
from rpcqm.srmp.settings import SrmpSettings
from rpcqm.srmp.writing import write_envelope
from rpcqm.store.transaction import StoreTransaction

if TYPE_CHECKING:
    from rpcqm.qm.engine import QueueManagerEngine

_log = get_logger("srmp")
_TIDY_AT_LEAST = 64


class SrmpProtocol:
    """Sends what is in outgoing queues to HTTP names, and takes what others post.

    The engine must have been started. `start` looks for messages that wait; `stop` ends all.
    """

    def __init__(
        self, engine: "QueueManagerEngine", network: SrmpNetwork, settings: SrmpSettings
    ) -> None:
        self.store, self.clock, self.timers = engine.store, engine.clock, engine.timers
        self.queue_manager, self.names = engine.queue_manager, engine.names
        self.registry, self.directory = engine.registry, engine.directory
        self.protocol_records, self.dispatcher = engine.protocol_records, engine.dispatcher
        self.outgoing, self.positions = engine.outgoing, engine.positions
        self.sending, self.message_trace = engine.transfer, engine.message_trace
        self.composer, self.arrivals = engine.composer, engine.arrivals
        self.acknowledgements = engine.acknowledgements
        self.acknowledgement_queues = engine.acknowledgement_queues
        self.protection = engine.protection
        self.conflicts = engine.identity_conflicts
        self._online_hooks, self._stopped_hooks = engine.online_hooks, engine.stopped_hooks
        self.network = network
        self.settings = settings
        self.stopping = False
        self.transfers: dict[OutgoingQueue, OutgoingTransfer] = {}
        self.streams: dict[int, OutgoingQueue] = {}
        """The streams that are sent from here, by their ordinals."""
        self._last_stream = last_stream(engine.protocol_records)
        self._tidy_at = _TIDY_AT_LEAST
        self.own_urls = OwnUrls(engine.queue_manager, engine.registry)
        self.stranger_urls = StrangerUrls(
            lambda: self.settings,
            engine.directory,
            engine.acknowledgement_queues,
            engine.names,
        )
        engine.acknowledgement_queues.may_name = self.stranger_urls.may_name
        self.may_connect: Callable[[OutgoingQueue], MayConnect | None] = (
            self.stranger_urls.may_connect
        )
        """Which addresses may be connected to for a queue; None for all."""
        self.receiver = Receiver(self)
        self.writer: Callable[[], Write] = lambda: self.request_of
        """Gives what writes the messages of a queue from one connection to the next."""
        engine.positions.deleted_hooks.append(self._message_position_deleted)
        engine.positions.left_together[self._message_position_deleted] = self._left_together
        engine.session_sources.append(self._sessions)

    def start(self) -> None:
        """[MC-MQSRM] 3.1.3.1, 3.1.4.1: send what waits."""
        self.positions.available_hooks.append(self._message_position_available)
        self.outgoing.state_hooks.append(self._state_changed)
        self.outgoing.resend_hooks.append(self._resend)
        self.outgoing.transfer_hooks.append(self._show_transfer)
        self.protection.signed_info = _signed_info
        self.dispatcher.send_by_srmp = self.send_user_message_wrapper
        self._online_hooks.append(self._online_changed)
        self._stopped_hooks.append(self.stop)
        unusable = self.queue_manager.unusable_queues.keys()
        self._forget_streams({queue.queue_id for queue in self.outgoing.list()} | unusable)
        streaming = set(queues_with_streams(self.protocol_records))
        for queue in self.outgoing.list():
            if carries(queue) and (queue.message_count or queue.queue_id in streaming):
                self.transfer(queue).wake()

    def begin_new_streams(self) -> Completion[None]:
        """Forget the streams of a queue manager that was restored from a backup, before `start`.

        The numbers that they had come to since then are not known (G237).
        """
        return self.protocol_records.write(without_queues(self.protocol_records, ()))

    def _forget_streams(self, queues: set[int]) -> None:
        """Those of queues that were deleted while messages over HTTP were off."""
        if gone := without_queues(self.protocol_records, queues):
            self.protocol_records.write(gone)

    def stop(self) -> None:
        """Send and take nothing more."""
        if self.stopping:
            return
        self.stopping = True
        for transfer in list(self.transfers.values()):
            transfer.stop()
        self.receiver.stop()

    def adjust(self, settings: SrmpSettings) -> None:
        """Go on with other settings; what is under way ends with the old ones.

        Streams tell at once where their receipts go now (G168).
        """
        before, self.settings = self.settings, settings
        if _receipts_of(before) != _receipts_of(settings):
            for transfer in list(self.transfers.values()):
                transfer.resend_now()

    # Receiving

    async def receive(self, request: HttpRequest) -> HttpResponse:
        """Answer a request when its message is as durable as it asks for."""
        answered: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.receiver.receive(request).add_done_callback(partial(_tell, answered))
        return HttpResponse(await answered)

    def stream_receipt(self, stream: StreamId, last_ordinal: int, peer: str) -> Completion[bool]:
        """Everything of a stream up to a number has arrived ([MC-MQSRM] 3.1.5.1.8).

        False when no such stream is sent from here. `peer` is who says so.
        """
        queue = self.streams.get(stream.ordinal)
        known = queue is not None and self.transfer(queue).stream_receipt(stream, last_ordinal)
        if not known:
            _log.debug("receipt of another stream", peer=peer, stream=stream.ordinal)
        return completed(known)

    def final_stream_receipt(
        self, stream: StreamId, ordinal: int, message_class: MessageClass, peer: str
    ) -> Completion[bool]:
        """The fate of a message of a stream is decided ([MC-MQSRM] 3.1.5.1.9).

        False when no such message waits here. `peer` is who says so.
        """
        queue = self.streams.get(stream.ordinal)
        if queue is None:
            _log.debug("final receipt of another stream", peer=peer, stream=stream.ordinal)
            return completed(False)
        return self.transfer(queue).stream.final_receipt(stream, ordinal, message_class)

    # Sending

    def transfer(self, queue: OutgoingQueue) -> OutgoingTransfer:
        """The transfer of a queue, made when it is first needed."""
        transfer = self.transfers.get(queue)
        if transfer is None:
            if len(self.transfers) >= self._tidy_at:
                self._tidy()
            transfer = self.transfers[queue] = OutgoingTransfer(self, queue)
        return transfer

    def _tidy(self) -> None:
        """Forget the transfers of queues that are deleted."""
        for queue in [queue for queue in self.transfers if queue.deleted]:
            self.transfers.pop(queue).stop()
        self._tidy_at = max(_TIDY_AT_LEAST, 2 * len(self.transfers))

    def next_stream(self) -> tuple[int, Changes]:
        """The ordinal of a new stream, and the change that keeps it ([MC-MQSRM] 3.1.3.1)."""
        self._last_stream = next_stream(self._last_stream, self.clock.now() // 1000)
        return self._last_stream, as_last_stream(self._last_stream)

    def request_of(
        self, message: Message, name: FormatName, stream: Stream | None
    ) -> tuple[Headers, bytes]:
        """The headers and the content by which a message travels. Raises DecodeError, MQError."""
        attributes = message.attributes
        sent = written(attributes, name, partial(self.own_urls.of, self.settings), stream)
        guid = sent.guid or self.queue_manager.identifier
        envelope = sent.text or write_envelope(sent.envelope)
        headers, content = write_request(envelope, sent.body, sent.extension, guid)
        if is_relayed(attributes):
            headers += (via(attributes.soap_compound_message),)
        return headers, content

    def receipts_url(self, uri: str) -> str:
        """Where the receipts of a stream to a URL go ([MC-MQSRM] 3.1.7.2.4)."""
        settings = self.settings
        replaced = find_redirection(settings.stream_receipt, uri)
        own = self.own_urls.order_queue(settings, uri)
        return replaced or settings.default_stream_receipt_url or own

    def _message_position_available(self, queue: OutgoingQueue, key: int) -> None:
        """[MC-MQSRM] 3.1.7.7; an inactive queue may connect (G49)."""
        if not self.stopping and carries(queue):
            self.transfer(queue).wake()

    def send_user_message_wrapper(self, data: object, position: MessagePosition) -> None:
        """[MC-MQSRM] 3.1.7.8."""
        queue = position.queue_reference
        assert isinstance(queue, OutgoingQueue)
        try:
            self.transfer(queue).send()
        finally:
            self.dispatcher.remove_message_from_dispatch_collection(position)

    def _left_together(
        self, change: StoreTransaction, queue: OutgoingQueue, keys: Sequence[int]
    ) -> None:
        """`_message_position_deleted` of each."""
        self.receiver.left_together(queue, keys)
        for key in keys if queue in self.transfers else ():
            self.transfers[queue].removed(change, key)

    def _message_position_deleted(
        self, change: StoreTransaction, queue: Queue, key: int, reason: MessageClass
    ) -> None:
        self.receiver.removed(change, queue, key, reason)
        if isinstance(queue, OutgoingQueue) and queue in self.transfers:
            self.transfers[queue].removed(change, key)

    def _state_changed(self, queue: OutgoingQueue) -> None:
        """[MC-MQSRM] 3.1.7.4, 3.1.7.5."""
        if not carries(queue):
            return
        if queue.state is OutgoingQueueState.ON_HOLD:
            self.dispatcher.remove_messages_from_dispatch_collection_by_queue(queue)
            self.transfer(queue).hold()
        elif queue.state is OutgoingQueueState.INACTIVE:
            self.transfer(queue).resume()

    def _resend(self, queue: OutgoingQueue) -> None:
        transfer = self.transfers.get(queue)
        if transfer is not None:
            transfer.resend_now()

    def _sessions(self) -> Iterator[SessionView]:
        """What administrators see of the connections that were opened here."""
        shown = (transfer.session() for transfer in self.transfers.values())
        return (each for each in shown if each is not None)

    def _show_transfer(self, info: OutgoingTransferInfo) -> None:
        transfer = self.transfers.get(info.outgoing_queue_reference)
        if transfer is not None:
            transfer.show(info)

    def _online_changed(self, active: bool) -> None:
        for transfer in list(self.transfers.values()):
            if active:
                transfer.try_now()
            else:
                transfer.disconnect()


def _receipts_of(settings: SrmpSettings) -> tuple[object, ...]:
    return settings.stream_receipt, settings.default_stream_receipt_url


def _signed_info(message: MessageAttributes) -> bytes:
    """What the signature of a message that is sent by HTTP covers."""
    return signature_of(message).signed_info


def carries(queue: OutgoingQueue) -> bool:
    """Whether messages of a queue travel by HTTP."""
    return FormatName.parse(queue.destination_format_name).is_http


def _tell(answered: "asyncio.Future[int]", outcome: Completion[int]) -> None:
    """Who has hung up meanwhile is told nothing."""
    if answered.done():
        return
    if outcome.error is not None:
        answered.set_exception(outcome.error)
    else:
        answered.set_result(outcome.result())
