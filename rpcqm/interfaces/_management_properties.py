"""What administrators are told about a queue ([MS-MQMR] 3.1.4.1, [MS-MQMQ] 2.3.12).

Of a property that does not apply the value is VT_NULL.
"""

from collections.abc import Callable
from typing import Any

from rpcqm.adm.enums import ConnectionStatus, OutgoingQueueState, QueueType
from rpcqm.adm.queue import (
    IncomingTransactionalTransferInfo,
    OutgoingQueue,
    OutgoingTransferInfo,
    Queue,
)
from rpcqm.codec.names.format_name import FormatName, FormatNameType
from rpcqm.codec.names.path_name import QueueKind
from rpcqm.codec.packet.types import SequenceInfo
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
from rpcqm.qm.engine import QueueManagerEngine

_LARGEST = 0xFFFF_FFFF

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
CONNECTION_STATUS = {
    ConnectionStatus.IN_PROCESS: 0x00000000,
    ConnectionStatus.ESTABLISH_PACKET_RECEIVED: 0x00000001,
    ConnectionStatus.ESTABLISHED: 0x00000002,
    ConnectionStatus.UNKNOWN_FAILURE: 0x80000000,
    ConnectionStatus.PING_FAILURE: 0x80000001,
    ConnectionStatus.SOCKET_CREATE_FAILURE: 0x80000002,
    ConnectionStatus.SOCKET_BIND_FAILURE: 0x80000003,
    ConnectionStatus.SOCKET_CONNECT_FAILURE: 0x80000004,
    ConnectionStatus.TCP_NOT_ENABLED: 0x80000005,
    ConnectionStatus.SOCKET_SEND_FAILURE: 0x80000006,
    ConnectionStatus.CONNECTION_NOT_READY: 0x80000007,
    ConnectionStatus.DNS_FAILURE: 0x80000008,
    ConnectionStatus.CERTIFICATE_VALIDATION_FAILURE: 0x80000009,
    ConnectionStatus.CONNECTION_LIMIT_REACHED: 0x8000000A,
    ConnectionStatus.CONNECTION_REFUSED: 0x8000000B,
    ConnectionStatus.ROUTING_DATA_NOT_AVAILABLE: 0x8000000C,
    ConnectionStatus.LOW_RESOURCE: 0x8000000D,
}


def queue_property(
    engine: QueueManagerEngine, queue: Queue, identifier: ManagementQueueProperty
) -> PropVariant:
    """The value of a property of a queue."""
    value = _READERS[identifier](engine, queue)
    return NULL_VARIANT if value is None else identifier.variant(value)


def format_name_text(engine: QueueManagerEngine, queue: Queue) -> str:
    """A format name by which the queue can be opened (G31)."""
    return str(engine.queues.format_name_of(queue))


# Of every queue


def _pathname(engine: QueueManagerEngine, queue: Queue) -> str | None:
    return queue.pathname or None


def _type(engine: QueueManagerEngine, queue: Queue) -> str:
    if isinstance(queue, OutgoingQueue) and queue.multicast:
        return ManagementQueueType.MGMT_QUEUE_TYPE_MULTICAST
    return QUEUE_TYPES[_kind(queue)]


def _kind(queue: Queue) -> QueueType:
    """Of an outgoing queue that of the queue which it leads to, as its name tells (G153)."""
    if not isinstance(queue, OutgoingQueue):
        return queue.queue_type
    name = FormatName.parse(queue.destination_format_name)
    if name.type is FormatNameType.QUEUE_FORMAT_TYPE_DIRECT:
        is_public = name.direct_name.kind is QueueKind.PUBLIC
    else:
        is_public = name.type is FormatNameType.QUEUE_FORMAT_TYPE_PUBLIC
    return QueueType.PUBLIC if is_public else QueueType.PRIVATE


def _location(engine: QueueManagerEngine, queue: Queue) -> str:
    if isinstance(queue, OutgoingQueue):
        return ManagementQueueLocation.MGMT_QUEUE_REMOTE_LOCATION
    return ManagementQueueLocation.MGMT_QUEUE_LOCAL_LOCATION


