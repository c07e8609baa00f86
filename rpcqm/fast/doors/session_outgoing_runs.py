"""Messages of an outgoing queue that are sent together ([MS-MQQB] 3.1.7.1).

`OutgoingTransfer` defines what is done with a message before it leaves, and does it with each
unrecognised or unusual one, and with one that may not leave. Here a message is recognised by the
shape of its packet; the common conditions are checked for the first one of a shape in a run.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

from rpcqm.adm.message import (
    FLAG_NEGATIVE_JOURNALING,
    FLAG_POSITIVE_JOURNALING,
    Message,
)
from rpcqm.adm.queue import OutgoingQueue
from rpcqm.base.log import get_logger
from rpcqm.binary.connection.peer_connection import PeerConnection, tokens_of
from rpcqm.binary.connection.protocol import BinaryProtocol
from rpcqm.binary.connection.together import Locked, SendingQueue, StampedWindow
from rpcqm.binary.trace import is_traced
from rpcqm.codec.names.format_name import FormatName
from rpcqm.fast.doors.session_outgoing import ChangesOf, Leaving, LeavingObserver, Look
from rpcqm.fast.doors.session_shapes import KnownShapes, Shape
from rpcqm.fast.doors.session_stamped import LeavingStamped, Recognised
from rpcqm.fast.turn import Turn
from rpcqm.qm.engine import QueueManagerEngine
from rpcqm.qm.protocol_records import Changes
from rpcqm.qm.transfer import is_stamped_here

FEWEST = 2
"""The smallest run."""
_JOURNALING = FLAG_NEGATIVE_JOURNALING | FLAG_POSITIVE_JOURNALING

_log = get_logger("binary")


class OutgoingRuns:
    """Finds messages that can be sent together; `SendsTogether` of the binary protocol."""

    def __init__(self, engine: QueueManagerEngine, protocol: BinaryProtocol, turn: Turn) -> None:
        self._engine, self._protocol, self._turn = engine, protocol, turn
        self._clock, self._transfer = engine.clock, engine.transfer
        self._queue_manager = engine.queue_manager
        self.shapes = KnownShapes(lambda message: not is_traced(message.packet))
        self._similar = b""
        self.shadow: LeavingObserver | None = None
        if turn.shadow is not None:
            self.shadow = turn.shadow.of_leaving(engine, protocol)
        self.sent = 0
        """Messages that were sent together with others."""

    def _takes(self, count: int) -> bool:
        """Whether so many messages may be handled together now."""
        return count >= FEWEST and self._turn.is_on and not self._protocol.stopping

    def fill(
        self, sending: SendingQueue, connection: PeerConnection, window: StampedWindow, room: int
    ) -> bool:
        """Send the next messages, or lock and number them; False if they go one by one.

        Messages without stamps do not overtake those that wait for one.
        """
        if window.alone or not self._takes(room):
            return False
        run = self._next(sending.queue, sending.name, room)
        if len(run) < FEWEST:
            return False
        if run.to_be_stamped:
            return self._lock_to_be_stamped(sending, window, run)
        return not window.together and self._send(sending, connection, run)

    def _send(self, sending: SendingQueue, connection: PeerConnection, run: Leaving) -> bool:
        """Send a run; its messages are in flight then, which locks them. False if that fails."""
        queue, keys, shadow = sending.queue, run.keys, self.shadow
        with nullcontext() if shadow is None else shadow.sending(sending, connection, keys):
            if not self._transfer.lock_run(queue, keys, sending):
                return False
            sending.in_flight.update(dict.fromkeys(keys))
            connection.session.send_many(run.packets, tokens_of(sending, keys))
            trace = self._engine.message_trace
            trace.sent_together(queue, keys, run.identifiers, run.packets, connection.address)
        self.count_sent(len(run))
        return True

    def count_sent(self, count: int) -> None:
        """Count messages that were sent together."""
        self.sent += count
        self._engine.store.metrics.count("templates.left", count)

    def _lock_to_be_stamped(
        self, sending: SendingQueue, window: StampedWindow, run: Leaving
    ) -> bool:
        """Lock a run whose messages get their stamps first; False if that fails."""
        keys = run.keys
        if self.shadow is not None:
            self.shadow.compare_locked(sending, keys)
        if not self._transfer.lock_run(sending.queue, keys, sending):
            return False
        sending.in_flight.update(dict.fromkeys(keys))
        for key in keys:
            sending.number(key, window.changes)
        window.together += map(
            Recognised, keys, run.identifiers, run.packets, run.shapes, run.latest
        )
        return True

    def stamped(
        self, sending: SendingQueue, connection: PeerConnection, locked: Sequence[Locked]
    ) -> list[bytes]:
        """The packets of messages that were locked together, once their stamps are durable."""
        return LeavingStamped(self, self._engine, sending, connection).packets(locked)

    def _next(self, queue: OutgoingQueue, name: FormatName, limit: int) -> Leaving:
        """The next messages that leave unchanged but for a stamp, without other effects."""
        asked: dict[Shape, bool] = {}
        run = Leaving(self._transfer.next_run(queue, limit), self._clock.now() // 1000)
        while (stored := run.following) is not None:
            found = self.shapes.find(stored, 0)
            if found is None:
                self._similar = self.shapes.unknown(stored, 0, self._similar)
                break
            shape, values = found
            if shape not in asked:
                asked[shape] = self._belongs_to(run, name, shape, stored[: values.size])
            if not asked[shape] or not run.take(shape, values):
                break
        return run

    def _belongs_to(self, run: Leaving, name: FormatName, shape: Shape, packet: bytes) -> bool:
        """Whether messages of a shape fit into the run; those that need stamps go with each other
        only.

        The given packet is one of them.
        """
        stamped = shape.transactional and is_stamped_here(
            Message(packet), self._queue_manager.identifier
        )
        if not run.packets:
            run.to_be_stamped = stamped
        return run.to_be_stamped is stamped and self.leaves_unchanged(name, packet)

    def leaves_unchanged(self, name: FormatName, packet: bytes) -> bool:
        """Whether messages of a shape leave as they are stored; the given packet is one of them."""
        try:
            return self._protocol.security.outgoing_packet(name, Message(packet)) is packet
        except Exception as error:  # the careful path reports it for each of them
            _log.debug("not sent together", queue=str(name), error=str(error))
            return False

    def delivered(self, queue: OutgoingQueue, keys: Sequence[int]) -> bool:
        """Remove messages that the next hop has; False, and nothing has happened, if unusual."""
        if not self._takes(len(keys)):
            return False
        with self._removing(queue, keys, _no_changes) as look:
            return self._transfer.delivered_together(queue, keys, look=look)

    def _removing(
        self, queue: OutgoingQueue, keys: Sequence[int], changes_of: ChangesOf
    ) -> AbstractContextManager[Look | None]:
        """Give the observer of removals within the block, if there is a comparison."""
        if self.shadow is None or queue.trail:
            return nullcontext()
        return self.shadow.removing(queue, keys, changes_of)

    def arrived_in_order(
        self, sending: SendingQueue, keys: Sequence[int], changes: Changes
    ) -> bool:
        """Remove messages that have arrived in order, and make `changes` of its records; else
        False.

        A message that asks to be kept waits for its final acknowledgement, which is unusual.
        """
        queue = sending.queue
        positions = [queue.message_position_list.position(key) for key in keys]
        if not self._takes(len(keys)) or any(
            position is None or position.flags & _JOURNALING for position in positions
        ):
            return False
        with self._removing(queue, keys, sending.changes_without) as look:
            if not self._transfer.delivered_together(queue, keys, changes, look):
                return False
        for key in keys:
            sending.in_flight.pop(key, None)
        self._engine.message_trace.acknowledged_together(queue, keys, "in order")
        return True


def _no_changes(_: int) -> None:
    """No changes: a message outside sequences has no record."""
