"""Publishes local objects in a directory, by a second process beside the reading one.

Callers wait for `timeout` seconds at most: then the answer is that the directory was not reached,
and the change may have been made or not.
"""

import asyncio
from collections.abc import Callable, Collection, Sequence

from rpcqm.adm.directory import DIRECTORY_ATTRIBUTES
from rpcqm.adm.directory_object import DirectoryObject
from rpcqm.adm.directory_writer import DirectoryAnswer
from rpcqm.adm.enums import DirectoryOperationResult
from rpcqm.adm.queue import Queue
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.base.completion import Completion, completed
from rpcqm.base.log import get_logger
from rpcqm.directory.machine_orders import machine_order, queue_order
from rpcqm.directory.process import WORKER, DirectoryError, DirectoryProcess
from rpcqm.directory.reading import DirectoryReader, Root, Settings
from rpcqm.directory.writing import (
    CREATE_MACHINE,
    CREATE_QUEUE,
    DELETE_MACHINE,
    DELETE_QUEUE,
    WRITE_MACHINE,
    WRITE_QUEUE,
    WriteOrder,
    carry_out,
)

QUEUES, MACHINE, ROUTERS = "queues", "queue-manager", "settings"
"""The publishable parts: queues, the queue manager's own object, the settings of routers."""
ATTEMPTS = 2
"""Attempts: an idle connection may be gone, and one controller may be read-only."""

_NOT_CONNECTED = DirectoryOperationResult.DIRECTORY_NOT_CONNECTED
_log = get_logger("directory")


class LdapWriter:
    """Writes the objects of the queue manager `machine` (`DirectoryWriter`), one at a time."""

    def __init__(
        self,
        settings: Settings,
        machine: QueueManager,
        publish: Collection[str] = (QUEUES,),
        permissions: bool = False,
        command: Sequence[str] = WORKER,
        offline: Callable[[], bool] = lambda: False,
    ) -> None:
        self._offline = offline
        self._settings = settings
        self._machine = machine
        self._publish = frozenset(publish)
        self._permissions = permissions
        self._process = DirectoryProcess(settings.timeout, command)
        self._reader = DirectoryReader(settings, self._process)
        self._root: Root | None = None
        self._connection = 0
        self._one_at_a_time = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self.operations: dict[tuple[str, str], int] = {}
        """The number of orders, by action and result."""

    @property
    def offline(self) -> bool:
        """Whether the directory has not answered for a time, so that nobody should wait for it."""
        return self._offline()

    def creates(self, element: DirectoryObject) -> bool:
        """Whether objects like this one are written into the directory."""
        if isinstance(element, QueueManager):
            return MACHINE in self._publish and element.identifier == self._machine.identifier
        return isinstance(element, Queue) and QUEUES in self._publish

    def create(self, element: DirectoryObject) -> Completion[DirectoryAnswer]:
        """Add an object; the answer has the identifier chosen by the directory."""
        kind = DIRECTORY_ATTRIBUTES[Queue if isinstance(element, Queue) else QueueManager]
        return self._ordered(element, CREATE_QUEUE, CREATE_MACHINE, kind)

    def write(
        self, element: DirectoryObject, attributes: Sequence[str]
    ) -> Completion[DirectoryAnswer]:
        """Replace attributes of an object."""
        return self._ordered(element, WRITE_QUEUE, WRITE_MACHINE, attributes)

    def delete(self, element: DirectoryObject) -> Completion[DirectoryAnswer]:
        """Delete an object of ours."""
        return self._ordered(element, DELETE_QUEUE, DELETE_MACHINE, ())

    def _ordered(
        self, element: DirectoryObject, of_queue: str, of_machine: str, names: Sequence[str]
    ) -> Completion[DirectoryAnswer]:
        if isinstance(element, Queue):
            return self._start(
                queue_order(of_queue, self._machine, element, names, self._permissions)
            )
        if isinstance(element, QueueManager):
            listed = None if of_machine == CREATE_MACHINE else names
            return self._start(
                machine_order(of_machine, element, ROUTERS in self._publish, attributes=listed)
            )
        return completed(DirectoryAnswer(DirectoryOperationResult.GENERIC_ERROR))

    # Orders

    def _start(self, order: WriteOrder) -> Completion[DirectoryAnswer]:
        outcome: Completion[DirectoryAnswer] = Completion()

        async def run() -> None:
            outcome.succeed(await self.carry_out(order))

        task = asyncio.get_running_loop().create_task(run())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return outcome

    async def carry_out(self, order: WriteOrder) -> DirectoryAnswer:
        """The answer to an order, after `timeout` seconds at the latest."""
        try:
            async with asyncio.timeout(self._settings.timeout), self._one_at_a_time:
                answer = await self._carry_out(order)
        except TimeoutError:
            self._process.kill()
            self._root = None
            text = f"the directory has not answered for {self._settings.timeout:g} seconds"
            answer = DirectoryAnswer(_NOT_CONNECTED, reason=text)
        counted = order.action, answer.result.value
        self.operations[counted] = self.operations.get(counted, 0) + 1
        for step in answer.steps:
            _log.info("published in the directory", step=step, dry_run=order.dry_run)
        return answer

    async def _carry_out(self, order: WriteOrder) -> DirectoryAnswer:
        answer = DirectoryAnswer(_NOT_CONNECTED)
        for _ in range(ATTEMPTS):
            try:
                answer = await carry_out(self._process, await self._connected(), order)
            except DirectoryError as error:  # not connected yet, so nothing was changed
                text = f"{error.step}: {error}" if error.step else str(error)
                answer = DirectoryAnswer(_NOT_CONNECTED, reason=text)
            if answer.result is not _NOT_CONNECTED:
                break
            self._root = None
            self._reader.give_up()
        return answer

    async def _connected(self) -> Root:
        """The root of the connected controller, which is kept while it answers."""
        if self._root is None or self._process.started != self._connection:
            self._root = await self._reader.connect()
            self._connection = self._process.started
        return self._root

    async def stop(self) -> None:
        """End the process; waiting callers get the answer that the directory was not reached."""
        await self._process.stop()
        while self._tasks:
            await asyncio.wait(self._tasks)
