"""Decoded values as JSON has them, and as one line for people."""

import dataclasses
import enum
from uuid import UUID

from rpcqm.base.errors import DecodeError, MQError
from rpcqm.codec.interface import NULL, Value
from rpcqm.codec.names.queue_format import format_name_of
from rpcqm.codec.packet.message import PacketMessage
from rpcqm.codec.types.mqmq import QUEUE_FORMAT

MESSAGE_ATTRIBUTES = (
    "identifier",
    "priority",
    "message_class",
    "delivery_guarantee",
    "label",
    "destination_queue_format_name",
    "administration_queue_format_name",
    "response_queue_format_name",
    "source_machine_identifier",
    "destination_queue_manager_identifier",
    "sent_time",
    "time_to_reach_queue",
    "time_to_be_received",
    "body_size",
)
"""What is told of a message packet."""


Plain = str | float | list["Plain"] | dict[str, "Plain"] | None
"""What JSON can say; int and bool are kinds of float here."""


def plain(value: object) -> Plain:
    """A value of any decoded kind as JSON has it: octets in hexadecimal, GUIDs as text."""
    if value is None or isinstance(value, str | bool | float):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).hex()
    if isinstance(value, PacketMessage):
        return message_attributes(value)
    if isinstance(value, Value):
        return {name: plain(getattr(value, name, None)) for name in value.__slots__}
    return _plain_other(value)


def _plain_other(value: object) -> Plain:
    if value is NULL:
        return None
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
        return [plain(each) for each in value]
    if dataclasses.is_dataclass(value):
        names = (field.name for field in dataclasses.fields(value))
        return {name: plain(getattr(value, name)) for name in names}
    return str(value)


def message_attributes(message: PacketMessage) -> dict[str, Plain]:
    """What a message packet tells; what is damaged is left out."""
    found: dict[str, Plain] = {}
    for name in MESSAGE_ATTRIBUTES:
        try:
            value = getattr(message, name)
        except (DecodeError, ValueError):
            # The other attributes of a damaged packet are still worth telling.
            continue
        if isinstance(value, enum.Enum):
            found[name] = value.name
        else:
            told = value is None or isinstance(value, int | str | UUID)
            found[name] = plain(value if told else str(value))
    return found


def queue_text(structure: QUEUE_FORMAT) -> str:
    """The format name of a QUEUE_FORMAT; empty for one that names nothing."""
    try:
        return str(format_name_of(structure))
    except (MQError, ValueError, TypeError, AttributeError):
        # Captured structures may name no queue, or lack members: then the queue is not known.
        return ""
