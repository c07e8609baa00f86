"""What an administrator can have done with the data while it is in use."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from rpcqm.adm.queue import Queue
from rpcqm.base.completion import Completion, start
from rpcqm.base.errors import HResult, MQError
from rpcqm.base.identity import Identity
from rpcqm.base.log import get_logger
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.path_name import PathName, QueueKind
from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.codec.types.mqvalues import FormatNameType
from rpcqm.config import Configuration, named_files, written
from rpcqm.qm.engine import QueueManagerEngine
from rpcqm.qm.importing import import_message
from rpcqm.qm.message_lookup import MessageLocation, find_message
from rpcqm.qm.queue_status import QueueStatus, queue_statuses
from rpcqm.qm.trail import TrailEvent
from rpcqm.store.backup import CONFIGURATION_FILE
from rpcqm.store.errors import StoreError

_log = get_logger("service")


@dataclass(frozen=True, slots=True)
class DirectoryPublicQueue:
    """A public queue of this machine (`here`) or another one; `fixed` when the file lists it."""

    path_name: str
    format_name: str
    label: str
    here: bool
    fixed: bool


class Maintenance:
    """Backups, compaction, event trails and public queues of one queue manager."""

    def __init__(
        self,
        engine: QueueManagerEngine,
        user_file: Path,
        configuration: Callable[[], Configuration] = Configuration,
    ) -> None:
        self._store, self._clock, self._timers = engine.store, engine.clock, engine.timers
        self._queue_manager, self._registry = engine.queue_manager, engine.registry
        self._queues, self._outgoing = engine.queues, engine.outgoing
        self._directory, self._access = engine.directory, engine.access
        self._quotas, self._positions = engine.quotas, engine.positions
        self._trail, self._message_trace = engine.trail, engine.message_trace
        self._failed_deliveries = engine.failed_deliveries
        self._user_file = user_file
        self._configuration = configuration
        self.started = engine.clock.now()

    def make_backup(self, directory: str, secrets: bool = False) -> Completion[str]:
        """Copy the store, the accounts and the configuration to a directory that is new or empty.

        The files with keys and passwords that the configuration names are copied if `secrets`.

        The outcome is a sentence that says why it cannot be done, "" when it is.
        """
        return start(self._make_backup(Path(directory), secrets))

    async def _make_backup(self, directory: Path, secrets: bool) -> str:
        if not directory.is_absolute():
            return f"{directory} is no absolute path."
        try:
            note = self._note() | {"secrets": secrets}
            files = _configuration_files(self._configuration(), secrets)
            await self._store.backup(directory, [self._user_file], note, files)
        except StoreError as error:
            return str(error)
        except Exception as error:
            problem = _sentence(directory, error)
            _log.error("no backup made", problem=problem)
            return problem
        _log.info("backup made", directory=str(directory))
        return ""

    def _note(self) -> dict[str, object]:
        queue_manager = self._queue_manager
        made = datetime.fromtimestamp(self._clock.now() / 1000, UTC)
        return {
            "queue_manager": queue_manager.computer_name,
            "identifier": str(queue_manager.identifier),
            "made": made.isoformat(timespec="seconds"),
            "messages": self._store.total.count,
            "rpcqm": version("rpcqm"),
        }

    def compact(self) -> Completion[None]:
        """Give the disk space of removed messages back."""
        return self._store.compact()

    def disk_bytes(self) -> int:
        """What the store takes on the disk."""
        return self._store.disk_bytes()

    def switch_trail(self, name: FormatName, on: bool) -> Completion[None]:
        """Begin or end the event trail of a queue; MQ_ERROR_QUEUE_NOT_FOUND."""
        return self._trail.switch(self._queue(name), on)

    def has_trail(self, name: FormatName) -> bool:
        """Whether a queue has an event trail; MQ_ERROR_QUEUE_NOT_FOUND."""
        return self._queue(name).main.trail

    def max_deliveries(self, name: FormatName) -> tuple[int, str]:
        """After how many failed deliveries a message goes to which subqueue; 0 is never."""
        queue = self._queue(name).main
        return queue.max_deliveries, queue.poison_subqueue

    def set_max_deliveries(
        self, name: FormatName, limit: int, subqueue: str, identity: Identity
    ) -> Completion[None]:
        """Change that; MQ_ERROR_QUEUE_NOT_FOUND, and what FailedDeliveries raises."""
        return self._failed_deliveries.set_limit(self._queue(name), limit, subqueue, identity)

    def trail(self, identifier: MessageIdentifier) -> Iterator[TrailEvent]:
        """What happened to a message, in order."""
        written = self._trail.events(identifier)
        known = [*written, *self._message_trace.events(identifier)]
        return iter(sorted(known, key=lambda event: event.time))

    def find_message(self, identifier: MessageIdentifier) -> Completion[list[MessageLocation]]:
        """Where a message and its copies are; reads all packets, and serves others meanwhile."""
        return find_message(self._store, self._timers, self._queue_manager, identifier)

    def public_queues(self) -> Iterator[DirectoryPublicQueue]:
        """The public queues of all machines, as far as they are known."""
        listed = self._directory.listed_queues()
        for identifier, queue in self._directory.public_queues().items():
            name = FormatName(FormatNameType.QUEUE_FORMAT_TYPE_PUBLIC, identifier)
            here = self._registry.find_by_format_name(name) is not None
            yield DirectoryPublicQueue(
                queue.pathname, str(name), queue.label, here, identifier in listed
            )

    def outgoing_queues(self) -> list[str]:
        """The format names of all queues to other queue managers."""
        return [queue.destination_format_name for queue in self._outgoing.list()]

    def exposed_queues(self) -> list[str]:
        """The path names of queues that Anonymous owns, or may read."""
        queues = self._queue_manager.queue_collection.values()
        mains = (each for each in queues if each.main is each)
        return sorted(each.pathname for each in mains if self._access.is_exposed(each))

    def queue_statuses(self) -> Iterator[QueueStatus]:
        """What all queues do."""
        return queue_statuses(self._queue_manager, self._access)

    def now(self) -> int:
        """The time, in milliseconds since 1970."""
        return self._clock.now()

    def create_public_queue(
        self, path: str, attributes: Mapping[str, object], identity: Identity
    ) -> Completion[Queue]:
        """Create and publish a queue; MQ_ERROR_NO_DS without a directory, and others."""
        if PathName.parse(path).kind is not QueueKind.PUBLIC:
            raise MQError(HResult.MQ_ERROR_ILLEGAL_QUEUE_PATHNAME, path)
        queue = self._queues.new_queue(path, identity, **attributes)
        return self._queues.create_queue(queue, identity=identity)

    def machine_security(self, parts: int, identity: Identity) -> bytes:
        """The `parts` of the queue manager's own descriptor; MQ_ERROR_ACCESS_DENIED."""
        return self._access.get_queue_manager_security(parts, identity)

    def set_machine_security(
        self, parts: int, change: bytes, identity: Identity
    ) -> Completion[None]:
        """Replace `parts` of it; done when durable. MQ_ERROR_ACCESS_DENIED."""
        return self._access.set_queue_manager_security(parts, change, identity)

    def import_message(self, name: FormatName, packet: bytes) -> Completion[int]:
        """Put a message that was exported into a queue; MQ_ERROR_QUEUE_NOT_FOUND and others."""
        queue = self._queue(name)
        return import_message(self._store, self._quotas, self._positions, queue, packet)

    def _queue(self, name: FormatName) -> Queue:
        queue = self._registry.find_by_format_name(name) or self._outgoing.find(name)
        if queue is None:
            raise MQError(HResult.MQ_ERROR_QUEUE_NOT_FOUND, str(name))
        return queue


def _configuration_files(configuration: Configuration, secrets: bool) -> dict[str, bytes]:
    """Names in a backup, and contents, of the configuration and the files that it names."""
    files = {CONFIGURATION_FILE: written(configuration).encode()}
    for key, path in named_files(configuration, secrets).items():
        files[f"{key}{path.suffix}"] = path.read_bytes()
    return files


def _sentence(directory: Path, error: Exception) -> str:
    """RocksDB's own errors are texts only."""
    text = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
    return f"The queue manager cannot write {directory}: {text}."
