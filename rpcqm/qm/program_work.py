"""A program's combined request: messages sent and leases completed, in one commit (G352).

Messages to transactional queues are sent in a transaction of their own, as [MS-MQDMPR] 3.1.4.4 has
it; the others, the ends of leases and the record of the key (G353) belong to the same commit.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from uuid import uuid4

from rpcqm.adm.descriptor import OpenQueueDescriptor
from rpcqm.adm.message import Message
from rpcqm.adm.queue import OutgoingQueue
from rpcqm.adm.transaction import Transaction
from rpcqm.base.completion import Completion
from rpcqm.base.errors import HResult, MQError
from rpcqm.base.identity import Identity
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.message import MessageAttributes
from rpcqm.qm.composing import Composer
from rpcqm.qm.leases import Lease, Leases
from rpcqm.qm.messages import MessageEvents
from rpcqm.qm.opening import Opening
from rpcqm.qm.privacy import check_privacy
from rpcqm.qm.sent_keys import Identifiers, SentKeys
from rpcqm.qm.transactions import Transactions
from rpcqm.store.store import Store
from rpcqm.store.transaction import StoreTransaction

MOST_SENT = 1_000
"""Messages, and leases to complete, of one request of a program.

This bounds the commit of a request.

Bound `program.most_sent` [messages]: the call is refused.
"""


Also = Callable[[StoreTransaction], None]
"""Adds further changes to a commit."""


@dataclass(slots=True)
class Sending:
    """A message to be sent, and its destination.

    `transactional` counts for a remote queue: a local queue decides itself.
    """

    name: FormatName | tuple[FormatName, ...]
    attributes: MessageAttributes
    transactional: bool = False


@dataclass(frozen=True, slots=True)
class RequestKey:
    """A program's key for its request; `digest` (SHA-256) is of the whole request.

    Two requests with the same key and digest are one.
    """

    key: str
    digest: bytes


class _Opened:
    """A message with the queue that was opened for it."""

    __slots__ = ("descriptor", "message", "sending", "transactional")

    def __init__(self, sending: Sending, descriptor: OpenQueueDescriptor) -> None:
        self.sending = sending
        self.descriptor = descriptor
        queue = descriptor.queue_reference
        here = queue is not None and not isinstance(queue, OutgoingQueue)
        self.transactional = queue.transactional if queue and here else sending.transactional
        self.message: Message


class _Request:
    """The parts of one request, once its queues are open and its leases are found."""

    __slots__ = ("also", "identity", "key", "leases", "moved", "opened", "subject", "transaction")

    def __init__(self, identity: Identity, opened: list[_Opened], key: RequestKey | None) -> None:
        self.identity = identity
        self.opened = opened
        self.key = key
        self.subject = _subject(opened) if key is not None else b""
        self.leases: list[Lease] = []
        self.transaction: Transaction | None = None
        self.also: Also | None = None
        self.moved = False

    @property
    def identifiers(self) -> Identifiers:
        """The identifiers of its messages, which they get when they are composed."""
        return tuple(each.sending.attributes.identifier for each in self.opened)


@dataclass(eq=False, repr=False)
class ProgramWork:
    """Carries out programs' requests, all of it or nothing."""

    _store: Store
    _opening: Opening
    _composer: Composer
    _transactions: Transactions
    _messages: MessageEvents
    _leases: Leases
    _sent_keys: SentKeys

    def perform(
        self,
        identity: Identity,
        sendings: Sequence[Sending],
        completes: Sequence[str] = (),
        key: RequestKey | None = None,
        also: Also | None = None,
        *,
        moved: bool = True,
    ) -> Completion[Identifiers]:
        """Send messages and complete leases (by their identifiers) in one commit.

        `also` lets those leave for which messages are sent, in the same commit (G613); what it
        raises undoes all. It does something else in that commit if nothing has `moved`.

        Gives the identifiers of the messages, in order, when all is as durable as they ask for.
        The same request again under its key gives those of the first one, and does nothing.
        Raises KeyReusedError, LeaseEndedError, EnqueueRefusedError for a quota, and MQError of
        opening the queues (ACCESS_DENIED, QUEUE_NOT_FOUND …) and of sending; nothing has happened
        then.
        """
        if len(sendings) > MOST_SENT or len(completes) > MOST_SENT:
            raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, f"more than {MOST_SENT} at once")
        opened: list[_Opened] = []
        try:
            for sending in sendings:
                descriptor = self._opening.open_to_send_at_once(sending.name, identity=identity)
                opened.append(_Opened(sending, descriptor))
            request = _Request(identity, opened, key)
            request.also, request.moved = also, moved and also is not None
            return self._perform(request, completes)
        finally:
            for each in opened:
                self._opening.close_queue(each.descriptor)

    def _perform(self, request: _Request, completes: Sequence[str]) -> Completion[Identifiers]:
        identity, key = request.identity, request.key
        if key is not None:
            known = self._sent_keys.find(identity.sid, request.subject, key.key, key.digest)
            if known is not None:
                return known
        request.leases = self._leases.find(identity, completes) if completes else []
        if any(each.transactional for each in request.opened):
            request.transaction = self._transactions.create_transaction(uuid4(), identity.sid)
        try:
            return self._commit(request)
        except BaseException:
            transaction = request.transaction
            if transaction is not None and not transaction.ended:
                self._transactions.transaction_abort(transaction.identifier)
            raise

    def _commit(self, request: _Request) -> Completion[Identifiers]:
        transaction = request.transaction
        outcome: Completion[Identifiers] = Completion()
        for each in request.opened:
            joined = transaction if each.transactional else None
            check_privacy(each.descriptor, bool(each.sending.attributes.privacy_level))
            each.message = self._composer.compose(
                each.descriptor, each.sending.attributes, request.identity, joined
            )
            if joined is not None:
                self._messages.enqueue_message_to_an_open_queue(
                    each.descriptor, each.message, joined, moved=request.moved
                )
        if transaction is not None:
            write = partial(self._write, request=request, outcome=outcome)
            self._transactions.transaction_commit(transaction.identifier, write)
        else:
            with self._store.transaction("program") as change:
                self._write(change, request, outcome)
        return outcome

    def _write(
        self, change: StoreTransaction, request: _Request, outcome: Completion[Identifiers]
    ) -> None:
        """Add all parts outside transactions to a commit."""
        for each in request.opened:
            if not each.transactional:
                self._messages.enqueue_in(
                    change, each.descriptor, each.message, moved=request.moved
                )
        self._leases.complete_in(change, request.leases)
        if request.also is not None:
            request.also(change)
        identifiers, key = request.identifiers, request.key
        if key is not None:
            owner, subject = request.identity.sid, request.subject
            self._sent_keys.keep_in(change, owner, subject, key.key, key.digest, identifiers)
        change.call_after(partial(outcome.giving(identifiers).succeed, identifiers))


def _subject(opened: list[_Opened]) -> bytes:
    """The subject of a request: its queues, so that the same key can be used for others."""
    parts = []
    for each in opened:
        queue = each.descriptor.queue_reference
        if queue is None or isinstance(queue, OutgoingQueue):
            parts.append(";".join(map(str, each.descriptor.format_names)).casefold())
        else:
            parts.append(str(queue.queue_id))
    return "\n".join(parts).encode("utf-8", "surrogatepass")
