"""Administrators' questions and orders to a queue manager ([MS-MQMR] 3.1.4)."""

from collections.abc import Callable

from rpcqm.adm.enums import QueueType
from rpcqm.adm.queue import OutgoingQueue, Queue
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.base.completion import Completion
from rpcqm.base.errors import HResult, MQError
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.written import no_such_queue
from rpcqm.codec.properties import (
    NULL_VARIANT,
    ManagementMachineProperty,
    ManagementQueueProperty,
    PropVariant,
)
from rpcqm.codec.property_values import MsmqConnected
from rpcqm.qm.management_properties import ManagementProperties
from rpcqm.qm.outgoing import Outgoing
from rpcqm.qm.queues import QueueEvents
from rpcqm.qm.registry import QueueRegistry


class Management:
    """Reads properties and acts, for administrators only; callers have checked that."""

    def __init__(
        self,
        queue_manager: QueueManager,
        registry: QueueRegistry,
        queues: QueueEvents,
        outgoing: Outgoing,
        bring_online: Callable[[], Completion[None]],
        take_offline: Callable[[str], Completion[None]],
        compact: Callable[[], Completion[None]],
    ) -> None:
        self._queue_manager = queue_manager
        self._registry = registry
        self._outgoing = outgoing
        self._properties = ManagementProperties(queue_manager, queues, outgoing)
        # TIDY reclaims disk space; no message is removed (G31)
        self.machine_actions: dict[str, Callable[[str], Completion[None]]] = {
            "CONNECT": lambda by: bring_online(),
            "DISCONNECT": take_offline,
            "TIDY": lambda by: compact(),
        }
        """The functions for the texts of actions; each takes the name of the account."""
        self.queue_actions: dict[str, Callable[[OutgoingQueue], Completion[None] | None]] = {
            "PAUSE": outgoing.admin_pause_queue,
            "RESUME": outgoing.admin_resume_queue,
            "EOD_RESEND": outgoing.resend,
        }

    # Queues

    def find(self, name: FormatName) -> Queue:
        """The outgoing queue of a name or the local queue, else MQ_ERROR_QUEUE_NOT_FOUND.

        Messages may still wait for a name that has become one of this machine (G501).
        """
        queue = self._outgoing.find(name) or self._registry.find_by_format_name(name)
        if queue is None:
            raise no_such_queue(name)
        return queue

    def queue_property(self, queue: Queue, identifier: ManagementQueueProperty) -> PropVariant:
        """A property of a queue, which this neither opens nor activates (G31)."""
        return self._properties.read(queue, identifier)

    def act_on_queue(self, queue: Queue, action: str) -> Completion[None] | None:
        """Carry out an order; MQ_ERROR_INVALID_PARAMETER except for outgoing queues."""
        if not isinstance(queue, OutgoingQueue):
            raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, "not an outgoing queue")
        return self.queue_actions[action](queue)

    # The queue manager, [MS-MQMQ] 2.3.11

    def machine_property(self, identifier: ManagementMachineProperty) -> PropVariant:
        """A property of the queue manager."""
        value = _MACHINE_READERS[identifier](self)
        return NULL_VARIANT if value is None else identifier.variant(value)

    def active_queues(self) -> tuple[str, ...]:
        """Format names of the queues that are open, or have messages to send."""
        queues = self._queue_manager.queue_collection.values()
        return tuple(self._properties.format_name_text(queue) for queue in queues if queue.active)

    def private_queues(self) -> tuple[str, ...]:
        """Path names of the private queues."""
        return tuple(
            queue.pathname
            for queue in self._queue_manager.queue_collection.values()
            if queue.queue_type is QueueType.PRIVATE
            and queue.parent is None
            and not isinstance(queue, OutgoingQueue)
        )

    def directory_server(self) -> str | None:
        """The name of the first directory server; None without a directory."""
        servers = self._queue_manager.directory_server_list
        return "\\\\" + servers[0] if servers else None

    def connected(self) -> str:
        """Whether the network is used."""
        if self._queue_manager.connection_active:
            return MsmqConnected.MSMQ_CONNECTED
        return MsmqConnected.MSMQ_DISCONNECTED

    def type(self) -> str:
        """The program and the versions of it and of the operating system."""
        machine = self._queue_manager
        texts = ("rpcqm", machine.queue_manager_version, machine.operating_system_version)
        return " ".join(filter(None, texts))

    def bytes_in_all_queues(self) -> int:
        """The octets of all messages of the queue manager."""
        return sum(queue.total_bytes for queue in self._queue_manager.queue_collection.values())


_MACHINE_READERS: dict[
    ManagementMachineProperty, Callable[[Management], str | int | tuple[str, ...] | None]
] = {
    ManagementMachineProperty.PROPID_MGMT_MSMQ_ACTIVEQUEUES: Management.active_queues,
    ManagementMachineProperty.PROPID_MGMT_MSMQ_PRIVATEQ: Management.private_queues,
    ManagementMachineProperty.PROPID_MGMT_MSMQ_DSSERVER: Management.directory_server,
    ManagementMachineProperty.PROPID_MGMT_MSMQ_CONNECTED: Management.connected,
    ManagementMachineProperty.PROPID_MGMT_MSMQ_TYPE: Management.type,
    ManagementMachineProperty.PROPID_MGMT_MSMQ_BYTES_IN_ALL_QUEUES: Management.bytes_in_all_queues,
}
