"""Units of work ([MS-MQDMPR] 3.1.1.13, 3.1.1.14)."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from uuid import UUID

from rpcqm.adm.enums import OperationType
from rpcqm.adm.message import Message, MessagePosition
from rpcqm.base.origin import HERE, Origin

if TYPE_CHECKING:
    from rpcqm.adm.queue import Queue


@dataclass(slots=True, eq=False)
class TransactionalOperation:
    """One send, receive or move of a transaction ([MS-MQDMPR] 3.1.1.13).

    The position is `queue` and `lookup_identifier`. A send gets its position at the commit (G54);
    before, it is known by `staged_number`. Its `message` is kept here until it is on the disk, and
    again when its packet had to be changed (`marked`). `dequeue_reason` is a message class.
    """

    operation_type: OperationType
    queue: "Queue"
    lookup_identifier: int = 0
    target_queue_reference: "Queue | None" = None
    dequeue_reason: int = 0
    staged_number: int = 0
    message: Message | None = None
    marked: bool = False

    @property
    def message_position_reference(self) -> MessagePosition | None:
        """The position; None for a send before its commit."""
        if not self.lookup_identifier:
            return None
        return MessagePosition(self.queue, self.lookup_identifier)


@dataclass(slots=True, eq=False)
class Transaction:
    """Operations that are carried out together or not at all ([MS-MQDMPR] 3.1.1.14)."""

    identifier: UUID
    transactional_operation_collection: list[TransactionalOperation] = field(default_factory=list)

    # Ours: SID of the caller that began it: only this one joins it. None: the queue manager
    owner: str | None = None

    # Ours: when it began, in milliseconds since 1970
    begun: int = 0

    # Ours: from where it was begun
    origin: Origin = HERE

    # Ours: TransactionHeader.Flags.ID of what it sends; 0 before it sends anything
    number: int = 0

    # Ours: whether its end is on the way to the disk, and nothing can join it any more
    prepared: bool = False
    ended: bool = False
