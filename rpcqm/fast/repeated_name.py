"""Names of queues here that requests like ones before have in common."""

from rpcqm.adm.queue import Queue
from rpcqm.codec.names.format_name import FormatName
from rpcqm.qm.registry import QueueRegistry


class RepeatedName:
    """A name by which a queue here is sought often; no URL, whose port may change."""

    __slots__ = ("_changes", "_found", "name")

    def __init__(self, name: FormatName) -> None:
        self.name = name
        self._changes = -1
        self._found: Queue | None = None

    def find(self, registry: QueueRegistry) -> Queue | None:
        """What `find_by_format_name` finds; it is looked up anew once any queue came or went."""
        if self._changes != registry.changes:
            self._found = registry.find_by_format_name(self.name)
            self._changes = registry.changes
        return self._found
