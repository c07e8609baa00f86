"""What the objects have in common that name queues, and those that messages can be sent to."""

from rpcqm.adm.descriptor import OpenQueueDescriptor
from rpcqm.codec.names.format_name import FormatName, format_names
from rpcqm.dcom.automation import Automation


class NamedQueues(Automation):
    """An object that names one or several queues: an MSMQQueueInfo, an MSMQDestination.

    `queue_format_names` is its QueueFormatName, () while it is NULL.
    """

    queue_format_names: tuple[FormatName, ...] = ()

    def resolved_format_names(self) -> tuple[FormatName, ...]:
        """What it names, looked up if only a path name is known; raises MQError."""
        return self.queue_format_names

    @property
    def queue_format_name(self) -> str:
        """The text of the format name; "" while there is none."""
        return format_names(self.queue_format_names)


class SendingTarget(Automation):
    """An object that messages can be sent to: an MSMQQueue, an MSMQDestination.

    `open_queue_descriptor` is None while it is not open, and where the queue was opened at
    another queue manager.
    """

    open_queue_descriptor: OpenQueueDescriptor | None = None
