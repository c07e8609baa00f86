"""Reports of a message's way for tracing ([MS-MQQB] 3.1.5.8.9, 3.1.7.1.7)."""

from datetime import UTC, datetime

from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.enums import DeliveryGuarantee, MessageClass, SenderIdentifierType
from rpcqm.codec.packet.fields import TRACING
from rpcqm.codec.packet.message import MessageAttributes, PacketMessage
from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.codec.packet.user import UserFlags
from rpcqm.codec.types.mqvalues import FormatNameType

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_HOPS = UserFlags.RC.bits
_TRACING_AT, _TRACING = TRACING


def is_traced(packet: bytes) -> bool:
    """Whether the sender of a packet asks for reports: BaseHeader.Flags.TR."""
    return bool(packet[_TRACING_AT] & _TRACING)


def report(
    message: PacketMessage, identifier: MessageIdentifier, now: int, next_hop: str = ""
) -> MessageAttributes | None:
    """The report message, with `identifier`, at `now` (seconds since 1970).

    `next_hop` is the address that the message was sent to, empty where it was received. None
    when the message names no queue for reports.
    """
    queue = message.tracing_queue_identifier
    if queue is None:
        return None
    return MessageAttributes(
        destination_queue_format_name=FormatName(FormatNameType.QUEUE_FORMAT_TYPE_PUBLIC, queue),
        identifier=identifier,
        sent_time=now,
        message_class=MessageClass.MQMSG_CLASS_REPORT,
        delivery_guarantee=DeliveryGuarantee.EXPRESS,
        label=_label(message, now),
        body=_body(message, next_hop).encode("utf-16-le"),
        sender_identifier_type=SenderIdentifierType.NONE,
    )


def _label(message: PacketMessage, now: int) -> str:
    source, ordinal = message.identifier.queue_manager_guid, message.identifier.ordinal
    hops = message.user_flags & _HOPS
    return (
        f"{source.hex[:4].upper()}:{ordinal:08X}:{hops:02X} received by "
        f"{str(source).upper()} at {_time(now)}"
    )


def _time(now: int) -> str:
    """12:34:56 PM Mon,Jan 02 06: names are English everywhere."""
    moment = datetime.fromtimestamp(now, UTC)
    half = "AM" if moment.hour < 12 else "PM"
    day, month = _DAYS[moment.weekday()], _MONTHS[moment.month - 1]
    clock = f"{(moment.hour % 12) or 12:02}:{moment:%M:%S}"
    return f"{clock} {half} {day},{month} {moment:%d} {moment:%y}"


def _body(message: PacketMessage, next_hop: str) -> str:
    lines = [
        f"<MESSAGE ID>{message.identifier.ordinal:08X}</MESSAGE ID>\r\n",
        f"<TARGET QUEUE>{message.destination_queue_format_name}</TARGET QUEUE>\r\n",
    ]
    if next_hop:
        lines.append(f"<NEXT HOP>{next_hop}</NEXT HOP>\r\n")
        lines.append(f"<HOP COUNT>{message.user_flags & _HOPS:02X} </HOP COUNT>\r\n")
    return "".join(lines)
