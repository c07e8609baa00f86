"""The properties of queues for administrators ([MS-MQMR] 3.1.4.1, [MS-MQMQ] 2.3.12).

The value of an inapplicable property is VT_NULL.
"""

from collections.abc import Callable
from dataclasses import dataclass

from rpcqm.adm.enums import OutgoingQueueState, QueueType
from rpcqm.adm.queue import (
    IncomingTransactionalTransferInfo,
    OutgoingQueue,
    OutgoingTransferInfo,
    Queue,
)
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.path_name import QueueKind
from rpcqm.codec.properties import (
    NULL_VARIANT,
    ManagementQueueProperty,
    PropVariant,
    VarType,
)
from rpcqm.codec.property_values import (
    ManagementQueueForeign,
    ManagementQueueLocation,
    ManagementQueueState,
    ManagementQueueType,
    ManagementQueueXact,
)
from rpcqm.codec.types.mqvalues import FormatNameType
from rpcqm.qm.outgoing import Outgoing
from rpcqm.qm.queues import QueueEvents

_LARGEST = 0xFFFF_FFFF
"""The 32-bit count for larger numbers."""

QUEUE_TYPES = {
    QueueType.PUBLIC: ManagementQueueType.MGMT_QUEUE_TYPE_PUBLIC,
    QueueType.PRIVATE: ManagementQueueType.MGMT_QUEUE_TYPE_PRIVATE,
    QueueType.SYSTEM: ManagementQueueType.MGMT_QUEUE_TYPE_MACHINE,
    QueueType.CONNECTOR: ManagementQueueType.MGMT_QUEUE_TYPE_CONNECTOR,
}
STATES = {
    OutgoingQueueState.CONNECTED: ManagementQueueState.MGMT_QUEUE_STATE_CONNECTED,
    OutgoingQueueState.DISCONNECTED: ManagementQueueState.MGMT_QUEUE_STATE_DISCONNECTED,
    OutgoingQueueState.DISCONNECTING: ManagementQueueState.MGMT_QUEUE_STATE_DISCONNECTING,
    OutgoingQueueState.INACTIVE: ManagementQueueState.MGMT_QUEUE_STATE_NONACTIVE,
    OutgoingQueueState.LOCKED: ManagementQueueState.MGMT_QUEUE_STATE_LOCKED,
    OutgoingQueueState.NEED_VALIDATION: ManagementQueueState.MGMT_QUEUE_STATE_NEED_VALIDATE,
    OutgoingQueueState.WAITING: ManagementQueueState.MGMT_QUEUE_STATE_WAITING,
    OutgoingQueueState.ON_HOLD: ManagementQueueState.MGMT_QUEUE_STATE_ONHOLD,
}


@dataclass(eq=False, repr=False)
class ManagementProperties:
    """Reads the properties of queues for administrators."""

    _queue_manager: QueueManager
    _queues: QueueEvents
    _outgoing: Outgoing

    def read(self, queue: Queue, identifier: ManagementQueueProperty) -> PropVariant:
        """The value of a property of a queue."""
        value = self._value(queue, identifier)
        return NULL_VARIANT if value is None else identifier.variant(value)

    def _value(self, queue: Queue, identifier: ManagementQueueProperty) -> object:
        if identifier in _READERS:
            return _READERS[identifier](queue)
        if identifier is ManagementQueueProperty.PROPID_MGMT_QUEUE_FORMATNAME:
            return self.format_name_text(queue)
        if identifier is ManagementQueueProperty.PROPID_MGMT_QUEUE_FOREIGN:
            return self._foreign(queue)
        if not isinstance(queue, OutgoingQueue):
            return None
        return _TRANSFER_READERS[identifier](self._outgoing.shown_transfer(queue))

    def format_name_text(self, queue: Queue) -> str:
        """A format name by which the queue can be opened (G31)."""
        return str(self._queues.format_name_of(queue))

    def _foreign(self, queue: Queue) -> str:
        if self._queue_manager.directory_offline and _kind(queue) is not QueueType.PRIVATE:
            return ManagementQueueForeign.MGMT_QUEUE_UNKNOWN_TYPE
        if self._queue_manager.foreign_system and not self._queue_manager.directory_offline:
            return ManagementQueueForeign.MGMT_QUEUE_FOREIGN_TYPE
        return ManagementQueueForeign.MGMT_QUEUE_NOT_FOREIGN_TYPE


