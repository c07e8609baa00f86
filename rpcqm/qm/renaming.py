"""Renaming private queues (G653).

MSMQ cannot do that: a private queue has its path name for life there. Here the queue keeps
everything but its name: identifier, number, messages, journal, subqueues and what is open.
"""

from collections.abc import Callable
from dataclasses import dataclass

from rpcqm.adm.enums import QueueType
from rpcqm.adm.queue import OutgoingQueue, Queue
from rpcqm.adm.records import encode_queue
from rpcqm.base.clock import Clock
from rpcqm.base.completion import Completion
from rpcqm.base.errors import HResult, MQError
from rpcqm.base.identity import Identity
from rpcqm.base.text import folded
from rpcqm.codec.names.path_name import PathName, QueueKind
from rpcqm.codec.security.access_check import MQQMACCESSMASK, MQQUEUEACCESSMASK
from rpcqm.qm.access import AccessControl
from rpcqm.qm.names import LocalNames
from rpcqm.qm.queues import RESERVED
from rpcqm.qm.registry import QueueRegistry
from rpcqm.store.records import QUEUE_ID, Family
from rpcqm.store.store import Store
from rpcqm.store.transaction import StoreTransaction

MOST_FORMER_NAMES = 16
"""Earlier names that a queue remembers; the oldest is forgotten first."""

RenameHook = Callable[[StoreTransaction, Queue, str, str], None]
"""Gets the transaction of a rename, the queue, and its path names before and after."""


@dataclass(eq=False, repr=False)
class Renaming:
    """Gives queues other names, and knows by which names they were called before."""

    _store: Store
    _clock: Clock
    _names: LocalNames
    _registry: QueueRegistry
    _access: AccessControl

    def __post_init__(self) -> None:
        self.hooks: list[RenameHook] = []
        """Called for each rename. What a hook puts into the transaction is durable with it; in
        memory it changes what `call_when_undone` can take back."""

    def rename(
        self, queue: Queue, pathname: str, *, identity: Identity | None = None
    ) -> Completion[None]:
        """Give a private queue the path name of another private queue here; done when durable.

        It needs the right to delete the queue, whose name goes away, and the right to create
        queues. Handles, readers, leases and transactions go on. Raises MQError: ACCESS_DENIED,
        QUEUE_EXISTS, ILLEGAL_QUEUE_PATHNAME, QUEUE_NOT_FOUND for one that is gone.
        """
        self._check(queue, identity)
        path = self._checked_path(pathname)
        found = self._registry.find_path(path)
        if found is not None and found is not queue:
            raise MQError(HResult.MQ_ERROR_QUEUE_EXISTS, pathname)
        self._store.carry_out_first()  # what was put off sees the old name
        with self._store.transaction("rename queue") as change:
            self._rename(change, queue, path)
            return change.committed

    def _check(self, queue: Queue, identity: Identity | None) -> None:
        if queue.queue_manager is None:
            raise MQError(HResult.MQ_ERROR_QUEUE_NOT_FOUND)
        if isinstance(queue, OutgoingQueue) or queue.parent is not None:
            raise MQError(HResult.MQ_ERROR_ILLEGAL_QUEUE_PATHNAME, f"{queue.full_name}: {_ONLY}")
        if queue.queue_type is not QueueType.PRIVATE:
            raise MQError(HResult.MQ_ERROR_ACCESS_DENIED, f"{queue.pathname}: {_ONLY}")
        self._access.check_queue(queue, identity, MQQUEUEACCESSMASK.MQSEC_DELETE_QUEUE)
        self._access.check_queue_manager(identity, MQQMACCESSMASK.MQSEC_CREATE_QUEUE)

    def _checked_path(self, pathname: str) -> PathName:
        path = PathName.parse(pathname)
        if path.suffix or path.kind is not QueueKind.PRIVATE:
            raise MQError(HResult.MQ_ERROR_ILLEGAL_QUEUE_PATHNAME, f"{pathname}: {_ONLY}")
        if not self._names.is_local(path.computer):
            raise MQError(HResult.MQ_ERROR_ILLEGAL_QUEUE_PATHNAME, f"{pathname} is not here")
        if path.queue.endswith("$"):
            raise MQError(HResult.MQ_ERROR_ILLEGAL_QUEUE_PATHNAME, f"{path.queue}: {RESERVED}")
        return path

    def _rename(self, change: StoreTransaction, queue: Queue, path: PathName) -> None:
        before, modified = PathName.parse(queue.pathname), queue.modify_time
        told_before = str(before)
        owner = self._registry.formerly(before)
        changed = {each.queue_id: each for each in (queue, owner) if each is not None}
        remembered = [(each, each.former_names) for each in changed.values()]

        def take_back() -> None:
            self._registry.rename(queue, before)
            queue.modify_time = modified
            for each, names in remembered:
                self._registry.remember(each, names)

        change.call_when_undone(take_back)
        self._registry.rename(queue, path)
        queue.modify_time = self._clock.now() // 1000
        self._remember(queue, before.queue, path.queue, owner)
        for part in (*changed.values(), *queue.subqueue_collection.values()):
            change.put(Family.QUEUE, QUEUE_ID.pack(part.queue_id), encode_queue(part))
        for hook in self.hooks:
            hook(change, queue, told_before, queue.pathname)

    def _remember(self, queue: Queue, old: str, new: str, owner: Queue | None) -> None:
        """Keep the old name as one of the last queue alone that had it."""
        if owner is not None:
            self._registry.remember(owner, _without(owner.former_names, old))
        names = (*_without(_without(queue.former_names, old), new), old)
        if folded(old) != folded(new):
            self._registry.remember(queue, names[-MOST_FORMER_NAMES:])


_ONLY = "only whole private queues of applications can be renamed"


def _without(names: tuple[str, ...], name: str) -> tuple[str, ...]:
    return tuple(each for each in names if folded(each) != folded(name))
