"""Messages: sending, peeking, moving, purging, and carrying them from store to store."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from rpcqm.adm.descriptor import OpenQueueDescriptor
from rpcqm.adm.enums import MessageSeekAction
from rpcqm.adm.message import Message, MessagePosition
from rpcqm.adm.queue import Queue
from rpcqm.base.completion import Completion
from rpcqm.base.errors import HResult, MQError
from rpcqm.base.identity import Identity
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.written import format_name
from rpcqm.codec.types.mqvalues import QueueAccessType
from rpcqm.operations.audit import note, note_look, ordered, refusals, start_ordered
from rpcqm.operations.drafts import Draft, attributes_of
from rpcqm.operations.queue_changes import QueueOrders
from rpcqm.operations.queues import QueueOperations
from rpcqm.qm.access import require_administrator
from rpcqm.qm.engine import QueueManagerEngine
from rpcqm.qm.importing import import_message
from rpcqm.qm.leases import Lease, LeasedMessage, Reception, packet_size
from rpcqm.qm.program_work import Also, RequestKey, Sending
from rpcqm.qm.sent_keys import LONGEST_KEY, Identifiers

__all__ = [
    "LONGEST_KEY",
    "Lease",
    "LeasedMessage",
    "Message",
    "MessageOperations",
    "Page",
    "RequestKey",
]

PAGE_BYTES = 8 << 20
"""After so many bytes that are told a page of messages that are looked at has no more.

Packets count where messages are not told, so that an answer stays within the memory of one
connection. The first message is given whatever its size.

