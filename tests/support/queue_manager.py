"""A queue manager over a real store and a clock that stands still."""

import os
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from rpcqm.adm.descriptor import OpenQueueDescriptor
from rpcqm.adm.message import Message, MessagePosition
from rpcqm.adm.queue import Queue
from rpcqm.adm.transaction import Transaction
from rpcqm.base.clock import Timers
from rpcqm.base.completion import Completion
from rpcqm.base.errors import MQError
from rpcqm.base.identity import Identity
from rpcqm.codec.names.format_name import FormatName, parse_format_names
from rpcqm.codec.packet.message import MessageAttributes
from rpcqm.codec.types.mqvalues import QueueAccessType, QueueShareMode
from rpcqm.qm.engine import QueueManagerEngine
from rpcqm.qm.settings import QueueManagerSettings
from rpcqm.service.speed import Speed, speed_of
from rpcqm.store.group_commit import CommitGroup
from rpcqm.store.settings import StoreSettings
from rpcqm.store.store import Store
from tests.support.clock import SimulatedClock
from tests.support.fast import templates
from tests.support.store.kept_log import KeptLog

if TYPE_CHECKING:
    from rpcqm.fast.install import Installation

T = TypeVar("T")

MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
"""Where a sync costs nothing, for tests that are not about syncs."""

COMPUTER = "WORKSTATION"
SETTINGS = QueueManagerSettings(
    computer_name=COMPUTER,
    qualified_computer_name="workstation.example.org",
    addresses=("192.0.2.7",),
    srmp_http_support=True,
)


