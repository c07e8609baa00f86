"""A message that came by HTTP as those see it who know no HTTP ([MS-MQMQ] 2.2.20)."""

from rpcqm.codec.layout import Buffer, padded
from rpcqm.codec.packet.fields import PACKET_SIZE, USER_FLAGS
from rpcqm.codec.packet.properties import MessagePropertiesStart
from rpcqm.codec.packet.user import UserFlags
from rpcqm.codec.packet.user_message import UserMessage

_SIZES = ("message_size", "allocation_body_size")
_AH = UserFlags.AH.bits


def binary_form(packet: Buffer) -> Buffer:
    """The same message with its body in MessagePropertiesHeader, without the HTTP request.

    No packet but those of [MS-MQRR] may have UserFlags.AH ([MS-MQMQ] 2.2.19.2, G230). A message
    that did not come by HTTP is its own form. Raises DecodeError for a damaged packet.
    """
    message = UserMessage(packet)
    if not message.is_srmp:
        return packet
    layout, body = message.layout, message.body
    head = bytearray(packet[: layout.body])
    for name in _SIZES:
        place = MessagePropertiesStart.place(name, layout.properties)
        head[place] = len(body).to_bytes(4, "little")
    flags = message.user_flags & ~_AH
    head[USER_FLAGS] = flags.to_bytes(USER_FLAGS.stop - USER_FLAGS.start, "little")
    between = packet[layout.properties_end : layout.envelope]
    behind = packet[message.srmp_end : message.packet_size]
    result = bytearray(padded(bytes(head) + body) + bytes(between) + bytes(behind))
    result[PACKET_SIZE] = len(result).to_bytes(4, "little")
    return bytes(result) + bytes(packet[message.packet_size : message.size])
