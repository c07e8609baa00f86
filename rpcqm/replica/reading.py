"""A reading of the log, whatever the engine: records in their order, from one number on."""

from abc import ABC, abstractmethod
from collections.abc import Callable

from rpcqm.replica.tasks import EngineTasks
from rpcqm.store.errors import ReplicationError


class EngineReading(ABC):
    """Delivers the records behind number `after` until it is stopped, or they were trimmed.

    `failed` is called once with a ReplicationError, and nothing is delivered afterwards.
    """

    def __init__(
        self,
        tasks: EngineTasks,
        after: int,
        deliver: Callable[[bytes], None],
        failed: Callable[[ReplicationError], None],
    ) -> None:
        self._next = after + 1
        self._deliver = deliver
        self._failed = failed
        self._stopped = False
        self._task = tasks.begin(self._run())

    def stop(self) -> None:
        """Deliver nothing more."""
        self._stopped = True
        self._task.cancel()

    @abstractmethod
    async def _run(self) -> None:
        """Ask the engine for the next records, again and again."""

    def _take(self, record: bytes) -> None:
        """Deliver the next record."""
        self._next += 1
        self._deliver(record)

    def _trimmed(self) -> None:
        """Report that the next record was trimmed."""
        self._failed(ReplicationError("The log was trimmed behind what is here: join anew."))