class RunningQueueManager:
    """The engine, and what a test needs to drive it.

    Nothing becomes durable before `settle`, which ends the turn.
    """

    def __init__(
        self,
        directory: Path,
        settings: QueueManagerSettings = SETTINGS,
        log: KeptLog | None = None,
    ) -> None:
        self.directory = directory
        self.settings = settings
        self.log = log
        self.clock = SimulatedClock()
        self._turn: deque[Callable[[], None]] = deque()
        self.free = 1 << 40
        self._start()

    def _start(self) -> None:
        self.store = Store.open(
            self.directory,
            end_of_turn=self._turn.append,
            clock=self.clock,
            settings=StoreSettings(reserve=1, space_check_bytes=4096),
            free=lambda: self.free,
            log=self.log,
        )
        self.engine = QueueManagerEngine(self.store, self.clock, self.clock.timers, self.settings)
        self.installed: Speed = speed_of(self.engine)
        if self.installed is not None:
            self.installed.switch(templates.are_on())
        self.engine.queue_manager_started()
        self.settle()

    @property
    def speed(self) -> "Installation":
        """What makes repeated requests cheap, for tests of that."""
        assert self.installed is not None
        return self.installed

    def stop(self) -> None:
        self.engine.queue_manager_stopped()
        self.store.close()
        self._turn.clear()

    def restart(self, settings: QueueManagerSettings | None = None) -> None:
        """Stop and start again in the same directory; the clock goes on."""
        self.stop()
        self.settings = settings or self.settings
        self._start()

    def crash(self) -> None:
        """Die before the end of the turn and start again: what was collected is lost."""
        writer = self.store._writer
        for group in writer._groups:
            for transaction in group.transactions:
                transaction.operations.clear()  # which hold handles of the database
        writer._groups = deque([CommitGroup(self.store._database)])
        self.store.close()
        self._turn.clear()
        self.clock.timers = Timers(self.clock)
        self._start()

    def settle(self) -> None:
        """End the turn: everything that was collected becomes durable and visible."""
        for _ in range(10_000):
            if self._turn:
                self._turn.popleft()()
            elif self.log is None or not self.log.answer():
                return
        raise AssertionError("the queue manager does not come to rest")

    def done(self, completion: Completion[T]) -> T:
        """The outcome after the end of the turn; an MQError is raised."""
        self.settle()
        return completion.result()

    def advance(self, milliseconds: int) -> None:
        """Let time pass; timers run on the way."""
        self.clock.advance(milliseconds)
        self.settle()

    # Short forms of what tests do again and again

    def create(self, name: str = r"private$\orders", **attributes: Any) -> Queue:
        queue = self.engine.queues.new_queue(rf".\{name}")
        for attribute, value in attributes.items():
            setattr(queue, attribute, value)
        return self.done(self.engine.queues.create_queue(queue))

    def find(self, name: str = r"private$\orders") -> Queue:
        queue = self.engine.registry.find_by_path(rf".\{name}")
        assert queue is not None
        return queue

    def open(
        self,
        name: Queue | FormatName | str,
        access: QueueAccessType = QueueAccessType.RECEIVE_ACCESS,
        share_mode: QueueShareMode = QueueShareMode.DENY_NONE,
        identity: Identity | None = None,
    ) -> OpenQueueDescriptor:
        """Open a queue, or a format name, or its text."""
        names: FormatName | tuple[FormatName, ...]
        if isinstance(name, Queue):
            names = self.engine.queues.format_name_of(name)
        elif isinstance(name, str):
            names = parse_format_names(name)
        else:
            names = name
        return self.engine.opening.open_queue(names, access, share_mode, identity=identity)

    def subqueue(self, queue: Queue, name: str) -> Queue:
        """A subqueue, which stays because it is open."""
        descriptor = self.open(f"DIRECT=OS:{queue.pathname};{name}", QueueAccessType.MOVE_ACCESS)
        self.settle()
        assert descriptor.queue_reference is not None
        return descriptor.queue_reference

    def compose(
        self, queue: Queue, body: bytes = b"", transaction: Transaction | None = None, **more: Any
    ) -> Message:
        """A recoverable message for a queue, unless `more` says otherwise."""
        more.setdefault("delivery_guarantee", 1)
        descriptor = self.open(queue, QueueAccessType.SEND_ACCESS)
        attributes = MessageAttributes(body=body, **more)
        message = self.engine.composer.compose(descriptor, attributes, None, transaction)
        self.engine.opening.close_queue(descriptor)
        return message

    def enqueue(
        self, queue: Queue, body: bytes = b"", transaction: Transaction | None = None, **more: Any
    ) -> Completion[None]:
        """Send without ending the turn."""
        message = self.compose(queue, body, transaction, **more)
        return self.engine.messages.enqueue_message(queue, message, transaction)

    def send(
        self, queue: Queue, body: bytes = b"", transaction: Transaction | None = None, **more: Any
    ) -> int:
        """Send and end the turn; the lookup identifier (0 in a transaction)."""
        message = self.compose(queue, body, transaction, **more)
        self.done(self.engine.messages.enqueue_message(queue, message, transaction))
        return message.lookup_identifier

    def receive(self, descriptor: OpenQueueDescriptor, **arguments: Any) -> bytes:
        """Receive without waiting; the body."""
        arguments.setdefault("timeout", 0)
        message = self.done(self.engine.messages.dequeue_message(descriptor, **arguments))
        return message.attributes.body

    def lock(self, descriptor: OpenQueueDescriptor) -> MessagePosition:
        """Begin a two-phase read of the first message."""
        message = self.done(self.engine.messages.dequeue_message_begin(descriptor, 0))
        position = message.message_position_reference
        assert position is not None
        return position

    def bodies(self, queue: Queue | None) -> list[bytes]:
        """The bodies of all messages of a queue that can be read, in order."""
        assert queue is not None
        positions = queue.message_position_list
        return [
            self.engine.positions.message_at(queue, key).attributes.body
            for key in positions.page(None, 1_000_000)
        ]


def refusal(function: Callable[..., Any], *arguments: Any, **keywords: Any) -> str:
    """The name of the status with which a call is refused, at once or in its completion."""
    try:
        outcome = function(*arguments, **keywords)
    except MQError as error:
        return error.status.name
    assert isinstance(outcome, Completion), f"{function} was not refused"
    assert isinstance(outcome.error, MQError), f"{function} was not refused: {outcome.error!r}"
    return outcome.error.status.name
