"""Queues: making, listing, changing and deleting them, and who may do what with them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rpcqm.adm.enums import QueueType
from rpcqm.adm.queue import OutgoingQueue, Queue
from rpcqm.base.completion import Completion
from rpcqm.base.errors import HResult, MQError
from rpcqm.base.identity import Identity
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.path_name import PathName, QueueKind
from rpcqm.codec.names.written import no_such_queue
from rpcqm.codec.security.access_check import MQQUEUEACCESSMASK
from rpcqm.codec.types.mqvalues import FormatNameType, QueueAccessType
from rpcqm.operations.audit import note, ordered, refusals
from rpcqm.operations.queue_changes import QueueOrders
from rpcqm.operations.queue_order import QueueOrder, is_of_an_application
from rpcqm.operations.shapes import QueueFacts, QueueNames, described_queue, queue_facts, short_name
from rpcqm.qm.access import require_administrator, require_observer
from rpcqm.qm.engine import QueueManagerEngine

_CHANGING = (
    MQQUEUEACCESSMASK.MQSEC_SET_QUEUE_PROPERTIES | MQQUEUEACCESSMASK.MQSEC_GET_QUEUE_PROPERTIES
)


@dataclass(frozen=True, slots=True)
class DirectoryPublicQueue:
    """A public queue of this machine (`here`) or another one; `fixed` when the file lists it."""

    path_name: str
    format_name: str
    label: str
    here: bool
    fixed: bool


class QueuePage:
    """What some queues are, in pieces of a fraction of a millisecond, some of them empty.

    Each has the number that no other queue has.
    `next` is the name behind which the next ones come, None at the end, once all were told.
    """

    def __init__(
        self,
        order: QueueOrder,
        facts: Callable[[Queue], QueueFacts],
        after: str | None,
        limit: int,
    ) -> None:
        self._order, self._facts = order, facts
        self._after, self._limit = after, limit
        self.next: str | None = None

    def __iter__(self) -> Iterator[Sequence[tuple[int, QueueFacts]]]:
        found = yield from self._order.ordered()
        begin = 0 if self._after is None else found.behind(self._after)
        shown = found.queues[begin : begin + self._limit]
        if begin + self._limit < len(found.queues):
            self.next = short_name(shown[-1])
        for at in range(0, len(shown), _PIECE):
            piece = shown[at : at + _PIECE]
            # those that have been deleted meanwhile belong to no queue manager
            here = (queue for queue in piece if queue.queue_manager is not None)
            yield [(queue.queue_id, self._facts(queue)) for queue in here]


@dataclass(frozen=True, slots=True)
class QueueRights:
    """What somebody may do with a queue, so that nobody is offered what would be refused.

    None is what nobody can do with a queue of that kind, as sending to a journal.
    """

    peek: bool
    receive: bool
    send: bool | None = None
    move: bool | None = None
    change: bool | None = None
    delete: bool | None = None


class QueueOperations:
    """Names of queues are format names; MQ_ERROR_QUEUE_NOT_FOUND for those of no queue here."""

    def __init__(self, engine: QueueManagerEngine) -> None:
        self._engine = engine
        self._registry, self._outgoing = engine.registry, engine.outgoing
        self._queues, self._access = engine.queues, engine.access
        self._order = QueueOrder(engine.registry)
        self._orders = QueueOrders(engine.queues)
        self._names: dict[int, tuple[str, bool, QueueNames]] = {}

    # Finding

    def find(self, name: FormatName) -> Queue:
        """The outgoing queue of a name, or the queue, journal or subqueue here (G501)."""
        queue = self._outgoing.find(name) or self._registry.find_by_format_name(name)
        if queue is None:
            raise no_such_queue(name)
        return queue

    def is_there(self, name: FormatName) -> bool:
        """Whether a queue here has that name."""
        return self._registry.find_by_format_name(name) is not None

    def list(self, identity: Identity) -> list[Queue]:
        """The queues of applications, by their path names; for administrators."""
        require_observer(identity)
        queues = self._engine.queue_manager.queue_collection.values()
        found = filter(is_of_an_application, queues)
        return sorted(found, key=lambda queue: queue.pathname.casefold())

    def page(self, identity: Identity, after: str | None, limit: int) -> "QueuePage":
        """Up to `limit` queues of applications behind the short name `after`; for administrators.

        They are told by their short names, in pieces, between which others may be served.
        """
        require_observer(identity)
        return QueuePage(self._order, self._facts, after, limit)

    def look(self, identity: Identity, name: FormatName) -> Queue:
        """A queue whose properties the caller may see by the queue's permissions.

        Those of system queues and of outgoing queues are for administrators.
        """
        queue = self.find(name)
        if isinstance(queue, OutgoingQueue) or queue.queue_type is QueueType.SYSTEM:
            require_observer(identity)
        else:
            rights = MQQUEUEACCESSMASK.MQSEC_GET_QUEUE_PROPERTIES
            self._access.check_queue(queue, identity, rights)
        return queue

    def look_as_listed(self, identity: Identity, name: FormatName) -> Queue:
        """The same; administrators see the properties of all, as `list` tells them (G584)."""
        if identity.may_look:
            return self.find(name)
        return self.look(identity, name)

    def used(self, identity: Identity, name: FormatName) -> tuple[int | None, int | None] | None:
        """How many messages and octets are in a queue whose properties the caller may not see.

        Both are None for a caller that may not peek. The result is None for a caller that may do
        nothing there.
        """
        queue = self.find(name)
        rights = self.rights(identity, queue)
        if rights.peek:
            return queue.message_count, queue.total_bytes
        return (None, None) if rights.receive or rights.send else None

    def shown(self, identity: Identity, queue: Queue) -> dict[str, object]:
        """What a queue is, with what is in it for those who may count that by peeking."""
        counted = identity.may_look or self._access.may_peek(queue, identity)
        return described_queue(self._facts(queue, counted))

    def quota_uses(self, identity: Identity) -> dict[str, tuple[int | None, int | None]]:
        """Percent of the quotas of queues and their journals, of those that have any, by path."""
        require_observer(identity)
        quotas, found = self._engine.quotas, {}
        for queue in self._engine.queue_manager.queue_collection.values():
            if queue.main is not queue or isinstance(queue, OutgoingQueue):
                continue
            used = quotas.percent(queue), quotas.percent(queue.journal_queue_reference)
            if used != (None, None):
                found[queue.pathname] = used
        return found

    def _facts(self, queue: Queue, counted: bool = True) -> QueueFacts:
        return queue_facts(queue, self._names_of(queue), counted, self._engine.quotas)

    def named(self, queue: Queue) -> str:
        """The name by which commands call a queue."""
        return self._names_of(queue).short

    def _names_of(self, queue: Queue) -> QueueNames:
        """The names of a queue, which are the same until it gets another path or is published."""
        published = queue.queue_type is QueueType.PUBLIC and self._engine.directory.is_there
        known = self._names.get(queue.queue_id)
        if known is None or known[0] != queue.pathname or known[1] != published:
            if len(self._names) > 2 * len(self._engine.queue_manager.queue_collection):
                self._names.clear()
            told = str(self._queues.format_name_of(queue))
            # one to elsewhere has no path here
            names = QueueNames(short_name(queue) if queue.pathname else told, told)
            known = self._names[queue.queue_id] = queue.pathname, published, names
        return known[2]

    def rights(self, identity: Identity, queue: Queue) -> QueueRights:
        """What the caller may do with a queue, by the checks of the operations themselves."""
        access = self._access
        peek = access.may_open(queue, identity, QueueAccessType.PEEK_ACCESS)
        receive = access.may_open(queue, identity, QueueAccessType.RECEIVE_ACCESS)
        if isinstance(queue, OutgoingQueue) or queue.queue_type is QueueType.SYSTEM:
            return QueueRights(peek, receive)
        if queue.parent is not None:
            return QueueRights(peek, receive, move=None if queue.is_journal else receive)
        return QueueRights(
            peek,
            receive,
            send=access.may_open(queue, identity, QueueAccessType.SEND_ACCESS),
            move=receive,
            change=access.allows(queue, identity, _CHANGING),
            delete=access.allows(queue, identity, MQQUEUEACCESSMASK.MQSEC_DELETE_QUEUE),
        )

    def held(self, queue: Queue) -> int:
        """How many messages nobody finds, because a lease, a transaction or a reader has them."""
        positions = queue.message_position_list
        return positions.count - positions.available

    def may_create(self, identity: Identity) -> bool:
        """Whether the caller may make queues."""
        return self._access.may_create(identity)

    def public(self, identity: Identity) -> Iterator[DirectoryPublicQueue]:
        """The public queues of all machines, as far as they are known; for administrators."""
        require_observer(identity)
        return self._public()

    def _public(self) -> Iterator[DirectoryPublicQueue]:
        directory = self._engine.directory
        listed = directory.listed_queues()
        for identifier, queue in directory.public_queues().items():
            name = FormatName(FormatNameType.QUEUE_FORMAT_TYPE_PUBLIC, identifier)
            here = self._registry.find_by_format_name(name) is not None
            yield DirectoryPublicQueue(
                queue.pathname, str(name), queue.label, here, identifier in listed
            )

    # Making and deleting

    def create(
        self, identity: Identity, path: str, attributes: Mapping[str, object]
    ) -> Completion[Queue]:
        """Create a queue; done when durable.

        `attributes` are those of `adm.Queue`. A public queue, for administrators, is published.
        Raises MQError as `QueueOrders.create` does.
        """
        return self._orders.create(identity, self._queues.new_queue(path, identity, **attributes))

    def create_public(
        self, identity: Identity, path: str, attributes: Mapping[str, object]
    ) -> Completion[Queue]:
        """Create and publish a queue; MQ_ERROR_NO_DS without a directory, and others."""
        if PathName.parse(path).kind is not QueueKind.PUBLIC:
            raise MQError(HResult.MQ_ERROR_ILLEGAL_QUEUE_PATHNAME, path)
        return self.create(identity, path, attributes)

    def delete(self, identity: Identity, name: FormatName) -> Completion[None]:
        """Delete a queue with its journal, its subqueues and all messages; done when durable."""
        return self._orders.delete(identity, self._own(name))

    # Renaming

    def rename(self, identity: Identity, name: FormatName, path: str) -> Completion[None]:
        """Give a private queue another path name; done when durable (G653)."""
        queue = self._own(name)
        with ordered(identity, "rename queue", queue.pathname, to=path):
            return self._engine.renaming.rename(queue, path, identity=identity)

    def renamed_to(self, identity: Identity, name: FormatName) -> str:
        """The short name by which the queue goes now that had a name before; "" for others.

        It is told to those who may do anything with the queue.
        """
        if not isinstance(name.value, str) or not self._registry.is_local_direct(name.direct_name):
            return ""
        queue = None if self.is_there(name) else self._registry.formerly(name.path_name)
        if queue is None:
            return ""
        rights = self.rights(identity, queue)
        known = identity.may_look or rights.peek or rights.receive or rights.send
        return short_name(queue) if known else ""

    # Properties

    def set_properties(
        self, identity: Identity, name: FormatName, changes: Mapping[str, object]
    ) -> Completion[None]:
        """Change attributes of a queue, all or none; done when durable."""
        return self._orders.set_properties(identity, self.find(name), changes)

    def may_change(self, identity: Identity, name: FormatName) -> None:
        """Raise MQ_ERROR_ACCESS_DENIED unless the caller may change and see properties."""
        queue = self._own(name)
        with refusals(identity, "set properties", queue.pathname):
            self._access.check_queue(queue, identity, _CHANGING)

    def max_deliveries(self, identity: Identity, name: FormatName) -> tuple[int, str]:
        """After how many failed deliveries a message goes to which subqueue; 0 is never."""
        require_observer(identity)
        queue = self.find(name).main
        return queue.max_deliveries, queue.poison_subqueue

    def set_max_deliveries(
        self, identity: Identity, name: FormatName, limit: int, subqueue: str
    ) -> Completion[None]:
        """Change that, with the right to set properties."""
        queue = self.find(name)
        with ordered(identity, "set the limit of deliveries", queue.full_name, limit=limit):
            return self._engine.failed_deliveries.set_limit(queue, limit, subqueue, identity)

    def journal_bounds(self, identity: Identity, name: FormatName) -> tuple[int, int]:
        """How old copies in a queue's journal may become (seconds), and how many; 0 is no bound."""
        require_observer(identity)
        queue = self.find(name).main
        return queue.journal_max_age, queue.journal_max_messages

    def set_journal_bounds(
        self, identity: Identity, name: FormatName, max_age: int, max_messages: int
    ) -> Completion[None]:
        """Change that, with the right to set properties."""
        queue = self.find(name)
        bounds = {"max_age": max_age, "max_messages": max_messages}
        with ordered(identity, "bound the journal", queue.full_name, **bounds):
            return self._engine.journal_bounds.set(queue, max_age, max_messages, identity)

    # Trails

    def has_trail(self, identity: Identity, name: FormatName) -> bool:
        """Whether a queue has an event trail."""
        require_observer(identity)
        return self.find(name).main.trail

    def switch_trail(self, identity: Identity, name: FormatName, on: bool) -> Completion[None]:
        """Begin or end the event trail of a queue."""
        action = "begin trail" if on else "end trail"
        with refusals(identity, action, str(name)):
            require_administrator(identity)
        queue = self.find(name)
        note(identity, action, queue.full_name)
        return self._engine.trail.switch(queue, on)

    # Permissions

    def security(self, identity: Identity, name: FormatName, parts: int) -> bytes:
        """The `parts` (SecurityInformation) of a queue's descriptor, self-relative."""
        return self._queues.get_security(self._own(name), parts, identity=identity)

    def set_security(
        self, identity: Identity, name: FormatName, parts: int, descriptor: bytes
    ) -> Completion[None]:
        """Replace `parts` of a queue's descriptor; done when durable."""
        return self._orders.set_security(identity, self._own(name), parts, descriptor)

    def _own(self, name: FormatName) -> Queue:
        queue = self._registry.find_application_queue(name)
        if queue is None:
            raise no_such_queue(name)
        return queue


_PIECE = 50
"""Queues that are described in one piece."""
