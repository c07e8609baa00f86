"""Queues and the statistics of their traffic ([MS-MQDMPR] 3.1.1.2 to 3.1.1.5, 3.1.1.18)."""

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol
from uuid import UUID

from rpcqm.adm.directory_object import NULL_GUID, DirectoryObject
from rpcqm.adm.enums import OutgoingQueueState, PositionState, QueueScope, QueueType
from rpcqm.codec.packet.types import SequenceInfo
from rpcqm.codec.types.mqvalues import INFINITE, ConnectionStatus, QueuePrivacyLevel

if TYPE_CHECKING:
    from rpcqm.adm.descriptor import OpenQueueDescriptor, WaitingMessageReadOperation
    from rpcqm.adm.message import MessagePosition
    from rpcqm.adm.queue_manager import QueueManager


NO_SEQUENCE = SequenceInfo()


class StoredPosition(Protocol):
    """The part of a message that a position list has in memory; times are ms since 1970."""

    @property
    def serial(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def arrival(self) -> int: ...
    @property
    def expiry(self) -> int: ...
    @property
    def flags(self) -> int: ...


class MessagePositionList(Protocol):
    """Queue.MessagePositionList: ordered by lookup identifier, which is the `key` (G1).

    Start is None. Methods that look return None at the end of the list.
    """

    @property
    def count(self) -> int: ...
    @property
    def available(self) -> int: ...
    @property
    def bytes(self) -> int: ...
    @property
    def entered(self) -> int: ...
    @property
    def left(self) -> int: ...
    def oldest(self) -> int: ...
    def first_available(self) -> int | None: ...
    def first(self, available: bool = True) -> int | None: ...
    def last(self, available: bool = True) -> int | None: ...
    def next(self, key: int, available: bool = True) -> int | None: ...
    def previous(self, key: int, available: bool = True) -> int | None: ...
    def page(self, after: int | None, limit: int, available: bool = True) -> list[int]: ...
    def state(self, key: int) -> PositionState: ...
    def position(self, key: int) -> StoredPosition | None: ...
    def owner(self, key: int) -> object | None: ...
    def arriving(self) -> list[int]: ...
    def lock(self, key: int, owner: object) -> bool: ...
    def unlock(self, key: int) -> bool: ...
    def __contains__(self, key: int) -> bool: ...


class NoPositions:
    """The position list of a Queue that has not been created yet: it is empty."""

    count = 0
    available = 0
    bytes = 0
    entered = 0
    left = 0

    def oldest(self) -> int:
        return 0

    def first_available(self) -> int | None:
        return None

    def first(self, available: bool = True) -> int | None:
        return None

    def last(self, available: bool = True) -> int | None:
        return None

    def next(self, key: int, available: bool = True) -> int | None:
        return None

    def previous(self, key: int, available: bool = True) -> int | None:
        return None

    def page(self, after: int | None, limit: int, available: bool = True) -> list[int]:
        return []

    def state(self, key: int) -> PositionState:
        return PositionState.DELETED

    def position(self, key: int) -> StoredPosition | None:
        return None

    def owner(self, key: int) -> object | None:
        return None

    def arriving(self) -> list[int]:
        return []

    def lock(self, key: int, owner: object) -> bool:
        return False

    def unlock(self, key: int) -> bool:
        return False

    def __contains__(self, key: int) -> bool:
        return False


@dataclass(slots=True, eq=False, repr=False)
class Queue(DirectoryObject):
    """A queue of this queue manager ([MS-MQDMPR] 3.1.1.2).

    Quotas are KB, times are seconds since 1970, `security` is a self-relative descriptor.
    The attributes down to `scope` are persistent (of a public queue: directory attributes).
    """

    label: str = ""
    create_time: int = 0
    modify_time: int = 0
    type: UUID = NULL_GUID
    pathname: str = ""
    qualified_pathname: str = ""
    private_queue_number: int = 0
    journaling: bool = False
    quota: int = INFINITE
    journal_quota: int = INFINITE
    authentication: bool = False
    privacy_level: QueuePrivacyLevel = QueuePrivacyLevel.MQ_PRIV_LEVEL_OPTIONAL
    transactional: bool = False
    multicast_address: str | None = None
    security: bytes = b""
    base_priority: int = 0
    full_path: str = ""
    directory_path: str = ""
    scope: QueueScope = QueueScope.ENTERPRISE
    queue_type: QueueType = QueueType.PRIVATE

    queue_manager: "QueueManager | None" = None
    journal_queue_reference: "Queue | None" = None
    subqueue_collection: dict[str, "Queue"] = field(default_factory=dict)
    incoming_transactional_transfer_info_collection: list["IncomingTransactionalTransferInfo"] = (
        field(default_factory=list)
    )
    message_position_list: MessagePositionList = field(default_factory=NoPositions)
    open_queue_descriptor_collection: dict[int, "OpenQueueDescriptor"] = field(default_factory=dict)

    # Ours: its identifier in the store, its main queue, the readers that wait for messages, and
    # after how many failed deliveries (0: never) a message goes to which subqueue, and the names
    # that it had before it was renamed, the last one at the end; how old copies in its journal may
    # become, in seconds, and how many there may be (0: no bound)
    queue_id: int = 0
    parent: "Queue | None" = None
    subqueue_name: str = ""
    is_journal: bool = False
    waiting_peeks: dict["WaitingMessageReadOperation", None] = field(default_factory=dict)
    waiting_receives: dict["WaitingMessageReadOperation", None] = field(default_factory=dict)
    waiting_by_tag: dict[Hashable, "WaitingMessageReadOperation"] = field(default_factory=dict)
    peekable_when_locked: set[int] = field(default_factory=set)
    pending_moves: int = 0
    trail: bool = False
    max_deliveries: int = 0
    poison_subqueue: str = "poison"
    former_names: tuple[str, ...] = ()
    journal_max_age: int = 0
    journal_max_messages: int = 0

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.pathname}>"

    @property
    def full_name(self) -> str:
        """The name of the queue in logs, trails and pages: its path name."""
        return self.pathname

    @property
    def deleted(self) -> bool:
        """Whether Delete Queue has taken it from the queue manager."""
        return self.queue_manager is None

    @property
    def main(self) -> "Queue":
        """The queue itself, or the one that a subqueue or a journal belongs to."""
        return self if self.parent is None else self.parent

    @property
    def active(self) -> bool:
        """Whether somebody has the queue open."""
        return bool(self.open_queue_descriptor_collection)

    @property
    def total_bytes(self) -> int:
        """The octets of all messages in the queue (G5, G164)."""
        return self.message_position_list.bytes

    @property
    def message_count(self) -> int:
        return self.message_position_list.count


