"""The interfaces of objects that name queues, and of those that messages can be sent to."""

from rpcqm.adm.descriptor import OpenQueueDescriptor
from rpcqm.codec.names.format_name import FormatName
from rpcqm.mqac.owned import Owned


class NamedQueues(Owned):
    """An object that names one or several queues: an MSMQQueueInfo, an MSMQDestination."""

    def resolved_format_names(self) -> tuple[FormatName, ...]:
        """The queues that it names; a path name is looked up; () for no name, or MQError."""
        raise NotImplementedError


class SendingTarget(Owned):
    """An object that messages can be sent to: an MSMQQueue, an MSMQDestination."""

    @property
    def open_queue_descriptor(self) -> OpenQueueDescriptor | None:
        """The open queue; None while it is closed, and if it is open at another queue manager."""
        raise NotImplementedError
