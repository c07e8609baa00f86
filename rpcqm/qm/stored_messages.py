"""Reads a message from the store."""

from rpcqm.adm.message import Message
from rpcqm.adm.queue import Queue
from rpcqm.base.errors import HResult, MQError
from rpcqm.codec.packet.patch import with_message_class
from rpcqm.store.store import Store


def message_at(store: Store, queue: Queue, key: int) -> Message:
    """The message at a position, with its packet. Raises MQ_ERROR_MESSAGE_NOT_FOUND.

    The class of a dead letter tells why it is one.
    """
    index = store.index(queue.queue_id)
    position = index.position(key)
    if position is None:
        raise MQError(HResult.MQ_ERROR_MESSAGE_NOT_FOUND)
    message = Message.restored(store.read_packet(position.serial), position.flags)
    message.queue = queue
    message.lookup_identifier = key
    message.arrival_time = position.arrival
    moves = index.moves(key)
    message.abort_count, message.move_count, message.last_move_time, dead_letter_class = moves
    if dead_letter_class:
        message.packet = with_message_class(message.packet, dead_letter_class)
    return message
