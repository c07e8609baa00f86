"""Reads a message from the store."""

from rpcqm.adm.message import Message
from rpcqm.adm.queue import Queue
from rpcqm.base.errors import HResult, MQError
from rpcqm.store.store import Store


def message_at(store: Store, queue: Queue, key: int) -> Message:
    """The message at a position, with its packet. Raises MQ_ERROR_MESSAGE_NOT_FOUND."""
    index = store.index(queue.queue_id)
    position = index.position(key)
    if position is None:
        raise MQError(HResult.MQ_ERROR_MESSAGE_NOT_FOUND)
    message = Message.restored(store.read_packet(position.serial), position.flags)
    message.queue = queue
    message.lookup_identifier = key
    message.arrival_time = position.arrival
    message.abort_count, message.move_count, message.last_move_time = index.moves(key)
    return message
