"""What became of a message, and where it is, for administrators."""

from collections import deque
from collections.abc import Iterable, Iterator
from functools import cache
from uuid import UUID

from rpcqm.base.completion import Completion
from rpcqm.base.identity import Identity
from rpcqm.base.settling import settled
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.operations.journeys import Journey, Knowledge, journey, machine_in
from rpcqm.qm.access import require_administrator
from rpcqm.qm.engine import QueueManagerEngine
from rpcqm.qm.message_lookup import MessageLocation, find_message
from rpcqm.qm.names import plain_address
from rpcqm.qm.trail import TrailEvent

MOST_EVENTS = 10_000
"""The latest ones of a message, that its way is made of."""


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

    async def journey(self, identity: Identity, identifier: MessageIdentifier) -> Journey:
        """The way of a message over queue managers, as far as it is known here."""
        places = await settled(self.find(identity, identifier))
        events = list(deque(self.trail(identity, identifier), MOST_EVENTS))
        own = self._engine.queue_manager
        known = Knowledge(
            own.identifier,
            own.computer_name,
            self._name_of,
            cache(self._name_at),  # all sessions are looked at, and most events tell of few hops
            self._destination,
        )
        return journey(identifier.queue_manager_guid, events, places, known)

    def machine_names(self, identity: Identity, identifiers: Iterable[str]) -> dict[str, str]:
        """Names of queue managers by their identifiers, as far as the directory knows them."""
        require_administrator(identity)
        wanted = {each for each in identifiers if each}
        return {each: self._name_of(UUID(each)) for each in wanted}

    def _name_at(self, address: str) -> str:
        """Who is at an address, if a session tells; "" where several are, behind one address."""
        sessions = (view for source in self._engine.session_sources for view in source())
        wanted = plain_address(address)
        peers = {
            each.peer for each in sessions if each.peer and plain_address(each.address) == wanted
        }
        return self._name_of(UUID(peers.pop())) if len(peers) == 1 else ""

    def _name_of(self, identifier: UUID) -> str:
        """A queue manager's name, else its identifier."""
        own = self._engine.queue_manager
        if identifier == own.identifier:
            return own.computer_name
        directory = self._engine.directory
        found = directory.queue_manager(identifier) if directory.is_there else None
        return f"{{{identifier}}}" if found is None else found.computer_name

    def _destination(self, name: FormatName) -> str | None:
        """The queue manager that has a queue; raises MQError for a name of none."""
        if isinstance(name.value, UUID):
            directory = self._engine.directory
            queue = directory.public_queue(name) if directory.is_there else None
            machine = None if queue is None else queue.queue_manager
            return None if machine is None else machine.computer_name
        found = machine_in(name)
        return self._name_of(found) if isinstance(found, UUID) else found
