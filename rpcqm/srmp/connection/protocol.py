"""Messages over HTTP of one queue manager: sending, receiving, and streams.

Nothing here knows sockets: an `SrmpNetwork` posts, so that tests can simulate one.
"""

import asyncio
from collections.abc import Sequence
from functools import partial

from rpcqm.adm.message import Message
from rpcqm.adm.queue import OutgoingQueue, Queue
from rpcqm.base.completion import Completion
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.enums import MessageClass
from rpcqm.codec.packet.message import MessageAttributes
from rpcqm.http.exchange import HttpRequest, HttpResponse
from rpcqm.qm.engine import QueueManagerEngine
from rpcqm.qm.forwarded import Forwarded
from rpcqm.qm.message_history import MessageIDHistory
from rpcqm.srmp.connection.bunches import answer_to
from rpcqm.srmp.connection.departures import Departures
from rpcqm.srmp.connection.destinations import Destinations
from rpcqm.srmp.connection.incoming_streams import IncomingStreams, ReceivingStreams
from rpcqm.srmp.connection.known_messages import HISTORY_PREFIX, KnownMessages
from rpcqm.srmp.connection.network import SrmpNetwork
from rpcqm.srmp.connection.outgoing_streams import OutgoingStreams
from rpcqm.srmp.connection.outgoing_transfer import Posting
from rpcqm.srmp.connection.outgoing_transfers import OutgoingTransfers
from rpcqm.srmp.connection.owed_receipts import OwedReceipts
from rpcqm.srmp.connection.own_urls import OwnUrls
from rpcqm.srmp.connection.queue_stream import Streaming
from rpcqm.srmp.connection.receiving import Receiver
from rpcqm.srmp.connection.stranger_urls import StrangerUrls
from rpcqm.srmp.connection.stream_records import without_queues
from rpcqm.srmp.elements import Stream
from rpcqm.srmp.hops import via
from rpcqm.srmp.multipart import Headers, write_request
from rpcqm.srmp.outgoing import is_relayed, signature_of, written
from rpcqm.srmp.redirection import find_redirection
from rpcqm.srmp.settings import SrmpSettings
from rpcqm.srmp.writing import write_envelope
from rpcqm.store.transaction import StoreTransaction