def _transactional(engine: QueueManagerEngine, queue: Queue) -> str:
    """Of a queue elsewhere nobody here can tell (G153)."""
    if isinstance(queue, OutgoingQueue):
        return ManagementQueueXact.MGMT_QUEUE_UNKNOWN_TYPE
    if queue.main.transactional:
        return ManagementQueueXact.MGMT_QUEUE_TRANSACTIONAL_TYPE
    return ManagementQueueXact.MGMT_QUEUE_NOT_TRANSACTIONAL_TYPE


def _foreign(engine: QueueManagerEngine, queue: Queue) -> str:
    if engine.queue_manager.directory_offline and _kind(queue) is not QueueType.PRIVATE:
        return ManagementQueueForeign.MGMT_QUEUE_UNKNOWN_TYPE
    foreign = engine.queue_manager.foreign_system and not engine.queue_manager.directory_offline
    if foreign:
        return ManagementQueueForeign.MGMT_QUEUE_FOREIGN_TYPE
    return ManagementQueueForeign.MGMT_QUEUE_NOT_FOREIGN_TYPE


def _message_count(engine: QueueManagerEngine, queue: Queue) -> int:
    return queue.message_count


def _bytes_in_queue(engine: QueueManagerEngine, queue: Queue) -> int:
    return min(queue.total_bytes, _LARGEST)


def _journal_message_count(engine: QueueManagerEngine, queue: Queue) -> int:
    journal = queue.journal_queue_reference
    return 0 if journal is None else journal.message_count


def _bytes_in_journal(engine: QueueManagerEngine, queue: Queue) -> int:
    journal = queue.journal_queue_reference
    return min(journal.total_bytes, _LARGEST) if journal is not None and queue.journaling else 0


def _state(engine: QueueManagerEngine, queue: Queue) -> str:
    if isinstance(queue, OutgoingQueue):
        return STATES[queue.state]
    return ManagementQueueState.MGMT_QUEUE_STATE_LOCAL


def _subqueue_count(engine: QueueManagerEngine, queue: Queue) -> int:
    return len(queue.subqueue_collection)


def _subqueue_names(engine: QueueManagerEngine, queue: Queue) -> tuple[str, ...]:
    return tuple(subqueue.subqueue_name for subqueue in queue.subqueue_collection.values())


# Of outgoing queues


def _next_hops(engine: QueueManagerEngine, queue: Queue) -> tuple[str, ...] | None:
    if not isinstance(queue, OutgoingQueue):
        return None
    if queue.state is OutgoingQueueState.CONNECTED and queue.multicast:
        return (queue.destination_format_name,)
    if queue.state in (OutgoingQueueState.CONNECTED, OutgoingQueueState.WAITING):
        return tuple(queue.next_hops)
    return None


def _connection_history(engine: QueueManagerEngine, queue: Queue) -> tuple[PropVariant, ...] | None:
    """Four arrays; the addresses are arrays again ([MS-MQMQ] 2.3.12.25)."""
    if not isinstance(queue, OutgoingQueue):
        return None
    entries = queue.connection_history
    addresses = tuple(
        PropVariant(VarType.VT_VECTOR_LPWSTR, tuple(entry.address_list)) for entry in entries
    )
    return (
        PropVariant(
            VarType.VT_VECTOR_UI4, tuple(CONNECTION_STATUS[entry.status] for entry in entries)
        ),
        PropVariant(
            VarType.VT_VECTOR_I4, tuple(entry.connection_history_time for entry in entries)
        ),
        PropVariant(VarType.VT_VECTOR_I4, tuple(_signed(entry.error) for entry in entries)),
        PropVariant(VarType.VT_VECTOR_VARIANT, addresses),
    )


def _signed(number: int) -> int:
    return number - (1 << 32) if number & 0x8000_0000 else number


Transfer = Callable[[OutgoingTransferInfo], Any]


def _transfer(read: Transfer) -> Callable[[QueueManagerEngine, Queue], Any]:
    """A reader of what is known of the transfer out of a queue."""

    def reader(engine: QueueManagerEngine, queue: Queue) -> Any:
        if not isinstance(queue, OutgoingQueue):
            return None
        return read(engine.outgoing.shown_transfer(queue))

    return reader


