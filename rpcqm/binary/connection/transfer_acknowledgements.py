"""Makes acknowledgements of transactional messages that have come, and sends them."""

from collections.abc import Callable
from contextlib import suppress
from uuid import UUID

from rpcqm.adm.message import Message
from rpcqm.base.clock import Clock, Timers
from rpcqm.base.errors import DecodeError, MQError
from rpcqm.base.identity import ANONYMOUS
from rpcqm.binary.sequence import OrderAckSchedule, Stamp
from rpcqm.binary.settings import BinarySettings
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.acknowledgement import final_ack, order_ack
from rpcqm.codec.packet.enums import MessageClass
from rpcqm.codec.packet.internal import ORDER_QUEUE_IDENTIFIER, FinalAckBody, OrderAckBody
from rpcqm.codec.packet.message import build_user_message
from rpcqm.qm.acknowledgement_queues import unproven_source
from rpcqm.qm.acknowledgements import Acknowledgements
from rpcqm.qm.composing import Composer
from rpcqm.qm.names import LocalNames
from rpcqm.qm.outgoing_bounds import source_of
from rpcqm.store.store import Store
from rpcqm.store.transaction import StoreTransaction


class TransferAcknowledgements:
    """Makes order and final acknowledgements, and sends those that go by a queue."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        timers: Timers,
        settings: Callable[[], BinarySettings],
        names: LocalNames,
        composer: Composer,
        acknowledgements: Acknowledgements,
    ) -> None:
        self._store, self._clock, self._timers = store, clock, timers
        self._settings, self._names, self._composer = settings, names, composer
        self._acknowledgements = acknowledgements

    def schedule(self, send: Callable[[], None]) -> OrderAckSchedule:
        """A timer that calls `send` when the order of messages is to be acknowledged."""
        return OrderAckSchedule(self._clock, self._timers, self._settings(), send)

    def order_queue(self, source: UUID, address: str) -> FormatName:
        """The order queue of a queue manager, at an address if that is known.

        An address of our own machine leads to ourselves, so that its number is used then.
        Source: [MS-MQQB] 3.1.7.17.
        """
        if address and not self._names.is_local(address):
            with suppress(MQError):  # an address with a scope cannot be part of a name
                return FormatName.parse(f"DIRECT=TCP:{address}\\PRIVATE$\\order_queue$")
        return FormatName.private(source, ORDER_QUEUE_IDENTIFIER)

    def order_ack(self, to: FormatName, last: Stamp) -> bytes:
        """An acknowledgement of all messages up to one."""
        body = OrderAckBody(last.sequence, last.number, last.number - 1)
        now, identifier = self._clock.now() // 1000, self._composer.new_identifier()
        return build_user_message(order_ack(to, identifier, now, body))

    def send_by_queue(self, packet: bytes, to: FormatName, source: str) -> None:
        """Send an order acknowledgement by an outgoing queue, as it has no session."""
        with self._store.transaction("order acknowledgement") as change:
            self._acknowledgements.send_if_possible(change, Message(packet), to, ANONYMOUS, source)

    def send_final_ack(
        self, change: StoreTransaction, to: FormatName, message: Message, reason: MessageClass
    ) -> None:
        """Send the final acknowledgement of a message, within the commit that decides about it.

        A full queue manager sends it too, because nothing else would reach the source (G158).
        """
        body = final_ack_body(message)
        now, identifier = self._clock.now() // 1000, self._composer.new_identifier()
        packet = build_user_message(final_ack(to, identifier, now, body, reason))
        source, origin = unproven_source(message), source_of(message)
        self._acknowledgements.send_if_possible(
            change, Message(packet), to, ANONYMOUS, source, unbounded=True, origin=origin
        )


def stamp_in(message: Message) -> Stamp:
    """The stamp of a transactional message. Raises DecodeError if it is not transactional."""
    attributes = message.attributes
    sequence = attributes.transactional_message_sequence_identifier
    if sequence is None:
        raise DecodeError("message is not transactional")
    number = attributes.transaction_sequence_number
    return Stamp(sequence, number, attributes.transaction_previous_sequence_number)


def final_ack_body(message: Message) -> FinalAckBody:
    """The body of a message's final acknowledgement. Raises DecodeError if it has no stamp."""
    stamp, identifier = stamp_in(message), message.attributes.identifier
    return FinalAckBody(
        stamp.sequence,
        stamp.number,
        stamp.previous,
        identifier.queue_manager_guid,
        identifier.ordinal,
    )
