"""Public queues here whose objects in a real directory may be wrong or missing.

Before a change is sent to the directory, a record of the queue is durable. It is removed in the
commit that makes the change here, or when its object was seen to agree with the queue: so a crash
between any two steps leaves a record, and never a neglected object. The local state counts: the
object of a queue that is here is written anew, that of a missing queue is deleted.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from uuid import UUID

from rpcqm.adm.directory_object import NULL_GUID
from rpcqm.adm.directory_records import decode_attributes, encode_attributes
from rpcqm.adm.directory_writer import PUBLISHED_OF_MACHINE, DirectoryAnswer
from rpcqm.adm.enums import DirectoryOperationResult, QueueType
from rpcqm.adm.queue import Queue
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.base.clock import Timer, Timers
from rpcqm.base.completion import Completion, start
from rpcqm.base.errors import DecodeError
from rpcqm.base.log import get_logger
from rpcqm.base.text import folded
from rpcqm.codec.names.path_name import PathName
from rpcqm.qm.registry import QueueRegistry
from rpcqm.qm.settings import QueueManagerSettings
from rpcqm.store.records import Family
from rpcqm.store.store import Store
from rpcqm.store.transaction import StoreTransaction

FIRST_WAIT = 1_000
LONGEST_WAIT = 60_000
"""Milliseconds between two attempts; each wait is twice the one before ([MS-MQDMPR] 3.1.2.5)."""

SHOWN = (
    "label",
    "type",
    "journaling",
    "quota",
    "journal_quota",
    "authentication",
    "privacy_level",
    "multicast_address",
    "base_priority",
)
"""The attributes that a directory shows of a published queue to its readers."""

PUBLISHED = (*SHOWN, "security")
"""The attributes of an object; whether its queue is transactional is set once, at its creation."""

_PREFIX = b"publication:"
_SETTLED = frozenset({DirectoryOperationResult.SUCCESS, DirectoryOperationResult.OBJECT_NOT_FOUND})

_log = get_logger("qm")


@dataclass(slots=True)
class Publication:
    """A queue whose object may be wrong or missing."""

    pathname: str
    identifier: UUID = NULL_GUID
    going_on: int = 0
    """The number of its changes under way, which only their own callers settle."""
    number: int = 0
    """Counts its changes, so that an earlier attempt does not settle a later one."""
    in_doubt: bool = False
    """Whether an earlier change may have been made in the directory alone."""
    refused: str = ""
    """The reason of the directory's last refusal."""