class SrmpProtocol:
    """Sends the messages of outgoing queues to HTTP names, and takes posted ones.

    The engine must have been started. `start` looks for waiting messages; `stop` ends all.
    """

    def __init__(
        self, engine: QueueManagerEngine, network: SrmpNetwork, settings: SrmpSettings
    ) -> None:
        self._engine = engine
        self.settings = settings
        self.stopping = False
        self.own_urls = OwnUrls(engine.queue_manager, engine.registry)
        self.stranger_urls = StrangerUrls(
            self._settings, engine.directory, engine.acknowledgement_queues, engine.names
        )
        engine.acknowledgement_queues.may_name = self.stranger_urls.may_name
        self._build_sending(engine, network)
        self._build_receiving(engine)
        engine.positions.deleted_hooks.append(self._message_position_deleted)
        engine.positions.left_together[self._message_position_deleted] = self._left_together
        engine.session_sources.append(self.transfers.sessions)

    def _settings(self) -> SrmpSettings:
        """The present settings."""
        return self.settings

    def _build_sending(self, engine: QueueManagerEngine, network: SrmpNetwork) -> None:
        """Build the parts that post messages of outgoing queues."""
        self.posting = Posting(
            engine.clock,
            engine.timers,
            self._settings,
            engine.queue_manager,
            engine.outgoing,
            engine.positions,
            engine.dispatcher,
            engine.transfer,
            engine.protocol_records,
            engine.message_trace,
            engine.acknowledgement_queues,
            network,
            self.stranger_urls.may_connect,
            lambda: self.request_of,
        )
        streaming = Streaming(
            engine.clock,
            engine.timers,
            self._settings,
            engine.queue_manager,
            engine.transfer,
            engine.message_trace,
            engine.protocol_records,
            OutgoingStreams(engine.clock, engine.protocol_records),
            self.receipts_url,
        )
        self.transfers = OutgoingTransfers(self.posting, streaming)

    def _build_receiving(self, engine: QueueManagerEngine) -> None:
        """Build the parts that take posted messages."""
        records = engine.protocol_records
        shared = ReceivingStreams(
            engine.store,
            engine.clock,
            engine.timers,
            self._settings,
            records,
            engine.composer,
            engine.acknowledgements,
        )
        history = MessageIDHistory(
            engine.clock,
            engine.timers,
            HISTORY_PREFIX,
            self.settings.history_size,
            self.settings.history_cleanup,
        )
        known = KnownMessages(history, records, engine.identity_conflicts)
        destinations = Destinations(
            self._settings, engine.queue_manager, engine.names, engine.arrivals, engine.outgoing
        )
        streams = IncomingStreams(shared, engine.queue_manager, engine.arrivals)
        owed = OwedReceipts(streams, self.stranger_urls, engine.acknowledgements)
        forwarded = Forwarded()
        self._departures = Departures(engine.positions, streams, owed, forwarded)
        self.receiver = Receiver(
            engine.store,
            engine.clock,
            engine.queue_manager,
            engine.directory,
            records,
            engine.arrivals,
            engine.protection,
            engine.message_trace,
            destinations,
            streams,
            known,
            self.transfers,
            forwarded,
        )
        self.receiver.signer_of = lambda sid: engine.sender_rights.signer_of(sid)

    def start(self) -> None:
        """[MC-MQSRM] 3.1.3.1, 3.1.4.1: send what waits."""
        engine = self._engine
        engine.positions.available_hooks.append(self.transfers.message_position_available)
        engine.protection.signed_info = _signed_info
        engine.online_hooks.append(self.transfers.online_changed)
        engine.stopped_hooks.append(self.stop)
        self.transfers.start()

    def begin_new_streams(self) -> Completion[None]:
        """Forget the streams of a queue manager that was restored from a backup, before `start`.

        Their numbers since the backup are lost (G237).
        """
        records = self._engine.protocol_records
        return records.write(without_queues(records, ()))

    def stop(self) -> None:
        """Send and take nothing more."""
        if self.stopping:
            return
        self.stopping = True
        self.transfers.stop()
        self.receiver.stop()

    def adjust(self, settings: SrmpSettings) -> None:
        """Use other settings; posts under way end with the old ones.

        Streams announce their new address for receipts at once (G168).
        """
        before, self.settings = self.settings, settings
        if _receipts_of(before) != _receipts_of(settings):
            for transfer in self.transfers:
                transfer.resend_now()

    # Receiving

    async def receive(self, request: HttpRequest) -> HttpResponse:
        """Answer a request when its messages are as durable as they ask for."""
        answered: asyncio.Future[HttpResponse] = asyncio.get_running_loop().create_future()
        answer_to(request, self.receiver.receive).add_done_callback(partial(_tell, answered))
        return await answered

    # Sending

    def request_of(
        self, message: Message, name: FormatName, stream: Stream | None
    ) -> tuple[Headers, bytes]:
        """The headers and the content by which a message travels. Raises DecodeError, MQError."""
        attributes = message.attributes
        sent = written(attributes, name, partial(self.own_urls.of, self.settings), stream)
        guid = sent.guid or self._engine.queue_manager.identifier
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

    # Removals

    def _left_together(
        self, change: StoreTransaction, queue: OutgoingQueue, keys: Sequence[int]
    ) -> None:
        """Handle `_message_position_deleted` for each message."""
        self._departures.left_together(queue, keys)
        self.transfers.removed(change, queue, keys)

    def _message_position_deleted(
        self, change: StoreTransaction, queue: Queue, key: int, reason: MessageClass
    ) -> None:
        self._departures.removed(change, queue, key, reason)
        if isinstance(queue, OutgoingQueue):
            self.transfers.removed(change, queue, (key,))


def _receipts_of(settings: SrmpSettings) -> tuple[object, ...]:
    return settings.stream_receipt, settings.default_stream_receipt_url


def _signed_info(message: MessageAttributes) -> bytes:
    """The octets that the signature of a message for HTTP covers."""
    return signature_of(message).signed_info


def _tell(answered: "asyncio.Future[HttpResponse]", outcome: Completion[HttpResponse]) -> None:
    """Give the answer to the server, unless the client has gone."""
    if answered.done():
        return
    if outcome.error is not None:
        answered.set_exception(outcome.error)
    else:
        answered.set_result(outcome.result())
