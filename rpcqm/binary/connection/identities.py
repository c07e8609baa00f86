"""Tells arriving messages apart."""

import hashlib

from rpcqm.adm.message import Message
from rpcqm.codec.packet.fields import (
    MESSAGE_ID,
    NAMES_OFFSET,
    QUEUE_MANAGER_ADDRESS,
    SOURCE_QUEUE_MANAGER,
)
from rpcqm.codec.packet.user import QueueFormatType


def identity_of(message: Message) -> bytes:
    """The octets that identify a message: its identifier and its destination.

    The copies of a message to several queues of one machine have the same identifier.
    """
    packet = message.packet
    name = packet[NAMES_OFFSET : message.attributes.layout.admin_queue]
    destination = hashlib.blake2b(packet[QUEUE_MANAGER_ADDRESS] + name, digest_size=8).digest()
    return packet[SOURCE_QUEUE_MANAGER] + packet[MESSAGE_ID] + destination


def is_direct(message: Message) -> bool:
    """Whether a message was sent by a direct format name."""
    return message.attributes.destination_queue_type is QueueFormatType.DIRECT