@dataclass(eq=False, repr=False)
class Publications:
    """The stored list of publications, worked off one by one."""

    _store: Store
    _timers: Timers
    _registry: QueueRegistry
    _machine: QueueManager
    _settings: QueueManagerSettings
    forget: Callable[[UUID], object]
    """Called for a queue whose object is gone, before the replica shows that."""
    _pending: dict[str, Publication] = field(default_factory=dict)
    _timer: Timer | None = None
    _wait: int = FIRST_WAIT
    _working: bool = False
    _stopped: bool = True
    _machine_refused: str = ""
    machine_pending: bool = False
    """Whether the queue manager's own object must still be written after the start."""

    def __post_init__(self) -> None:
        for key, record in self._store.records(Family.META, _PREFIX):
            self._pending[key[len(_PREFIX) :].decode()] = _read(record)

    def __len__(self) -> int:
        return len(self._pending)

    def has(self, pathname: str) -> bool:
        """Whether a queue is being published or withdrawn, or may not be as it should be."""
        return folded(pathname) in self._pending

    def pending(self) -> list[Publication]:
        """The publications that wait for the directory or were refused, in the order of their
        names."""
        return [self._pending[name] for name in sorted(self._pending)]

    # Records

    def begin(self, queue: Queue) -> Completion[None]:
        """Note that a queue's object is about to be changed; done when that is durable."""
        name = folded(queue.pathname)
        publication = self._pending.setdefault(name, Publication(queue.pathname))
        publication.identifier = queue.identifier if queue.queue_manager else NULL_GUID
        publication.going_on += 1
        publication.number += 1
        with self._store.transaction("publish") as change:
            kept = {"pathname": publication.pathname, "identifier": publication.identifier}
            change.put(Family.META, _key(name), encode_attributes(kept))
            return change.committed

    def end(self, queue: Queue, change: StoreTransaction) -> None:
        """Remove the record in the commit of `change`: the change has succeeded."""
        name = folded(queue.pathname)
        publication = self._pending[name]
        publication.going_on -= 1
        if publication.in_doubt:
            self.work_later()
        elif not publication.going_on:
            change.call_when_undone(lambda: self._take_back(name, publication))
            self._remove(change, name)

    def end_in_doubt(self, queue: Queue) -> None:
        """Check the object again: a change may have been made there and was not made here."""
        publication = self._pending[folded(queue.pathname)]
        publication.going_on -= 1
        publication.in_doubt = True
        self.work_later()

    def end_refused(self, queue: Queue) -> None:
        """Note that a change was made neither there nor here."""
        name = folded(queue.pathname)
        publication = self._pending[name]
        publication.going_on -= 1
        if publication.going_on:
            return
        if publication.in_doubt:
            self.work_later()
            return
        with self._store.transaction("not published") as change:
            self._remove(change, name)

    def _take_back(self, name: str, publication: Publication) -> None:
        self._pending[name] = publication
        publication.going_on += 1

    def _remove(self, change: StoreTransaction, name: str) -> None:
        del self._pending[name]
        change.delete(Family.META, _key(name))

    # Working them off

    def start(self) -> None:
        """Work off the list of an earlier run."""
        writer = self._settings.directory_writer
        self._stopped = False
        self.machine_pending = writer is not None and writer.creates(self._machine)
        if self._pending or self.machine_pending:
            self.work_later()

    def stop(self) -> None:
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def work_later(self, delay: int = 0) -> None:
        """Look at the list after a delay, unless an earlier look is due."""
        if self._timer is None and not self._working and not self._stopped:
            self._timer = self._timers.call_later(delay, self._work_now)

    def _work_now(self) -> None:
        self._timer = None
        self._working = True
        start(self._work()).add_done_callback(self._worked)

    def _worked(self, outcome: Completion[bool]) -> None:
        self._working = False
        if outcome.error is not None:
            _log.error("a publication failed", error=repr(outcome.error))
        if self._pending or self.machine_pending:
            done = outcome.error is None and outcome.result()
            self._wait = FIRST_WAIT if done else min(self._wait * 2, LONGEST_WAIT)
            self.work_later(self._wait)

    async def _work(self) -> bool:
        """Write the waiting objects; returns whether the directory has answered each time."""
        answered = not self.machine_pending or await self._write_machine()
        for name in list(self._pending):
            publication = self._pending.get(name)
            if publication is None or publication.going_on or self._stopped:
                continue
            number = publication.number
            answer = await self._reconcile(publication)
            if answer.result in _SETTLED:
                self._settle(name, publication, number)
            else:
                answered = False
                self._tell_of(publication, answer)
        return answered

    async def _write_machine(self) -> bool:
        writer = self._settings.directory_writer
        if writer is None or not self._machine.full_path:  # until the directory was read
            return False
        answer = await writer.write(self._machine, PUBLISHED_OF_MACHINE)
        self.machine_pending = answer.result is not DirectoryOperationResult.SUCCESS
        if self.machine_pending and self._machine_refused != answer.reason:
            _log.warning("the queue manager is not published", reason=answer.reason)
        self._machine_refused = answer.reason
        return not self.machine_pending

    async def _reconcile(self, publication: Publication) -> DirectoryAnswer:
        writer = self._settings.directory_writer
        if writer is None:
            return DirectoryAnswer(DirectoryOperationResult.DIRECTORY_NOT_CONNECTED)
        queue = self._registry.find_path(PathName.parse(publication.pathname))
        if queue is not None and queue.queue_type is QueueType.PUBLIC:
            answer = await writer.write(queue, PUBLISHED)
            if answer.result is DirectoryOperationResult.OBJECT_NOT_FOUND:
                _log.warning("the directory does not have a queue", queue=queue.pathname)
            return answer
        gone = Queue(identifier=publication.identifier, pathname=publication.pathname)
        answer = await writer.delete(gone)
        deleted = answer.identifier or publication.identifier
        if answer.result in _SETTLED and deleted.int:
            self.forget(deleted)  # what was read of the directory may still show it
        return answer

    def _settle(self, name: str, publication: Publication, number: int) -> None:
        if self._pending.get(name) is publication and publication.number == number:
            with self._store.transaction("published") as change:
                self._remove(change, name)

    def _tell_of(self, publication: Publication, answer: DirectoryAnswer) -> None:
        reason = answer.reason or answer.result.value
        if publication.refused != reason:
            publication.refused = reason
            _log.warning("a queue is not published", queue=publication.pathname, reason=reason)


def _key(name: str) -> bytes:
    return _PREFIX + name.encode()


def _read(record: bytes) -> Publication:
    """Raises DecodeError."""
    kept = decode_attributes(record)
    pathname, identifier = kept.get("pathname"), kept.get("identifier")
    if not isinstance(pathname, str) or not isinstance(identifier, UUID):
        raise DecodeError("damaged record of a publication")
    return Publication(pathname, identifier, in_doubt=True)