# Of every queue


def _type(queue: Queue) -> str:
    if isinstance(queue, OutgoingQueue) and queue.multicast:
        return ManagementQueueType.MGMT_QUEUE_TYPE_MULTICAST
    return QUEUE_TYPES[_kind(queue)]


def _kind(queue: Queue) -> QueueType:
    """The kind of a queue; an outgoing queue has the kind of its destination's name (G153)."""
    if not isinstance(queue, OutgoingQueue):
        return queue.queue_type
    name = FormatName.parse(queue.destination_format_name)
    if name.type is FormatNameType.QUEUE_FORMAT_TYPE_DIRECT:
        is_public = name.direct_name.kind is QueueKind.PUBLIC
    else:
        is_public = name.type is FormatNameType.QUEUE_FORMAT_TYPE_PUBLIC
    return QueueType.PUBLIC if is_public else QueueType.PRIVATE


def _location(queue: Queue) -> str:
    if isinstance(queue, OutgoingQueue):
        return ManagementQueueLocation.MGMT_QUEUE_REMOTE_LOCATION
    return ManagementQueueLocation.MGMT_QUEUE_LOCAL_LOCATION


def _transactional(queue: Queue) -> str:
    """UNKNOWN for a remote queue: this queue manager cannot find out (G153)."""
    if isinstance(queue, OutgoingQueue):
        return ManagementQueueXact.MGMT_QUEUE_UNKNOWN_TYPE
    if queue.main.transactional:
        return ManagementQueueXact.MGMT_QUEUE_TRANSACTIONAL_TYPE
    return ManagementQueueXact.MGMT_QUEUE_NOT_TRANSACTIONAL_TYPE


def _bytes_in_journal(queue: Queue) -> int:
    journal = queue.journal_queue_reference
    return min(journal.total_bytes, _LARGEST) if journal is not None and queue.journaling else 0


def _state(queue: Queue) -> str:
    if isinstance(queue, OutgoingQueue):
        return STATES[queue.state]
    return ManagementQueueState.MGMT_QUEUE_STATE_LOCAL


# Of outgoing queues


def _next_hops(queue: Queue) -> tuple[str, ...] | None:
    if not isinstance(queue, OutgoingQueue):
        return None
    if queue.state is OutgoingQueueState.CONNECTED and queue.multicast:
        return (queue.destination_format_name,)
    if queue.state in (OutgoingQueueState.CONNECTED, OutgoingQueueState.WAITING):
        return tuple(queue.next_hops)
    return None


def _connection_history(queue: Queue) -> tuple[PropVariant, ...] | None:
    """Four arrays; the addresses are arrays again ([MS-MQMQ] 2.3.12.25)."""
    if not isinstance(queue, OutgoingQueue):
        return None
    entries = queue.connection_history
    addresses = tuple(
        PropVariant(VarType.VT_VECTOR_LPWSTR, tuple(entry.address_list)) for entry in entries
    )
    return (
        PropVariant(VarType.VT_VECTOR_UI4, tuple(int(entry.status) for entry in entries)),
        PropVariant(
            VarType.VT_VECTOR_I4, tuple(entry.connection_history_time for entry in entries)
        ),
        PropVariant(VarType.VT_VECTOR_I4, tuple(_signed(entry.error) for entry in entries)),
        PropVariant(VarType.VT_VECTOR_VARIANT, addresses),
    )


def _signed(number: int) -> int:
    return number - (1 << 32) if number & 0x8000_0000 else number


# Queues that others send to


