"""Where a queue manager's directory comes from: a file, a real directory, or one over the other."""

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from rpcqm.adm.directory import (
    DirectoryContents,
    DirectorySource,
    DirectoryUnavailableError,
)
from rpcqm.adm.directory_object import DirectoryObject
from rpcqm.adm.people import People
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.config.directory import DirectoryFile
from rpcqm.config.directory_section import PUBLISH
from rpcqm.config.schema import Configuration
from rpcqm.operations.metrics import DirectoryFigures
from rpcqm.qm.engine import QueueManagerEngine
from rpcqm.qm.settings import QueueManagerSettings
from rpcqm.service import reload

if TYPE_CHECKING:
    from rpcqm.directory.reading import Settings
    from rpcqm.directory.replica import LdapReplica
    from rpcqm.directory.writer import LdapWriter

_LISTS = (
    "sites",
    "routing_links",
    "queue_managers",
    "queues",
    "users",
    "distribution_lists",
    "queue_aliases",
)


def directory_settings(configuration: Configuration) -> "Settings":
    """What a configuration says of a real directory."""
    from rpcqm.directory.reading import Settings  # only where there is one

    section = configuration.directory
    principal = f"{configuration.name.upper()}$@{section.domain.upper()}"
    return Settings(
        section.domain,
        section.servers,
        section.site,
        section.security,
        str(section.ca_file or ""),
        str(section.keytab or ""),
        section.principal or principal,
        section.search_bases,
        section.round,
        section.full_round,
        section.timeout,
        section.keep_for,
        section.most_objects,
    )


def replica_of(configuration: Configuration) -> "LdapReplica | None":
    """The replica of the directory that a configuration names, with what was kept of it."""
    if not configuration.directory.domain:
        return None
    from rpcqm.directory.replica import LdapReplica

    made = LdapReplica(directory_settings(configuration), configuration.data_dir)
    made.load()
    return made


def writer_of(
    configuration: Configuration, machine: QueueManager, replica: "LdapReplica | None"
) -> "LdapWriter | None":
    """What publishes in the directory, None where it is only read."""
    section = configuration.directory
    if replica is None or section.mode != PUBLISH:
        return None
    from rpcqm.directory.writer import LdapWriter

    return LdapWriter(
        directory_settings(configuration),
        machine,
        section.publish,
        section.publish_permissions,
        offline=lambda: replica.offline,
    )


def source_of(file: DirectoryFile | None, replica: "LdapReplica | None") -> DirectorySource | None:
    """The one source that there is, or the file over the directory."""
    if file is not None and replica is not None:
        return LaidOver(file, replica)
    return file if replica is None else replica


class DirectorySources:
    """The file and the real directory of a queue manager, if it has them."""

    def __init__(self, configuration: Configuration) -> None:
        """Read what there is; raises ConfigurationError."""
        self._configuration = configuration
        self._file = reload.directory_file(configuration)
        self.replica = replica_of(configuration)

    @property
    def people(self) -> People | None:
        """The accounts of the domain; None without a real directory."""
        if self.replica is None:
            return None
        from rpcqm.directory.people import DirectoryPeople  # only where there is one

        return DirectoryPeople(self.replica)

    def give(self, settings: QueueManagerSettings) -> None:
        """Let a queue manager that is about to start have them."""
        settings.directory = source_of(self._file, self.replica)
        settings.directory_needs_us = self.replica is None
        settings.directory_missed = None if self.replica is None else self.replica.missed

    def publish(self, engine: QueueManagerEngine, undo: AsyncExitStack) -> None:
        """Let a queue manager that is about to start publish what is here, if it is to."""
        writer = writer_of(self._configuration, engine.queue_manager, self.replica)
        if writer is not None:
            engine.settings.directory_writer = writer
            undo.push_async_callback(writer.stop)

    def start(self, engine: QueueManagerEngine, undo: AsyncExitStack) -> None:
        """Follow the real directory from now on."""
        if self.replica is not None:
            self.replica.start(engine.directory.check_directory_online)
            undo.push_async_callback(self.replica.stop)

    def figures(self) -> DirectoryFigures | None:
        """How the reading of the real directory goes."""
        if (replica := self.replica) is None:
            return None
        return DirectoryFigures(
            replica.connected,
            replica.age,
            replica.round_seconds,
            replica.rounds,
            replica.failures,
            replica.misses,
            replica.left_out + len(replica.skipped),
            replica.counts(),
        )

    def take(self, engine: QueueManagerEngine, file: DirectoryFile | None) -> bool:
        """Do what a directory file says now, and tell whether it is another one or has changed."""
        old = self._file
        if file is None:
            if engine.directory.is_there:
                engine.directory.check_directory_online()
            return False
        self._file = file
        source = engine.settings.directory = source_of(file, self.replica) or file
        engine.directory.use(source)
        return old is None or old.version != file.version


class LaidOver:
    """A file over a directory: of what has the same identifier, the file's counts."""

    def __init__(self, file: DirectorySource, below: DirectorySource) -> None:
        self._file = file
        self._below = below
        self._seen: tuple[DirectoryContents, DirectoryContents | None] | None = None
        self._both = DirectoryContents()

    def __call__(self) -> DirectoryContents:
        """Both; the file alone as long as the directory cannot be read."""
        try:
            below = self._below()
        except DirectoryUnavailableError:
            below = None
        seen = self._file(), below
        if self._seen is None or any(a is not b for a, b in zip(self._seen, seen, strict=True)):
            self._seen = seen
            self._both = seen[0] if below is None else _laid_over(seen[0], below)
        return self._both


def _laid_over(file: DirectoryContents, below: DirectoryContents) -> DirectoryContents:
    both = DirectoryContents(file.enterprise or below.enterprise)
    for name in _LISTS:
        own: list[DirectoryObject] = getattr(file, name)
        there = {each.identifier for each in own}
        others = [each for each in getattr(below, name) if each.identifier not in there]
        setattr(both, name, [*own, *others])
    return both