Bound `program.page_bytes` [bytes]: the others are on the next page.
"""

Tell = Callable[..., None]
"""Logs the result of an order, once that is certain (G580)."""

Measure = Callable[[Message], int]
"""The octets of a page that a message takes."""


@dataclass(frozen=True, slots=True)
class Page:
    """Messages that were peeked at, and the lookup identifier after which the next ones come."""

    messages: list[Message]
    next: int | None


class MessageOperations:
    """Each opens the queue with the rights of the caller, as RPC does, and closes it again.

    Raises MQError as `Opening.open_queue` does: QUEUE_NOT_FOUND, ACCESS_DENIED,
    SHARING_VIOLATION, UNSUPPORTED_FORMATNAME_OPERATION.
    """

    def __init__(self, engine: QueueManagerEngine, queues: QueueOperations) -> None:
        self._engine = engine
        self._opening, self._messages = engine.opening, engine.messages
        self._orders = QueueOrders(engine.queues)
        self._queues = queues

    @contextmanager
    def opened(
        self,
        identity: Identity,
        names: FormatName | tuple[FormatName, ...],
        access: QueueAccessType,
    ) -> Iterator[OpenQueueDescriptor]:
        """An open queue, or several to send to, for the time of the block."""
        descriptor = self._opening.open_queue(names, access, identity=identity)
        try:
            yield descriptor
        finally:
            self._opening.close_queue(descriptor)

    @contextmanager
    def opened_to_read(
        self, identity: Identity, name: FormatName, access: QueueAccessType
    ) -> Iterator[tuple[OpenQueueDescriptor, Queue]]:
        """The same for a queue here, or for one to elsewhere, which administrators may read."""
        if self._engine.outgoing.find(name) is not None:
            access = _FOR_ADMINISTRATORS[access]
        with self.opened(identity, (name,), access) as descriptor:
            queue = descriptor.queue_reference
            assert queue is not None
            yield descriptor, queue

    # Sending

    def work(
        self,
        identity: Identity,
        sendings: Sequence[tuple[tuple[FormatName, ...], Draft]],
        completes: Sequence[str] = (),
        key: RequestKey | None = None,
    ) -> Completion[Identifiers]:
        """Send messages and complete leases, all or none.

        Gives the identifiers of the messages when they are as durable as they ask for. Raises as
        `ProgramWork.perform`, and MQError for what a message cannot have.
        """
        wanted = [self._sending(identity, *each) for each in sendings]
        return self._engine.program_work.perform(identity, wanted, completes, key)

    def _sending(self, identity: Identity, names: tuple[FormatName, ...], draft: Draft) -> Sending:
        sending = Sending(names, attributes_of(draft), draft.transactional)
        if draft.dead_letter_queue is not None:
            name = format_name(draft.dead_letter_queue)
            place = self._opening.dead_letter_place(name, identity)
            sending.attributes.application_deadletter_queue = place
        return sending

    def check_sending(
        self, identity: Identity, names: tuple[FormatName, ...], draft: Draft
    ) -> None:
        """Raise MQError if a message could not be sent now, for want of a right or of a queue."""
        self._sending(identity, names, draft)
        with self.opened(identity, names, QueueAccessType.SEND_ACCESS):
            pass

    def send_held(
        self, identity: Identity, names: tuple[FormatName, ...], draft: Draft, also: Also
    ) -> Completion[Identifiers]:
        """Send a message that was held back until now; `also` ends that in the same commit."""
        wanted = [self._sending(identity, names, draft)]
        return self._engine.program_work.perform(identity, wanted, also=also, moved=False)

    def send(
        self,
        identity: Identity,
        names: tuple[FormatName, ...],
        drafts: Sequence[Draft],
        key: RequestKey | None = None,
    ) -> Completion[Identifiers]:
        """The same for messages to one destination."""
        return self.work(identity, [(names, draft) for draft in drafts], (), key)

    def send_by_hand(
        self, identity: Identity, name: FormatName, draft: Draft
    ) -> Completion[Identifiers]:
        """The same for what an operator has written, which the log tells of."""
        with ordered(identity, "send message", str(name)):
            return self.send(identity, (name,), [draft])

    # Looking

    def peek(
        self,
        identity: Identity,
        name: FormatName,
        after: int | None = None,
        limit: int = 1,
        octets: int | None = None,
        measure: Measure | None = None,
    ) -> Page:
        """Up to `limit` messages behind that of `after`, which need not be there any more.

        The page ends after `octets`, or PAGE_BYTES. `measure` gives the size of a message, once for
        each that is given; without it packets count.
        """
        room, measure = PAGE_BYTES if octets is None else octets, measure or packet_size
        with self.opened_to_read(identity, name, QueueAccessType.PEEK_ACCESS) as (descriptor, _):
            found, more = _read_on(partial(self._next, descriptor), after, limit, room, measure)
            last = found[-1].lookup_identifier if found else after
            return Page(found, last if more else None)

    def peek_before(
        self, identity: Identity, name: FormatName, before: int | None = None, limit: int = 1
    ) -> tuple[list[Message], bool]:
        """Up to `limit` messages in front of that of `before`, or the last ones, in their order.

        The flag says whether there are more in front of them. The page ends after PAGE_BYTES of
        packets.
        """
        with self.opened_to_read(identity, name, QueueAccessType.PEEK_ACCESS) as (descriptor, _):
            step = partial(self._previous, descriptor)
            found, more = _read_on(step, before, limit, PAGE_BYTES, packet_size)
            return found[::-1], more

    def _next(self, descriptor: OpenQueueDescriptor, after: int | None) -> Message | None:
        seek = MessageSeekAction.SEEK_FIRST if after is None else MessageSeekAction.SEEK_NEXT
        return self._sought(descriptor, after, seek)

    def _previous(self, descriptor: OpenQueueDescriptor, before: int | None) -> Message | None:
        seek = MessageSeekAction.SEEK_LAST if before is None else MessageSeekAction.SEEK_PREVIOUS
        return self._sought(descriptor, before, seek)

    def _sought(
        self, descriptor: OpenQueueDescriptor, key: int | None, seek: MessageSeekAction
    ) -> Message | None:
        try:
            return self._messages.read_message_by_lookup_identifier(
                descriptor, key or 0, True, seek
            ).result()
        except MQError as error:
            if error.status is not HResult.MQ_ERROR_MESSAGE_NOT_FOUND:
                raise
            return None

    def exported(self, identity: Identity, name: FormatName) -> int:
        """Tell the log that a queue is written to a file; how many messages are in it now."""
        with (
            refusals(identity, "export messages", str(name)),
            self.opened_to_read(identity, name, QueueAccessType.PEEK_ACCESS) as (_, queue),
        ):
            note_look(identity, "export messages", queue.full_name, messages=queue.message_count)
            return queue.message_count

    def look_up(self, identity: Identity, name: FormatName, lookup_identifier: int) -> Message:
        """One message, which stays; MQ_ERROR_MESSAGE_NOT_FOUND, or what keeps it from others."""
        with self.opened_to_read(identity, name, QueueAccessType.PEEK_ACCESS) as (descriptor, _):
            return self._messages.read_message_by_lookup_identifier(
                descriptor, lookup_identifier, True, MessageSeekAction.SEEK_CURRENT
            ).result()

    # Receiving

    def receive(
        self,
        identity: Identity,
        name: FormatName,
        lease: int,
        wait: int,
        most: int,
        still: Callable[[], bool] = lambda: True,
        measure: Measure = packet_size,
    ) -> Reception:
        """Receive messages of a queue here under leases; times are milliseconds (`Leases`)."""
        return self._engine.leases.receive(
            name, identity, lease=lease, wait=wait, most=most, still=still, measure=measure
        )

    def answered(self, lease: Lease) -> None:
        """The answer that tells of a lease leaves: its time begins."""
        self._engine.leases.answered(lease)

    def leases(self, identity: Identity) -> list[Lease]:
        """The leases of the caller, or those of all for administrators."""
        return self._engine.leases.visible_to(identity)

    def pulse(self) -> tuple[int, int]:
        """A value that is another one after leases of anybody have changed."""
        return self._engine.leases.pulse()

    def complete(self, identity: Identity, leases: Sequence[str]) -> Completion[None]:
        """Remove the messages of leases."""
        return self._engine.leases.complete(identity, leases)

    def release(self, identity: Identity, leases: Sequence[str]) -> Completion[None]:
        """Give back the messages of leases."""
        return self._engine.leases.release(identity, leases)

    def give_back(self, identity: Identity, lease: str) -> Completion[None]:
        """The same for a lease that an operator ends, which the log tells of."""
        (found,) = self._engine.leases.find(identity, [lease])
        key = str(found.lookup_identifier)
        with ordered(identity, "give message back", found.queue.full_name, lookup_id=key):
            return self.release(identity, [lease])

    def extend(self, identity: Identity, lease: str, milliseconds: int) -> Lease:
        """Let a lease last so long from now on."""
        return self._engine.leases.extend(identity, lease, milliseconds)

    # Taking away

    def take(
        self, identity: Identity, name: FormatName, lookup_identifier: int
    ) -> Completion[Message]:
        """Remove one message; it is given once that is durable."""
        with (
            refusals(identity, "remove messages", str(name)),
            self.opened_to_read(identity, name, QueueAccessType.RECEIVE_ACCESS) as (opened, queue),
        ):
            taken = self._messages.read_message_by_lookup_identifier(
                opened, lookup_identifier, False, MessageSeekAction.SEEK_CURRENT
            )
            note(identity, "remove messages", queue.full_name, messages=1)
            return taken

    def purge(self, identity: Identity, name: FormatName) -> Completion[int]:
        """Remove all messages of a queue; how many, once that is durable."""
        with (
            refusals(identity, "purge", str(name)),
            self.opened_to_read(identity, name, QueueAccessType.RECEIVE_ACCESS) as (_, queue),
        ):
            return self._orders.purge(identity, queue, QueueAccessType.RECEIVE_ACCESS)

    def move(
        self,
        identity: Identity,
        source: FormatName,
        target: FormatName,
        lookup_identifiers: Sequence[int] | None = None,
    ) -> Completion[int]:
        """Move messages between a queue and its subqueues; how many, once that is durable.

        None moves all that nobody holds now. Raises STATUS_INVALID_PARAMETER for queues that are
        not related, MESSAGE_NOT_FOUND; what was moved before a refusal stays moved.
        """
        return start_ordered(self._move(identity, source, target, lookup_identifiers))

    @contextmanager
    def _moving(
        self, identity: Identity, source: FormatName, target: FormatName
    ) -> Iterator[tuple[Queue, Queue, Tell]]:
        """Both queues, for the time in which messages are moved, and what the log is told by."""
        with (
            refusals(identity, "move messages", str(source)),
            self.opened_to_read(identity, source, QueueAccessType.RECEIVE_ACCESS) as (_, queue),
            self.opened(identity, (target,), QueueAccessType.MOVE_ACCESS) as into,
        ):
            place = into.queue_reference
            assert place is not None
            self._messages.check_target(queue, place)
            on = queue.full_name
            yield queue, place, partial(note, identity, "move messages", on, to=place.pathname)

    async def _move(
        self,
        identity: Identity,
        source: FormatName,
        target: FormatName,
        lookup_identifiers: Sequence[int] | None,
    ) -> int:
        count = 0
        with self._moving(identity, source, target) as (queue, place, tell):
            chunks = _chunks(queue) if lookup_identifiers is None else (lookup_identifiers,)
            try:
                for keys in chunks:
                    moved = []
                    for key in keys:
                        moved.append(
                            self._messages.move_message(MessagePosition(queue, key), place)
                        )
                        count += 1
                    for each in moved:
                        await each
            except MQError:
                tell(messages=count)  # those that were moved before the refusal stay moved
                raise
            tell(messages=count)
        return count

    # From store to store

    def import_message(
        self, identity: Identity, name: FormatName, packet: bytes
    ) -> Completion[int]:
        """Put a packet that was exported into a queue, as it was; for administrators.

        Its lookup identifier when it is durable.
        """
        with refusals(identity, "import message", str(name)):
            require_administrator(identity)
        engine, queue = self._engine, self._queues.find(name)
        with ordered(identity, "import message", queue.full_name):
            return import_message(
                engine.store, engine.admission, engine.quotas, engine.positions, queue, packet
            )


MOVED_AT_ONCE = 1_000
"""Messages that are moved before others are served."""

_FOR_ADMINISTRATORS = {
    QueueAccessType.PEEK_ACCESS: QueueAccessType.PEEK_ADMIN_ACCESS,
    QueueAccessType.RECEIVE_ACCESS: QueueAccessType.RECEIVE_ADMIN_ACCESS,
}
"""How queues to elsewhere are opened."""


def _chunks(queue: Queue) -> Iterator[list[int]]:
    """The messages that are in a queue now, some at a time; it may be deleted meanwhile."""
    last, after = queue.message_position_list.last(), None
    while last is not None and queue.queue_manager is not None:
        keys = queue.message_position_list.page(after, MOVED_AT_ONCE)
        keys = [key for key in keys if key <= last]
        if not keys:
            break
        yield keys
        after = keys[-1]


def _read_on(
    step: Callable[[int | None], Message | None],
    key: int | None,
    limit: int,
    room: int,
    measure: Measure,
) -> tuple[list[Message], bool]:
    """Messages to which `step` leads from a key, each from the one before, and if there are more.

    They are up to `limit`; none follows those that make up `room` octets or more.
    """
    found: list[Message] = []
    size = 0
    while (message := step(key)) is not None:
        if len(found) >= limit or size >= room:
            return found, True
        found.append(message)
        key, size = message.lookup_identifier, size + measure(message)
    return found, False
