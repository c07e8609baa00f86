"""Messages with their packets, on their way into a queue together with others of their turn.

They come by doors that have templates of their own, or none: by HTTP, by objects. What is done with
one alone stays the definition of what becomes of it (docs/request-templates.md).
"""

from collections.abc import Callable, Sequence

from rpcqm.adm.enums import EnqueueStatus
from rpcqm.adm.message import NEVER, Envelope, Message
from rpcqm.base.completion import Completion
from rpcqm.base.identity import ANONYMOUS
from rpcqm.fast.requests import Composed, Kind, composed_each
from rpcqm.qm.protocol_records import Changes
from rpcqm.qm.quotas import EnqueueRefusedError
from rpcqm.qm.timers import expiry_at


class ComposedMessage:
    """A message that waits for the end of the turn (`turn.TemplatedMessage`).

    `enqueue` puts it into its queue alone; when it raises, nothing has happened. `outcome` is what
    becomes of the message.
    """

    __slots__ = ("_enqueue", "_envelope", "_stored", "beside", "changes", "outcome", "priority")

    response = b""
    """Its door answers by the outcome."""
    administration, sender = None, ANONYMOUS
    """One from whose arrival something follows goes alone."""

    def __init__(
        self,
        message: Message,
        envelope: Envelope,
        enqueue: Callable[[], Completion[None]],
        changes: Changes | None = None,
    ) -> None:
        self._stored, self._envelope, self._enqueue = message.stored, envelope, enqueue
        self.priority, self.changes = envelope.priority, changes
        self.outcome: Completion[None] = Completion()

    @staticmethod
    def composed(
        messages: "Sequence[ComposedMessage]", ordinals: Sequence[int], now: int
    ) -> Composed:
        """What messages tell; they have their packets already."""
        return composed_each(messages, ordinals, now)

    @property
    def size(self) -> int:
        return len(self._stored)

    def compose(self, ordinal: int, now: int) -> bytes:
        """What is kept of it. Raises EnqueueRefusedError if it has become late, at `now`."""
        refuse_late(self._envelope, now)
        return self._stored

    def expiry(self, now: int) -> int:
        """When it expires if it comes `now`."""
        envelope = self._envelope
        return expiry_at(envelope.sent_time, envelope.time_to_be_received, now)

    def accepted(self) -> None:
        """Nothing is kept for the careful way."""
        self._stored = b""

    def stored(self) -> None:
        """It is as durable as it asks for."""
        self.outcome.succeed(None)

    def carefully(self) -> None:
        """Go alone."""
        self.outcome.follow_call(self._enqueue)

    def rehearse(self) -> bytes:
        """Go alone up to the commit, for a comparison."""
        self._enqueue()
        return self.response


def kind_of(message: Message, envelope: Envelope) -> Kind:
    """What a message has in common with others of its run."""
    return Kind(envelope.recoverable, message.position_flags(envelope), composed=True)


def refuse_late(envelope: Envelope, now: int) -> None:
    """Raise EnqueueRefusedError if a message has not reached its queue in time, at `now` (s)."""
    time_to_reach = envelope.time_to_reach_queue
    if time_to_reach != NEVER and now - envelope.sent_time > time_to_reach:
        raise EnqueueRefusedError(EnqueueStatus.TIMED_OUT_IN_TRANSIT)
