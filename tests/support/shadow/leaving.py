"""Messages that are sent, and removed, together beside the same messages one by one, for tests.

What would leave one by one goes over a copy of the session; removals go the careful way up to
their commits, which are taken back (docs/request-templates.md).
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

from rpcqm.adm.message import Message
from rpcqm.adm.queue import OutgoingQueue, Queue
from rpcqm.binary.connection.peer_connection import PeerConnection, Token
from rpcqm.binary.connection.protocol import BinaryProtocol
from rpcqm.binary.connection.together import SendingQueue
from rpcqm.binary.sequence import Stamp
from rpcqm.binary.trace import is_traced
from rpcqm.codec.packet.enums import MessageClass
from rpcqm.codec.packet.patch import set_sequence
from rpcqm.fast.doors.session_outgoing import ChangesOf, Look
from rpcqm.fast.observer import Observer
from rpcqm.qm.engine import QueueManagerEngine
from rpcqm.qm.transfer import cannot_reach_queue, is_stamped_here
from rpcqm.store.transaction import StoreTransaction
from tests.support.shadow.arriving import Stage, Tap, UnlikeError, tapped
from tests.support.shadow.kept import copied_trace
from tests.support.shadow.session_copy import copied, told

Told = list[tuple[Queue, int, MessageClass]]
"""Messages that have left, and why."""


class _Removal(NamedTuple):
    """One message that the next hop has."""

    remove: Callable[[], object]

    def rehearse(self) -> bytes:
        self.remove()
        return b""


class OutgoingShadow:
    """Compares runs of messages that leave with each of them."""

    def __init__(
        self, engine: QueueManagerEngine, protocol: BinaryProtocol, shadow: Observer
    ) -> None:
        self._engine, self._protocol, self._shadow = engine, protocol, shadow
        self._transfer = engine.transfer

    # Sending

    @contextmanager
    def sending(
        self, transfer: SendingQueue, connection: PeerConnection, keys: Sequence[int]
    ) -> Iterator[None]:
        """Compare what is sent within the block: the messages with these keys."""
        with self._shadow.at_one_time(), self._sending(transfer, connection, keys):
            yield

    @contextmanager
    def _sending(
        self, transfer: SendingQueue, connection: PeerConnection, keys: Sequence[int]
    ) -> Iterator[None]:
        careful = self._sent_one_by_one(transfer, connection, keys)
        index = self._engine.store.index(transfer.queue.queue_id)
        with tapped(connection) as tap:
            yield
            if index.owner(keys[0]) is not transfer:  # nothing has been done
                return
            trace = self._engine.message_trace
            together = self._state(transfer, connection, keys, tap) | {
                "session": told(connection.session),
                "trace": trace.steps(transfer.queue, keys),
            }
        self._shadow.compared += len(keys)
        for name, value in careful.items():
            self._shadow.equal(name, value, together[name])

    def _sent_one_by_one(
        self, transfer: SendingQueue, connection: PeerConnection, keys: Sequence[int]
    ) -> dict[str, object]:
        tap, protocol, queue = Tap(), self._protocol, transfer.queue
        trace = copied_trace(self._engine.message_trace, queue, keys)
        session, locked = copied(connection.session, Stage(None, connection, tap)), []
        try:
            for _ in keys:
                message = self._transfer.lock_next(queue, transfer)
                if message is None:
                    raise UnlikeError("there are fewer messages")
                locked.append(message.lookup_identifier)
                if not self._leaves_as_it_is(message):
                    raise UnlikeError("a message that does not leave as it is")
                packet = protocol.security.outgoing_packet(transfer.name, message)
                session.send(packet, Token(transfer, message.lookup_identifier))
                trace.sent(queue, message, connection.address)
        except Exception as error:  # whatever it is, these were not to be sent together
            return {"sent": error}
        finally:
            careful = self._state(transfer, connection, keys, tap)
            self._engine.store.index(queue.queue_id).unlock_many(locked)
        return careful | {"session": told(session), "trace": trace.steps(queue, keys)}

    def _state(
        self,
        transfer: SendingQueue,
        connection: PeerConnection,
        keys: Sequence[int],
        tap: Tap,
    ) -> dict[str, object]:
        index = self._engine.store.index(transfer.queue.queue_id)
        return {
            "sent": tap.octets,
            "locked": [(key, index.state(key), index.owner(key)) for key in keys],
            "available": (index.available, index.first_available()),
        }

    def compare_locked(self, transfer: SendingQueue, keys: Sequence[int]) -> None:
        """Compare what would be locked one by one, and stamped before it leaves."""
        queue, own = transfer.queue, self._engine.queue_manager.identifier
        locked: list[int] = []
        try:
            for _ in keys:
                message = self._transfer.lock_next(queue, transfer)
                if message is None:
                    break
                locked.append(message.lookup_identifier)
                if not is_stamped_here(message, own) or not self._leaves_in_time(message):
                    self._shadow.equal("to be stamped", message, None)
        finally:
            self._engine.store.index(queue.queue_id).unlock_many(locked)
        self._shadow.equal("locked", locked, list(keys))

    def compare_stamped(
        self, transfer: SendingQueue, key: int, stamp: Stamp, packet: bytes
    ) -> None:
        """Compare what is sent of a message that has its stamp."""
        message = self._engine.positions.message_at(transfer.queue, key)
        careful = bytearray(self._protocol.security.outgoing_packet(transfer.name, message))
        set_sequence(careful, stamp.sequence, stamp.number, stamp.previous)
        late = not self._leaves_in_time(message) or is_traced(message.packet)
        self._shadow.compared += 1
        self._shadow.equal("sent", (bytes(careful), late), (packet, False))

    def _leaves_in_time(self, message: Message) -> bool:
        return not cannot_reach_queue(message, self._engine.clock.now() // 1000)

    def _leaves_as_it_is(self, message: Message) -> bool:
        return self._leaves_in_time(message) and not (
            is_stamped_here(message, self._engine.queue_manager.identifier)
            or is_traced(message.packet)
        )

    # Removing

    @contextmanager
    def removing(
        self, queue: OutgoingQueue, keys: Sequence[int], changes_of: ChangesOf
    ) -> Iterator[Look]:
        """Give what compares a commit within the block: the removal of these messages."""
        with self._shadow.at_one_time(), self._removing(queue, keys, changes_of) as look:
            yield look

    @contextmanager
    def _removing(
        self, queue: OutgoingQueue, keys: Sequence[int], changes_of: ChangesOf
    ) -> Iterator[Look]:
        self._engine.store.carry_out_first()  # what others have put off raises its own events
        positions, unsynced = self._engine.positions, self._transfer.unsynced
        hooks, peekable = positions.deleted_hooks, set(queue.peekable_when_locked)
        one_by_one: Told = []
        together: Told = []
        positions.deleted_hooks = [partial(_note, one_by_one)]
        try:
            rehearsal = self._shadow.rehearse(
                _Removal(partial(self._transfer.delivered, queue, key, changes_of(key)))
                for key in keys
            )
        finally:
            after, self._transfer.unsynced = self._transfer.unsynced, unsynced
            queue.peekable_when_locked.update(peekable)
            positions.deleted_hooks = [partial(_note, together), *hooks]

        def compare(change: StoreTransaction) -> None:
            self._shadow.compare(rehearsal, change, [b""] * len(keys), together=True)
            self._shadow.equal("events", one_by_one, together)

        try:
            yield compare
        finally:
            positions.deleted_hooks = hooks
        if together:
            self._shadow.equal("removals without a sync", after, self._transfer.unsynced)


def _note(told: Told, _: StoreTransaction, queue: Queue, key: int, reason: MessageClass) -> None:
    told.append((queue, key, reason))
