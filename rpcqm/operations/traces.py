"""What became of a message, and where it is, for administrators."""

from collections.abc import Iterator

from rpcqm.base.completion import Completion
from rpcqm.base.identity import Identity
from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.qm.access import require_administrator
from rpcqm.qm.engine import QueueManagerEngine
from rpcqm.qm.message_lookup import MessageLocation, find_message
from rpcqm.qm.trail import TrailEvent


class TraceOperations:
    """Raises MQ_ERROR_ACCESS_DENIED for others than administrators."""

    def __init__(self, engine: QueueManagerEngine) -> None:
        self._engine = engine

    def trail(self, identity: Identity, identifier: MessageIdentifier) -> Iterator[TrailEvent]:
        """What happened to a message, in order."""
        require_administrator(identity)
        written = self._engine.trail.events(identifier)
        known = [*written, *self._engine.message_trace.events(identifier)]
        return iter(sorted(known, key=lambda event: event.time))

    def find(
        self, identity: Identity, identifier: MessageIdentifier
    ) -> Completion[list[MessageLocation]]:
        """Where a message and its copies are; reads all packets, and serves others meanwhile."""
        require_administrator(identity)
        engine = self._engine
        return find_message(engine.store, engine.timers, engine.queue_manager, identifier)
