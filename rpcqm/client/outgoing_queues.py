"""Messages on their way to other queue managers, as qmmgmt tells of them ([MS-MQMR] 2.2.3.2)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.types import SequenceInfo
from rpcqm.codec.properties import ManagementQueueProperty, PropVariant
from rpcqm.codec.types.mqvalues import ConnectionStatus

PROPERTIES = {
    "format_name": ManagementQueueProperty.PROPID_MGMT_QUEUE_FORMATNAME,
    "location": ManagementQueueProperty.PROPID_MGMT_QUEUE_LOCATION,
    "state": ManagementQueueProperty.PROPID_MGMT_QUEUE_STATE,
    "message_count": ManagementQueueProperty.PROPID_MGMT_QUEUE_MESSAGE_COUNT,
    "bytes_in_queue": ManagementQueueProperty.PROPID_MGMT_QUEUE_BYTES_IN_QUEUE,
    "next_hops": ManagementQueueProperty.PROPID_MGMT_QUEUE_NEXTHOPS,
    "last_acknowledged": ManagementQueueProperty.PROPID_MGMT_QUEUE_EOD_LAST_ACK,
    "last_acknowledged_time": ManagementQueueProperty.PROPID_MGMT_QUEUE_EOD_LAST_ACK_TIME,
    "next_sequence": ManagementQueueProperty.PROPID_MGMT_QUEUE_EOD_NEXT_SEQ,
    "unacknowledged": ManagementQueueProperty.PROPID_MGMT_QUEUE_EOD_NO_ACK_COUNT,
    "unread": ManagementQueueProperty.PROPID_MGMT_QUEUE_EOD_NO_READ_COUNT,
    "resend_count": ManagementQueueProperty.PROPID_MGMT_QUEUE_EOD_RESEND_COUNT,
    "resend_time": ManagementQueueProperty.PROPID_MGMT_QUEUE_EOD_RESEND_TIME,
    "history": ManagementQueueProperty.PROPID_MGMT_QUEUE_CONNECTION_HISTORY,
}

STATUSES: dict[int, str] = {
    ConnectionStatus.IN_PROCESS: "in process",
    ConnectionStatus.ESTABLISH_PACKET_RECEIVED: "peer answered",
    ConnectionStatus.ESTABLISHED: "established",
    ConnectionStatus.UNKNOWN_FAILURE: "failed",
    ConnectionStatus.PING_FAILURE: "ping not answered",
    ConnectionStatus.SOCKET_CREATE_FAILURE: "no socket",
    ConnectionStatus.SOCKET_BIND_FAILURE: "no port",
    ConnectionStatus.SOCKET_CONNECT_FAILURE: "cannot connect",
    ConnectionStatus.TCP_NOT_ENABLED: "no TCP",
    ConnectionStatus.SOCKET_SEND_FAILURE: "cannot send",
    ConnectionStatus.CONNECTION_NOT_READY: "not ready",
    ConnectionStatus.DNS_FAILURE: "name not found",
    ConnectionStatus.CERTIFICATE_VALIDATION_FAILURE: "no valid certificate or key",
    ConnectionStatus.CONNECTION_LIMIT_REACHED: "too many connections",
    ConnectionStatus.CONNECTION_REFUSED: "refused",
    ConnectionStatus.ROUTING_DATA_NOT_AVAILABLE: "no route known",
    ConnectionStatus.LOW_RESOURCE: "out of resources",
}
"""What the numbers of a connection's history mean, in words."""


@dataclass(frozen=True, slots=True)
class ConnectionEvent:
    """One attempt or success of connecting; `time` is seconds since 1970."""

    status: str
    time: int
    addresses: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OutgoingQueueInformation:
    """An outgoing queue; sequence numbers are 0 where nothing transactional was sent.

    Times are seconds since 1970, 0 for never.
    """

    format_name: str
    state: str
    message_count: int
    bytes_in_queue: int
    next_hops: tuple[str, ...]
    last_acknowledged: int
    last_acknowledged_time: int
    next_sequence: int
    unacknowledged: int
    unread: int
    resend_count: int
    resend_time: int
    history: tuple[ConnectionEvent, ...]

    @property
    def lacks_receipts(self) -> bool:
        """Whether the receiver takes messages over HTTP in order, and its receipts do not come."""
        if not FormatName.parse(self.format_name).is_http or not self.history:
            return False
        taken = self.history[-1].status == STATUSES[ConnectionStatus.ESTABLISHED]
        return taken and self.unacknowledged > 0 and self.resend_count > 0


def information(values: Mapping[str, Any]) -> OutgoingQueueInformation:
    """Information from the values of PROPERTIES; a value that the server lacks is None."""
    numbers = (
        "message_count",
        "bytes_in_queue",
        "last_acknowledged_time",
        "unacknowledged",
        "unread",
        "resend_count",
        "resend_time",
    )
    return OutgoingQueueInformation(
        format_name=values["format_name"] or "",
        state=values["state"] or "",
        next_hops=tuple(values["next_hops"] or ()),
        last_acknowledged=_number(values["last_acknowledged"]),
        next_sequence=_number(values["next_sequence"]),
        history=_history(values["history"]),
        **{name: values[name] or 0 for name in numbers},
    )


def _number(blob: bytes | None) -> int:
    """The sequence number in a SEQUENCE_INFO."""
    return SequenceInfo.decode(blob).seq_no if blob else 0


def _history(arrays: Iterable[PropVariant] | None) -> tuple[ConnectionEvent, ...]:
    """Four arrays side by side ([MS-MQMQ] 2.3.12.25)."""
    if not arrays:
        return ()
    statuses, times, _, addresses = (array.value for array in arrays)
    return tuple(
        ConnectionEvent(STATUSES.get(status, f"0x{status:08X}"), time, tuple(places.value or ()))
        for status, time, places in zip(statuses, times, addresses, strict=True)
    )
