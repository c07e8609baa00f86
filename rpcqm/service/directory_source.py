"""Where a queue manager's directory comes from: a file, a real directory, or one over the other."""

from typing import TYPE_CHECKING

from rpcqm.adm.directory import (
    DirectoryContents,
    DirectorySource,
    DirectoryUnavailableError,
)
from rpcqm.adm.directory_object import DirectoryObject
from rpcqm.config.directory import DirectoryFile
from rpcqm.config.schema import Configuration

if TYPE_CHECKING:
    from rpcqm.directory.reading import Settings
    from rpcqm.directory.replica import LdapReplica

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


def source_of(file: DirectoryFile | None, replica: "LdapReplica | None") -> DirectorySource | None:
    """The one source that there is, or the file over the directory."""
    if file is not None and replica is not None:
        return LaidOver(file, replica)
    return file if replica is None else replica


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
