"""Messages that ask for acknowledgements, and the classes of those that come."""

from typing import Any

from rpcqm.adm.queue import Queue
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.enums import (
    AcknowledgementsRequested,
    MessageClass,
)
from tests.support.queue_manager import RunningQueueManager

PA, PR, NA, NR = (
    AcknowledgementsRequested.ACK_POS_ARRIVAL,
    AcknowledgementsRequested.ACK_POS_RECEIVE,
    AcknowledgementsRequested.ACK_NEG_ARRIVAL,
    AcknowledgementsRequested.ACK_NEG_RECEIVE,
)
REACHED = MessageClass.MQMSG_CLASS_ACK_REACH_QUEUE
RECEIVED = MessageClass.MQMSG_CLASS_ACK_RECEIVE
PURGED = MessageClass.MQMSG_CLASS_NACK_Q_PURGED
DELETED = MessageClass.MQMSG_CLASS_NACK_Q_DELETED
EXPIRED = MessageClass.MQMSG_CLASS_NACK_RECEIVE_TIMEOUT


def asking(queue: Queue, flags: int) -> dict[str, Any]:
    """The attributes of a message that asks for acknowledgements in a queue."""
    name = FormatName.parse(f"DIRECT=OS:{queue.pathname}")
    return {"acknowledgements_requested": flags, "administration_queue_format_name": name}


def classes(qm: RunningQueueManager, queue: Queue) -> list[int]:
    """The classes of the messages of a queue, in order."""
    keys = queue.message_position_list.page(None, 100)
    return [qm.engine.positions.message_at(queue, key).attributes.message_class for key in keys]