def _sequence(read: Callable[[OutgoingTransferInfo], SequenceInfo]) -> Transfer:
    return lambda info: read(info).encode()


def _last_ack(info: OutgoingTransferInfo) -> bytes | None:
    return info.eod_last_ack.encode() if info.eod_no_ack_count > 0 else None


# Of queues that others send to


def _source_info(engine: QueueManagerEngine, queue: Queue) -> tuple[PropVariant, ...]:
    """Six arrays with one entry per source ([MS-MQMQ] 2.3.12.24)."""
    infos = queue.incoming_transactional_transfer_info_collection

    def column(vt: VarType, read: Callable[[IncomingTransactionalTransferInfo], Any]) -> Any:
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
_READERS: dict[ManagementQueueProperty, Callable[[QueueManagerEngine, Queue], Any]] = {
    _P.PROPID_MGMT_QUEUE_PATHNAME: _pathname,
    _P.PROPID_MGMT_QUEUE_FORMATNAME: format_name_text,
    _P.PROPID_MGMT_QUEUE_TYPE: _type,
    _P.PROPID_MGMT_QUEUE_LOCATION: _location,
    _P.PROPID_MGMT_QUEUE_XACT: _transactional,
    _P.PROPID_MGMT_QUEUE_FOREIGN: _foreign,
    _P.PROPID_MGMT_QUEUE_MESSAGE_COUNT: _message_count,
    _P.PROPID_MGMT_QUEUE_BYTES_IN_QUEUE: _bytes_in_queue,
    _P.PROPID_MGMT_QUEUE_JOURNAL_MESSAGE_COUNT: _journal_message_count,
    _P.PROPID_MGMT_QUEUE_BYTES_IN_JOURNAL: _bytes_in_journal,
    _P.PROPID_MGMT_QUEUE_STATE: _state,
    _P.PROPID_MGMT_QUEUE_NEXTHOPS: _next_hops,
    _P.PROPID_MGMT_QUEUE_EOD_LAST_ACK: _transfer(_last_ack),
    _P.PROPID_MGMT_QUEUE_EOD_LAST_ACK_TIME: _transfer(lambda info: info.eod_last_ack_time),
    _P.PROPID_MGMT_QUEUE_EOD_LAST_ACK_COUNT: _transfer(lambda info: info.eod_last_ack_count),
    _P.PROPID_MGMT_QUEUE_EOD_FIRST_NON_ACK: _transfer(
        _sequence(lambda info: info.eod_first_non_ack)
    ),
    _P.PROPID_MGMT_QUEUE_EOD_LAST_NON_ACK: _transfer(_sequence(lambda info: info.eod_last_non_ack)),
    _P.PROPID_MGMT_QUEUE_EOD_NEXT_SEQ: _transfer(_sequence(lambda info: info.eod_next_seq)),
    _P.PROPID_MGMT_QUEUE_EOD_NO_READ_COUNT: _transfer(lambda info: info.eod_no_read_count),
    _P.PROPID_MGMT_QUEUE_EOD_NO_ACK_COUNT: _transfer(lambda info: info.eod_no_ack_count),
    _P.PROPID_MGMT_QUEUE_EOD_RESEND_TIME: _transfer(lambda info: info.eod_resend_time),
    _P.PROPID_MGMT_QUEUE_EOD_RESEND_INTERVAL: _transfer(lambda info: info.eod_resend_interval),
    _P.PROPID_MGMT_QUEUE_EOD_RESEND_COUNT: _transfer(lambda info: info.eod_resend_count),
    _P.PROPID_MGMT_QUEUE_EOD_SOURCE_INFO: _source_info,
    _P.PROPID_MGMT_QUEUE_CONNECTION_HISTORY: _connection_history,
    _P.PROPID_MGMT_QUEUE_SUBQUEUE_COUNT: _subqueue_count,
    _P.PROPID_MGMT_QUEUE_SUBQUEUE_NAMES: _subqueue_names,
}
