"""Packets of messages that came by HTTP, like one that was built before.

A template keeps an outcome of `build_user_message`, which stays the only definition of a packet:
all but the times and the number of the message, and the request that is kept in it.
"""

from typing import NamedTuple

from rpcqm.codec.layout import align4, padded
from rpcqm.codec.packet.base import SIGNATURE, VERSION
from rpcqm.codec.packet.fields import NAMES_OFFSET, head_reader
from rpcqm.codec.packet.srmp import encode_compound, encode_envelope, locate_compound
from rpcqm.codec.packet.user_message import UserMessage
from rpcqm.srmp.elements import SrmpRequest
from rpcqm.srmp.incoming import packet_identifier, times_of

LONGEST = 1 << 16
"""Longest request of which the packet is composed like one before.

No other bound is so low.

Bound `srmp.template_request` [octets]: it is composed each time.
"""
_HEAD = head_reader()
_KEPT = head_reader(("flags",), ("source_queue_manager", "queue_manager_address", "flags"))


class HttpContent(NamedTuple):
    """The content from HTTP: the envelope, the request from `POST` on, the body's place in it."""

    envelope: str
    compound: bytes
    body_size: int
    body_offset: int


class PacketTemplate:
    """A packet with its body in the request; others differ from it in the arguments of `filled`.

    `source` are the octets of SourceQueueManager, on which the form of names depends.
    """

    __slots__ = ("_address", "_base_flags", "_behind", "_middle", "_user_flags", "source")

    def __init__(self, packet: bytes) -> None:
        self._base_flags, self.source, self._address, self._user_flags = _KEPT.unpack_from(packet)
        layout = UserMessage(packet).layout
        self._middle = packet[NAMES_OFFSET : layout.envelope]
        _, end = locate_compound(packet, layout.compound)
        self._behind = packet[align4(end) :]

    def filled(
        self,
        number: int,
        sent_time: int,
        time_to_reach_queue: int,
        time_to_be_received: int,
        content: HttpContent,
    ) -> bytes:
        """The packet with these values, each of which fits its field; times are seconds."""
        envelope = padded(encode_envelope(content.envelope))
        compound = padded(encode_compound(content.compound, content.body_size, content.body_offset))
        parts = self._middle, envelope, compound, self._behind
        head = _HEAD.pack(
            VERSION,
            0,
            self._base_flags,
            SIGNATURE,
            NAMES_OFFSET + sum(map(len, parts)),
            time_to_reach_queue,
            self.source,
            self._address,
            time_to_be_received,
            sent_time,
            number,
            self._user_flags,
        )
        return b"".join((head, *parts))


def packet_like(template: PacketTemplate, request: SrmpRequest, arrived: int) -> bytes | None:
    """The packet of `attributes_of` and `build_user_message` for a request of the template's form.

    The request has a body and nothing else attached. None where the names of its packet may differ,
    because it is from another queue manager.
    """
    identifier = packet_identifier(request.envelope)
    if identifier.queue_manager_guid.bytes_le != template.source:
        return None
    return template.filled(
        identifier.ordinal,
        *times_of(request.envelope, arrived),
        HttpContent(
            request.envelope_text, request.compound, len(request.body or b""), request.body_offset
        ),
    )
