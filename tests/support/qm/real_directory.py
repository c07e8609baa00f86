"""A directory that chooses identifiers itself and answers later, or not at all."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from uuid import UUID, uuid4

from rpcqm.adm.directory import DirectoryContents
from rpcqm.adm.directory_object import DirectoryObject
from rpcqm.adm.directory_writer import DirectoryAnswer
from rpcqm.adm.enums import DirectoryOperationResult
from rpcqm.adm.queue import Queue
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.base.completion import Completion
from tests.support.queue_manager import COMPUTER

SUCCESS = DirectoryOperationResult.SUCCESS
NOT_FOUND = DirectoryOperationResult.OBJECT_NOT_FOUND
NOT_CONNECTED = DirectoryOperationResult.DIRECTORY_NOT_CONNECTED
EXISTS = DirectoryOperationResult.OBJECT_ALREADY_EXISTS


@dataclass
class Entry:
    """An object of a queue."""

    identifier: UUID
    values: dict[str, object]
    ours: bool = True


@dataclass
class RealDirectory:
    """Objects of queues by name; each order waits in `orders` until `answer`.

    With `lost` an order is carried out and nobody hears of it; `refuses` has an answer for all.
    """

    machine: UUID = field(default_factory=uuid4)
    objects: dict[str, Entry] = field(default_factory=dict)
    orders: list[tuple[str, Callable[[], None]]] = field(default_factory=list)
    refuses: DirectoryAnswer | None = None
    lost: bool = False
    adds: int = 0
    publishes_machine: bool = False
    offline: bool = False
    shown: list[Queue] = field(default_factory=list)

    def __call__(self) -> DirectoryContents:
        """What was read: the machine, and the queues that are `shown`."""
        own = QueueManager(identifier=self.machine, computer_name=COMPUTER, full_path="CN=msmq")
        for queue in self.shown:
            queue.queue_manager = own
        return DirectoryContents(queue_managers=[own], queues=self.shown)

    def names(self) -> list[str]:
        """The orders that wait."""
        return [name for name, _ in self.orders]

    def answer(self) -> None:
        """Carry out the order that has waited longest."""
        self.orders.pop(0)[1]()

    def creates(self, element: DirectoryObject) -> bool:
        return isinstance(element, Queue) or (self.publishes_machine and element is not None)

    def create(self, element: DirectoryObject) -> Completion[DirectoryAnswer]:
        def add() -> DirectoryAnswer:
            assert isinstance(element, Queue)
            name = element.pathname.casefold()
            if name in self.objects:
                return DirectoryAnswer(EXISTS)
            self.adds += 1
            entry = Entry(uuid4(), {"label": element.label})
            self.objects[name] = entry
            return DirectoryAnswer(SUCCESS, entry.identifier)

        return self._order("create", add)

    def write(
        self, element: DirectoryObject, attributes: Sequence[str]
    ) -> Completion[DirectoryAnswer]:
        values = {name: getattr(element, name) for name in attributes}

        def replace() -> DirectoryAnswer:
            found = [e for e in self.objects.values() if e.identifier == element.identifier]
            for each in found:
                each.values |= values
            return DirectoryAnswer(SUCCESS if found else NOT_FOUND)

        return self._order("write", replace)

    def delete(self, element: DirectoryObject) -> Completion[DirectoryAnswer]:
        def remove() -> DirectoryAnswer:
            assert isinstance(element, Queue)
            name = element.pathname.casefold()
            entry = self.objects.get(name)
            if entry is None or not entry.ours:
                return DirectoryAnswer(NOT_FOUND)
            del self.objects[name]
            return DirectoryAnswer(SUCCESS, entry.identifier)

        return self._order("delete", remove)

    def _order(
        self, name: str, carry_out: Callable[[], DirectoryAnswer]
    ) -> Completion[DirectoryAnswer]:
        outcome: Completion[DirectoryAnswer] = Completion()

        def answer() -> None:
            if self.refuses is not None:
                outcome.succeed(self.refuses)
            elif self.lost:
                carry_out()
                outcome.succeed(DirectoryAnswer(NOT_CONNECTED, reason="no answer"))
            else:
                outcome.succeed(carry_out())

        self.orders.append((name, answer))
        return outcome
