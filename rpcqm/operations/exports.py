"""All messages of a queue as a file, piece by piece: the same as `rpcqm queue export` writes."""

import asyncio
from collections.abc import Callable

from rpcqm.adm.message import Message
from rpcqm.base.clock import Clock
from rpcqm.base.errors import HResult, MQError
from rpcqm.base.identity import Identity
from rpcqm.base.text import iso_time
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.export_file import ending, opening, record
from rpcqm.operations.messages import MessageOperations, Page
from rpcqm.qm.engine import QueueManagerEngine

MOST_EXPORTS = 16
"""Queues that are exported from pages at a time.

Bound `console.exports` [exports]: the export is refused.
"""
EXPORTS_OF_ACCOUNT = 4
"""Queues that one account exports from pages at a time.

An account that reads slowly leaves some to others.

Bound `console.exports_of_account` [exports]: the export is refused.
"""
PIECE_MESSAGES = 64
PIECE_BYTES = 256 * 1024
"""Messages and octets of packets of a piece; one message may be larger."""

NextPage = Callable[[int | None], Page]
"""The messages behind one of them, as the caller may see them then."""


class Export:
    """Gives the file piece by piece; messages stay in their queue.

    It has as many messages as there were at the beginning, at most. `next` raises MQError when the
    queue has gone, or the right to look at it; without its end no program takes such a file.
    """

    def __init__(
        self,
        owner: str,
        note: dict[str, object],
        messages: int,
        look: NextPage,
        forget: "Callable[[Export], None]",
    ) -> None:
        self.owner = owner
        self.messages = messages
        self._pieces = [opening(note)]
        self._look, self._forget = look, forget
        self._after: int | None = None
        self._count = 0
        self._ended = False

    async def next(self) -> bytes | None:
        """The next octets; None at the end."""
        await asyncio.sleep(0)  # so that others are served however fast the reader is
        if self._pieces:
            return self._pieces.pop()
        if self._ended:
            return None
        page = self._look(self._after)
        found = page.messages[: self.messages - self._count]
        self._count += len(found)
        self._after = page.next
        self._ended = page.next is None or self._count >= self.messages
        records = [record(each.packet, _note_of(each)) for each in found]
        return b"".join((*records, ending(self._count))) if self._ended else b"".join(records)

    def close(self) -> None:
        """Nobody reads on."""
        self._ended = True
        self._pieces.clear()
        self._forget(self)


class ExportOperations:
    """Who may peek at a queue may export it."""

    def __init__(self, engine: QueueManagerEngine, messages: MessageOperations) -> None:
        self._machine = engine.queue_manager
        self._clock: Clock = engine.clock
        self._messages = messages
        self._running: set[Export] = set()

    def export(self, identity: Identity, name: FormatName) -> Export:
        """Begin to export a queue.

        Raises MQError as peeking does, INSUFFICIENT_RESOURCES for too many at the same time.
        """
        own = sum(1 for each in self._running if each.owner == identity.sid)
        if len(self._running) >= MOST_EXPORTS or own >= EXPORTS_OF_ACCOUNT:
            raise MQError(HResult.MQ_ERROR_INSUFFICIENT_RESOURCES, "too many exports at a time")
        count = self._messages.exported(identity, name)
        note: dict[str, object] = {
            "queue": str(name),
            "computer": self._machine.computer_name,
            "exported": iso_time(self._clock.now() // 1000),
        }

        def look(after: int | None) -> Page:
            return self._messages.peek(identity, name, after, PIECE_MESSAGES, PIECE_BYTES)

        export = Export(identity.sid, note, count, look, self._running.discard)
        self._running.add(export)
        return export


def _note_of(message: Message) -> dict[str, object]:
    return {
        "lookup_id": str(message.lookup_identifier),
        "arrived": iso_time(message.arrival_time / 1000),
        "abort_count": message.abort_count,
        "move_count": message.move_count,
    }