def _source_info(queue: Queue) -> tuple[PropVariant, ...]:
    """Six arrays with one entry per source ([MS-MQMQ] 2.3.12.24)."""
    infos = queue.incoming_transactional_transfer_info_collection

    def column(
        vt: VarType, read: Callable[[IncomingTransactionalTransferInfo], object]
    ) -> PropVariant:
        return PropVariant(vt, tuple(read(info) for info in infos))

    return (
        column(VarType.VT_VECTOR_LPWSTR, lambda info: info.format_name),
        column(VarType.VT_VECTOR_CLSID, lambda info: info.sender_identifier),
        column(VarType.VT_VECTOR_UI8, lambda info: info.sequence_identifier),
        column(VarType.VT_VECTOR_UI4, lambda info: info.sequence_number),
        column(VarType.VT_VECTOR_I4, lambda info: info.last_access_time or 0),
        column(VarType.VT_VECTOR_UI4, lambda info: info.reject_count),
    )


_P = ManagementQueueProperty
_READERS: dict[ManagementQueueProperty, Callable[[Queue], object]] = {
    _P.PROPID_MGMT_QUEUE_PATHNAME: lambda queue: queue.pathname or None,
    _P.PROPID_MGMT_QUEUE_TYPE: _type,
    _P.PROPID_MGMT_QUEUE_LOCATION: _location,
    _P.PROPID_MGMT_QUEUE_XACT: _transactional,
    _P.PROPID_MGMT_QUEUE_MESSAGE_COUNT: lambda queue: queue.message_count,
    _P.PROPID_MGMT_QUEUE_BYTES_IN_QUEUE: lambda queue: min(queue.total_bytes, _LARGEST),
    _P.PROPID_MGMT_QUEUE_JOURNAL_MESSAGE_COUNT: lambda queue: (
        queue.journal_queue_reference.message_count if queue.journal_queue_reference else 0
    ),
    _P.PROPID_MGMT_QUEUE_BYTES_IN_JOURNAL: _bytes_in_journal,
    _P.PROPID_MGMT_QUEUE_STATE: _state,
    _P.PROPID_MGMT_QUEUE_NEXTHOPS: _next_hops,
    _P.PROPID_MGMT_QUEUE_EOD_SOURCE_INFO: _source_info,
    _P.PROPID_MGMT_QUEUE_CONNECTION_HISTORY: _connection_history,
    _P.PROPID_MGMT_QUEUE_SUBQUEUE_COUNT: lambda queue: len(queue.subqueue_collection),
    _P.PROPID_MGMT_QUEUE_SUBQUEUE_NAMES: lambda queue: tuple(
        subqueue.subqueue_name for subqueue in queue.subqueue_collection.values()
    ),
}
_TRANSFER_READERS: dict[ManagementQueueProperty, Callable[[OutgoingTransferInfo], object]] = {
    _P.PROPID_MGMT_QUEUE_EOD_LAST_ACK: lambda info: (
        info.eod_last_ack.encode() if info.eod_no_ack_count > 0 else None
    ),
    _P.PROPID_MGMT_QUEUE_EOD_LAST_ACK_TIME: lambda info: info.eod_last_ack_time,
    _P.PROPID_MGMT_QUEUE_EOD_LAST_ACK_COUNT: lambda info: info.eod_last_ack_count,
    _P.PROPID_MGMT_QUEUE_EOD_FIRST_NON_ACK: lambda info: info.eod_first_non_ack.encode(),
    _P.PROPID_MGMT_QUEUE_EOD_LAST_NON_ACK: lambda info: info.eod_last_non_ack.encode(),
    _P.PROPID_MGMT_QUEUE_EOD_NEXT_SEQ: lambda info: info.eod_next_seq.encode(),
    _P.PROPID_MGMT_QUEUE_EOD_NO_READ_COUNT: lambda info: info.eod_no_read_count,
    _P.PROPID_MGMT_QUEUE_EOD_NO_ACK_COUNT: lambda info: info.eod_no_ack_count,
    _P.PROPID_MGMT_QUEUE_EOD_RESEND_TIME: lambda info: info.eod_resend_time,
    _P.PROPID_MGMT_QUEUE_EOD_RESEND_INTERVAL: lambda info: info.eod_resend_interval,
    _P.PROPID_MGMT_QUEUE_EOD_RESEND_COUNT: lambda info: info.eod_resend_count,
}
