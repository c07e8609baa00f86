"""Names of local queues that repeated requests share."""

from rpcqm.adm.queue import Queue
from rpcqm.codec.names.format_name import FormatName
from rpcqm.qm.registry import QueueRegistry


class RepeatedName:
    """A name by which a local queue is often looked up; no URL, whose port may change."""

    __slots__ = ("_changes", "_found", "name")

    def __init__(self, name: FormatName) -> None:
        self.name = name
        self._changes = -1
        self._found: Queue | None = None

    def find(self, registry: QueueRegistry) -> Queue | None:
        """The result of `find_by_format_name`, kept until any queue comes or goes."""
        if self._changes != registry.changes:
            self._found = registry.find_by_format_name(self.name)
            self._changes = registry.changes
        return self._found
