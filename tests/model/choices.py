"""What a step of the model can choose, and how answers of the real one read."""

from collections.abc import Sequence
from random import Random
from typing import Any, TypeVar

from rpcqm.adm.message import Message
from rpcqm.adm.queue import Queue
from rpcqm.base.completion import Completion
from rpcqm.base.errors import MQError
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.enums import AcknowledgementsRequested, MessageClass
from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.codec.types.mqvalues import QueueAccessType
from tests.model.elements import MDescriptor, MQueue, MTransaction

T = TypeVar("T")

ACCESS = {
    "receive": QueueAccessType.RECEIVE_ACCESS,
    "peek": QueueAccessType.PEEK_ACCESS,
    "move": QueueAccessType.MOVE_ACCESS,
}
ACKNOWLEDGEMENTS = FormatName.parse(r"DIRECT=OS:.\private$\acks")
NAMES = ("a", "b", "c")
PARTS = ("", "", "", ";one", ";two", ";journal")
TIMEOUTS = (0, 700, 2_500, None)
OPERATIONS = (
    *["enqueue"] * 4,
    *["fill"],
    *["receive"] * 12,
    *["end"] * 5,
    *["peek"] * 6,
    *["lookup"] * 4,
    *["move"] * 4,
    *["finish"] * 5,
    *["settle"] * 5,
    *["open"] * 3,
    *["advance"] * 4,
    *["purge"] * 3,
    *["close"] * 3,
    *["open_cursor"] * 2,
    *["cancel", "begin"],
    *["create"] * 2,
    *["delete"] * 2,
    *["change"] * 2,
    *["end_transactional"] * 2,
    *["reject"],
    *["close_cursor", "restart", "crash", "throttle"],
)
ON_HELD = ("end_transactional", "reject")
"""Those that need a message which a transaction has received."""
ASKED = {
    "PA": AcknowledgementsRequested.ACK_POS_ARRIVAL,
    "PR": AcknowledgementsRequested.ACK_POS_RECEIVE,
    "NR": AcknowledgementsRequested.ACK_NEG_RECEIVE,
}


class Dice:
    """The choices of one step, out of one number that Hypothesis has drawn."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def below(self, bound: int) -> int:
        return self._random.randrange(bound)

    def one_in(self, number: int) -> bool:
        return self.below(number) == 0

    def of(self, options: Sequence[T]) -> T:
        return options[self.below(len(options))]


def told(completion: Completion[Any]) -> Any:
    """What an engine's caller knows by now, in the terms of the naive one."""
    if not completion.done:
        return None
    if completion.error is not None:
        assert isinstance(completion.error, MQError), completion.error
        return completion.error.status.name
    result = completion.result()
    if isinstance(result, Message):
        body = result.attributes.body
        moved = result.move_count, result.last_move_time
        return body, result.abort_count, *moved, result.subqueue_name
    return "ok" if result is None or isinstance(result, Queue) else result


def acknowledged(message: Message, bodies: dict[MessageIdentifier, bytes]) -> tuple[str, bytes]:
    """The class of an acknowledgement, and the body of what it is about."""
    attributes = message.attributes
    name = MessageClass(attributes.message_class).name.split("_", 3)[-1]
    return name, bodies[attributes.correlation_identifier]


def expected_in(naive: MQueue) -> list[tuple[bytes, str, int, int, int]]:
    """What the real queue has to hold: bodies, states, aborts, moves, the time of the last one."""
    return [
        (message.body, message.state, message.aborts, message.moves, message.moved_at)
        for message in naive.ordered()
    ]


def waits(descriptor: MDescriptor) -> bool:
    """Whether somebody waits on an open queue."""
    return descriptor.queue is not None and bool(descriptor.queue.waiting)


def has_messages(descriptor: MDescriptor) -> bool:
    """Whether there is something to read."""
    return descriptor.queue is not None and bool(descriptor.queue.messages)


def received_in(descriptor: MDescriptor) -> list[bytes]:
    """The messages of an open queue that transactions hold."""
    queue = descriptor.queue
    if queue is None:
        return []
    return [m.body for m in queue.ordered() if isinstance(m.owner, MTransaction)]


def has_received(descriptor: MDescriptor) -> bool:
    """Whether a transaction holds one of them."""
    return bool(received_in(descriptor))


def can_join(descriptor: MDescriptor) -> bool:
    """Whether a transaction can receive from an open queue."""
    queue = descriptor.queue
    return queue is not None and descriptor.access == "receive" and queue.main.transactional
