"""Message packets for tests that only need some."""

from uuid import UUID

from rpcqm.codec.layout import Buffer, require
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.message import MessageAttributes, build_user_message
from rpcqm.codec.packet.remote_read import MessagePacketExtension
from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.codec.packet.user_message import UserMessage

MACHINE = UUID("f2b9c2a0-4d3c-4f8e-9d51-000000000001")


def user_message(label: str = "", body: bytes = b"a body", number: int = 1) -> bytes:
    """A UserMessage packet for a private queue."""
    name = FormatName.parse("DIRECT=OS:there\\private$\\orders")
    attributes = MessageAttributes(
        destination_queue_format_name=name,
        identifier=MessageIdentifier(MACHINE, number),
        label=label,
        body=body,
    )
    return bytes(build_user_message(attributes))


def split_message_packet(buffer: Buffer) -> tuple[UserMessage, MessagePacketExtension]:
    """Take a received Message Packet apart; raises DecodeError."""
    packet = UserMessage(buffer)
    size = packet.size
    require(buffer, 0, size, "message packet")
    return UserMessage(buffer[:size]), MessagePacketExtension.decode(buffer, size)
