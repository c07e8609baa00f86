"""What the objects have in common that name queues, and those that messages can be sent to."""

from rpcqm.adm.descriptor import OpenQueueDescriptor
from rpcqm.codec.names.format_name import FormatName
from rpcqm.mqac.owned import Owned


class NamedQueues(Owned):
    """An object that names one or several queues: an MSMQQueueInfo, an MSMQDestination."""

    def resolved_format_names(self) -> tuple[FormatName, ...]:
        """What it names, looked up if only a path name is known; () for nothing, or MQError."""
        raise NotImplementedError


class SendingTarget(Owned):
    """An object that messages can be sent to: an MSMQQueue, an MSMQDestination."""

    @property
    def open_queue_descriptor(self) -> OpenQueueDescriptor | None:
        """None while it is not open, and where the queue was opened at another queue manager."""
        raise NotImplementedError