@dataclass(slots=True, frozen=True)
class ConnectionHistoryEntry:
    """One entry of OutgoingQueue.ConnectionHistory; `time` is seconds since 1970."""

    status: ConnectionStatus
    connection_history_time: int
    error: int = 0
    address_list: tuple[str, ...] = ()


@dataclass(slots=True, eq=False, repr=False)
class OutgoingQueue(Queue):
    """Messages on their way to a queue elsewhere ([MS-MQDMPR] 3.1.1.3).

    `destination_format_name` is the text of a format name; it and `multicast` are persistent.
    """

    destination_format_name: str = ""
    next_hops: list[str] = field(default_factory=list)
    multicast: bool = False
    outgoing_transfer_info_reference: "OutgoingTransferInfo | None" = None
    state: OutgoingQueueState = OutgoingQueueState.INACTIVE
    connection_history: list[ConnectionHistoryEntry] = field(default_factory=list)

    # Ours: who has named the destination, the SID of an account or the address of a message's
    # source, "" for the queue manager itself, which is persistent; and who else has since
    origin: str = ""
    other_origins: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<OutgoingQueue {self.destination_format_name}>"

    @property
    def full_name(self) -> str:
        """Its name in logs, trails and pages: the format name of its destination."""
        return self.destination_format_name

    @property
    def named_by(self) -> tuple[str, ...]:
        """The senders that named the destination: its host is resolved in their turns."""
        return (self.origin, *self.other_origins) if self.origin else ()

    @property
    def active(self) -> bool:
        """Whether a message waits for its transfer, or somebody has the queue open."""
        return bool(self.message_position_list.count or self.open_queue_descriptor_collection)


@dataclass(slots=True, eq=False)
class OutgoingTransferInfo:
    """Statistics of the transfer out of one queue ([MS-MQDMPR] 3.1.1.4).

    Times are seconds since 1970, None if it never happened; the interval is in seconds.
    `last_arrived` is our own: the key of the message that awaits its final acknowledgement since
    last; 0 before the first.
    """

    outgoing_queue_reference: OutgoingQueue
    eod_first_non_ack: SequenceInfo = NO_SEQUENCE
    eod_last_ack: SequenceInfo = NO_SEQUENCE
    eod_last_ack_count: int = 0
    eod_last_ack_time: int | None = None
    eod_last_non_ack: SequenceInfo = NO_SEQUENCE
    eod_next_seq: SequenceInfo = NO_SEQUENCE
    eod_no_ack_count: int = 0
    eod_no_read_count: int = 0
    last_arrived: int = 0
    eod_resend_count: int = 0
    eod_resend_interval: int = 0
    eod_resend_time: int | None = None


@dataclass(slots=True, eq=False, weakref_slot=True)
class IncomingTransactionalTransferInfo:
    """The progress of one sender's sequence to one queue ([MS-MQDMPR] 3.1.1.5)."""

    queue_reference: Queue
    format_name: str = ""
    sender_identifier: UUID = NULL_GUID
    sequence_identifier: int = 0
    sequence_number: int = 0
    last_access_time: int | None = None
    reject_count: int = 0


@dataclass(slots=True, eq=False)
class DispatchEntry:
    """A message of an outgoing queue that a protocol has to send ([MS-MQDMPR] 3.1.1.18)."""

    message_position_reference: "MessagePosition"
    protocol_data: object | None
    priority: int
    send_in_progress: bool = False
