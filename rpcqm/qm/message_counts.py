"""Names of the counters for the fates of messages; `Metrics` counts since the start."""

from rpcqm.codec.packet.enums import MessageClass

ARRIVED = "messages.arrived"
RECEIVED = "messages.received"
EXPIRED = "messages.expired"
PURGED = "messages.purged"
FAILED = "messages.failed"
LEFT = "messages.left"
MOVED = "messages.moved"
DEAD_LETTERS = "dead_letters."
"""The prefix of the reasons of `why_dead`."""

GONE = (RECEIVED, EXPIRED, PURGED, FAILED, LEFT)
"""The fates of messages that are in no queue any more, or in a journal or a dead-letter queue."""

_COUNTERS = {
    MessageClass.MQMSG_CLASS_ACK_RECEIVE: RECEIVED,
    MessageClass.MQMSG_CLASS_NACK_RECEIVE_TIMEOUT: EXPIRED,
    MessageClass.MQMSG_CLASS_NACK_REACH_QUEUE_TIMEOUT: EXPIRED,
    MessageClass.MQMSG_CLASS_NACK_Q_PURGED: PURGED,
    MessageClass.MQMSG_CLASS_NACK_Q_DELETED: PURGED,
    MessageClass.MQMSG_CLASS_NACK_DELETED: PURGED,
}
_PREFIX = "MQMSG_CLASS_NACK_"

UNKNOWN = "unknown"
"""The reason of a dead letter from a version that kept none."""


def counter_of(reason: MessageClass) -> str:
    """The counter of messages that are removed for a reason."""
    return _COUNTERS.get(reason, FAILED)


def why_dead(message_class: int) -> str:
    """The reason of a dead letter in a word, such as `receive_timeout`."""
    try:
        return MessageClass(message_class).name.removeprefix(_PREFIX).lower()
    except ValueError:
        return f"class_{message_class:04x}"
