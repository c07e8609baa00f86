"""What became of a message, and where it is, for administrators."""

import asyncio
from collections import deque
from collections.abc import Iterable, Iterator
from uuid import UUID

from rpcqm.base.completion import Completion
from rpcqm.base.errors import MQError
from rpcqm.base.identity import Identity
from rpcqm.base.settling import settled
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.operations.journeys import Journey, Knowledge, Role, journey, machine_in
from rpcqm.operations.ways import ONWARDS, Elsewhere, Known, Part, Way, put_together
from rpcqm.qm.access import require_observer
from rpcqm.qm.engine import QueueManagerEngine
from rpcqm.qm.message_lookup import MessageLocation, find_message
from rpcqm.qm.names import plain_address
from rpcqm.qm.trail import TrailEvent, TrailEventType

MOST_EVENTS = 10_000
"""The latest ones of a message, that its way is made of."""
MOST_ASKED = 8
"""Other queue managers that are asked about one message.

Bound `traces.asked` [queue managers]: what others know of the message is not told.
"""


class TraceOperations:
    """Raises MQ_ERROR_ACCESS_DENIED for others than administrators."""

    def __init__(self, engine: QueueManagerEngine) -> None:
        self._engine = engine
        self.elsewhere: Elsewhere | None = None

    def trail(self, identity: Identity, identifier: MessageIdentifier) -> Iterator[TrailEvent]:
        """What happened to a message, in order."""
        require_observer(identity)
        written = self._engine.trail.events(identifier)
        known = [*written, *self._engine.message_trace.events(identifier)]
        return iter(sorted(known, key=lambda event: event.time))

    def find(
        self, identity: Identity, identifier: MessageIdentifier
    ) -> Completion[list[MessageLocation]]:
        """Where a message and its copies are; reads all packets, and serves others meanwhile."""
        require_observer(identity)
        engine = self._engine
        return find_message(engine.store, engine.timers, engine.queue_manager, identifier)

    async def known(self, identity: Identity, identifier: MessageIdentifier) -> Known:
        """What this queue manager knows of a message, in the names that it has for others."""
        places = await settled(self.find(identity, identifier))
        events = tuple(deque(self.trail(identity, identifier), MOST_EVENTS))
        sent = (each.detail for each in events if each.happening is TrailEventType.SENT)
        addresses = {each.partition("=")[2] or each for each in sent}
        own = self._engine.queue_manager
        names = {each: self._name_at(each) for each in addresses}
        return Known(own.identifier, own.computer_name, events, tuple(places), names)

    async def journey(self, identity: Identity, identifier: MessageIdentifier) -> Journey:
        """The way of a message over queue managers, as far as it is known here."""
        known = await self.known(identity, identifier)
        return self._part(identifier, known).journey

    async def way(self, identity: Identity, identifier: MessageIdentifier) -> Way:
        """Its way as others know it too: each that has had it is asked, as far as that may be."""
        own = self._part(identifier, await self.known(identity, identifier))
        told: dict[str, Part] = {}
        untold: dict[str, MQError] = {}
        while names := self._to_ask(own, told, untold):
            asked = (self._asked(name, identifier) for name in names)
            for name, part in zip(names, await asyncio.gather(*asked), strict=True):
                if isinstance(part, Part):
                    told[name] = part
                else:
                    untold[name] = part
        return Way(put_together(own, told), tuple(told), tuple(untold.items()))

    def _to_ask(self, own: Part, told: dict[str, Part], untold: dict[str, MQError]) -> list[str]:
        """Names that the parts have for other queue managers, and nobody has asked by."""
        if self.elsewhere is None:
            return []
        known = {name.casefold() for name in (own.name, *told, *untold)}
        known |= {each.name.casefold() for each in told.values()}
        wanted = own.names((Role.SOURCE, *ONWARDS))
        wanted += [name for part in told.values() for name in part.names(ONWARDS)]
        new = [each for each in dict.fromkeys(wanted) if each.casefold() not in known]
        return new[: max(0, MOST_ASKED - len(told) - len(untold))]

    async def _asked(self, name: str, identifier: MessageIdentifier) -> Part | MQError:
        assert self.elsewhere is not None
        try:
            return self._part(identifier, await settled(self.elsewhere.known(name, identifier)))
        except MQError as error:
            return error

    def _part(self, identifier: MessageIdentifier, known: Known) -> Part:
        meant = Knowledge(
            known.queue_manager,
            known.name,
            self._name_of,
            lambda address: known.names.get(address, ""),
            self._destination,
        )
        source = identifier.queue_manager_guid
        return Part(known, journey(source, known.events, known.places, meant))

    def machine_names(self, identity: Identity, identifiers: Iterable[str]) -> dict[str, str]:
        """Names of queue managers by their identifiers, as far as the directory knows them."""
        require_observer(identity)
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
