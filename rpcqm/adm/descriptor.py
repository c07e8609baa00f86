"""Open queues, cursors and waiting readers ([MS-MQDMPR] 3.1.1.10, 3.1.1.16, 3.2.1.2)."""

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING

from rpcqm.adm.enums import CursorState, RemoteReadState
from rpcqm.adm.message import Message, MessagePosition
from rpcqm.base.allowance import Allowance
from rpcqm.base.clock import Timer
from rpcqm.base.completion import Completion
from rpcqm.base.origin import HERE
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.types.mqvalues import QueueAccessType, QueueShareMode

if TYPE_CHECKING:
    from rpcqm.adm.queue import Queue


class OpenQueueDescriptor:
    """A queue that was opened ([MS-MQDMPR] 3.1.1.16).

    `handle` and `context_value` are random 32-bit numbers, unique among descriptors.
    `queue_reference` is None for a multiple-element format name (whose parts are in
    `format_names`), and once the queue is deleted or closed.
    """

    __slots__ = (
        "access_type",
        "account",
        "application_deadletter_queue",
        "context_value",
        "cursor_allowance",
        "cursor_collection",
        "end",
        "format_name",
        "format_names",
        "handle",
        "multiple",
        "notices",
        "number",
        "open_queue_descriptor_collection",
        "opened",
        "origin",
        "owner",
        "queue_reference",
        "remote_read_state",
        "share_mode",
        "two_phase_reads",
        "waiting_message_read_operation_collection",
    )

    def __init__(
        self,
        handle: int,
        context_value: int,
        access_type: QueueAccessType,
        share_mode: QueueShareMode,
        format_name: "FormatName",
        queue_reference: "Queue | None",
    ) -> None:
        self.handle = handle
        self.context_value = context_value
        self.access_type = access_type
        self.share_mode = share_mode
        self.format_name = format_name
        self.queue_reference = queue_reference
        self.multiple = False
        self.format_names: tuple[FormatName, ...] = (format_name,)
        self.open_queue_descriptor_collection: list[OpenQueueDescriptor] = []
        self.remote_read_state = RemoteReadState.NONE
        self.cursor_collection: dict[int, Cursor] = {}
        self.cursor_allowance: Allowance | None = None
        """Bounds the cursors of the client that has the queue open (ours)."""
        self.waiting_message_read_operation_collection: dict[WaitingMessageReadOperation, None] = {}
        self.two_phase_reads: set[int] = set()
        """Lookup identifiers of messages that this descriptor has locked (ours)."""
        self.owner = ""
        """The SID of the account that has opened it; "" for the queue manager itself (ours)."""
        self.account = ""
        """The name of that account (ours)."""
        self.notices = True
        """Whether reading by it counts as a look at dead letters; False for read-only accounts
        (ours)."""
        self.origin = HERE
        """The origin of the order that opened it (ours)."""
        self.opened = 0
        """The time of opening, in milliseconds since 1970 (ours)."""
        self.number = 0
        """The number by which operators name it; no client learns it (ours)."""
        self.end: Callable[[], None] | None = None
        """Runs down the client's handle; None where closing the descriptor is enough (ours)."""
        self.application_deadletter_queue = ""
        """The application dead-letter queue of messages that are sent through it (G71)."""


class Cursor:
    """An iterator over the messages of a queue ([MS-MQDMPR] 3.2.1.2).

    `key` is the lookup identifier of the MessagePositionReference; Start is None. End is kept
    as the last key that was passed, so that only later arrivals match (G7).
    """

    __slots__ = (
        "cursor_state",
        "handle",
        "key",
        "open_queue_descriptor_reference",
        "state_before_wait",
    )

    def __init__(self, handle: int, descriptor: OpenQueueDescriptor) -> None:
        self.handle = handle
        self.open_queue_descriptor_reference = descriptor
        self.key: int | None = None
        self.cursor_state = CursorState.UNREAD
        self.state_before_wait = CursorState.UNREAD

    @property
    def message_position_reference(self) -> MessagePosition | None:
        """The cursor's position; None for Start, and once the queue is gone."""
        queue = self.open_queue_descriptor_reference.queue_reference
        return None if queue is None or self.key is None else MessagePosition(queue, self.key)


class WaitingMessageReadOperation:
    """A reader that waits for a message ([MS-MQDMPR] 3.1.1.10).

    `tag` is unique among the readers of a queue (G12). The caller waits for `outcome`; `take`
    performs the read with the message that has arrived.
    """

    __slots__ = (
        "cursor_reference",
        "descriptor",
        "destructive_read",
        "outcome",
        "tag",
        "take",
        "timer",
    )

    def __init__(
        self,
        descriptor: OpenQueueDescriptor,
        destructive_read: bool,
        tag: Hashable | None,
        cursor: Cursor | None,
        take: Callable[[int], Completion[Message]],
    ) -> None:
        self.descriptor = descriptor
        self.destructive_read = destructive_read
        self.tag = tag
        self.cursor_reference = cursor
        self.take = take
        self.timer: Timer | None = None
        self.outcome: Completion[Message] = Completion()
